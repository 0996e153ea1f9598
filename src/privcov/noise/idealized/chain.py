"""A chain of Bingham draws, each in the orthogonal complement of those before, at the price of a few eigh.

Vectors are drawn in blocks. A block costs one eigendecomposition of what is left of the matrix; its vectors then
become Householder reflectors, which carry the matrix to the complement and, in the end, are multiplied out into
the orthonormal answer. Proof that blocks do not change the law: ``docs/proofs/blocked-chain.md``. Within
``devices.using`` a GPU the matrices of a large problem stay there; randomness is always drawn here.

What is left of a matrix while vectors are drawn from it: decomposed, turned, and cut to their complement.

``Here`` does it with LAPACK, ``There`` with PyTorch on a device, where the matrix and its eigenvectors stay. Both take
the eigenvectors whose first entry is not negative, so that the same random words give the same vectors, to rounding.
Letters and proof: ``docs/proofs/blocked-chain.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without
from numpy.typing import ArrayLike

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import Device, device_for, received, sent
from privcov.noise.idealized.bingham import checked_concentrations, checked_matrix
from privcov.noise.idealized.blocks import Block
from privcov.noise.idealized.envelopes import Rows, UnsafeError
from privcov.noise.randomness import Randomness


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

    >>> from privcov.noise.randomness import rehearsal
    >>> vectors, proposals = sample_chain(rehearsal(1), np.diag([3.0, 2.0, 1.0]), [1e9, 1e9])
    >>> np.abs(vectors).round(3).tolist(), len(proposals)
    ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 2)
    """
    checked = checked_matrix(matrix)
    dimension = checked.shape[0]
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
    device = device_for(dimension)
    rest: Here | There = Here(checked) if device is None else There(checked, device)
    while start < draws:
        left, rest = dimension - start, rest.settled()
        values = rest.decomposed()
        most = min(block_length or left, max(1, left // 2), draws - start)
        block = Block(values, most=most, batch=batch, device=rest.device)
        while block.count < most and (block_length or block.pays):
            try:
                proposals.append(block.draw(randomness, float(per_step[start + block.count])))
            except UnsafeError:
                break  # a fresh decomposition carries on; the draw that failed is made anew
        end, batch = start + block.count, block.batch
        packed, scale = rest.reflected(block.vectors[: block.count], more=end < draws)
        reflectors[start:, start:end], scales[start:end] = packed, scale
        signs[start:end] = np.sign(np.diagonal(packed))
        start = end
    if rank == dimension:
        signs[-1] = 1.0 - 2.0 * float(randomness.words(1)[0] & np.uint64(1))
    return multiplied_out(reflectors, scales) * signs, proposals


class Here:
    """On this processor; only lower triangles are read and written.

    Eigenvectors are never formed: a tridiagonal reduction, then the tridiagonal problem. Only a block's few vectors
    are carried out of the eigenbasis, so multiplying the two factors would be waste.
    """

    device: Device | None = None

    def __init__(self, matrix: Floats) -> None:
        self._rest = np.asfortranarray(matrix)

    def decomposed(self) -> Floats:
        """The eigenvalues, ascending; ``reflected`` uses the eigenvectors."""
        space = int(scipy.linalg.lapack.dsytrd_lwork(self._rest.shape[0], lower=1)[0])
        self._packed, diagonal, beside, self._scales, _ = scipy.linalg.lapack.dsytrd(
            self._rest, lower=1, lwork=space
        )
        values, self._inner, _ = scipy.linalg.lapack.dstevd(diagonal, beside)
        self._inner *= np.where(
            self._inner[0] < 0.0, -1.0, 1.0
        )  # the reduction leaves the first row as it is
        return np.asarray(values)

    def reflected(self, vectors: Rows, *, more: bool) -> tuple[Floats, Floats]:
        """Orthonormal rows in the eigenbasis as packed Householder reflectors and scales.

        If more are to come, what is left is cut to their complement.
        """
        columns = self._outward(vectors.T)
        space = int(scipy.linalg.lapack.dgeqrf_lwork(*columns.shape)[0])
        packed, scale, _, _ = scipy.linalg.lapack.dgeqrf(columns, lwork=space)
        if more:
            self._rest = _complement(self._rest, packed, scale)
        return packed, scale

    def settled(self) -> Here:
        """Itself: here is where every size is at home."""
        return self

    def _outward(self, columns: Floats) -> Floats:
        """Columns in the eigenbasis, in the coordinates of the matrix."""
        result = np.asfortranarray(self._inner @ columns)
        if self._scales.size:
            below = np.asfortranarray(self._packed[1:, :-1])
            tail = np.asfortranarray(result[1:])
            space = int(scipy.linalg.lapack.dormqr("L", "N", below, self._scales, tail, -1)[1][0])
            result[1:], _, _ = scipy.linalg.lapack.dormqr(
                "L", "N", below, self._scales, tail, space, overwrite_c=1
            )
        return result


class There:
    """On a device, while there is enough left that it pays."""

    def __init__(self, matrix: Floats, device: Device) -> None:
        self.device: Device | None = device
        self._torch = device.torch
        self._rest = sent(matrix, device)

    def decomposed(self) -> Floats:
        """The eigenvalues, ascending; ``reflected`` uses the eigenvectors."""
        values, vectors = self._torch.linalg.eigh(self._rest)
        self._vectors = vectors * self._torch.where(vectors[0] < 0.0, -1.0, 1.0).to(vectors.dtype)
        return received(values)

    def reflected(self, vectors: Rows, *, more: bool) -> tuple[Floats, Floats]:
        """As ``Here`` does it."""
        packed, scale = self._torch.geqrf(self._vectors @ vectors.T)
        if more:
            self._rest = self._complement(packed, scale)
        return received(packed), received(scale)

    def settled(self) -> Here | There:
        """Where what is left belongs: here, once it is small."""
        if device_for(self._rest.shape[0]) is None:
            return Here(received(self._rest))
        return self

    def _complement(self, packed: Any, scale: Any) -> Any:
        """As the function of this name below, of whole matrices."""
        torch, count = self._torch, scale.shape[0]
        idle = scale == 0.0
        v = torch.tril(packed, -1)
        v.diagonal().fill_(1.0)
        v[:, idle] = 0.0
        t_inverse = torch.triu(v.T @ v, 1)
        t_inverse.diagonal().copy_(1.0 / torch.where(idle, torch.ones_like(scale), scale))
        solve = torch.linalg.solve_triangular
        x = solve(t_inverse, self._rest @ v, upper=True, left=False)
        x -= v @ (0.5 * solve(t_inverse.T, v.T @ x, upper=False))
        x, v = x[count:], v[count:]
        return self._rest[count:, count:] - x @ v.T - v @ x.T


def multiplied_out(reflectors: Floats, scales: Floats) -> Floats:
    """The first columns of the product of the reflectors, orthonormal."""
    device = device_for(reflectors.shape[0])
    if device is not None:
        made = device.torch.linalg.householder_product(sent(reflectors, device), sent(scales, device))
        return received(made)
    space = int(scipy.linalg.lapack.dorgqr(reflectors, scales, lwork=-1)[1][0])
    vectors, _, _ = scipy.linalg.lapack.dorgqr(reflectors, scales, lwork=space, overwrite_a=1)
    return np.asarray(vectors)


def _complement(lower: Floats, packed: Floats, scale: Floats) -> Floats:
    """QᵀMQ without its first rows and columns, Q = I − VTVᵀ being the product of the packed reflectors."""
    count = scale.size
    idle = scale == 0.0  # a vector that already was a basis vector needs no reflector
    v = np.tril(packed, -1)
    np.fill_diagonal(v, 1.0)
    v[:, idle] = 0.0
    v = np.asfortranarray(v)
    t_inverse = np.triu(v.T @ v, 1)
    np.fill_diagonal(t_inverse, 1.0 / np.where(idle, 1.0, scale))
    t, _ = scipy.linalg.lapack.dtrtri(t_inverse)
    x = scipy.linalg.blas.dsymm(1.0, lower, v, lower=1) @ t
    x -= v @ (0.5 * (t.T @ (v.T @ x)))
    return scipy.linalg.blas.dsyr2k(
        -1.0, np.asfortranarray(x[count:]), np.asfortranarray(v[count:]), beta=1.0,
        c=np.asfortranarray(lower[count:, count:]), lower=1, overwrite_c=1,
    )  # fmt: skip
