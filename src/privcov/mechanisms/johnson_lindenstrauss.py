"""A Gaussian sketch with ridge (Blocki, Blum, Datta and Sheffet 2012; Sheffet 2019): r random rows and their matrix.

The exact privacy loss of a Gaussian sketch: r independent rows N(0, C + w²I), bounded in ball arithmetic.

One row added to a table stretches the covariance of a sketched row by a factor of at most 1 + s in one direction,
s = R²/w², and leaves the others alone; so the loss is that of r draws of N(0, 1) against N(0, 1 + s). One row
replaced stretches one direction and shrinks another, independently. Every result is the outer end of a ball:
a bound, and not an approximation. Proof: docs/proofs/johnson-lindenstrauss.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from privcov.accounting import gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import DataDrivenMechanism, SketchDraw, Upper
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact.matrices import rounded_rows
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.releases.sketch import Sketch, estimate
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 64
MOST_ROWS = 2**16
"""The exact accountant takes seconds for so many, a person's several rows counted severally."""
MOST_NUMBERS = 2**22
"""A sketch is a small table; this many numbers are some 40 MB of text."""
LEAST_RIDGE = 2**10
"""In grid units: the rounding of a sketched row, of variance 1/12, stays below 1e-4 of the row's own."""


@dataclass(frozen=True, kw_only=True)
class JohnsonLindenstrauss(DataDrivenMechanism):
    """Publishes r rows drawn from N(0, C + w²I), and the unbiased matrix Σ yyᵀ/r − w²I: (ε, δ).

    Guarantee: w² is the smallest for which the exact privacy loss of r such rows is certified to be within
    (ε, δ), for every table; nothing is assumed about the least eigenvalue of C. The error is multiplicative,
    see ``rms_frobenius``: for the matrix alone ``gaussian`` was better at every r we tried. ``constants`` takes the w²
    of the 2012 paper or of Sheffet (2019), where the exact loss confirms it.
    Proof: docs/proofs/johnson-lindenstrauss.md.
    """

    name = "johnson-lindenstrauss"
    kinds = ("approximate",)
    summary = "publishes random mixtures of the rows plus a ridge: a small synthetic table for regressions"
    best_at = "when rows must be published, or variances in given directions; the 2012 paper"
    proof = "docs/proofs/johnson-lindenstrauss.md"
    as_published = {"constants": "2012"}  # noqa: RUF012 - a constant of the class

    constants: Literal["tight", "2012", "2019"] = "tight"
    sketch_rows: int | None = None

    def law(self, *, loss: Loss, grid: Grid) -> None:
        """Not additive: the error grows with the matrix itself."""

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        self.check_columns(grid.dimension, most=EXACT_COLUMNS, instead="gaussian")
        ridge, shape = self.ridge(loss=loss, grid=grid), (self.rows(grid), grid.dimension)
        if self.arithmetic == "exact":
            return _Draw(ridge, normals(randomness, math.prod(shape)), grid.dimension)
        return _Draw(ridge, randomness.normals(*shape), grid.dimension)

    def rows(self, grid: Grid) -> int:
        """How many rows are published: by default 16 a column, at least 256."""
        d = grid.dimension
        most = min(MOST_ROWS // min(grid.max_rows_per_person, d), MOST_NUMBERS // d)
        if self.sketch_rows is None:
            return min(max(256, 16 * d), most)
        if not 1 <= self.sketch_rows <= most:
            raise ParameterError(
                "E209", f"sketch_rows must be a whole number from 1 to {most}, got {self.sketch_rows}."
            )
        return self.sketch_rows

    def ridge(self, *, loss: Loss, grid: Grid) -> int:
        """w² in grid units of the Gram matrix, a public fact: certified, and rounded up."""
        self.check(loss)
        assert isinstance(loss, ApproxDP)
        sensitivity = Sensitivity.of(grid, loss.neighbours)
        # A row of norm R stretches a direction by at most R²/w². A person with m rows moves at most min(m, d)
        # directions, by mR²/w² in all: charged as if each moved by that much, which is min(m, d) times the rows.
        directions = min(sensitivity.rows_per_person, sensitivity.dimension)
        replaced = loss.neighbours is Neighbours.REPLACE_ONE and grid.dimension > 1
        charged = self.rows(grid) * directions
        if self.constants == "tight":
            ratio = sketch_ratio(
                sketch_rows=charged, epsilon=loss.epsilon, delta=loss.delta, replaced=replaced
            )
            return max(LEAST_RIDGE, math.ceil(sensitivity.operator / ratio))
        ridge = math.ceil(sensitivity.operator * _published(self.constants, loss, self.rows(grid)))
        ratio = sensitivity.operator / ridge
        if (
            sketch_delta(ratio=ratio, sketch_rows=charged, epsilon=loss.epsilon, replaced=replaced)
            > loss.delta
        ):
            raise ParameterError(
                "E203",
                f"the constants of {self.constants} do not give this epsilon and delta for this schema.",
                "Leave --as-published out.",
            )
        return max(LEAST_RIDGE, ridge)

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float:
        """By ``rms_frobenius``: the error depends on the trace and the norm alone."""
        values = [float(value) for value in spectrum]
        return self.rms_frobenius(loss=loss, grid=grid, trace=sum(values), frobenius=math.hypot(*values))

    def rms_frobenius(self, *, loss: Loss, grid: Grid, trace: float, frobenius: float) -> float:
        """√E‖Ĉ − C‖²_F = √(((tr M)² + ‖M‖²_F)/r), M = C + w²I, for a C of this trace and norm, in scaled units.

        Both are the data's; give public bounds. n rows of norm at most R have trace and norm at most nR².
        """
        d, w2 = grid.dimension, float(self.ridge(loss=loss, grid=grid) * grid.unit)
        square = (trace + d * w2) ** 2 + frobenius**2 + 2 * w2 * trace + d * w2**2
        return math.sqrt(square / self.rows(grid))


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(SketchDraw):
    """Standard normals, drawn before the data; which rows they become depends on the matrix."""

    ridge: int
    variates: LazyReals | Floats
    dimension: int

    def _sketch(self, gram: Gram) -> Sketch:
        """round(Sn) row by row, SSᵀ = C + w²I in exact integers."""
        d = self.dimension
        covariance: NDArray[Any] = np.zeros((d, d), dtype=object)
        i, j = np.triu_indices(d)
        covariance[i, j] = covariance[j, i] = gram.reveal_to_mechanism()
        covariance[np.diag_indices(d)] += self.ridge
        if isinstance(self.variates, LazyReals):
            rows = rounded_rows(self.variates, covariance=covariance.tolist())
            return tuple(tuple(int(entry) for entry in row) for row in rows)
        values, vectors = np.linalg.eigh(covariance.astype(np.float64))
        ideal = self.variates @ (vectors * np.sqrt(np.maximum(values, self.ridge))).T
        return tuple(tuple(map(round, row)) for row in ideal.tolist())

    def _estimate(self, sketch: Sketch) -> Upper:
        """The matrix that follows from the rows: post-processing."""
        return np.array(estimate(sketch, ridge=self.ridge), dtype=object)


def _published(constants: str, loss: ApproxDP, rows: int) -> Fraction:
    """w²/R² as the papers set it, rounded up."""
    epsilon, delta = float(loss.epsilon), float(loss.delta)
    if constants == "2012":  # w = 16√(r ln(2/δ))·ln(16r/δ)/ε
        square = 256 * rows * math.log(2 / delta) * math.log(16 * rows / delta) ** 2 / epsilon**2
    else:  # Sheffet 2019, theorem 2, where nothing is known of the least eigenvalue
        log = math.log(4 / delta)
        square = 2 * (log + math.sqrt(2 * rows * log)) / epsilon
    return Fraction(square * (1 + 2**-40))


_PRECISION = 256
_STEPS = 30
_HALVINGS = 400
_PLAIN = 1e-8
"""From this relative distance on floats tell which of two numbers is larger."""
_NEGLIGIBLE = arb(2) ** -1000


def sketch_delta(*, ratio: Fraction, sketch_rows: int, epsilon: Fraction, replaced: bool) -> Fraction:
    """An upper bound on δ(ε) of ``sketch_rows`` rows whose variance one person stretches by at most 1 + ratio.

    ``replaced``: one direction stretched and another shrunk (replace-one), in place of either (add-remove).

    >>> f"{float(sketch_delta(ratio=1 / Fraction('35.5'), sketch_rows=100, epsilon=Fraction(1), replaced=False)):.1e}"
    '1.0e-06'
    """
    with ctx.workprec(_PRECISION):
        top = _delta(_ball(ratio), sketch_rows, _ball(epsilon), replaced).upper()
        if not top < 1:
            return Fraction(1)
        if top < _NEGLIGIBLE:  # a fraction that small would not fit in memory
            return Fraction(1, 2**1000)
        mantissa, exponent = top.mid().man_exp()
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@lru_cache
def sketch_ratio(*, sketch_rows: int, epsilon: Fraction, delta: Fraction, replaced: bool) -> Fraction:
    """The largest ratio, to nine digits, that is certified to cost at most (ε, δ)."""

    def proven(ratio: float) -> bool:
        with ctx.workprec(_PRECISION):
            found = _delta(_ball(Fraction(ratio)), sketch_rows, _ball(epsilon), replaced)
            return bool(found <= _ball(delta))

    def plain(ratio: float) -> bool:
        near = _float_delta(ratio, sketch_rows, float(epsilon)) if replaced else math.nan
        return near < float(delta) if abs(near / float(delta) - 1) > _PLAIN else proven(ratio)

    # For many rows the loss is nearly Gaussian, with mean (s²r/2)/2, or s²r/2 where two directions move.
    start = float(gaussian_mu(epsilon=epsilon, delta=delta)) / math.sqrt(sketch_rows / (1 if replaced else 2))
    found = _largest_ratio(plain, start)  # floats find the way where the answer is plain
    return Fraction(found if proven(found) else _largest_ratio(proven, start))


def _largest_ratio(certified: Callable[[float], bool], start: float) -> float:
    """The largest ratio that is certified, to nine digits, by bisection from ``start``."""
    low = start
    for _ in range(_HALVINGS):
        if certified(low):
            break
        low /= 2
    else:
        raise ParameterError(
            "E203",
            "no ridge, however large, is proven to give this epsilon and delta.",
            "Give a larger delta.",
        )
    high = 2 * low
    while certified(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if certified(middle) else (low, middle)
    return low


def _float_delta(ratio: float, rows: int, epsilon: float) -> float:
    """``_replaced_delta`` in floats, to about ten digits: NaN where they cannot tell."""
    if not epsilon < 500:
        return math.nan
    half = (rows + 1) // 2
    ranks = np.arange(half)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 2 * half)))])  # of factorials

    def tail(threshold: float, factor: float) -> float:
        below = np.cumsum(np.exp(ranks * math.log(threshold) - threshold - logs[:half]))
        share = math.log(factor) - math.log1p(factor)
        ways = logs[half - 1 : 2 * half - 1] - logs[:half] - logs[half - 1]
        weights = np.exp(ranks * share - half * math.log1p(factor) + ways)
        return float(weights @ below[::-1])

    with np.errstate(all="ignore"):
        likely = tail(epsilon / ratio, 1 / (1 + ratio))
        unlikely = math.exp(epsilon) * tail(epsilon / ratio * (1 + ratio), 1 + ratio)
    # Both are known to some ten digits, so their difference is where it is no smaller part of them than this.
    return likely - unlikely if likely - unlikely > 1e-2 * likely else math.nan


def _delta(ratio: arb, rows: int, epsilon: arb, replaced: bool) -> arb:
    if replaced:
        return _replaced_delta(ratio, rows, epsilon)
    return _removed_delta(ratio, rows, epsilon).max(_added_delta(ratio, rows, epsilon))


def _removed_delta(ratio: arb, rows: int, epsilon: arb) -> arb:
    """N(0, 1) told from N(0, 1 + s): the loss (r/2)ln(1+s) − s/(2(1+s))·χ² exceeds ε where χ² is small."""
    threshold = (rows * (1 + ratio).log() / 2 - epsilon) * 2 * (1 + ratio) / ratio
    if threshold <= 0:  # a χ² is never below zero
        return arb(0)
    if not threshold > 0:  # in doubt: the whole tail is a bound
        return _lower_tail(threshold.upper(), rows)
    return _lower_tail(threshold, rows) - epsilon.exp() * _lower_tail(threshold / (1 + ratio), rows)


def _added_delta(ratio: arb, rows: int, epsilon: arb) -> arb:
    """N(0, 1 + s) told from N(0, 1): the loss (s/2)χ² − (r/2)ln(1+s) exceeds ε where χ² is large."""
    threshold = (epsilon + rows * (1 + ratio).log() / 2) * 2 / ratio
    return _upper_tail(threshold, rows) - epsilon.exp() * _upper_tail(threshold * (1 + ratio), rows)


def _replaced_delta(ratio: arb, rows: int, epsilon: arb) -> arb:
    """The loss (s/2)(A − B/(1+s)), A and B independent χ²: the logarithms cancel, both directions agree.

    In closed form for an even number of rows. An odd number is charged as one more: leaving a row out is
    post-processing.
    """
    half, threshold = (rows + 1) // 2, epsilon / ratio
    likely = _difference_tail(threshold, 1 / (1 + ratio), half)
    return likely - epsilon.exp() * _difference_tail(threshold * (1 + ratio), 1 + ratio, half)


def _difference_tail(threshold: arb, factor: arb, shape: int) -> arb:
    """P(A > t + cB) for independent unit gamma variates of a whole shape n.

    P(A > x) = Σ_{k<n} e^−x x^k/k!; averaged over B it is Σ_{j<n} P(J = j)·P(Poisson(t) < n − j), J negative
    binomial: a sum of positive terms, so nothing cancels.
    """
    below, term = [], (-threshold).exp()
    total = arb(0)
    for i in range(shape):
        total += term
        below.append(total)
        term *= threshold / (i + 1)
    weight, share = (1 + factor) ** -shape, factor / (1 + factor)
    result = arb(0)
    for j in range(shape):
        result += weight * below[shape - 1 - j]
        weight *= share * (shape + j) / (j + 1)
    return result


def _lower_tail(value: arb, rows: int) -> arb:
    """P(χ² < value): x^a e^−x/Γ(a+1)·Σ x^k/((a+1)…(a+k)), positive terms, and a ball for those left out."""
    x, shape = value / 2, arb(rows) / 2
    total, term, k = arb(1), arb(1), 0
    while not (term < total * arb(2) ** -_PRECISION and 2 * x < shape + k):
        k += 1
        term *= x / (shape + k)
        total += term
    rest = arb(0).union(term)  # the terms from here on halve at every step
    return (shape * x.log() - x - (shape + 1).lgamma()).exp() * (total + rest)


def _upper_tail(value: arb, rows: int) -> arb:
    """P(χ² > value): a finite sum of positive terms, Poisson weights or, for an odd number, half-whole ones."""
    x = value / 2
    if rows % 2:
        total, term, order = x.sqrt().erfc(), (-x).exp() * (x / arb.pi()).sqrt() * 2, arb(1) / 2
    else:
        total, term, order = arb(0), (-x).exp(), arb(0)
    for _ in range(rows // 2):
        total += term
        order += 1
        term *= x / order
    return total


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))
