"""A chain of Bingham draws, each in the orthogonal complement of those before, at the price of a few eigh.

Vectors are drawn in blocks. A block costs one eigendecomposition of what is left of the matrix; its vectors then
become Householder reflectors, which carry the matrix to the complement and, in the end, are multiplied out into
the orthonormal answer. Proof that blocks do not change the law: ``docs/proofs/blocked-chain.md``. Within
``devices.using`` a GPU the matrices of a large problem stay there; randomness is always drawn here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import device_for
from privcov.noise.idealized.bingham import checked_concentrations, checked_matrix
from privcov.noise.idealized.blocks import Block
from privcov.noise.idealized.carrying import Here, There, multiplied_out
from privcov.noise.idealized.envelopes import UnsafeError
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
