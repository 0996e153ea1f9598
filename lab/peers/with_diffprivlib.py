"""diffprivlib: ``covariance_eig`` with every eigenvector, put together again.

Its ε is that of replacing one row: it gives eigenvalues the sensitivity 2 (‖xxᵀ − yyᵀ‖ in the nuclear norm; one
added row would move them by 1), and neither the number of rows nor a removed row enters its noise.
"""

from __future__ import annotations

import numpy as np
from diffprivlib.models.utils import covariance_eig


def prepare(rows, epsilon, seed):  # type: ignore[no-untyped-def]
    def work():  # type: ignore[no-untyped-def]
        values, vectors = covariance_eig(rows, epsilon=epsilon, norm=1.0, random_state=seed)
        return np.asarray((vectors * values) @ vectors.T)

    return work
