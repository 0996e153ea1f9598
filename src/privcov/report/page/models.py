"""Models of the release on a page: regressions and principal components.

A regression is a picture on one scale, the table people know, and how much of it is privacy. Components are as many
as were asked for, with how many directions stand above the noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.models.assumptions import SHORTENED
from privcov.models.ols import Errors, Fit
from privcov.models.pca import Direction, PCAFit, about_tails, pca
from privcov.models.summary import SHRUNK, TWO, headings, may_be_others, merged, significant
from privcov.releases.release import Release
from privcov.releases.rounds import counted, uncounted
from privcov.report.drawing import Estimate, Markup, coefficients, heat_map, join, spectrum, tag
from privcov.report.page.elements import (
    Section,
    facts,
    figure,
    number,
    paragraphs,
    share,
    side_by_side,
    table,
    warning,
)

_MOST = 40


def model(fit: Fit, *, place: int = 1, level: float = 0.95) -> Section:
    """One model: coefficients with intervals, drawn and in figures."""
    values = fit.to_dict(level)
    refused = values.get("refused")
    body: list[Markup] = [warning(words) for words in values["labels"]]
    if refused:
        body.append(warning(str(refused)))
    for words in [*_cautions(fit), *merged(fit)]:
        body.append(warning(words))
    picture = coefficient_figure(fit, values)
    drowned = fit.method not in ("none", "naive") and fit.uncertainty.hides
    body.append(side_by_side(*([picture] if picture else []), overall(values, drowned=drowned)))
    body.append(coefficient_table(values))
    body += [tag("p", words, class_="note") for words in values["assumptions"]]
    return Section(name=f"model-{place}", heading=values["formula"], body=join(body))


def unanswered(formula: str, reason: str, *, place: int) -> Section:
    """A model that cannot be fitted, and why."""
    return Section(name=f"model-{place}", heading=formula, body=warning(reason))


def coefficient_figure(fit: Fit, values: dict[str, Any]) -> Markup | None:
    """Every slope as what it does over the whole declared range of its column, so that one axis serves all."""
    schema = fit.release.schema
    widths = {
        feature.name: feature.upper - feature.lower
        for feature in schema.features
        if feature.kind != "intercept"
    }
    rows = [row for row in values["coefficients"] if row["name"] in widths]
    if not rows:
        return None
    titles = schema.titles
    shown = [_estimate(row, widths[row["name"]], titles[row["name"]]) for row in rows[:_MOST]]
    clear = [
        one.name
        for one in shown
        if one.low is not None and one.high is not None and not one.low <= 0 <= one.high
    ]
    told = f"Clear of zero: {', '.join(clear[:12])}." if clear else "No interval is clear of zero."
    if "refused" in values:
        told = "Estimates only: there are no intervals."
    picture = coefficients(
        shown,
        title=f"Slopes of {values['formula']}",
        description=told,
        x_label=f"change in {titles.get(fit.formula.target, fit.formula.target)}",
    )
    more = f" The first {_MOST} of {len(rows)}." if len(rows) > _MOST else ""
    return figure(
        picture,
        f"What each column does to {fit.formula.target}, in its own units, from the lower to the upper bound of the "
        f"column (a level: against the first one). {told} An arrow is an interval without an end.{more}",
    )


def coefficient_table(values: dict[str, Any]) -> Markup:
    """Estimates, standard errors, intervals, p-values, and the share of each variance that is privacy."""
    if "refused" in values:
        return table(
            ["", "estimate"],
            [[row["name"], _known(row["estimate"], values["digits"])] for row in values["coefficients"]],
        )
    intervals = headings(values)
    drawn = ["shrunk"] if values["shrunk"] else []
    widened = (
        ["sampling error ×"] if (values["errors"], values["about"]) == ("conservative", "population") else []
    )
    heads = ["", "estimate", "std. error", *intervals.values(), "p-value", "privacy", *widened, *drawn]
    rows = [
        [
            row["name"],
            _known(row["estimate"], values["digits"]),
            _known(row["std_error"], values["digits"], usual=3),
            *(_spans(row[pieces]) for pieces in intervals),
            _probability(row["p_value"]),
            share(row["privacy_share"]),
            *(number(row["widening"], 3) for _ in widened),
            *(number(row[word]) for word in drawn),
        ]
        for row in values["coefficients"]
    ]
    said = f"Intervals: {_METHODS[values['method']]}. Privacy: the share of the squared standard error that is noise."
    said += f" {TWO}" if len(intervals) > 1 else ""
    said += f" Shrunk, to predict with: {SHRUNK}" if drawn else ""
    return table(heads, rows, caption=said)


def _known(value: float | None, digits: int | None, usual: int = 4) -> str:
    """A number of as many digits as mean something."""
    if value is None or digits is None:
        return number(value, usual)
    return number(significant(value, digits), digits)


def overall(values: dict[str, Any], *, drowned: bool = False) -> Markup:
    """What the whole model says; nothing, where its columns are ``drowned`` in noise."""
    count = f"{values['rows']:,.0f}"
    told = "effectively, of weighted ones" if values["weighted"] else "a noisy count"
    known: list[tuple[str, object]] = [
        ("Rows", count if values["rows_public"] else f"about {count} ({told})")
    ]
    if drowned:
        known.insert(0, ("R²", "cannot be told from this release"))
    elif "refused" not in values:
        rows = SHORTENED if values["rows_shortened"] else ""
        words = {"R²": "r_squared", "Residual standard error": "residual_std_error"}
        known = [*((f"{word}{rows}", _with_interval(values, key)) for word, key in words.items()), *known]
        if (test := values["f_test"]) is not None:
            told = f"{number(test['statistic'], 3)}, p-value {_probability(test['p_value'])}"
            known.insert(1, ("F, every slope zero", told))
    return facts(known)


def _with_interval(values: dict[str, Any], key: str) -> str:
    """A number and its interval; one that cannot be told from zero has two digits, one that is not known none."""
    low, high = values[f"{key}_interval"]
    ends = f"[{number(low, 3)}, {number(high, 3)}]"
    if values[key] is None:
        return f"cannot be told {ends}"
    return f"{_known(values[key], 2 if low == 0 else None, 3)} {ends}"


_METHODS = {
    "wald": "Wald, counting sampling and the noise",
    "score": "score inversion, valid for noise of any size",
    "bootstrap": "bootstrap of sampling and the noise",
    "naive": "NAIVE, the noise ignored: too short",
    "none": "none",
}


def _cautions(fit: Fit) -> list[str]:
    if fit.method in ("none", "naive"):
        return []
    if fit.uncertainty.hides:
        return [f"The noise is too large for this model: {may_be_others(fit)}"]
    if fit.method != "score" and not fit.uncertainty.wald_is_sound:
        return [f"Do not trust these intervals: the noise is too large for {fit.method}."]
    return []


def _estimate(row: dict[str, Any], width: float, title: str) -> Estimate:
    if "lower" not in row:
        return Estimate(name=title, value=width * row["estimate"])
    low = -math.inf if row["lower"] is None else width * row["lower"]
    high = math.inf if row["upper"] is None else width * row["upper"]
    return Estimate(name=title, value=width * row["estimate"], low=low, high=high)


def _spans(pieces: list[list[float | None]]) -> str:
    return " ∪ ".join(_span(low, high) for low, high in pieces)


def _span(low: float | None, high: float | None) -> str:
    start = "(−∞" if low is None else f"[{number(low, 3)}"
    return f"{start}, " + ("∞)" if high is None else f"{number(high, 3)}]")


def _probability(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


_MOST_COLUMNS = 8
_ROWS = 14
_UNASKED = 400
"""Columns up to which the noise edge, which is simulated, takes seconds."""


def components(release: Release, rank: int | None = None, errors: Errors = "equal") -> Section:
    """The spectrum with its noise edge; with a ``rank``, so many components with variances and loadings.

    ``errors`` is what is assumed of rows, as ``privcov.pca`` has it.
    """
    if rank is None and len(release.columns) > _UNASKED:
        words = f"The spectrum of {len(release.columns):,} columns takes long to compute: ask for components to see it."
        return Section(name="spectrum", heading="How many directions", body=tag("p", words))
    try:
        fit = pca(release, rank=rank, centred=release.schema.intercept, errors=errors)
    except ParameterError as reason:
        if rank is not None:
            raise
        words = f"There is no spectrum to show: {reason.sentence}"
        return Section(name="spectrum", heading="How many directions", body=tag("p", words))
    pictures = [spectrum_figure(fit)]
    if rank is not None:
        pictures.append(loadings_figure(fit))
    cut = uncounted(release) or counted(release)
    told = [variances(fit) if rank is not None else None, _closing(fit), cut and tag("p", cut, class_="note")]
    body = [side_by_side(*pictures), *told]
    return Section(name="spectrum", heading="How many directions", body=join(part for part in body if part))


def spectrum_figure(fit: PCAFit) -> Markup:
    """Eigenvalues as released, repaired ones behind them, and the edge."""
    edge = fit.noise_edge
    if edge is None:
        why = (
            "has no known distribution" if fit.release.certificate.law is None else "is too wide to simulate"
        )
        told = f"The noise of this mechanism {why}, so no noise edge is drawn."
    else:
        above = int((fit.raw_variance > edge).sum())
        told = f"{above} of {len(fit.columns)} are above the noise edge, which noise alone exceeds in 1 of 20 releases."
    about = "variance" if fit.centred else "mean square"
    picture = spectrum(
        fit.raw_variance.tolist(),
        edge=edge,
        repaired=np.sort(np.linalg.eigvalsh(fit.covariance))[::-1].tolist(),
        title=f"Eigenvalues of {len(fit.columns)} columns",
        description=told,
        y_label=f"{about} along it ({'scaled' if fit.scaled else 'original'} units)",
    )
    return figure(picture, f"Eigenvalues, largest first. {told}")


def loadings_figure(fit: PCAFit) -> Markup:
    """Directions of the kept components as cells, for the columns that matter most to them."""
    directions = fit.directions()
    shown = min(len(directions), _MOST_COLUMNS)
    if not shown:
        return paragraphs("No component is larger than the noise.")
    if len(directions[0].components) == len(fit.columns) > 1:
        return paragraphs("No component can be told apart from another: nothing is known of directions.")
    loadings = np.stack([one.loadings for one in directions[:shown]], axis=1)
    clear = np.stack([_stands_clear(one) for one in directions[:shown]], axis=1)
    largest = np.argsort(-np.abs(loadings).max(axis=1), kind="stable")[:_ROWS]
    places = np.sort(largest).tolist()
    told = f" The first {shown} of {len(directions)}." if len(directions) > shown else ""
    if any(len(one.components) > 1 for one in directions):
        told += (
            " Of components that cannot be told apart: how much of each column's axis is within their span."
        )
    if len(places) < len(fit.columns):
        told += f" The {len(places)} of {len(fit.columns)} columns with the largest loadings are shown."
    titles = fit.release.schema.titles
    picture = heat_map(
        [titles[fit.columns[place]] for place in places],
        loadings[places].tolist(),
        columns=[one.name for one in directions[:shown]],
        title=f"Loadings of {shown} components",
        clear=clear[places].tolist(),
    )
    if not clear[places].all():
        told += " No colour: what cannot be told from zero, for the population."
    return figure(picture, f"What each component is made of: its loadings on the columns.{told}")


def _stands_clear(one: Direction) -> NDArray[np.bool_]:
    """Which loadings have an interval without zero; all of them where there are no intervals."""
    if one.ends is None:
        return np.ones(len(one.loadings), dtype=np.bool_)
    return np.asarray((one.ends[:, 0] > 0) | (one.ends[:, 1] < 0))


def variances(fit: PCAFit, level: float = 0.95) -> Markup:
    """Variance, share and intervals of each component, and of groups that cannot be told apart."""
    rows, kinds = [], {"interval": "this table", "population_interval": "population"}
    told = fit.to_dict(level)["directions"]
    kinds = {key: f"{100 * level:g} %, {word}" for key, word in kinds.items() if told and told[0][key]}
    for one in told:
        row = [one["name"], number(one["variance"]), share(one["share"])]
        for low, high in (one[key] for key in kinds):
            row.append(f"[{number(low, 3)}, " + ("∞)" if high is None else f"{number(high, 3)}]"))
        rows.append(row)
    return table(["", "variance", "share", *kinds.values()], rows[:50])


def _closing(fit: PCAFit) -> Markup:
    if fit.noise_edge is None:
        return join([])
    return tag(
        "p",
        "The points are the eigenvalues of the matrix as released: unbiased, and possibly negative. The line shows the "
        "repaired matrix. Components that cannot be told apart share a line, which has the sum of their variances."
        + "".join(f" {sentence}" for sentence in about_tails(fit, fit.directions())),
    )
