"""A whole release as text for people or values for programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privcov.releases.release import Release
from privcov.releases.triangle import Triangle
from privcov.report.doubts import can_doubt, doubts
from privcov.report.tables import matrix, number, table
from privcov.report.words import misread, promise
from privcov.text.aligning import cut

_SOME = 2_000
"""Columns of a wide release that its typical noise is read off."""


def as_text(
    release: Release, *, what: str = "correlation", repair: str = "auto", scaled: bool = False
) -> str:
    """Title, the matrix asked for with the size of its noise beside it, and the promise."""
    if what in ("correlation", "covariance", "mean") and not release.schema.intercept:
        what = "moment"
    names = release.columns
    title = f"{what.capitalize()} of {len(names) - 1} columns"
    if what == "mean":
        body = _means(release, repair=repair, scaled=scaled)
    elif what in ("moment", "raw"):
        scaled = scaled or _needs_scaled(release)
        values = release.second_moment(raw=what == "raw", scaled=scaled, repair=repair)
        title = ("Raw (unrepaired)" if what == "raw" else "Repaired") + " sums of products over all rows"
        body = matrix(names, values, all_of_it=_all_of_it(release))
    else:
        values = (
            release.correlation(repair=repair)
            if what == "correlation"
            else release.covariance(scaled=scaled, repair=repair)
        )
        body = matrix(names[1:], values, all_of_it=_all_of_it(release))
    units = "" if what == "correlation" else (" (scaled units)" if scaled else " (original units)")
    parts = [title + units, body, signal(release), misread(release), promise(release)]
    return "\n\n".join(part for part in parts if part)


def signal(release: Release) -> str:
    """How the noise compares with what was measured: the error anyone should expect, from public facts."""
    law = release.law
    if law is None:
        return "The error of this mechanism depends on the data, so this release cannot state it."
    # A wide matrix is not decomposed for a remark: raw, it is a little too large.
    size = float(np.linalg.norm(release.second_moment(scaled=True, raw=_is_wide(release))))
    expected = law.rms_frobenius
    share = expected / size if size > 0 else math.inf
    text = f"The noise is about {_percent(share)} of the signal."
    if share >= 0.5:
        text = f"The noise is LARGE: {_percent(share)} of the signal. Most of what you see is noise."
    text += (
        f"\nIn figures: expected error {number(expected)} before repair, matrix {number(size)} "
        "(Frobenius norms, scaled units)."
    )
    if (typical := correlation_noise(release)) is not None:
        text += (
            f"\nA typical correlation is off by about ±{typical:.2g} (one standard deviation of the noise)."
        )
    return text


def correlation_noise(release: Release) -> float | None:
    """The standard deviation that noise puts on a typical correlation, to first order; None if unknown."""
    law = release.law
    if law is None or not release.schema.intercept or len(release.columns) < 3:
        return None
    if _is_wide(release):
        raw = release.second_moment(scaled=True, raw=True)
        sums = np.diag(raw)[1:] - raw[0, 1:] ** 2 / max(1.0, raw[0, 0])
        spread = np.sqrt(np.clip(sums[:: max(1, len(sums) // _SOME)], 0, None))
    else:
        spread = np.sqrt(np.clip(np.diag(release.covariance(scaled=True)) * release.count(), 0, None))
    typical = float(np.median(np.outer(spread, spread)[np.triu_indices(len(spread), 1)]))
    return math.sqrt(law.offdiagonal_variance) / typical if typical > 0 else None


def as_json_values(release: Release, *, repair: str = "auto", scaled: bool = False) -> dict[str, Any]:
    """Everything ``as_text`` can show, for programs; matrices of a wide release are null (docs/explain/wide.md)."""
    document = release.to_dict()
    values: dict[str, Any] = {
        "columns": list(release.columns),
        "rows": document["rows"],
        "repair": repair,
        "scaled": scaled or _needs_scaled(release),
        "second_moment": None,
        "raw_second_moment": None,
        "expected_error": None if release.law is None else release.law.rms_frobenius,
        "certificate": document["certificate"],
        "doubts": [doubt.to_dict() for doubt in doubts(release)] if can_doubt(release) else None,
    }
    if not _is_wide(release):
        units = {"scaled": values["scaled"]}
        values["second_moment"] = release.second_moment(repair=repair, **units)
        values["raw_second_moment"] = release.second_moment(raw=True, **units)
    if release.schema.intercept:
        values |= {
            "count": release.count(repair=repair),
            "mean": release.mean(scaled=scaled, repair=repair),
            "covariance": None if _is_wide(release) else release.covariance(scaled=scaled, repair=repair),
            "correlation": None if _is_wide(release) else release.correlation(repair=repair),
        }
    return values


def _percent(share: float) -> str:
    """One digit of a small share, whole per cents of a larger one.

    >>> [_percent(share) for share in (0.00001, 0.0221, 0.216, 3.71, math.inf)]
    ['less than 0.01 %', '2 %', '22 %', '371 %', 'more than 1,000 %']
    """
    if share < 1e-4:
        return "less than 0.01 %"
    if share > 10:
        return "more than 1,000 %"
    return f"{100 * share:.1g} %" if share < 0.095 else f"{100 * share:.0f} %"


def _is_wide(release: Release) -> bool:
    return isinstance(release.upper, Triangle)


def _all_of_it(release: Release) -> str:
    return "privcov.load reads all, in Python" if _is_wide(release) else "--json prints all"


def _means(release: Release, *, repair: str, scaled: bool) -> str:
    means = release.mean(scaled=scaled, repair=repair)
    spread = np.sqrt(np.clip(np.diag(release.covariance(scaled=scaled, repair=repair)), 0, None))
    rows = [
        [cut(name), number(mean, 4), number(std, 4)]
        for name, mean, std in zip(release.columns[1:], means, spread, strict=True)
    ]
    return table(["column", "mean", "std. dev."], rows)


def _needs_scaled(release: Release) -> bool:
    """Without an intercept, sums of products exist in original units only for columns centred at zero."""
    return not release.schema.intercept and any(feature.middle for feature in release.schema.features)
