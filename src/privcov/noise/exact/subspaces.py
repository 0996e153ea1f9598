"""Subspaces of density proportional to exp(κ·min(tr PM, cap)), M an exact integer matrix: matrix Bingham, exactly.

P is the projector onto the subspace. Proposals are uniform: the column space of a matrix Z of lazily revealed
normals, P = Z(ZᵀZ)⁻¹Zᵀ, accepted with probability exp(−κ(best − min(tr PM, cap))) for an integer ``best`` that no
subspace exceeds. Every decision is made in balls that are narrowed until it is certain, and what is returned is the
correct rounding of the projector accepted, so no float meets the law.

Proof: docs/proofs/matrix-bingham.md#sampler
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from privcov.errors import InternalError, ParameterError
from privcov.noise.exact.envelope import Integral
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.exact.spectrum import rounded_eigenvalues
from privcov.noise.exact.trials import is_below
from privcov.noise.exact.uniforms import DEPTHS, Ball, LazyUniforms
from privcov.noise.randomness import Randomness

_BATCH = 16


def subspace(
    randomness: Randomness,
    *,
    matrix: Integral,
    concentration: Fraction,
    rank: int,
    cap: int | None = None,
    bits: int = 40,
) -> tuple[list[list[int]], int]:
    """The projector onto a random subspace, entries rounded to 2^-bits, and how many proposals were drawn.

    >>> from flint import fmpz_mat
    >>> from privcov.noise.randomness import rehearsal
    >>> projector, _ = subspace(
    ...     rehearsal(1), matrix=fmpz_mat([[9, 0, 0], [0, 5, 0], [0, 0, 1]]), concentration=Fraction(1), rank=2
    ... )
    >>> abs(sum(projector[i][i] for i in range(3)) - 2 * 2**40) <= 3
    True
    """
    d = matrix.nrows()
    if not 1 <= rank < d:
        raise ParameterError("E224", f"rank must be between 1 and {d - 1}, got {rank}.")
    if not (isinstance(concentration, Fraction | int) and concentration >= 0):
        raise ParameterError("E222", f"a concentration must be a fraction, at least 0, got {concentration}.")
    # Rounded eigenvalues are off by at most a half each, so no subspace has a larger trace than this.
    best = sum(rounded_eigenvalues([[int(x) for x in row] for row in matrix.table()])[:rank]) + rank
    best = best if cap is None else min(best, cap)
    factor = fmpq(Fraction(concentration).numerator, Fraction(concentration).denominator)
    drawn, batch = 0, _BATCH
    while True:
        # The column space of a normal matrix is uniform, and thinned by exp(−κ(best − score)) ≤ 1 it has the density.
        points, uniforms = normals(randomness, batch * d * rank), LazyUniforms(randomness, batch)

        def probability(place: int, words: int, points: LazyReals = points) -> Ball:
            columns = _columns(points, place, words, d, rank)
            solved = _solved(columns, columns.transpose() * (arb_mat(matrix) * columns))
            if solved is None:
                # Nothing is known yet: the ball [0, 1] decides nothing, and the judge reads more bits.
                return arb(0.5, 0.5)
            # tr PM for P = Z(ZᵀZ)⁻¹Zᵀ is tr (ZᵀZ)⁻¹(ZᵀMZ): a matrix of rank columns in place of one of d.
            score = sum((solved[i, i] for i in range(rank)), arb(0))
            # Where the score exceeds a cap this is above 1, and every uniform real is below it: sure to be accepted.
            return (arb(factor) * (score - best)).exp()

        for place in range(batch):
            if is_below(uniforms, place, probability):
                return _rounded(points, place, d, rank, bits), drawn + place + 1
        drawn, batch = drawn + batch, min(2 * batch, 64 * _BATCH)


def _columns(points: LazyReals, place: int, words: int, d: int, rank: int) -> Any:
    """The d × rank matrix of a proposal as balls; its unit cancels in everything it is used for."""
    where = np.arange(place * d * rank, (place + 1) * d * rank)
    return arb_mat(d, rank, [arb(2 * int(n) + 1, 1) for n in points.lower(where, words)])


def _solved(columns: Any, right: Any) -> Any:
    """(ZᵀZ)⁻¹ times the right-hand side, or None where the balls are still too wide to tell that it exists."""
    try:
        return (columns.transpose() * columns).solve(right)
    except ZeroDivisionError:
        return None


def _rounded(points: LazyReals, place: int, d: int, rank: int, bits: int) -> list[list[int]]:
    """The nearest integers to 2^bits times the entries of the projector, once its balls decide every one of them."""
    for words in DEPTHS:
        with ctx.workprec(64 * words + 64):
            columns = _columns(points, place, words, d, rank)
            solved = _solved(columns, columns.transpose())
            if solved is None:
                continue
            projector = columns * solved * arb(2) ** bits
            entries = [(entry + arb(1) / 2).floor().unique_fmpz() for entry in projector.entries()]
        if all(entry is not None for entry in entries):
            return [[int(entries[i * d + j]) for j in range(d)] for i in range(d)]
    raise InternalError  # probability below 2^-2900
