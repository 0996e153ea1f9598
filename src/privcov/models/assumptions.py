"""The assumptions of a regression as sentences: its target, missing cells, rows of one person, errors.

A sentence is there where what it says may matter, with what the release knows of it. Everything is public.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privcov.models.hidden import CLEAR
from privcov.models.levels import levels_of
from privcov.releases.rounds import can_be_counted
from privcov.schema import Numeric
from privcov.text.aligning import cut

if TYPE_CHECKING:
    from privcov.models.ols import Fit

SHORTENED = " of the shortened rows"
_SUPPOSED = 0.05
"""The share of missing cells that a sentence supposes where the release knows none."""


def assumptions(fit: Fit) -> list[str]:
    """Every assumption that may matter to this fit, a sentence or two each."""
    return [f"Target: {target(fit)}.", *_missing(fit), *_other_values(fit), *_persons(fit), *_errors(fit)]


def target(fit: Fit) -> str:
    """What estimates are of and intervals cover: a regression on the rows that the release is of."""
    if (found := fit.release.calibration) is not None:
        return (
            "the population of the columns within their declared bounds, from rows that the private frame shortened; "
            f"intervals allow for an error of {found.bias:.1g} on correlations from the part that was cut, which is a "
            "model and no proof"
        )
    if fit.release.certificate.rounds:
        others = " (intervals of a release with --cut counted do)" if can_be_counted(fit.release) else ""
        return (
            "the regression on the rows as the private frame shortened them; no interval counts the part that was cut"
            f"{others}"
        )
    cut_rows = " and every longer row shortened" if fit.release.schema.row_norm_bound is not None else ""
    return (
        f"the population with every value moved into its declared bounds{cut_rows}; no interval counts the bias from "
        "this"
    )


def of_rows(fit: Fit) -> str:
    """What R² and the residual error are of, where it is not the rows as they were bounded; with a space before it."""
    shortened = bool(fit.release.certificate.rounds) or fit.release.schema.row_norm_bound is not None
    return SHORTENED if shortened and fit.release.calibration is None else ""


def _missing(fit: Fit) -> list[str]:
    schema, formula = fit.release.schema, fit.formula
    used = formula.columns(schema)
    mine = [column for column in schema.columns if column.name in used]
    lines = []
    if schema.empties_rows:
        rows = fit.release.rows
        share = ""
        if rows is not None and schema.weight is None:  # sums of weights do not count rows
            share = _share(fit, rows - _counted(fit), out_of=rows)
        lines.append(
            f"Missing cells: {share or 'an unknown share'} of the rows lack a cell and are left out. Slopes are those "
            "of complete rows. They are right if cells are missing at random, or depending on other regressors alone."
        )
    indicators = {schema.features[place].column: place for place in schema.number_indicators}
    for name in [column.name for column in mine if column.name in indicators]:
        place, beside = indicators[name], f"{cut(name)}[missing]"
        share = _share(fit, _raw(fit, place, place), out_of=_counted(fit)) or "an unknown share"
        told = (
            f"{beside} counts them: the slope of {cut(name)} is right if they are missing at random, but columns that "
            "go with it take over part of its effect"
            if f"{name}[missing]" in formula.terms
            else f"they count as {_middle(fit)}, which pulls slopes towards zero: add {beside} to the formula"
        )
        lines.append(f"Missing cells of {cut(name)}: {share} of the rows; {told}.")
    middling = [
        column.name
        for column in mine
        if isinstance(column, Numeric) and schema.rule(column) in ("midpoint", "fill")
    ]
    if middling:
        few = ", ".join(map(cut, middling[:6])) + (f" and {len(middling) - 6} more" if middling[6:] else "")
        lines.append(
            f"Missing cells of {few}: each counts as {_middle(fit)} or as a fill. The release does not know how many "
            f"cells are missing. {_pull(fit)}"
        )
    return lines


def _middle(fit: Fit) -> str:
    """What a missing number counts as, which a private frame moves to where the column is."""
    return "the centre that the frame found" if fit.release.certificate.rounds else "the middle of its bounds"


def _pull(fit: Fit) -> str:
    """What a few missing cells at random would do to the slope that minds them most, from the moments themselves.

    With a share p of zeros in place of cells of a column, the moments M that are seen have 1−p of each product with
    it. Solved with and without, its slope is (1 − ph)/(1 − p) of what it should be, h = Mⱼⱼ(M⁻¹)ⱼⱼ: the further from
    the middle of its bounds and the more it goes with other columns, the less. Of the target all slopes are 1 − p.
    """
    schema, found = fit.release.schema, {}
    rules = {column.name: schema.rule(column) for column in schema.columns}
    if fit.moments.intercept and not fit.uncertainty.hides:
        own = fit.moments.design.diagonal() * fit.swept.inverse.diagonal()
        ratios = zip(fit.moments.names, (1 - _SUPPOSED * own) / (1 - _SUPPOSED), strict=True)
        found = {name: ratio for name, ratio in ratios if rules.get(name) == "midpoint" and ratio > 0}
    if rules.get(fit.formula.target) == "midpoint" and found:
        found[fit.formula.target] = 1 - _SUPPOSED
    if not found:
        return "They pull slopes towards zero."
    worst = min(found, key=lambda name: found[name])
    which = "every slope" if worst == fit.formula.target else "its slope"
    return (
        f"If {100 * _SUPPOSED:g} % of the cells of {cut(worst)} were missing at random, {which} would be about "
        f"{found[worst]:.2f} times the right one."
    )


def _other_values(fit: Fit) -> list[str]:
    """Rows that have none of the levels of a column, where they are clear of the noise."""
    law, schema, lines = fit.release.certificate.law, fit.release.schema, []
    if law is None or not schema.intercept or not fit.formula.intercept:
        return []
    for name, levels in levels_of(schema).items():
        if name not in fit.formula.terms:
            continue
        rest = _counted(fit) - sum(_raw(fit, 0, place) for place in levels.values())
        if rest > CLEAR * math.sqrt(len(levels) * law.sums_variance + law.diagonal_variance):
            share = _share(fit, rest, out_of=_counted(fit), entries=len(levels))
            lacking = "" if schema.empties_rows else ", missing cells among them"
            lines.append(
                f"None of the levels of {cut(name)}: {share} of the rows{lacking}. They count with the baseline, and "
                "so blur the differences from it."
            )
    return lines


def _persons(fit: Fit) -> list[str]:
    most = fit.moments.per_person
    if most == 1 or fit.method == "none":
        return []
    return [
        f"Rows of one person: up to {most}, which may depend on each other. Sampling errors are multiplied by "
        f"√{most} = {math.sqrt(most):.2f}, the most that this can do, and degrees of freedom count persons, so "
        "intervals are conservative."
    ]


def _errors(fit: Fit) -> list[str]:
    if fit.method == "none":
        return []
    factors = [] if fit.uncertainty.hides else list(fit.widening.values())
    least, most = (f"{end:.2f}" for end in (min(factors), max(factors))) if factors else ("", "")
    range_ = least if least == most else f"{least} to {most}"
    times = f"{range_} times as large" if factors else "larger"
    if fit.errors == "conservative":
        return [
            f"Errors may have any variance that the bounds allow, for which sampling errors are {times}. R² and the "
            "residual error still assume one variance, and normal errors."
        ]
    rows = "" if fit.moments.per_person > 1 else "Rows are taken to be independent. "
    feature = next(f for f in fit.release.schema.features if f.name == fit.formula.target)
    one = (
        "Intervals assume one variance of errors, but the target is 0 or 1, so errors have not one variance"
        if feature.kind != "numeric"
        else "Errors are taken to have one variance; no release can show whether they do"
    )
    return [f'{rows}{one}. Intervals for any variance (errors "conservative") have sampling errors {times}.']


def _raw(fit: Fit, i: int, j: int) -> float:
    return float(fit.release.second_moment(raw=True, scaled=True)[i, j])


def _counted(fit: Fit) -> float:
    """The rows that count: public, or the noisy count."""
    public = fit.release.counted_rows
    return max(_raw(fit, 0, 0), 1.0) if public is None else float(public)


def _share(fit: Fit, count: float, *, out_of: float, entries: int = 1) -> str:
    """A noisy count as a share of rows, with twice its noise; nothing where that is not known."""
    law = fit.release.certificate.law
    if law is None:
        return ""
    share, spread = count / out_of, 2 * math.sqrt(entries * law.diagonal_variance) / out_of
    if share < spread:
        return f"at most {100 * (max(share, 0.0) + spread):.2g} %"
    return f"about {100 * share:.3g} ± {100 * spread:.2g} %"
