"""Additive Wishart noise (Sheffet 2019), calibrated by its exact accountant.

What additive Wishart noise costs: exact under add-remove, a proven bound under replace-one.

One row in a Wishart matrix of k degrees hides like a shift of one chi-square variable Q of m = k − d + 1
degrees of freedom: the privacy profile of C + N against C + xxᵀ + N, N ~ W_d(k, s·I), is that of Q against
Q + t, t = |x|²/s, in either direction. Both are differences of two values of the distribution function,
evaluated in Arb balls of which the outer end is used. Proof: docs/proofs/wishart.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without
from flint import arb, ctx

from privcov.accounting import ball, upper_end
from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import AdditiveMechanism, Noise, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import wishart
from privcov.noise.laws import CentredWishart, centred_wishart
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.schema.grid import Grid

FREEDOM = 1024
"""k − d + 1 by default. More degrees mean less noise; twice as many again would gain 4 % at (1, 1e-6)."""
MOST_ENTRIES = 2**26
"""The normals one draw may take."""


@dataclass(frozen=True, kw_only=True)
class Wishart(AdditiveMechanism):
    """C + s·AAᵀ − k·s·I with a d × k normal A, as if k random rows had joined the table: (ε, δ).

    Guarantee: under add-remove the profile is exactly that of a chi-square variable of k − d + 1 degrees of
    freedom against its shift by R²/s, so s is the least that is certified; under replace-one a removal and
    an addition compose. ``centred="no"`` leaves the mean k·s·I in place: the matrix is positive semi-definite
    by construction (up to half a grid step an entry), biased, and its certificate carries no law of noise.
    ``constants="published"`` takes k = d + ⌊28 ln(4/δ)/ε²⌋ and s = R², where the accountant confirms it.
    Proof: docs/proofs/wishart.md.
    """

    name = "wishart"
    kinds = ("approximate",)
    summary = "adds a random Wishart matrix, s·AAᵀ − k·s·I with normal A of d × k: like k further random rows"
    best_at = "a positive semi-definite matrix without repair (centred=no); gaussian is more accurate"
    proof = "docs/proofs/wishart.md"
    as_published = {"constants": "published", "centred": "no"}  # noqa: RUF012 - a constant of the class

    degrees: int | None = None
    centred: Literal["yes", "no"] = "yes"
    constants: Literal["tight", "published"] = "tight"

    def law(self, *, loss: Loss, grid: Grid) -> CentredWishart | None:  # type: ignore[override]
        """None where the mean is left in: that noise is no centred law, and repair must not take it for one."""
        return self._law(loss, grid) if self.centred == "yes" else None

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float:
        """That of the noise, whatever the table; with the mean k·s·I where that is left in."""
        noise = self._law(loss, grid).rms_frobenius
        if self.centred == "yes":
            return noise
        mean = float(self._degrees(loss, grid) * self._scale(loss, grid) * grid.unit)
        return math.hypot(noise, math.sqrt(grid.dimension) * mean)

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Noise:
        self.check(loss)
        degrees, scale = self._degrees(loss, grid), self._scale(loss, grid)
        diagonal = np.equal(*np.triu_indices(grid.dimension))
        if self.arithmetic == "exact":
            return Noise(self.exact_noise(loss=loss, grid=grid, randomness=randomness))
        simulated = self._law(loss, grid).simulate(randomness)[np.triu_indices(grid.dimension)]
        upper = np.array([round(value) for value in (simulated * 4.0**grid.exponent).tolist()], dtype=object)
        if self.centred == "no":
            upper[diagonal] += round(degrees * scale)
        return Noise(upper)

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        d, degrees, scale = grid.dimension, self._degrees(loss, grid), self._scale(loss, grid)
        upper = wishart(randomness, dimension=d, degrees=degrees, scale=scale)
        if self.centred == "yes":
            upper[np.equal(*np.triu_indices(d))] -= round(degrees * scale)
        return upper

    def _law(self, loss: Loss, grid: Grid) -> CentredWishart:
        family = centred_wishart(self._degrees(loss, grid))
        return family(dimension=grid.dimension, scale=float_up(self._scale(loss, grid) * grid.unit))

    def _degrees(self, loss: Loss, grid: Grid) -> int:
        """k, from public facts."""
        d, (epsilon, delta) = grid.dimension, _parameters(loss)
        if self.constants == "published":
            if self.degrees is not None:
                raise ParameterError(
                    "E209", "the published constants fix the degrees of freedom.", "Leave degrees out."
                )
            degrees = d + math.floor(min(1e15, 28 * math.log(4 / delta) / max(epsilon**2, 1e-300)))
        else:
            degrees = d - 1 + FREEDOM if self.degrees is None else self.degrees
        if degrees < d + 2:
            raise ParameterError(
                "E209", f"wishart: degrees must be at least columns + 2 = {d + 2}, got {degrees}."
            )
        if d * degrees > MOST_ENTRIES:
            raise ParameterError(
                "E209",
                f"wishart: {degrees} degrees with {d} columns need more than {MOST_ENTRIES} random numbers.",
                "Choose fewer degrees, or the gaussian mechanism.",
            )
        return degrees

    def _scale(self, loss: Loss, grid: Grid) -> Fraction:
        """s in grid units: the trace that one person can move, over the largest certified shift."""
        freedom = self._degrees(loss, grid) - grid.dimension + 1
        epsilon, delta = loss.amounts["epsilon"], loss.amounts["delta"]
        # What one person adds, or takes away, is positive semi-definite: its trace is at most R² a row.
        trace = Sensitivity.of(grid, loss.neighbours).operator
        if self.constants == "tight":
            return trace / largest_shift(
                epsilon=epsilon, delta=delta, freedom=freedom, neighbours=loss.neighbours
            )
        published = Fraction(grid.squared_norm_bound)
        cost = cheapest_delta(
            shift=trace / published, epsilon=epsilon, freedom=freedom, neighbours=loss.neighbours
        )
        if cost > delta:
            raise ParameterError(
                "E203",
                "the published degrees of freedom are not proven to give this epsilon and delta.",
                "Leave --as-published out.",
            )
        return published


def _parameters(loss: Loss) -> tuple[float, float]:
    if not isinstance(loss, ApproxDP):
        raise ParameterError("E203", "wishart needs epsilon and delta.", "Give a delta.")
    return float(loss.epsilon), float(loss.delta)


_FIRST_SHARES: Floats = np.linspace(0.02, 0.98, 49)
"""Candidates for the share of ε that the first of the two steps of a replacement takes; any is sound."""


def wishart_delta(
    *, shift: Fraction, epsilon: Fraction, freedom: int, neighbours: Neighbours, first_share: Fraction
) -> Fraction:
    """An upper end of δ(ε) at this shift t and m degrees of freedom (at least 3), in the worse direction.

    Under replace-one a row is removed and another added, in the better of the two orders, ``first_share`` of
    ε going to the first step: H(P, R) ≤ H₁(P, Q) + e^ε₁ H₂(Q, R).
    """
    with ctx.workprec(_precision(shift, epsilon)):
        found = _delta(ball(shift), epsilon, freedom, neighbours, first_share)
        return min(Fraction(1), max(Fraction(0), upper_end(found)))


@lru_cache
def largest_shift(*, epsilon: Fraction, delta: Fraction, freedom: int, neighbours: Neighbours) -> Fraction:
    """The largest t found whose cost is certified to stay within (ε, δ): floats guide, balls decide."""
    guess, share = _guess(float(epsilon), float(delta), freedom, neighbours)
    with ctx.workprec(_precision(delta, epsilon)):
        for tries in range(60):
            shift = Fraction(guess * (1 - min(0.5, 2.0 ** (tries - 34))))
            if shift > 0 and _delta(ball(shift), epsilon, freedom, neighbours, share) <= ball(delta):
                return shift
            guess = float(shift)
    raise ParameterError(
        "E203", f"Wishart noise with {freedom} degrees beyond the columns is not proven to give this loss.",
        "Choose a larger delta, or the gaussian mechanism.",
    )  # fmt: skip


def cheapest_delta(*, shift: Fraction, epsilon: Fraction, freedom: int, neighbours: Neighbours) -> Fraction:
    """The least of ``wishart_delta`` over the shares of ε tried; they matter under replace-one only."""
    shares = [Fraction(share) for share in _FIRST_SHARES.tolist()]
    if neighbours is Neighbours.ADD_REMOVE:
        shares = shares[:1]
    return min(
        wishart_delta(shift=shift, epsilon=epsilon, freedom=freedom, neighbours=neighbours, first_share=share)
        for share in shares
    )


def _delta(shift: arb, epsilon: Fraction, freedom: int, neighbours: Neighbours, first_share: Fraction) -> arb:
    if neighbours is Neighbours.ADD_REMOVE:
        loss = ball(epsilon)
        return _larger(_from_below(shift, loss, freedom), _from_above(shift, loss, freedom))
    first, second = ball(first_share * epsilon), ball((1 - first_share) * epsilon)
    via_neither = _from_above(shift, first, freedom) + first.exp() * _from_below(shift, second, freedom)
    via_both = _from_below(shift, first, freedom) + first.exp() * _from_above(shift, second, freedom)
    return via_both if via_both.upper() < via_neither.upper() else via_neither


def _from_below(shift: arb, epsilon: arb, freedom: int) -> arb:
    """δ of Q against Q + t: F(q) − e^ε F(q − t) at the q where the log ratio of densities is ε."""
    half = arb(freedom) / 2
    rest = shift / ((epsilon + shift / 2) / (half - 1)).expm1()
    # One minus the upper tail: Arb's lower function is slow and wide in the middle of the distribution.
    most = 1 - ((rest + shift) / 2).gamma_upper(half, regularized=1)
    exact = most - epsilon.exp() * (1 - (rest / 2).gamma_upper(half, regularized=1))
    # Where e^ε is so large that the second term loses all digits, leaving it out is an upper bound too.
    return exact if exact.upper() < most.upper() else most


def _from_above(shift: arb, epsilon: arb, freedom: int) -> arb:
    """δ of Q + t against Q: the same in the upper tail; nothing where no log ratio reaches ε."""
    half = arb(freedom) / 2
    excess = (shift / 2 - epsilon) / (half - 1)
    if not excess > 0:
        return arb(0) if excess <= 0 else arb(1)
    start = shift / excess.expm1()
    most = (start / 2).gamma_upper(half, regularized=1)
    exact = most - epsilon.exp() * ((start + shift) / 2).gamma_upper(half, regularized=1)
    return exact if exact.upper() < most.upper() else most


def _larger(one: arb, other: arb) -> arb:
    return one if one.upper() > other.upper() else other


def _precision(small: Fraction, epsilon: Fraction) -> int:
    """Bits that leave digits of a difference of size ``small`` whose second term is multiplied by e^ε."""
    return (
        256
        + 2 * max(0, small.denominator.bit_length() - small.numerator.bit_length())
        + min(2048, math.ceil(2 * epsilon))
    )


def _guess(epsilon: float, delta: float, freedom: int, neighbours: Neighbours) -> tuple[float, Fraction]:
    """A shift and a share that floats believe in; nothing here is part of the guarantee."""
    if neighbours is Neighbours.ADD_REMOVE:
        one = np.array([epsilon])
        shifts = _bisect(
            lambda t: np.maximum(_float_below(t, one, freedom), _float_above(t, one, freedom)),
            1,
            delta,
            freedom,
        )
        return float(shifts[0]), Fraction(1, 2)
    first = _FIRST_SHARES * epsilon
    second, factor = epsilon - first, np.exp(np.minimum(first, 700.0))

    def cost(t: Floats) -> Floats:
        neither = _float_above(t, first, freedom) + factor * _float_below(t, second, freedom)
        both = _float_below(t, first, freedom) + factor * _float_above(t, second, freedom)
        return np.asarray(np.minimum(neither, both))

    shifts = _bisect(cost, first.size, delta, freedom)
    best = int(np.argmax(shifts))
    return float(shifts[best]), Fraction(float(_FIRST_SHARES[best]))


def _bisect(cost: Callable[[Floats], Floats], size: int, delta: float, freedom: int) -> Floats:
    low, high = np.full(size, -700.0), np.full(size, math.log(64.0 * freedom))
    for _ in range(70):
        middle = (low + high) / 2
        fits = cost(np.exp(middle)) <= delta
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.asarray(np.exp(low))


def _float_below(shift: Floats, epsilon: Floats, freedom: int) -> Floats:
    half = freedom / 2
    with np.errstate(all="ignore"):
        rest = shift / np.expm1((epsilon + shift / 2) / (half - 1))
        most = scipy.special.gammainc(half, (rest + shift) / 2)
        less = np.exp(epsilon + np.log(scipy.special.gammainc(half, rest / 2)))
    return np.asarray(most - np.where(np.isfinite(less) & (less <= most), less, 0.0))


def _float_above(shift: Floats, epsilon: Floats, freedom: int) -> Floats:
    half = freedom / 2
    with np.errstate(all="ignore"):
        start = shift / np.expm1((shift / 2 - epsilon) / (half - 1))
        most = scipy.special.gammaincc(half, start / 2)
        less = np.exp(epsilon + np.log(scipy.special.gammaincc(half, (start + shift) / 2)))
        found = most - np.where(np.isfinite(less) & (less <= most), less, 0.0)
    return np.asarray(np.where(shift / 2 > epsilon, found, 0.0))
