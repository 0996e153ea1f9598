"""A whole release as text for people or values for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.releases.release import Release
from privcov.releases.strata import StratifiedRelease
from privcov.releases.triangle import Triangle
from privcov.report.doubts import can_doubt, doubts
from privcov.report.drawing.numbers import number as significant
from privcov.report.drawing.numbers import plus_minus
from privcov.report.standing import Standing, standing
from privcov.report.tables import MOST, matrix, number, table
from privcov.report.view import View, mean_noise
from privcov.report.words import misread, promise
from privcov.schema import Feature
from privcov.text.aligning import cut, line, paragraph, terminal, widths

_LOOSE = 0.25
"""The share of their bounds that columns fill where a private frame is named."""


def as_text(
    release: Release, *, what: str = "correlation", repair: str = "auto", scaled: bool = False
) -> str:
    """Title, the matrix asked for with the size of its noise beside it, and the promise."""
    if what in ("correlation", "covariance", "mean") and not release.schema.intercept:
        what = "moment"
    names = release.columns
    title, largest = f"{what.capitalize()} of {len(names) - 1} columns", ""
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
        view = View.of(release)
        unsure, digits = ~view.clear, 2
        if what == "correlation":
            largest = _largest(view, names[1:], values)
        if release.certificate.law is None and what == "covariance":  # two digits of the largest
            digits = 1 - math.floor(math.log10(max(float(np.abs(values).max()), 1e-300)))
            values, digits = np.round(values, digits), max(digits, 0)
        body = matrix(names[1:], values, digits=digits, all_of_it=_all_of_it(release), unsure=unsure)
        if unsure[:MOST, :MOST].any():
            body += "\nIn brackets: cannot be told from zero."
    units = "" if what == "correlation" else (" (scaled units)" if scaled else " (original units)")
    said = [paragraph(line) for line in sentences(release)]
    printed = release.schema.features[: None if what == "mean" else MOST + 1]
    said += [largest] * bool(largest)
    told = [_legend(release, printed), weighed(release), "\n".join(said), misread(release), promise(release)]
    return "\n\n".join(part for part in [title + units, body, *told] if part)


def _largest(view: View, names: Sequence[str], values: Floats) -> str:
    """The largest correlations that stand clear, where the table shows some of the columns only; else nothing."""
    first, second = (places[view.clear[view.pairs]] for places in view.pairs)
    if len(names) <= MOST or not len(first):
        return ""
    order = np.argsort(-np.abs(values[first, second]), kind="stable")[:_MOST_LARGEST]
    told = "; ".join(
        f"{cut(names[a])} × {cut(names[b])} {number(values[a, b])}"
        for a, b in zip(first[order], second[order], strict=True)
    )
    return paragraph(f"The largest that stand clear: {told}.")


def strata_text(strata: StratifiedRelease, *, repair: str = "auto", scaled: bool = False) -> str:
    """A line for each stratum, in a table, and the promise for all of them."""
    heads, rows = strata_lines(strata, repair=repair, scaled=scaled)
    more = (
        "One stratum in full: --stratum NAME. The sum of all: --stratum total. Two compared: --stratum NAME "
        "--against NAME."
    )
    legend = paragraph(strata_legend(strata))
    told = [
        strata_title(strata),
        table(heads, rows),
        legend,
        paragraph(more, within=terminal()),
        promise(next(iter(strata.values()))),
    ]
    return "\n\n".join(told)


def strata_title(strata: StratifiedRelease) -> str:
    """How many strata there are, of which columns, and how many rows where that is public."""
    public = "" if strata.rows is None else f"; {strata.rows:,} rows in all, which is public"
    return f"{len(strata):,} strata by {strata.strata.title}{public}"


def strata_lines(
    strata: StratifiedRelease, *, repair: str = "auto", scaled: bool = False, most: int | None = None
) -> tuple[list[str], list[list[str]]]:
    """Headings, and for each stratum its noisy count, how much can be concluded of it, and means of its columns.

    The last line is the total. What ``strata_legend`` says of "±" and "–" belongs below.
    """
    first, total = next(iter(strata.values())), strata.total()
    names = list(first.columns[1 : 1 + _MOST_MEANS])
    rows = []
    for name, release in (*islice(strata.items(), most), ("(all strata)", total)):
        judged = standing(release)
        values = _short_means(release, repair=repair, scaled=scaled) if release.schema.intercept else []
        public = release is total and total.rows is not None and first.schema.weight is None
        # Without a stratum for all others, rows that are in none count nowhere, and how many they are is private.
        count = f"{total.rows:,}" if public else _counted(release, repair=repair)
        rows.append([cut(name), count, "" if judged is None else judged.verdict, *values])
    what = "rows" if first.schema.weight is None else "weights" if _own_weights(first) else "evened weights"
    heads = ["stratum", f"{what}, noisy", "verdict", *(cut(f"mean {name}") for name in names)]
    return heads[: len(rows[0])], rows


def _counted(release: Release, *, repair: str) -> str:
    """The count of a stratum, or its sum of weights, with what noise may add; a word where no column counts rows."""
    if not release.schema.intercept:
        return "private"
    largest, law = release.schema.largest_weight or 1.0, release.law
    if release.counted_rows is not None or law is None:
        return f"{largest * release.count(repair=repair):,.0f}"
    noise = largest * law.reach(0.025) * math.sqrt(law.entry_variances[0, 0])
    return " ± ".join(_whole(largest * _summed_rows(release, repair=repair), noise))


def _summed_rows(release: Release, *, repair: str = "auto") -> float:
    """What rows count as together, to stand beside its noise: perhaps 0, where ``count`` is at least 1 to divide by."""
    return max(0.0, float(release.second_moment(repair=repair, scaled=True)[0, 0]))


_MOST_MEANS = 4
_MOST_LARGEST = 8


def strata_legend(strata: StratifiedRelease) -> str:
    """What the marks beside the means of strata say, and what they leave out."""
    told = (
        "±: the noise moves a number by no more than this in 95 of 100 releases. –: a mean that the noise could move "
        "as far as half the width of its bounds, so that nothing is known of it."
    )
    if strata.certificate.rounds:
        told += (
            " Means are those of the rows as the private frame shortened them: ± does not count what was cut."
        )
    return told


def _short_means(release: Release, *, repair: str, scaled: bool) -> list[str]:
    """The means of the first columns, each with what noise may add to it; none where that is all there is."""
    means, noise = release.mean(scaled=scaled, repair=repair), mean_noise(release, scaled=scaled)
    if noise is None:
        return [number(mean, 4) for mean in means[:_MOST_MEANS]]
    halves = [
        0.5 if feature.kind != "numeric" else 1.0 if scaled else feature.half_width
        for feature in release.schema.features[1:]
    ]
    return [
        " ".join(_beside_noise(mean, off)) if off < half else "–"
        for mean, off, half in zip(means[:_MOST_MEANS], noise, halves, strict=False)
    ]


def sentences(release: Release) -> list[str]:
    """What can be concluded beside the noise, and what cannot: from the release and public facts."""
    if release.certificate.law is None:
        told = "The error of this mechanism depends on the data, so this release cannot state the error"
        return [f"{told}: any of these numbers may be noise."]
    view = View.of(release)
    if (found := Standing.of(view)) is not None:
        part = (
            [f"Of the first {len(view.names)} of {len(view.names) + view.hidden:,} columns:"]
            if view.hidden
            else []
        )
        return [*part, *found.sentences, *_loose(release, view, found), *_persons(release)]
    if view.count is None:
        return [
            "The number of rows is private and no column counts them, so noise on products cannot be judged."
        ]
    return ["A single column has no correlations."]


def _loose(release: Release, view: View, found: Standing) -> list[str]:
    """That bounds are loose, where little can be told for that reason, and what to do; nothing elsewhere."""
    framed = release.certificate.rounds or release.schema.row_norm_bound is not None
    if found.verdict == "useful" or framed or view.filled is None or len(view.filled) < 2:
        return []
    share = float(np.median(view.filled))
    if share > _LOOSE:
        return []
    return [
        f"Half of the numeric columns fill at most {100 * share:.2g} % of their bounds, and the noise follows the "
        "bounds. In a private frame (privcov release --frame auto) it follows the rows."
    ]


def _persons(release: Release) -> list[str]:
    """That sampling, of which persons with several rows have more, is in none of the sizes that are shown."""
    most = release.schema.max_rows_per_person
    told = (
        "Errors shown beside numbers count the noise alone. Sampling errors, which depend on the number of persons, "
        "are not included."
    )
    return [] if most == 1 else [f"Rows of one person: up to {most}. {told}"]


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
        "correlations": None if (found := standing(release)) is None else found.to_dict(),
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
            "weight_sum": release.weight_sum,
            "effective_rows": effective_rows(release, repair=repair),
            "mean": release.mean(scaled=scaled, repair=repair),
            "mean_noise": mean_noise(release, scaled=scaled),
            "covariance": None if _is_wide(release) else release.covariance(scaled=scaled, repair=repair),
            "correlation": None if _is_wide(release) else release.correlation(repair=repair),
        }
    return values


def _is_wide(release: Release) -> bool:
    return isinstance(release.upper, Triangle)


def _all_of_it(release: Release) -> str:
    return "privcov.load reads all, in Python" if _is_wide(release) else "--json prints all"


def weighed(release: Release) -> str:
    """What rows count as, and how much they count as together; empty where every row counts as one."""
    if (largest := release.schema.largest_weight) is None:
        return ""
    law, total = release.certificate.law, largest * _summed_rows(release)
    noise = None if law is None else largest * law.reach(0.025) * law.diagonal_variance**0.5
    about = f"{total:,.0f}" if noise is None else " ±".join(_whole(total, noise))
    rows = effective_rows(release)
    like = (
        "how many rows that is effectively is hidden by the noise"
        if rows is None
        else f"effectively there are about {rows:,.0f} rows"
    )
    sums = (
        f"The weights add up to about {about} (noisy)"
        if _own_weights(release)
        else f"Evened out by that power, the weights add up to about {about} (noisy), which is not their own sum"
    )
    words = f"{release.schema.weight_words} {sums}; {like}. Sums are in units of the largest weight."
    return paragraph(words)


def _own_weights(release: Release) -> bool:
    """Whether a row counts as its own weight, so that weights add up to what they stand for."""
    return release.schema.weight_power == 1


def effective_rows(release: Release, *, repair: str = "auto") -> float | None:
    """How many rows of one weight would say as much (Kish): (Σu)² / Σu², which is the count where rows have no weights.

    None where noise could move one of the two sums by half and more.
    """
    law, weight = release.certificate.law, release.schema.weight
    if law is not None and weight is not None:
        sums = release.second_moment(raw=True, scaled=True)[0]
        squares = float(sums[release.columns.index(weight)] + sums[0] / 2)
        counted, other = law.diagonal_variance, law.offdiagonal_variance
        moved = 2 * law.reach(0.025) * np.sqrt([counted, other + counted / 4])
        if sums[0] < moved[0] or squares < moved[1]:
            return None
    return release.count(repair=repair) / release.row_weight


def _legend(release: Release, printed: Sequence[Feature]) -> str:
    """What the columns that are printed are called, where the schema says more than their names."""
    shown = {feature.column for feature in printed}
    told = [
        column for column in release.schema.columns if column.name in shown and (column.label or column.unit)
    ]
    room = widths([""], [[cut(column.name)] for column in told])
    return "\n".join(
        line([cut(column.name), column.title], [*room, 0], {0, 1}, between="  ") for column in told
    )


def _means(release: Release, *, repair: str, scaled: bool) -> str:
    means = release.mean(scaled=scaled, repair=repair)
    spread = np.sqrt(np.clip(np.diag(release.covariance(scaled=scaled, repair=repair)), 0, None))
    noise = mean_noise(release, scaled=scaled)
    if noise is None:
        rows = [
            [cut(name), *(significant(float(f"{value:.2g}"), 2) for value in (mean, std))]
            for name, mean, std in zip(release.columns[1:], means, spread, strict=True)
        ]
        told = "Without ±: the noise of this mechanism has no known distribution, so two digits are printed."
        return "\n\n".join([table(["column", "mean", "std. dev."], rows), told])
    told = "±: the noise moves a number by no more than this in 95 of 100 releases of this table."
    if _is_wide(release):
        rows = [
            [cut(name), *_beside_noise(mean, off), significant(float(f"{std:.3g}"), 3)]
            for name, mean, off, std in zip(release.columns[1:], means, noise, spread, strict=True)
        ]
        told += " Standard deviations of so wide a release are told to three digits, without it."
        return "\n\n".join([table(["column", "mean", "noise", "std. dev."], rows), told])
    view = View.of(release)
    assert view.off_spread is not None, "the law is known"
    on_spread = view.off_spread / (view.widths if scaled else 1.0)
    rows = [
        [cut(name), *_beside_noise(mean, off), *_beside_noise(std, size)]
        for name, mean, off, std, size in zip(
            release.columns[1:], means, noise, spread, on_spread, strict=True
        )
    ]
    legend = paragraph(" ".join(filter(None, [told, view.cut])), hang="")
    return "\n\n".join([table(["column", "mean", "noise", "std. dev.", "noise"], rows), legend])


def _beside_noise(value: float, noise: float) -> tuple[str, str]:
    """A number and its ±, to the decimals at which the noise has two digits.

    >>> _beside_noise(0.31583, 0.00312), _beside_noise(-49.2284, 0.29)
    (('0.3158', '±0.0031'), ('-49.23', '±0.29'))
    """
    near, off = plus_minus(value, noise)
    return near.replace("−", "-"), f"±{off}"


def _whole(value: float, noise: float) -> tuple[str, str]:
    """A count and its ±, as whole numbers to the two digits that the noise has.

    >>> _whole(4_881_378_506, 96_069_995), _whole(215, 41), _whole(12.6, 3.2)
    (('4,881,000,000', '96,000,000'), ('215', '41'), ('13', '3'))
    """
    step = 10 ** max(0, math.floor(math.log10(max(noise, 1.0))) - 1)
    return f"{round(value / step) * step:,}", f"{round(noise / step) * step:,}"


def _needs_scaled(release: Release) -> bool:
    """Without an intercept, sums of products exist in original units only for columns centred at zero."""
    return not release.schema.intercept and any(feature.middle for feature in release.schema.features)
