"""Gibbs sampling of the matrix Bingham law (Hoff 2009), as the 2016 paper drew its subspaces. Not private.

After any number of sweeps the law of a chain is only near its target, by an amount nobody can compute; a total
variation distance of ξ adds (1 + e^ε)·ξ to δ, so no pure guarantee is left and no δ can be stated. That is why
``matrix-bingham`` samples by rejection or refuses, and why this stands here: docs/proofs/matrix-bingham.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.idealized import sample_bingham
from privcov.noise.idealized.bingham import checked_matrix
from privcov.noise.randomness import Randomness


def gibbs_subspace(
    randomness: Randomness, matrix: ArrayLike, *, concentration: float, rank: int, sweeps: int
) -> Floats:
    """Orthonormal columns, about of density exp(concentration·tr VᵀMV): a plain array, no guarantee.

    A sweep draws every column, in turn, from its law given the others: a Bingham law on the complement of them.
    Hoff draws that in turn by Gibbs steps on coordinates; here it is drawn by exact rejection, so that the only
    error is that of the columns' chain. The start is uniform.

    >>> from privcov.noise.randomness import rehearsal
    >>> gibbs_subspace(rehearsal(1), np.eye(4), concentration=1.0, rank=2, sweeps=3).shape
    (4, 2)
    """
    symmetric = checked_matrix(matrix)
    d = symmetric.shape[0]
    if (
        not 1 <= rank < d
    ):  # with d columns each is determined by the others up to sign, and the chain is stuck
        raise ParameterError("E224", f"rank must be between 1 and {d - 1}, got {rank}.")
    if not sweeps >= 1:
        raise ParameterError("E224", f"sweeps must be at least 1, got {sweeps}.")
    columns = np.linalg.qr(randomness.normals(d, rank)).Q
    for _ in range(sweeps):
        for j in range(rank):
            others = np.delete(columns, j, axis=1)
            free = np.linalg.qr(others, mode="complete").Q[:, rank - 1 :] if rank > 1 else np.eye(d)
            drawn, _ = sample_bingham(randomness, free.T @ symmetric @ free, concentration=concentration)
            columns[:, j] = free @ drawn
    return columns
