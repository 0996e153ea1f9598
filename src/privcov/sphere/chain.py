"""A chain of Bingham draws, each in the orthogonal complement of those before, at the price of a few eigh.

Vectors are drawn in blocks. A block costs one eigendecomposition of what is left of the matrix; its vectors then
become Householder reflectors, which carry the matrix to the complement and, in the end, are multiplied out into
the orthonormal answer. Proof that blocks do not change the law: ``docs/proofs/blocked-chain.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack

from privcov.devices import eigh, elsewhere
from privcov.errors import ParameterError
from privcov.randomness import Floats, Randomness
from privcov.sphere.bingham import checked_concentrations, checked_matrix
from privcov.sphere.blocks import Block
from privcov.sphere.envelopes import UnsafeError


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
        eigen = _Eigen(rest)
        most = min(block_length or left, max(1, left // 2), draws - start)
        block = Block(eigen.values, most=most, batch=batch)
        while block.count < most and (block_length or block.pays):
            try:
                proposals.append(block.draw(randomness, float(per_step[start + block.count])))
            except UnsafeError:
                break  # a fresh decomposition carries on; the draw that failed is made anew
        end, batch = start + block.count, block.batch
        packed, scale = _reflectors(eigen.outward(block.vectors[: block.count].T))
        reflectors[start:, start:end], scales[start:end] = packed, scale
        signs[start:end] = np.sign(np.diagonal(packed))
        if end < draws:
            rest = _complement(rest, packed, scale)
        start = end
    if rank == dimension:
        signs[-1] = 1.0 - 2.0 * float(randomness.words(1)[0] & np.uint64(1))
    space = int(lapack.dorgqr(reflectors, scales, lwork=-1)[1][0])
    vectors, _, _ = lapack.dorgqr(reflectors, scales, lwork=space, overwrite_a=1)
    return vectors * signs, proposals


class _Eigen:
    """An eigendecomposition whose vectors are never formed: tridiagonal reduction, then the tridiagonal one.

    Only a block's few vectors are carried out of the eigenbasis, so multiplying the two factors would be waste.
    """

    def __init__(self, lower: Floats) -> None:
        if elsewhere(lower):  # on a GPU the whole decomposition is quicker than the reduction here
            self.values, self._inner = eigh(lower)
            self._packed, self._scales = np.empty((0, 0)), np.empty(0)
            return
        space = int(lapack.dsytrd_lwork(lower.shape[0], lower=1)[0])
        self._packed, diagonal, beside, self._scales, _ = lapack.dsytrd(lower, lower=1, lwork=space)
        self.values, self._inner, _ = lapack.dstevd(diagonal, beside)

    def outward(self, columns: Floats) -> Floats:
        """Columns in the eigenbasis, in the coordinates of the matrix."""
        result = np.asfortranarray(self._inner @ columns)
        if self._scales.size:
            below = np.asfortranarray(self._packed[1:, :-1])
            tail = np.asfortranarray(result[1:])
            space = int(lapack.dormqr("L", "N", below, self._scales, tail, -1)[1][0])
            result[1:], _, _ = lapack.dormqr("L", "N", below, self._scales, tail, space, overwrite_c=1)
        return result


def _reflectors(columns: Floats) -> tuple[Floats, Floats]:
    """Orthonormal columns as packed Householder reflectors and their scales."""
    space = int(lapack.dgeqrf_lwork(*columns.shape)[0])
    packed, scale, _, _ = lapack.dgeqrf(columns, lwork=space)
    return packed, scale


def _complement(lower: Floats, packed: Floats, scale: Floats) -> Floats:
    """QᵀMQ without its first rows and columns, Q = I − VTVᵀ being the product of the packed reflectors.

    Only lower triangles are read and written.
    """
    count = scale.size
    idle = scale == 0.0  # a vector that already was a basis vector needs no reflector
    v = np.tril(packed, -1)
    np.fill_diagonal(v, 1.0)
    v[:, idle] = 0.0
    v = np.asfortranarray(v)
    t_inverse = np.triu(v.T @ v, 1)
    np.fill_diagonal(t_inverse, 1.0 / np.where(idle, 1.0, scale))
    t, _ = lapack.dtrtri(t_inverse)
    x = blas.dsymm(1.0, lower, v, lower=1) @ t
    x -= v @ (0.5 * (t.T @ (v.T @ x)))
    return blas.dsyr2k(
        -1.0, np.asfortranarray(x[count:]), np.asfortranarray(v[count:]), beta=1.0,
        c=np.asfortranarray(lower[count:, count:]), lower=1, overwrite_c=1,
    )  # fmt: skip
