"""A chain of Bingham draws, each in the orthogonal complement of those before, at the price of a few eigh.

Vectors are drawn in blocks. A block costs one eigendecomposition of what is left of the matrix; its vectors then
become Householder reflectors, which carry the matrix to the complement and, in the end, are multiplied out into
the orthonormal answer. Proof that blocks do not change the law: ``docs/proofs/blocked-chain.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from privcov.errors import ParameterError
from privcov.randomness import Floats, Randomness
from privcov.sphere.bingham import checked_concentrations, checked_matrix
from privcov.sphere.blocks import Block


def sample_chain(
    randomness: Randomness,
    matrix: ArrayLike,
    concentrations: ArrayLike,
    *,
    rank: int | None = None,
    block_length: int | None = None,
) -> tuple[Floats, list[int]]:
    """Orthonormal columns θ₁ … θ_rank and the proposals each took; θᵢ ~ exp(cᵢ·uᵀ matrix u) orthogonal to θ₁ … θᵢ₋₁.

    ``rank`` is the dimension when not given. One concentration per vector; the last vector of a full basis is
    determined up to its sign, so its concentration may be left out and it costs no proposals. ``block_length``
    changes how long it takes, never the law.

    >>> from privcov.randomness import rehearsal
    >>> vectors, proposals = sample_chain(rehearsal(1), np.diag([3.0, 2.0, 1.0]), [1e9, 1e9])
    >>> np.abs(vectors).round(3).tolist(), len(proposals)
    ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 2)
    """
    rest = np.asfortranarray(checked_matrix(matrix))
    dimension = rest.shape[0]
    rank = dimension if rank is None else rank
    if not (isinstance(rank, int | np.integer) and 1 <= rank <= dimension):
        raise ParameterError("E224", f"rank must be a whole number from 1 to {dimension}, got {rank!r}.")
    draws = min(rank, dimension - 1)
    per_step = checked_concentrations(concentrations)
    if per_step.size not in {draws, rank}:
        raise ParameterError(
            "E222", f"{draws} vectors are drawn, so {draws} concentrations are needed, got {per_step.size}."
        )
    reflectors = np.zeros((dimension, rank), order="F")
    scales, signs = np.zeros(rank), np.ones(rank)
    proposals: list[int] = []
    batch, start = 1.0, 0
    while start < draws:
        left = dimension - start
        values, basis, failed = lapack.dsyevd(rest, lower=1)
        if failed:
            values, basis = np.linalg.eigh(rest)
        block = Block(values, most=min(block_length or _length(left), draws - start), batch=batch)
        while block.count < len(block.vectors):
            drawn = block.draw(randomness, float(per_step[start + block.count]))
            if drawn is None:
                break
            proposals.append(drawn[1])
        end, batch = start + block.count, block.batch
        packed, scale, _, _ = lapack.dgeqrf(basis @ block.vectors[: block.count].T)
        reflectors[start:, start:end], scales[start:end] = packed, scale
        signs[start:end] = np.sign(np.diagonal(packed))
        if end < draws:
            rest = _complement(rest, packed, scale)
        start = end
    if rank == dimension:
        signs[-1] = 1.0 - 2.0 * float(randomness.words(1)[0] & np.uint64(1))
    vectors, _, _ = lapack.dorgqr(reflectors, scales)
    return vectors * signs, proposals


def _length(left: int) -> int:
    """How many vectors to draw from one eigendecomposition of this size: a balance of left³ and left·length²."""
    return max(1, min(left // 2, round(0.75 * left ** (2 / 3))))


def _complement(matrix: Floats, packed: Floats, scale: Floats) -> Floats:
    """QᵀMQ without its first rows and columns, Q = I − VTVᵀ being the product of the packed reflectors."""
    count = scale.size
    idle = scale == 0.0  # a vector that already was a basis vector needs no reflector
    v = np.tril(packed, -1)
    np.fill_diagonal(v, 1.0)
    v[:, idle] = 0.0
    t_inverse = np.triu(v.T @ v, 1)
    np.fill_diagonal(t_inverse, 1.0 / np.where(idle, 1.0, scale))
    x = np.linalg.solve(t_inverse.T, (matrix @ v).T).T
    x -= 0.5 * v @ np.linalg.solve(t_inverse.T, v.T @ x)
    x, v = x[count:], v[count:]
    both = x @ v.T
    rest: Floats = matrix[count:, count:] - both - both.T
    return np.asfortranarray(rest)
