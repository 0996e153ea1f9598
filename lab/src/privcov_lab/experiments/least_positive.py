"""The 2014 report's eigenvalue repair (after Xi, Kantarcioglu and Inan 2011), kept to be measured beside ours.

Every negative eigenvalue becomes the least positive one. The result is not the nearest valid matrix, it depends on
the units of the columns, and it is discontinuous: a direction drowned in noise takes the size of whichever eigenvalue
happens to be the smallest above zero, however tiny, and its inverse is as large. ``privcov.repair`` does not offer it.
"""

from __future__ import annotations

import numpy as np

from privcov.linalg.arrays import Floats


def least_positive(matrix: Floats) -> Floats:
    """A symmetric matrix, or a stack of them, with negative eigenvalues set to the least positive one.

    Guarantee: positive semi-definite up to rounding, and unchanged where it already was; a matrix without a positive
    eigenvalue has nothing to copy and becomes zero. Post-processing: it costs no privacy.

    >>> least_positive(np.diag([4.0, 0.5, -3.0]))
    array([[4. , 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0.5]])
    """
    values, vectors = np.linalg.eigh(matrix)
    positive = np.where(values > 0, values, np.inf).min(axis=-1, keepdims=True)
    raised = np.where(values < 0, np.where(np.isfinite(positive), positive, 0.0), values)
    repaired = (vectors * raised[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    repaired = (repaired + np.swapaxes(repaired, -1, -2)) / 2
    return np.asarray(np.where(values[..., :1, None] < 0, repaired, matrix))
