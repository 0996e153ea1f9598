"""Principal components as text: the tables that ``privcov pca`` and ``print`` show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from privcov.models.pca import PCAFit, about_tails
from privcov.report.tables import number, table
from privcov.text.aligning import cut, paragraph, terminal

_MOST = 6  # components side by side on a terminal
_BARELY = 2.0  # noise edges, seldom exceeded by noise alone: what is kept below may be noise


def as_text(fit: PCAFit, level: float = 0.95) -> str:
    """Variances with intervals, then loadings with theirs, and sentences on what they are about."""
    values = fit.to_dict(level)
    lines = [
        *values["labels"],
        f"Private PCA of {len(fit.columns)} columns ({values['units']} units): {fit.rank} components",
        "",
    ]
    told = values["directions"]
    if fit.rank == 0:
        lines += ["No component is larger than the noise. Ask for a less noisy release, or give --rank.", ""]
    else:
        kinds = {"interval": "this table", "population_interval": "population"}
        kinds = {key: word for key, word in kinds.items() if told[0][key]}
        heads = ["", "variance", "share %", *kinds.values()]
        known = fit.noise_edge is not None  # without a law nobody knows how far they are off
        rows = [
            [one["name"], _variance(one, known), number(100 * one["share"], int(known))]
            + [interval(one[key]) for key in kinds]
            for one in told
        ]
        lines += [table(heads, rows), ""]
        lines += _of_directions(fit, told)
    if fit.left_out:
        names = ", ".join(fit.left_out[:8]) + (" …" if len(fit.left_out) > 8 else "")
        told = f"Left out, because their variance is not clear of the noise: {names.removesuffix('.')}."
        lines += [paragraph(told, within=terminal()), ""]
    return "\n".join([*lines, *map(paragraph, _closing(fit, values))])


def _of_directions(fit: PCAFit, told: list[dict[str, Any]]) -> list[str]:
    """Loadings of components and of groups; a sentence where one group is everything."""
    if len(told[0]["components"]) == len(fit.columns) > 1:
        return ["No component can be told apart from another: nothing is known of directions.", ""]
    lines = []
    if groups := [one["name"] for one in told if "lengths" in one]:
        told_apart = (
            f"Components within {_joined(groups)} cannot be told apart: only their span is known. The line of a "
            "span has the sum of the variances, and under loadings how much of each column's axis, from 0 to 1, "
            "lies within the span."
        )
        lines += [paragraph(told_apart), ""]
    loadings = [[cut_name, *cells] for cut_name, cells in _loadings(fit, told)]
    lines += [table(["loading", *(one["name"] for one in told[:_MOST])], loadings), ""]
    more = len(told) - _MOST
    return [*lines, *([f"… and {more} more (--json prints all)", ""] if more > 0 else [])]


def _variance(one: dict[str, Any], known: bool) -> str:
    """The variance along a component; of two digits where it cannot be told from zero, or its noise is not known."""
    value, ends = one["variance"], one["interval"]
    if not value > 0 or (known and (ends is None or ends[0])):
        return number(value, 4)
    return number(float(f"{value:.1e}"), max(0, 1 - math.floor(math.log10(value))))


def interval(ends: list[float | None]) -> str:
    """An interval in brackets; open where it has no end.

    >>> interval([0.0, None])
    '[0.0000, ∞)'
    """
    low, high = ends
    return f"[{number(low or 0.0, 4)}, " + ("∞)" if high is None else f"{number(high, 4)}]")


def _loadings(fit: PCAFit, told: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    for i, name in enumerate(fit.columns):
        cells = []
        for one in told[:_MOST]:
            value = one["loadings" if "loadings" in one else "lengths"][i]
            ends = one["ends"]
            reach = "" if ends is None else f" ± {number(max(value - ends[i][0], ends[i][1] - value), 2)}"
            cells.append(number(value, 2) + reach)
        yield cut(name), cells


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _closing(fit: PCAFit, values: dict[str, Any]) -> list[str]:
    promise = f"Promise: {values['guarantee']}, by {values['mechanism']}. This costs no further privacy."
    count = len(fit.columns)
    if values["noise_edge"] is None:
        if fit.release.certificate.law is not None:
            return [f"No intervals and no noise edge: {count:,} columns are too many to simulate.", promise]
        return [
            f"No intervals and no noise edge: the noise of {values['mechanism']} has no known distribution. "
            "Ask for a release by symmetric-wishart or gaussian.",
            promise,
        ]
    return [
        _above(fit, values["noise_edge"]),
        *_about(fit, values),
        *filter(None, [values["not_counted"], values["counted"], _free(fit, values)]),
        promise,
    ]


def _free(fit: PCAFit, values: dict[str, Any]) -> str | None:
    """That correlations are free of an error that merges components here."""
    if (
        not values["counted"]
        or fit.correlation
        or all(len(one["components"]) == 1 for one in values["directions"])
    ):
        return None
    return "Components of correlations (--correlation) are free of the error of standard deviations."


def _above(fit: PCAFit, edge: float) -> str:
    """How many raw eigenvalues are above the edge, and whether being kept is what noise may have done for the last."""
    above = fit.raw_variance[fit.raw_variance > edge]
    said = f"Noise edge {edge:.4g}, which noise alone exceeds in 1 of 20 releases:"
    if not len(above):
        return f"{said} no raw eigenvalue is above it, so all may be noise."
    many = "1 raw eigenvalue is" if len(above) == 1 else f"{len(above)} raw eigenvalues are"
    said += f" {many} above it."
    if fit.asked is not None or above[-1] >= _BARELY * edge:
        return said
    last = "It" if len(above) == 1 else "The last"
    doubt = "noise may have lifted it there, and then its intervals hold less often"
    return f"{said} {last} is below twice the edge: {doubt}."


def _about(fit: PCAFit, values: dict[str, Any]) -> list[str]:
    """What the intervals are about."""
    if fit.rank == 0:
        return []
    level = f"{100 * values['level']:g} %"
    if values["population_intervals"] is None:
        return [
            f"{level} intervals for this table alone: they count the noise, and no sampling error. Loadings have no ±: "
            "components whose intervals overlap may be turned into each other in any way.",
        ]
    most = fit.rows_per_person
    normal = ", as with normal columns" if fit.errors == "equal" else ""
    alike = "" if most == 1 else f" Sampling counts up to {most} rows of one person as one."
    return [
        f"{level} intervals, each by itself: for this very table without noise, and for the population of independent "
        f"{'rows' if most == 1 else 'persons'} it was sampled from{normal}. ± is for the population.{alike}",
        *about_tails(fit, fit.directions(values["level"])),
    ]
