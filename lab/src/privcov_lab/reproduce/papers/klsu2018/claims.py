"""The lecture's statements, one function each: what it says, what was measured, and the verdict the numbers give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from privcov.mechanisms.sensitivity import Sensitivity
from privcov.privacy import Neighbours
from privcov_lab.reproduce.papers.klsu2018.measuring import DIMENSION, ONE_ROUND, rounds
from privcov_lab.reproduce.papers.klsu2018.reading import (
    Line,
    across,
    always_from,
    goal,
    grid,
    median,
    naive,
    needed,
    power,
    slope,
    succeeded,
)
from privcov_lab.reproduce.study import Claim, Results, Verdict


def claims(results: Results) -> list[Claim]:
    """In the order of the lecture."""
    return [
        _without_privacy(results),
        _published_noise(),
        _naive_rate(results),
        _naive_price(results),
        _free(results),
        _linear_in_condition(results),
        _one_round(results),
        _all_rounds(results),
        _dimension(results),
        _weak_in_condition(results),
    ]


def _without_privacy(results: Results) -> Claim:
    lines = grid(results, condition=1)
    in_rows = slope([line["rows"] for line in lines], [median(line, "none") for line in lines])
    wide = naive(results, condition=2, rows=_sweep_rows(results))
    in_columns = slope(*_over(wide, "dimension", "none", "errors"))
    return Claim(
        where="Fact 2.1",
        says="Without privacy the Mahalanobis error is of order d/√n.",
        measured=f"n to the power {in_rows:.2f} (said: −0.5), d to the power {in_columns:.2f} (said: 1).",
        verdict=_judge(abs(in_rows + 0.5) < 0.1, abs(in_columns - 1) < 0.2),
        note="The exact root mean square is √(d(d + 1)/n), a power of d a little below 1 at few columns.",
    )


def _published_noise() -> Claim:
    one = {
        kind: Sensitivity(neighbours=kind, dimension=DIMENSION, squared_norm=Fraction(1)).frobenius
        for kind in Neighbours
    }
    times = {kind: float(change) ** 2 for kind, change in one.items()}
    replaced = times[Neighbours.REPLACE_ONE]
    return Claim(
        where="Section 2.1, before Lemma 2.2",
        says="Noise of standard deviation R²/(n√(2ρ)) in every entry, R the radius, gives ρ-zCDP.",
        measured=f"The real cost is {times[Neighbours.ADD_REMOVE]:.2f} ρ where a row is removed, and {replaced:.2f} ρ "
        "where it is replaced by an orthogonal one of full length.",
        verdict="refuted" if replaced > 1 + 1e-9 else "agrees",
        note="The number of rows is used as public, which is the setting of replacement; everything below has √2 "
        "times that standard deviation, and symmetric noise.",
    )


def _naive_rate(results: Results) -> Claim:
    in_rows = slope(*_over(grid(results, condition=1), "rows", "truncated"))
    wide = naive(results, condition=2, rows=_sweep_rows(results), rho="0.5")
    in_columns = slope(*_over(wide, "dimension", "truncated"))
    top = [line for line in wide if line["dimension"] >= 16] or wide
    at_the_end = slope(*_over(top, "dimension", "truncated")) if len(top) > 1 else in_columns
    in_rho = slope(*_over(naive(results, condition=2, dimension=DIMENSION), "rho", "truncated"))
    return Claim(
        where="Lemma 2.2, well-conditioned",
        says="What privacy adds to the naive estimate is at most of order d² log(n)/(n√ρ).",
        measured=f"Added error: n to the power {in_rows:.2f} (said: −1, less a logarithm), ρ to the power "
        f"{in_rho:.2f} (said: −0.5), d to the power {in_columns:.2f} over all columns and {at_the_end:.2f} over the "
        "widest (said: at most 2).",
        verdict=_judge(-1.1 < in_rows < -0.8, abs(in_rho + 0.5) < 0.1, at_the_end < 2.15),
        note="The radius is d + 2√(d ln(n/τ)) + 2 ln(n/τ) in place of a constant times d ln(n/τ): below it at every "
        "n, and of order d only once d passes ln(n/τ).",
    )


def _naive_price(results: Results) -> Claim:
    lines = grid(results, condition=1)
    rows = np.array([line["rows"] for line in lines], float)
    plain = float(np.median([median(line, "none") * math.sqrt(line["rows"]) for line in lines]))
    law = np.polyfit(np.log(rows), np.log(_over(lines, "rows", "truncated")[1]), 1)

    def error(count: float) -> float:
        return math.hypot(plain / math.sqrt(count), math.exp(np.polyval(law, math.log(count))))

    pairs = []
    for without in np.geomspace(rows[0], rows[-1], 6).tolist():
        accuracy = plain / math.sqrt(without)
        enough = brentq(lambda count, accuracy=accuracy: error(count) - accuracy, without / 2, 1e4 * without)
        pairs.append((accuracy, enough - without))
    exponents = [slope(*zip(*ends, strict=True)) for ends in (pairs[:2], pairs[-2:])]
    told = ", ".join(f"{extra:,.0f} at α = {accuracy:.2g}" for accuracy, extra in pairs)
    return Claim(
        where="Section 2.1, after Lemma 2.2",
        says="To reach an error α the naive estimate takes at most of order d²/(α√ρ) more rows than without privacy.",
        measured=f"Extra rows at condition number 1: {told}; α to the power {exponents[0]:.2f} where it is large, "
        f"{exponents[1]:.2f} where it is small (said: −1).",
        verdict=_judge(min(exponents) > -1.15),
        note="From laws fitted to both errors. Noise is independent of the rows, so the two errors add as squares, and "
        "the extra rows level off as α falls instead of growing like 1/α: the bound holds with room to spare.",
    )


def _free(results: Results) -> Claim:
    line = grid(results, condition=1)[-1]
    ratio = {m: median(line, m) / median(line, "none") for m in ("truncated", "coinpress")}
    first = grid(results, condition=1)[0]
    start = median(first, "truncated") / median(first, "none")
    return Claim(
        where="Section 2.1, last paragraph",
        says="With many rows privacy comes essentially for free.",
        measured=f"Error over that without privacy at n = {line['rows']:,}, condition number 1: naive "
        f"{ratio['truncated']:.2f}, coinpress {ratio['coinpress']:.2f}; naive at n = {first['rows']:,}: {start:.1f}.",
        verdict=_judge(max(ratio.values()) < 1.1),
    )


def _linear_in_condition(results: Results) -> Claim:
    lines = grid(results)
    most = max(line["rows"] for line in lines)
    few = [line for line in lines if line["rows"] == most and 1 < line["condition"] <= 1000]
    few = few if len(few) > 1 else [line for line in lines if line["rows"] == most]
    exponent = slope(*_over(few, "condition", "truncated"))
    known = [(k, needed(results, "truncated", k, 0.5)) for k in across(lines, "condition")]
    told = ", ".join(f"{power(k)}: {'more than any here' if n is None else f'{n:,.0f}'}" for k, n in known)
    return Claim(
        where="Section 2.2, first paragraph",
        says="Used where the condition number κ is large, the naive estimate pays for it linearly.",
        measured=f"Added error at n = {most:,}: κ to the power {exponent:.2f}. Rows for an error of 0.5, by κ: {told}.",
        verdict=_judge(0.75 < exponent < 1.15),
        note="Variances are spread evenly in the logarithm between 1 and κ; the power stays below 1 because fewer "
        "directions are small as κ grows.",
    )


def _one_round(results: Results) -> Claim:
    lines = sorted(
        results.of("conditioning", dimension=DIMENSION, condition=ONE_ROUND), key=lambda line: line["rows"]
    )
    shares = [succeeded(line, goal(ONE_ROUND)) for line in lines]
    told = ", ".join(f"{line['rows']:,}: {share:.0%}" for line, share in zip(lines, shares, strict=True))
    most = max(max(line["largest"]) for line in lines) / ONE_ROUND
    return Claim(
        where="Theorem 2.3",
        says="One round, with enough rows, leaves I ⪯ P′ΣP′ ⪯ (9/10)κI.",
        measured=f"κ = {ONE_ROUND:,}, d = {DIMENSION}, share of tables by rows: {told}. Largest eigenvalue of any "
        f"table: {most:.2f} κ.",
        verdict=_judge(shares[-1] == 1, min(shares) > 0.5),
        note="One round brings most eigenvalues far below 0.9 κ: those it finds are divided by four, not by 10/9.",
    )


def _all_rounds(results: Results) -> Claim:
    lines = results.of("conditioning", dimension=DIMENSION)
    found = {k: always_from(results, DIMENSION, k) for k in across(lines, "condition") if k != ONE_ROUND}
    told = ", ".join(
        f"κ = {power(k)} ({rounds(k)} rounds): {'not reached' if n is None else f'{n:,}'}"
        for k, n in found.items()
    )
    reached = [(k, n) for k, n in found.items() if n is not None]
    allowed = measured = 1.0
    if len(reached) > 1:
        (low, first), (high, last) = reached[0], reached[-1]
        allowed, measured = math.sqrt(rounds(high) / rounds(low)), last / first
    return Claim(
        where="Equation (1) and Corollary 2.6, first half",
        says="O(log κ) rounds on the same rows give I ⪯ PΣP ⪯ 1000·I, with rows that grow like √log κ.",
        measured=f"Rows from which every table succeeded, d = {DIMENSION}: {told}. "
        f"They grow {measured:.1f} times where √(rounds) grows {allowed:.1f} times.",
        verdict=_judge(None not in found.values(), measured <= allowed * 1.8),
        note="The grid of rows has steps of 1.8. The product of symmetric rounds is not symmetric: read PΣPᵀ. The "
        "lecture prints I ⪯ Σ ⪯ log κ where κI is meant.",
    )


def _dimension(results: Results) -> Claim:
    lines = results.of("conditioning", condition=10**4)
    found = [(d, always_from(results, d, 10**4)) for d in across(lines, "dimension")]
    told = ", ".join(f"d = {d}: {'not reached' if n is None else f'{n:,}'}" for d, n in found)
    least = min(line["rows"] for line in lines)
    known = [
        (d, n) for d, n in found if n is not None and n > least
    ]  # the least table may be more than enough
    exponent = slope(*zip(*known, strict=True)) if len(known) > 1 else math.nan
    return Claim(
        where="Corollary 2.6, first half",
        says="The preconditioner takes rows of order at most d^(3/2), up to logarithms.",
        measured=f"Rows from which every table succeeded, κ = 10⁴: {told}; d to the power {exponent:.2f}.",
        verdict=_judge(exponent < 1.75, all(n is not None for _, n in found)),
        note="The grid of rows has steps of 1.8; columns for which the least table was enough do not count.",
    )


def _weak_in_condition(results: Results) -> Claim:
    large = [line for line in grid(results) if line["condition"] >= 10**4]
    rows = max(line["rows"] for line in large)
    here = [line for line in large if line["rows"] == rows]
    first, last = here[0], here[-1]
    grew = {m: median(last, m) / median(first, m) for m in ("truncated", "preconditioned", "coinpress")}
    beside = {m: median(last, m) / median(last, "none") for m in ("preconditioned", "coinpress")}
    fewest = needed(results, "preconditioned", last["condition"], 0.2)
    other = needed(results, "coinpress", last["condition"], 0.2)
    return Claim(
        where="Corollary 2.6, second half",
        says="With preconditioning the error depends on κ only through √log κ.",
        measured=f"n = {rows:,}, from κ = {power(first['condition'])} to {power(last['condition'])} the error "
        f"grows: naive {grew['truncated']:,.1f} times, preconditioned {grew['preconditioned']:.2f} times, coinpress "
        f"{grew['coinpress']:.2f} times. At the end preconditioned has {beside['preconditioned']:.2f} and coinpress "
        f"{beside['coinpress']:.2f} times the error without privacy. Rows for an error of 0.2 there: preconditioned "
        f"{_rows(fewest)}, coinpress {_rows(other)}.",
        verdict=_judge(grew["preconditioned"] < 2, beside["preconditioned"] < 3),
        note="The last round of the recursion has the noise of κ = 1000 for half of ρ: a constant in the corollary, "
        "and most of its error here. Every round lifts small directions by 1.05, so more rounds leave less of it.",
    )


def _sweep_rows(results: Results) -> int:
    """Of the sweep over columns: its tables have other numbers of columns than the common one."""
    return next(int(one["rows"]) for one in naive(results, condition=2) if one["dimension"] != DIMENSION)


def _over(
    lines: Sequence[Line], word: str, method: str, kind: str = "added"
) -> tuple[list[float], list[float]]:
    """An argument in order, and the medians beside it."""
    chosen = sorted(lines, key=lambda line: float(line[word]))
    return [float(line[word]) for line in chosen], [median(line, method, kind) for line in chosen]


def _rows(count: float | None) -> str:
    return "more than any here" if count is None else f"{count:,.0f}"


def _judge(*holds: bool) -> Verdict:
    """All of it, some of it, or none."""
    return "agrees" if all(holds) else "agrees in part" if any(holds) else "not reproduced"
