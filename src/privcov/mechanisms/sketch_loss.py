"""The exact privacy loss of a Gaussian sketch: r independent rows N(0, C + w²I), bounded in ball arithmetic.

One row added to a table stretches the covariance of a sketched row by a factor of at most 1 + s in one direction,
s = R²/w², and leaves the others alone; so the loss is that of r draws of N(0, 1) against N(0, 1 + s). One row
replaced stretches one direction and shrinks another, independently. Every result is the outer end of a ball:
a bound, and not an approximation. Proof: docs/proofs/johnson-lindenstrauss.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from privcov.accounting import gaussian_mu
from privcov.errors import ParameterError

_PRECISION = 256
_STEPS = 30
_HALVINGS = 400
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

    def certified(ratio: float) -> bool:
        with ctx.workprec(_PRECISION):
            found = _delta(_ball(Fraction(ratio)), sketch_rows, _ball(epsilon), replaced)
            return bool(found <= _ball(delta))

    # For many rows the loss is nearly Gaussian, with mean (s²r/2)/2, or s²r/2 where two directions move.
    low = float(gaussian_mu(epsilon=epsilon, delta=delta)) / math.sqrt(sketch_rows / (1 if replaced else 2))
    for _ in range(_HALVINGS):
        if certified(low):
            break
        low /= 2
    else:
        raise ParameterError(
            "E203", "no ridge is proven to give this epsilon and delta.", "Give a larger delta."
        )
    high = 2 * low
    while certified(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if certified(middle) else (low, middle)
    return Fraction(low)


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
