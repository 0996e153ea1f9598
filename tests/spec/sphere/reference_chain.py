"""The obvious chain: one Bingham draw, one projection and one eigendecomposition per vector, O(d⁴)."""

import numpy as np
from scipy.linalg import null_space

from privcov.sphere import sample_bingham


def plain_chain(randomness, matrix, concentrations, *, rank=None):
    """θᵢ from exp(cᵢ·uᵀ matrix u) on the sphere of the complement, by the definition."""
    dimension = matrix.shape[0]
    rank = dimension if rank is None else rank
    chosen, complement, proposals = [], np.eye(dimension), []
    for concentration in concentrations[: min(rank, dimension - 1)]:
        inside = complement.T @ matrix @ complement
        direction, count = sample_bingham(randomness, inside, concentration=concentration)
        chosen.append(complement @ direction)
        proposals.append(count)
        complement = null_space(np.array(chosen))
    if rank == dimension:
        sign = 1.0 - 2.0 * float(randomness.words(1)[0] & np.uint64(1))
        chosen.append(sign * complement[:, 0])
    return np.array(chosen).T, proposals
