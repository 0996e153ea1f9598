"""The matrix on a page: each column by itself, and the correlations between columns.

A column has its declared bounds, its mean and spread in original units, and the noise on both. The matrix is a heat
map, with the noise beside it on the same scale, and pairs in original units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.report.drawing import Markup, Range, heat_map, join, ranges, tag
from privcov.report.page.elements import Section, figure, folded, number, plus_minus, side_by_side, table
from privcov.report.view import View
from privcov.schema import Feature

_PAIRS = 15
_FOLDED = 300
"""Pairs listed on demand; the release file has them all."""


def matrix(view: View) -> Section:
    """Correlations where the release has means, else products about zero on the same scale."""
    if len(view.names) < 2:
        words = "A single column has no correlations."
        return Section(name="matrix", heading="What goes with what", body=tag("p", words))
    pictures = [correlation_figure(view)]
    if view.off is not None:
        pictures.append(noise_figure(view, view.off.correlation))
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
    unknown = "" if view.scores is None else "; no colour, what cannot be told from zero"
    return figure(
        heat_map(
            view.titles,
            view.correlation.tolist(),
            title=f"{word} of {len(view.names)} columns",
            description=told,
            clear=view.clear.tolist(),
        ),
        f"{word}, {how}. Full colour is ±1; a stroke marks what is negative{unknown}. {told}",
    )


def noise_figure(view: View, noise: Floats) -> Markup:
    """How large the noise is on each cell of the matrix beside it, in the same colours."""
    between = noise[~np.eye(len(noise), dtype=np.bool_)]
    known = between[np.isfinite(between)]
    largest = f"The largest is ±{known.max():.2g}." if len(known) else "No size is known."
    unknown = (
        " Grey or a dash: a column's own variance is within the noise." if len(known) < len(between) else ""
    )
    return figure(
        heat_map(
            view.titles,
            noise.tolist(),
            title="Noise on each correlation",
            description=f"{OFF}. {largest}",
            signed=False,
        ),
        "The noise on each, on the same scale: what it stays below in 95 of 100 releases"
        f"{'' if view.raw else ', before repair'}. {largest}{unknown}",
    )


def _pairs(view: View) -> list[Markup]:
    first, second, order = _ordered(view)
    noise = view.off
    rows = []
    for place in order[:_FOLDED]:
        i, j = int(first[place]), int(second[place])
        pair, value, product = (
            f"{view.names[i]} × {view.names[j]}",
            view.correlation[i, j],
            view.covariance[i, j],
        )
        if noise is None:
            rows.append([pair, _two(value), _two(product)])
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
    which = "Pairs that stand clear of the noise, strongest first"
    if view.scores is None:
        which = f"Pairs, largest first. {NOBODY}, so any of them may be noise; two digits are printed"
    said = f"{which}; levels of one column left out."
    if noise is not None:
        said += f" {OFF}{_before(view)}." + f" {view.cut}" * bool(view.cut)
    made = [table(heads, rows[:_PAIRS], caption=said)]
    if len(rows) > _PAIRS:
        hidden = len(order) - len(rows)
        more = f"; {hidden:,} others are in the release file" if hidden else ""
        made.append(folded(f"{len(rows) - _PAIRS} more pairs{more}", table(heads, rows[_PAIRS:])))
    return made


def _two(value: float) -> str:
    """A number whose noise nobody knows, to two digits.

    >>> _two(382_096.0), _two(0.08817)
    ('380,000', '0.088')
    """
    return number(float(f"{value:.1e}"), 2)


def _ordered(view: View) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of different columns that stand clear of the noise and their order, strongest first, the unknown last."""
    first, second = view.pairs
    clear = view.clear[first, second]
    first, second = first[clear], second[clear]
    sizes = np.nan_to_num(np.abs(view.correlation[first, second]), nan=-1.0)
    return first, second, np.argsort(-sizes, kind="stable")


def _strongest(view: View) -> str:
    first, second, order = _ordered(view)
    if view.scores is None:
        return f"{NOBODY}, so no pair is told from zero."
    if not len(order):
        return "No pair stands clear of the noise."
    if not len(order) or not np.isfinite(view.correlation[first[order[0]], second[order[0]]]):
        return "No pair is known."
    i, j = int(first[order[0]]), int(second[order[0]])
    return (
        f"The strongest pair is {view.names[i]} and {view.names[j]}, at {number(view.correlation[i, j], 2)}."
    )


NOBODY = "Nobody knows how large the noise on them is"
OFF = "±: the noise moves a number by no more than this in 95 of 100 releases"


def _before(view: View) -> str:
    return "" if view.raw else ", before repair"


_DRAWN = 16
_LISTED = 30
_BESIDE = 18  # characters of a name and its bounds, with which a table of six columns fits beside a figure
_MOST = 400


def columns(view: View) -> Section:
    """Means where the release has them, else what was declared."""
    means = view.mean
    called = ["label"] if any(feature.label for feature in view.columns) else []
    if means is None:
        body = [
            tag("p", "This release has no intercept column, so it has no means and no variances."),
            _listed(
                ["column", *called, "declared"],
                [[*_called(feature, called), declared(feature)] for feature in view.columns],
                view,
            ),
        ]
        return Section(name="columns", heading="Columns", body=join(body))
    spreads, on_spreads, noise = view.spread, view.off_spread, view.off
    rows = []
    for place, feature in enumerate(view.columns[:_MOST]):
        on_mean = on_spread = None
        if noise is not None and noise.mean is not None:
            on_mean = float(noise.mean[place])
            on_spread = None if on_spreads is None else float(on_spreads[place])
        told = [*plus_minus(float(means[place]), on_mean), *plus_minus(float(spreads[place]), on_spread)]
        if noise is None:
            told = [_two(value) for value in (means[place], spreads[place])]
        rows.append([*_called(feature, called), declared(feature), *told])
    heads = ["column", *called, "declared", "mean", "± noise", "std. dev.", "± noise"]
    if noise is None:
        heads = ["column", *called, "declared", "mean", "std. dev."]
    parts = [means_figure(view), _listed(heads, rows, view)]
    # Long names and labels take the room that a figure beside them would have.
    longest = max(
        (len(feature.title) + len(declared(feature)) for feature in view.columns[:_MOST]), default=0
    )
    body = parts if called or longest > _BESIDE else [side_by_side(*parts)]
    return Section(name="columns", heading="Columns", body=join(body))


def _called(feature: Feature, called: list[str]) -> list[str]:
    return [feature.name, *(feature.label for _ in called)]


def means_figure(view: View) -> Markup:
    """The first means within their declared bounds."""
    means, spreads = np.zeros(0) if view.mean is None else view.mean, view.spread
    noise = None if view.off is None else view.off.mean
    tracks = [
        Range(
            name=feature.title,
            low=feature.lower,
            high=feature.upper,
            value=float(means[place]),
            spread=float(spreads[place]),
            noise=None if noise is None else float(noise[place]),
        )
        for place, feature in enumerate(view.columns[:_DRAWN])
    ]
    said = "The dot is the mean; the band is one standard deviation of the values"
    said += "." if noise is None else "; within the bar noise moves the mean in 95 of 100 releases."
    count = len(view.columns) + view.hidden
    if count > len(tracks):
        said += f" The first {len(tracks)} of {count:,} columns."
    picture = ranges(
        tracks,
        title=f"Means of {len(tracks)} columns within their declared bounds",
        description="; ".join(f"{track.name} {track.value:.4g}" for track in tracks),
    )
    return figure(picture, said)


def declared(feature: Feature) -> str:
    """The bounds of a column; an indicator is 0 or 1."""
    low, high = (
        f"{end:,.0f}" if end == round(end) and abs(end) < 1e10 else f"{end:,.6g}"
        for end in (feature.lower, feature.upper)
    )
    return f"{low} to {high}".replace("-", "−")


def _listed(heads: list[str], rows: list[list[str]], view: View) -> Markup:
    said = f"{OFF}, to first order{_before(view)}." + f" {view.cut}" * bool(view.cut)
    if "± noise" not in heads and "mean" in heads:
        said = f"Without ±: {NOBODY[0].lower()}{NOBODY[1:]}, so two digits are printed."
    words = 1 + ("label" in heads)
    first = table(heads, rows[:_LISTED], left=words, caption=said if "mean" in heads else "")
    if len(rows) <= _LISTED:
        return tag("div", first)
    more = len(view.columns) + view.hidden - len(rows)
    others = f"; the other {more:,} are in the release file" if more else ""
    rest = table(heads, rows[_LISTED:], left=words)
    return tag("div", first, folded(f"{len(rows) - _LISTED} more columns{others}", rest))
