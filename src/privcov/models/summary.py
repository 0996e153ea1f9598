"""A fit as text, values, LaTeX or a frame: the table people know, and how much of it is privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privcov.errors import ParameterError
from privcov.models.assumptions import assumptions, of_rows, target
from privcov.models.levels import Term
from privcov.models.score_sets import Pieces
from privcov.text.aligning import cut, line, paragraph, parts, terminal, widths

if TYPE_CHECKING:
    import pandas

    from privcov.models.ols import Fit
    from privcov.models.ridge import RidgeFit
    from privcov.schema.columns import Feature

_METHODS = {
    "wald": "Wald, with a sandwich variance of sampling and privacy noise",
    "score": "score inversion (Fieller), valid for noise of any size",
    "bootstrap": "parametric bootstrap of sampling and privacy noise",
    "naive": "NAIVE: the noise of the release is ignored, so standard errors are too small",
    "none": "none, because the noise of this mechanism has no known distribution",
}
_CODES = "Signif. codes: 0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"
TWO = (
    "Population: the interval for the coefficient among the people that the rows were sampled from. This table: the "
    "interval for the coefficient that these very rows would give without noise."
)
SHRUNK = (
    "slopes drawn towards zero as far as this noise demands. The estimates may predict worse than the mean. "
    "Intervals and tests are about the estimates."
)
_MATERIAL = 0.1  # of the norm of the slopes
REHEARSAL = "REHEARSAL: repeatable noise, protects nobody; not for publication"


def headings(values: dict[str, Any]) -> dict[str, str]:
    """What the intervals of a fit are about, by the name of their sets in its rows; some fits have one kind only.

    >>> headings({"level": 0.95, "about": "population", "method": "wald"})
    {'set': '95 % population', 'table_set': '95 % this table'}
    """
    level = f"{100 * values['level']:g} %"
    if values["about"] == "table":
        return {"set": f"{level} this table"}
    both = {"set": f"{level} population", "table_set": f"{level} this table"}
    return {"set": both["set"]} if values["method"] == "naive" else both


def as_text(fit: Fit, level: float = 0.95) -> str:
    """The whole summary, labels first."""
    rows, estimate = _rows(fit, level), partial(rounded, digits=known_digits(fit))
    lines = [*_labels(fit), paragraph(f"Private least squares: {fit.formula}", within=terminal()), ""]
    if fit.method == "none":
        lines += [
            _aligned(["", "Estimate"], [[cut(row["name"]), estimate(row["estimate"])] for row in rows]),
            "",
        ]
        lines += [_refusal(fit)]
    else:
        shrunk = shrunk_beside(fit)
        statistic = "score root" if fit.method == "score" else "t value"
        heads = ["", "Estimate", "Std. Error", statistic, "Pr(>|t|)", ""]
        drawn = ["shrunk"] if shrunk else []
        parts = [] if fit.naive else ["sampling", "privacy"]
        intervals = _headings(fit, level)
        widened = ["sampling ×"] if fit.errors == "conservative" and fit.about == "population" else []
        heads += [*intervals.values(), *parts, *widened, *drawn]
        cells = [
            [
                cut(row["name"]),
                estimate(row["estimate"]),
                estimate(row["std_error"]),
                _statistic(row["t_value"]),
                _probability(row["p_value"]),
                row["code"],
                *(_spans(row[pieces]) for pieces in intervals),
                *(estimate(row[f"{part}_std_error"]) for part in parts),
                *(short(row["widening"]) for _ in widened),
                *(short(row[word]) for word in drawn),
            ]
            for row in rows
        ]
        lines += [
            _aligned(heads, cells),
            "---",
            _CODES,
            *map(paragraph, _split(fit)),
            "",
            *(paragraph(figures, within=terminal()) for figures in _overall(fit, level)),
        ]
    return "\n".join([*lines, "", *map(paragraph, _closing(fit))])


def as_values(fit: Fit, level: float = 0.95) -> dict[str, Any]:
    """The same for programs: None stands for an infinite end, and for what cannot be said."""
    values: dict[str, Any] = {
        "formula": str(fit.formula),
        "method": fit.method,
        "labels": _labels(fit),
        "rehearsal": fit.rehearsal,
        "level": level,
        "rows": fit.moments.rows,
        "rows_public": fit.moments.rows_public,
        "weighted": fit.release.schema.weight is not None,
        "target": target(fit),
        "rows_shortened": bool(of_rows(fit)),
        "assumptions": assumptions(fit),
        "errors": fit.errors,
        "about": fit.about,
        "rows_per_person": fit.moments.per_person,
        "merged": list(fit.merged),
        "digits": known_digits(fit),
        "coefficients": [{word: _plain(value) for word, value in row.items()} for row in _rows(fit, level)],
        "guarantee": str(fit.release.certificate.loss),
        "mechanism": fit.release.certificate.mechanism,
    }
    if fit.method == "none":
        return {**values, "refused": _refusal(fit)}
    test = fit.f_test
    return {
        **values,
        "drowned": list(fit.uncertainty.drowned),
        "shrunk": None if (shrunk := shrunk_beside(fit)) is None else shrunk.params,
        "residual_std_error": _finite(fit.residual_std_error),
        "residual_std_error_interval": [_finite(end) for end in fit.residual_std_error_interval(level)],
        "residual_freedom": fit.moments.freedom,
        "test_freedom": _finite(fit.uncertainty.freedom),
        "r_squared": _finite(fit.rsquared),
        "r_squared_interval": list(fit.rsquared_interval(level)),
        "table_residual_std_error_interval": [
            _finite(end) for end in fit.table.residual_std_error_interval(level)
        ],
        "table_r_squared_interval": list(fit.table.rsquared_interval(level)),
        "f_test": None
        if test is None or (fit.naive and math.isnan(fit.residual_std_error))
        else {
            "statistic": _finite(test.statistic),
            "numerator_freedom": test.numerator_freedom,
            "denominator_freedom": _finite(test.denominator_freedom),
            "p_value": test.p_value,
        },
    }


def as_latex(fit: Fit, level: float = 0.95) -> str:
    """A tabular with booktabs rules, columns by their labels; warnings and promise in the last lines of it."""
    refused, shrunk = fit.method == "none", shrunk_beside(fit)
    heads = ["", "Estimate"]
    if not refused:
        heads += [
            "Std. Error",
            "$t$",
            r"$\Pr(>|t|)$",
            *map(latex_text, _headings(fit, level).values()),
            "privacy share",
            *(["shrunk"] if shrunk else []),
        ]
    body, titles, estimate = [], fit.release.schema.titles, partial(rounded, digits=known_digits(fit))
    for row in _rows(fit, level):
        cells = [latex_text(titles.get(row["name"], row["name"])), estimate(row["estimate"])]
        if not refused:
            cells += [
                estimate(row["std_error"]),
                _statistic(row["t_value"]),
                latex_text(_probability(row["p_value"])),
            ]
            for pieces in _headings(fit, level):
                cells += [_spans(row[pieces]).replace("∞", r"$\infty$").replace("∪", r"$\cup$")]
            cells += [rf"{100 * row['privacy_share']:.0f}\,\%"]
            cells += [short(row["shrunk"])] if "shrunk" in row else []
        body.append(" & ".join(cells) + r" \\")
    drawn = [_to_predict(shrunk)] if shrunk else []
    notes = [*_labels(fit), f"{fit.formula}", *drawn, *_closing(fit)]
    wide = [rf"\multicolumn{{{len(heads)}}}{{l}}{{{latex_text(note)}}} \\" for note in notes]
    rows = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", " & ".join(heads) + r" \\"]
    return "\n".join([*rows, r"\midrule", *body, r"\bottomrule", *wide, r"\end{tabular}"])


def as_frame(fit: Fit, level: float = 0.95) -> pandas.DataFrame:
    """One row per coefficient."""
    try:
        import pandas
    except ImportError:
        raise ParameterError(
            "E239", "to_pandas needs pandas.", "Install it with pip install pandas."
        ) from None
    frame = pandas.DataFrame(_rows(fit, level)).set_index("name")
    frame.attrs.update(
        {"method": fit.method, "labels": _labels(fit), "guarantee": str(fit.release.certificate.loss)}
        | {"titles": fit.release.schema.titles}
    )
    if fit.rehearsal:
        frame.index.name = REHEARSAL
    return frame


def known_digits(fit: Fit) -> int | None:
    """How many digits of an estimate tables print: one of a drowned fit, two where nobody knows the noise, else all."""
    if fit.method == "none":
        return 2
    return 1 if fit.method != "naive" and fit.uncertainty.hides else None


def significant(value: float, digits: int) -> float:
    """The nearest number of so many significant digits.

    >>> significant(-17.442, 1), significant(0.7275, 2)
    (-20.0, 0.73)
    """
    return float(f"{value:.{digits - 1}e}")


def rounded(value: float, digits: int | None) -> str:
    """A number of a table, cut to so many significant digits where not all mean something.

    >>> rounded(-17.442, None), rounded(-17.442, 1), rounded(0.7275, 2), rounded(202.06, 1)
    ('-17.442', '-20', '0.73', '200')
    """
    if digits is None or not math.isfinite(value) or value == 0:
        return short(value)
    near = significant(value, digits)
    last = digits - 1 - math.floor(math.log10(abs(near)))
    return f"{near:.{max(0, last)}f}" if 1e-4 <= abs(near) < 1e7 else f"{near:.{digits - 1}e}"


def _headings(fit: Fit, level: float) -> dict[str, str]:
    return headings({"level": level, "about": fit.about, "method": fit.method})


def _rows(fit: Fit, level: float) -> list[dict[str, Any]]:
    if fit.method == "none":
        return [{"name": name, "estimate": value} for name, value in fit.params.items()]
    values, probabilities = fit.tvalues, fit.pvalues  # before the sets, which begin where these ended
    sets, errors, shares = fit.conf_set(level), fit.bse, fit.privacy_share
    tables, widening = (
        {name: _part_of(pieces, sets[name]) for name, pieces in fit.table.conf_set(level).items()},
        fit.widening,
    )
    shrunk = shrunk_beside(fit)
    drawn = {} if shrunk is None else shrunk.params
    sampling = math.nan if math.isnan(fit.residual_std_error) else 1.0  # no share of it where noise hides all
    if fit.naive and math.isnan(sampling):  # who ignores the noise has no errors then, and so no table
        errors = values = probabilities = dict.fromkeys(errors, math.nan)
        sets = tables = dict.fromkeys(errors, ((math.nan, math.nan),))
    return [
        {
            "name": name,
            "estimate": estimate,
            "std_error": errors[name],
            "t_value": values[name],
            "p_value": probabilities[name],
            "code": significance(probabilities[name]),
            "lower": sets[name][0][0],
            "upper": sets[name][-1][1],
            "set": sets[name],
            "table_lower": tables[name][0][0],
            "table_upper": tables[name][-1][1],
            "table_set": tables[name],
            "privacy_share": shares[name],
            "sampling_std_error": sampling * errors[name] * math.sqrt(1 - min(shares[name], 1.0)),
            "privacy_std_error": errors[name] * math.sqrt(shares[name]),
            "widening": widening[name],
            **({"shrunk": drawn[name]} if drawn else {}),
        }
        for name, estimate in fit.params.items()
    ]


def _part_of(pieces: Pieces, whole: Pieces) -> Pieces:
    """What a set has in common with another; itself, where that is nothing.

    What this table would have said is part of what the population may be. Where sampling is next to nothing the two
    are one, and simulated ends, or tails of another law, make the part reach a little beyond.

    >>> _part_of(((-2.0, 1.2),), ((-1.9, 1.3),)), _part_of(((-9.0, 9.0),), ((-9.5, 0.0), (1.0, 9.5)))
    (((-1.9, 1.2),), ((-9.0, 0.0), (1.0, 9.0)))
    """
    both = [(max(low, start), min(high, end)) for low, high in pieces for start, end in whole]
    return tuple(pair for pair in both if pair[0] <= pair[1]) or pieces


def significance(p_value: float) -> str:
    """The code of a p-value.

    >>> [significance(p) for p in (0.0001, 0.004, 0.03, 0.07, 0.5)]
    ['***', '**', '*', '.', '']
    """
    return next((code for limit, code in _LIMITS if p_value < limit), "")


_LIMITS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))


def _labels(fit: Fit) -> list[str]:
    labels = [REHEARSAL] if fit.rehearsal else []
    return (
        [*labels, "NAIVE TABLE: the noise of the release is ignored; do not trust it"]
        if fit.naive
        else labels
    )


def _split(fit: Fit) -> list[str]:
    if fit.naive:
        return []
    parts = ", ".join(
        f"{cut(name)} {100 * share:.0f} %" for name, share in list(fit.privacy_share.items())[:12]
    )
    lines = ["", f"Share of privacy noise in each variance (std. error squared): {parts}."]
    if fit.uncertainty.hides:
        lines.append(f"THE NOISE IS TOO LARGE FOR THIS MODEL: {may_be_others(fit)}")
    if shrunk := shrunk_beside(fit):
        lines.append(_to_predict(shrunk))
    if fit.method == "score":
        lines.append(
            "Standard errors are first-order approximations. Intervals and p-values do not use them: they follow from "
            "the score root, and not from estimate / error."
        )
    elif not fit.uncertainty.wald_is_sound:
        lines.append(
            f"DO NOT TRUST THESE INTERVALS: the noise is too large for {fit.method}. Use method score, or auto."
        )
    return lines


def may_be_others(fit: Fit) -> str:
    """Which columns the noise hides, what that means for the table, and how to do without them."""
    drowned, slopes = fit.uncertainty.drowned, len(fit.moments.names) - int(fit.moments.intercept)
    few = ", ".join(map(cut, drowned[:8])) + (f" and {len(drowned) - 8} more" if drowned[8:] else "")
    few, without = few or "some of its columns", ""
    if not drowned:
        without = " A model of fewer columns may have bounded intervals."
    elif len(drowned) < slopes:
        features = {feature.name: feature for feature in fit.release.schema.features}
        terms = [_spelled(features[name]) for name in drowned if name in features]
        without = (
            f" Without these columns intervals may be bounded: write … - {' - '.join(terms)}."
            if terms
            else ""
        )
    said = "noise hides how much it varies" if slopes == 1 else "may be a combination of other columns"
    return (
        f"{few}{':' * (slopes == 1)} {said}. Estimates and standard errors mean little, so one digit of each "
        f"is printed, and R² cannot be told.{without}"
    )


def _spelled(feature: Feature) -> str:
    """A column or one of its levels as formulas have it."""
    level = {"level": str(feature.level), "missing": "missing"}.get(feature.kind)
    return str(Term(column=feature.column, chosen=() if level is None else (level,)))


def _to_predict(shrunk: RidgeFit) -> str:
    return (
        f"To predict, take the column shrunk (ridge, penalty {shrunk.penalty:.3g} in scaled units): {SHRUNK}"
    )


def shrunk_beside(fit: Fit) -> RidgeFit | None:
    """What to predict with, where noise is large for the design and it is a tenth or more from the estimates."""
    if fit.method in ("none", "naive") or fit.uncertainty.wald_is_sound or fit.shrunk is None:
        return None
    slopes = fit.swept.coefficients[1:]
    apart = np.linalg.norm(fit.shrunk.scaled_slopes - slopes)
    return fit.shrunk if apart > _MATERIAL * np.linalg.norm(slopes) else None


def _overall(fit: Fit, level: float) -> list[str]:
    moments = fit.moments
    low, high = fit.rsquared_interval(level)
    ends, spread = fit.table.rsquared_interval(level), fit.table.residual_std_error_interval(level)
    here = (
        ("", "")
        if len(_headings(fit, level)) == 1
        else (_here(*map(short, spread)), _here(*(f"{end:.4g}" for end in ends)))
    )
    error, (least, most) = fit.residual_std_error, fit.residual_std_error_interval(level)
    digits = known_digits(fit) or (FEW if least == 0 else None)  # it cannot be told from none at all
    found = "is within the noise" if math.isnan(error) else within(error, least, most, digits)
    few = FEW if low == 0 else None
    share = "cannot be told" if math.isnan(fit.rsquared) else within(fit.rsquared, low, high, few)
    rows = of_rows(fit)
    lines = [
        f"Residual standard error{rows} {found}, {100 * level:g} % interval [{short(least)}, {short(most)}]"
        f"{here[0]}, on {moments.freedom:,.0f} degrees of freedom",
        f"R-squared{rows} {share}, {100 * level:g} % interval [{low:.4g}, {high:.4g}]{here[1]}",
    ]
    if (test := fit.f_test) is not None and not (fit.naive and math.isnan(error)):
        lines.append(
            f"F-statistic {short(test.statistic)} on {test.numerator_freedom} and "
            f"{test.denominator_freedom:,.0f} degrees of freedom, p-value {_probability(test.p_value)}"
        )
    return lines


def within(value: float, least: float, most: float, digits: int | None) -> str:
    """A number cut to so many digits, or to as few more as leave it within its interval.

    >>> within(22_310.0, 20_927.4, 26_132.0, 1), within(17.442, 5.0, 30.0, 1)
    ('22000', '20')
    """
    while digits is not None and digits < _MOST_DIGITS and least <= value <= most:
        if least <= significant(value, digits) <= most:
            break
        digits += 1
    return rounded(value, digits)


FEW, _MOST_DIGITS = 2, 6


def _here(low: str, high: str) -> str:
    return f" (this table [{low}, {high}])"


def _closing(fit: Fit) -> list[str]:
    moments, certificate = fit.moments, fit.release.certificate
    rows = (
        f"{moments.rows:,.0f} rows (public)."
        if moments.rows_public
        else f"About {moments.rows:,.0f} rows (a noisy count"
        + (")." if fit.method == "none" else "; the standard errors include its noise).")
    )
    if fit.release.schema.weight is not None:
        rows = (
            f"Weighted: effectively about {moments.rows:,.0f} rows, (Σw)²/Σw² of noisy sums (Kish). Intervals allow "
            "for unequal weights, and ignore strata and clusters of the design."
        )
    return [
        *([] if fit.naive or fit.method == "none" or fit.about == "table" else [TWO]),
        *assumptions(fit),
        *merged(fit),
        f"Intervals: {_METHODS[fit.method]}.",
        rows,
        f"Promise: {certificate.loss}, by {certificate.mechanism}. This costs no further privacy.",
    ]


def merged(fit: Fit) -> list[str]:
    """The levels that count with the baseline, in a sentence; nothing where there are none."""
    if not fit.merged:
        return []
    names = ", ".join(map(cut, fit.merged[:8])) + (
        f" and {len(fit.merged) - 8} more" if len(fit.merged) > 8 else ""
    )
    return [
        f"Counted with the baseline, because noise hides the difference: {names}. The level has too few rows, or the "
        "baseline has; then the most frequent level joins it."
    ]


def _refusal(fit: Fit) -> str:
    return (
        f"No standard errors, intervals or tests: the noise of {fit.release.certificate.mechanism} has no known "
        "distribution, so two digits of each estimate are printed. Ask for a release by symmetric-wishart or gaussian."
    )


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    taken, tables = widths(heads, rows), []
    for part in parts(taken, terminal(), between=2):
        words = [k for k, place in enumerate(part) if place in (0, 5)]
        widest = [taken[place] for place in part]
        placed = (line([cells[p] for p in part], widest, words, between="  ") for cells in (heads, *rows))
        tables.append("\n".join(placed))
    return "\n\n".join(tables)


def _spans(pieces: Pieces) -> str:
    """A confidence set as it is, pieces and all.

    >>> _spans(((-math.inf, -2.0), (1.0, math.inf)))
    '(-∞, -2.000] ∪ [1.000, ∞)'
    """
    return " ∪ ".join(span(low, high) for low, high in pieces)


def span(low: float, high: float) -> str:
    """An interval as tables have it.

    >>> span(1.0, math.inf)
    '[1.000, ∞)'
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    if math.isinf(low) and math.isinf(high):
        return "unbounded (-∞, ∞)"
    return f"[{short(low)}, {short(high)}]".replace("[-inf", "(-∞").replace("inf]", "∞)")


def short(value: float) -> str:
    """Four significant digits or so, in plain notation where that stays short."""
    if math.isnan(value) or math.isinf(value):
        return "–" if math.isnan(value) else str(value)
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.3e}"
    digits = 4 if size < 1 else 3 if size < 100 else 2 if size < 1000 else 1
    return f"{value:.{digits}f}"


def _statistic(value: float) -> str:
    """A statistic to two decimals.

    >>> _statistic(-1.234), _statistic(math.inf), _statistic(math.nan)
    ('-1.23', '∞', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.2f}".replace("inf", "∞")


def _probability(value: float) -> str:
    """A p-value; below one in ten thousand neither the law of errors nor that of sampling is known well enough."""
    if math.isnan(value):
        return "–"
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """A value for JSON: numbers that are not finite become None, pieces become lists."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return _finite(value) if isinstance(value, float) else value


def latex_text(text: str) -> str:
    """Any text as LaTeX prints it: every mark that means something there is escaped.

    >>> print(latex_text("a_b ~ 100 %"))
    a\\_b $\\sim$ 100 \\%
    """
    return "".join(_LATEX_MARKS.get(letter, letter) for letter in text)


_LATEX_MARKS = {mark: "\\" + mark for mark in "_%&#${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"$\sim$",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "`": r"\textasciigrave{}",
}
