"""What goes with what: the matrix as a heat map, the noise beside it on the same scale, pairs in original units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.report.drawing import Markup, heat_map, join, tag
from privcov.report.page.elements import Section, figure, folded, number, plus_minus, side_by_side, table
from privcov.report.view import View

_PAIRS = 15
_FOLDED = 300
"""Pairs listed on demand; the release file has them all."""


def matrix(view: View) -> Section:
    """Correlations where the release has means, else products about zero on the same scale."""
    if len(view.names) < 2:
        words = "A single column has no correlations."
        return Section(name="matrix", heading="What goes with what", body=tag("p", words))
    pictures = [correlation_figure(view)]
    if view.noise is not None:
        pictures.append(noise_figure(view, view.noise.correlation))
    return Section(
        name="matrix", heading="What goes with what", body=join([side_by_side(*pictures), *_pairs(view)])
    )


def correlation_figure(view: View) -> Markup:
    """The matrix, every column against every other."""
    word = "Correlation" if view.intercept else "Correlation about zero"
    how = "as released, noise and all" if view.raw else "repaired: a valid matrix close to what was released"
    if view.hidden:
        how = f"{how}; the first {len(view.names)} of {len(view.names) + view.hidden:,} columns"
    told = _strongest(view)
    return figure(
        heat_map(
            view.names,
            view.correlation.tolist(),
            title=f"{word} of {len(view.names)} columns",
            description=told,
        ),
        f"{word}, {how}. Full colour is ±1; a stroke marks what is negative. {told}",
    )


def noise_figure(view: View, noise: Floats) -> Markup:
    """How large the noise is on each cell of the matrix beside it, in the same colours."""
    largest = f"{float(np.nanmax(noise)):.2g}"
    return figure(
        heat_map(
            view.names,
            noise.tolist(),
            title="Noise on each correlation",
            description=f"One standard deviation; the largest is {largest}.",
            signed=False,
        ),
        "The noise on each, on the same scale: one standard deviation of what the mechanism added"
        f"{'' if view.raw else ', before repair'}. The largest is ±{largest}.",
    )


def _pairs(view: View) -> list[Markup]:
    first, second, order = _ordered(view)
    noise = view.noise
    rows = []
    for place in order[:_FOLDED]:
        i, j = int(first[place]), int(second[place])
        pair, value, product = (
            f"{view.names[i]} × {view.names[j]}",
            view.correlation[i, j],
            view.covariance[i, j],
        )
        if noise is None:
            rows.append([pair, number(value, 3), number(product)])
        else:
            of_value, of_product = noise.correlation[i, j], noise.covariance[i, j]
            rows.append([pair, *plus_minus(value, of_value), *plus_minus(product, of_product)])
    if not rows:
        return []
    what = "covariance" if view.intercept else "sum of products" if view.count is None else "mean product"
    what += ", [−1, 1] units" if view.scaled else ", original units"
    heads = (
        ["pair", "correlation", what]
        if noise is None
        else ["pair", "correlation", "± noise", what, "± noise"]
    )
    said = "Strongest pairs first, levels of one column left out."
    if noise is not None:
        said += " ± is one standard deviation of the noise" + ("." if view.raw else " before repair.")
    made = [table(heads, rows[:_PAIRS], caption=said)]
    if len(rows) > _PAIRS:
        hidden = len(order) - len(rows)
        more = f"; the other {hidden:,} are in the release file" if hidden else ""
        made.append(folded(f"{len(rows) - _PAIRS} more pairs{more}", table(heads, rows[_PAIRS:])))
    return made


def _ordered(view: View) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of different columns and their order, the strongest first, the unknown last."""
    first, second = np.triu_indices(len(view.names), 1)
    homes = np.array([feature.column for feature in view.columns])
    apart = homes[first] != homes[second]
    first, second = first[apart], second[apart]
    sizes = np.nan_to_num(np.abs(view.correlation[first, second]), nan=-1.0)
    return first, second, np.argsort(-sizes, kind="stable")


def _strongest(view: View) -> str:
    first, second, order = _ordered(view)
    if not len(order) or not np.isfinite(view.correlation[first[order[0]], second[order[0]]]):
        return "No pair is known."
    i, j = int(first[order[0]]), int(second[order[0]])
    return (
        f"The strongest pair is {view.names[i]} and {view.names[j]}, at {number(view.correlation[i, j], 2)}."
    )
