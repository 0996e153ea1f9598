"""Each column by itself: declared bounds, mean and spread in original units, and the noise on both."""

from __future__ import annotations

import numpy as np

from privcov.report.drawing import Markup, Range, join, ranges, tag
from privcov.report.page.elements import Section, figure, folded, plus_minus, side_by_side, table
from privcov.report.view import View
from privcov.schema import Feature

_DRAWN = 16
_LISTED = 30
_MOST = 400


def columns(view: View) -> Section:
    """Means where the release has them, else what was declared."""
    means = view.mean
    if means is None:
        body = [
            tag("p", "This release has no intercept column, so it has no means and no variances."),
            _listed(
                ["column", "declared"], [[feature.name, declared(feature)] for feature in view.columns], view
            ),
        ]
        return Section(name="columns", heading="Columns", body=join(body))
    spreads = np.sqrt(np.clip(np.diag(view.covariance), 0, None))
    noise = view.noise
    rows = []
    for place, feature in enumerate(view.columns[:_MOST]):
        on_mean = on_spread = None
        if noise is not None and noise.mean is not None:
            on_mean = float(noise.mean[place])
            spread = float(spreads[place])
            on_spread = float(noise.covariance[place, place]) / (2 * spread) if spread > 0 else None
        told = [*plus_minus(float(means[place]), on_mean), *plus_minus(float(spreads[place]), on_spread)]
        rows.append([feature.name, declared(feature), *(told[::2] if noise is None else told)])
    heads = ["column", "declared", "mean", "± noise", "std. dev.", "± noise"]
    if noise is None:
        heads = ["column", "declared", "mean", "std. dev."]
    body = [side_by_side(means_figure(view), _listed(heads, rows, view))]
    return Section(name="columns", heading="Columns", body=join(body))


def means_figure(view: View) -> Markup:
    """The first means within their declared bounds."""
    means = np.zeros(0) if view.mean is None else view.mean
    spreads = np.sqrt(np.clip(np.diag(view.covariance), 0, None))
    noise = None if view.noise is None else view.noise.mean
    tracks = [
        Range(
            name=feature.name,
            low=_low(feature),
            high=_high(feature),
            value=float(means[place]),
            spread=float(spreads[place]),
            noise=None if noise is None else float(noise[place]),
        )
        for place, feature in enumerate(view.columns[:_DRAWN])
    ]
    said = "The dot is the mean; the band is one standard deviation of the values"
    said += "." if noise is None else "; the bar is one standard deviation of the noise on the mean."
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
    """The bounds of a column; a level is 0 or 1."""
    return f"{_low(feature):,.10g} to {_high(feature):,.10g}".replace("-", "−")


def _listed(heads: list[str], rows: list[list[str]], view: View) -> Markup:
    said = "± is one standard deviation of the noise, to first order" + (
        ", before repair." if not view.raw else "."
    )
    first = table(heads, rows[:_LISTED], caption=said if "± noise" in heads else "")
    if len(rows) <= _LISTED:
        return tag("div", first)
    more = len(view.columns) + view.hidden - len(rows)
    words = f"{len(rows) - _LISTED} more columns" + (
        f"; the other {more:,} are in the release file" if more else ""
    )
    return tag("div", first, folded(words, table(heads, rows[_LISTED:])))


def _low(feature: Feature) -> float:
    return 0.0 if feature.kind == "level" else feature.middle - feature.half_width


def _high(feature: Feature) -> float:
    return 1.0 if feature.kind == "level" else feature.middle + feature.half_width
