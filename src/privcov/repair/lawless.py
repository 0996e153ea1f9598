"""Repair of a matrix whose noise is not additive: only what is true of every moment matrix is used."""

from __future__ import annotations

import math

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import composed, eigh
from privcov.repair.structure import Structure


def repair_without_law(
    matrix: Floats,
    *,
    rows: int | None,
    squared_norm_bound: float,
    structure: Structure | None,
    method: str = "auto",
) -> Floats:
    """Eigenvalues clipped to [0, rows · R²], and the nearest such matrix of the public structure, if any is given."""
    if method == "none":
        return matrix.copy()
    if method not in ("auto", "clip"):
        raise ParameterError(
            "E279",
            f"the repair {method!r} needs the distribution of the noise, which is not known for this mechanism.",
            "Use auto, clip or none.",
        )
    largest = math.inf if rows is None else rows * squared_norm_bound
    eigenvalues, vectors = eigh(matrix)
    result = composed(vectors, np.clip(eigenvalues, 0.0, largest))
    return result if structure is None else structure.fit_positive(result)
