"""Exact random decisions: a fast filter settles almost all of them, an exact judge the rest.

Both functions here compare a lazily revealed uniform real U with a real number p that is known exactly, as
a recipe for arbitrarily narrow balls. The filter looks at the first 64 bits of U and at a float64 (or 64-bit
integer) value of p; it answers only when the two are further apart than ``MARGIN``, which exceeds every
rounding error made on the way. Otherwise the judge narrows both until they separate.

Guarantee: each decision is the truth about U < p, whatever the rounding of the machine; and it holds for
every way to continue the bits of U, and of any lazily revealed real in p, that have been drawn so far.

Proof: docs/proofs/exact-sampling.md#trials
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.uniforms import DEPTHS, Ball, Indices, LazyUniforms, Mask, in_pieces
from privcov.noise.randomness import Randomness

# The filter's total error is below 2^-48: a few units of 2^-53 each from the uniform, from exp and from the
# exponent. Being generous costs nothing, since one decision in 2^39 reaches the judge.
MARGIN = 2.0**-40

Enclosure = Callable[[int, int], Ball]  # of which place, from how many words of a lazily revealed real
Survival = Callable[[int], Ball]


def exp_trials(randomness: Randomness, exponents: Floats, exact: Enclosure) -> Mask:
    """One independent trial per exponent g >= 0, successful with probability exp(-g).

    ``exponents`` are float64 values so close that exp(-g) is right to 2^-45, or NaN where that is not known;
    ``exact(index, words)`` encloses the true g, using at most ``words`` words of any lazily revealed real.

    >>> from privcov.noise.randomness import rehearsal
    >>> exp_trials(rehearsal(1), np.zeros(4), lambda index, words: arb(0)).tolist()
    [True, True, True, True]
    """
    uniforms = LazyUniforms(randomness, exponents.size)
    # The sign of the lead is the decision. It is believed only where the lead exceeds all roundings in it.
    lead = np.exp(-exponents) - uniforms.floats()
    success: Mask = lead > 0

    def probability(index: int, words: int) -> Ball:
        return (-exact(index, words)).exp()

    # Written so that a NaN counts as undecided.
    for index in np.flatnonzero(~(np.abs(lead) > MARGIN)).tolist():
        success[index] = is_below(uniforms, index, probability)
    return success


def whole_numbers(uniforms: LazyUniforms, survival: Survival) -> NDArray[np.int64]:
    """For each uniform real the K >= 0 with ``survival(K+1) <= U < survival(K)``, so P(K >= j) = survival(j).

    ``survival`` must fall strictly from survival(0) = 1 towards 0; it encloses its values at the working
    precision of ``flint.ctx``.
    """
    margin = int(MARGIN * 2.0**64)
    counts = np.zeros(uniforms.first.size, dtype=np.int64)
    words, alive = uniforms.first, np.arange(counts.size)
    undecided: list[Indices] = []
    for threshold in _thresholds(survival):
        low, high = max(threshold - margin, 0), min(threshold + margin, 2**64 - 1)
        # A first word knows its real to one unit, a threshold is known to one unit: both are far inside the
        # margin. A word within it is counted on like any other; in the end it is judged anew, from zero.
        undecided.append(alive[(words >= np.uint64(low)) & (words <= np.uint64(high))])
        survives = words < np.uint64(threshold)
        words, alive = words[survives], alive[survives]
        counts[alive] += 1
        if not alive.size:
            break
    for index in np.unique(np.concatenate(undecided)).tolist():
        counts[index] = _judge_whole(uniforms, index, survival)
    return counts


def exponential_survival(j: int) -> Ball:
    """P(floor(E) >= j) = exp(-j) for a unit exponential E."""
    return arb(-j).exp()


def until_accepted(count: int, propose: Callable[[Indices], Mask]) -> None:
    """Propose for every place, then again for the places whose proposal was rejected, until none is left."""
    for pending in in_pieces(np.arange(count)):
        while pending.size:
            pending = pending[~propose(pending)]


def _judge_whole(uniforms: LazyUniforms, index: int, survival: Survival) -> int:
    whole = 0
    while is_below(uniforms, index, lambda _index, _words: survival(whole + 1)):  # noqa: B023 - called at once
        whole += 1
    return whole


@cache
def _thresholds(survival: Survival) -> tuple[int, ...]:
    """floor(survival(j)·2^64) for j = 1, 2, … down to 0: a smaller first word is below, a larger one not."""
    found: list[int] = []
    with ctx.workprec(256):
        while not found or found[-1] > 0:
            found.append(int((survival(len(found) + 1) * arb(2) ** 64).floor().unique_fmpz()))
    return tuple(found)


def is_below(uniforms: LazyUniforms, index: int, enclosure: Enclosure) -> bool:
    """The exact judge: whether U < p, revealing bits of U and narrowing the ball of p until it is certain."""
    for words in DEPTHS:
        with ctx.workprec(64 * words + 64):
            # Balls compare as true only if it holds for every point of both. While they overlap neither line
            # answers, and twice as many bits are revealed; those already known stay as they are.
            uniform, bound = uniforms.ball(index, words), enclosure(index, words)
            if uniform < bound:
                return True
            if uniform >= bound:
                return False
    raise InternalError  # probability below 2^-4000
