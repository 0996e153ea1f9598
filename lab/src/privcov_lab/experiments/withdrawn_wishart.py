"""SN (Imtiaz and Sarwate 2016), WITHDRAWN: C + ZZᵀ, once claimed to be ε-private. No ε is large enough for it.

All its noise is on one side, so that a release proves a row absent with probability 1 − e^(−ε): docs/refuted/sn.md.
It stands here so that the figures it was published with can be measured again; ``privcov release --mechanism sn``
is refused (E208). The repair is ``symmetric-wishart``.
"""

from __future__ import annotations

import math

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness

WITHDRAWN = "SN (WITHDRAWN)"
"""What every table and figure calls it."""


def withdrawn_noise(randomness: Randomness, *, dimension: int, epsilon: float) -> Floats:
    """ZZᵀ, Z of d × (d + 1) independent N(0, 1/(2ε)) entries: a plain array, no guarantee whatever ε says.

    >>> from privcov.noise.randomness import rehearsal
    >>> noise = withdrawn_noise(rehearsal(1), dimension=3, epsilon=1.0)
    >>> bool(np.linalg.eigvalsh(noise)[0] > 0)
    True
    """
    if not (0 < epsilon < math.inf):
        raise ParameterError("E203", f"epsilon must be above 0, got {epsilon}.")
    factor = randomness.normals(dimension, dimension + 1) / math.sqrt(2 * epsilon)
    return np.asarray(factor @ factor.T)


def betrays(noise: Floats, row: Floats) -> bool:
    """Whether C + noise is a matrix that C + row·rowᵀ can never give: then it proves that the row is absent.

    noise − row·rowᵀ has a negative eigenvalue exactly where rowᵀ noise⁻¹ row is above 1.
    """
    return bool(row @ np.linalg.solve(noise, row) > 1)
