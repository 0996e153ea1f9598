"""The private power method with the noise of Hardt and Price (2014), as the 2016 paper ran it. Not private for rows.

The noise is scaled by the largest entry of the basis, which is right for tables that differ in one entry and not for
tables that differ in a person; and the number of iterations is read off the data's own spectrum. Both are on
docs/refuted/power-method-adjacency.md; ``power-method`` is the mechanism that keeps its promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness


def published_iterations(spectrum: Floats, *, rank: int) -> int:
    """⌈σ_k/(σ_k − σ_(k+1))·ln d⌉ with σ the singular values of the rows, roots of this descending spectrum.

    The constant in front is not stated in 2016; here it is 1. A function of the data, for which nothing is paid.

    >>> published_iterations(np.array([4.0, 4.0, 1.0]), rank=2)
    3
    """
    singular = np.sqrt(np.maximum(spectrum, 0.0))
    if not (1 <= rank < singular.size and singular[rank - 1] > singular[rank]):
        raise ParameterError("E224", f"a spectrum without a gap after place {rank} gives no iterations.")
    gap = (singular[rank - 1] - singular[rank]) / singular[rank - 1]
    return math.ceil(math.log(singular.size) / gap)


def published_multiplier(
    *, epsilon: float, delta: float, rank: int, iterations: int, dimension: int
) -> float:
    """χ, the noise over the largest entry: √(4kL·ln(1/δ))/ε of normal noise, 10kL√d/ε of Laplace noise at δ = 0."""
    if not (epsilon > 0 and 0 <= delta < 1):
        raise ParameterError("E203", "epsilon must be above 0 and delta at least 0 and below 1.")
    if delta > 0:
        return math.sqrt(4 * rank * iterations * math.log(1 / delta)) / epsilon
    return 10 * rank * iterations * math.sqrt(dimension) / epsilon


def power_iterates(
    randomness: Randomness,
    matrix: Floats,
    *,
    rank: int,
    iterations: int,
    multiplier: float,
    noise: Literal["normal", "laplace"] = "normal",
) -> Iterator[Floats]:
    """The start and every basis after it, X ← QR(CX + ‖X‖_max·χ·noise): plain arrays, no guarantee.

    >>> from privcov.noise.randomness import rehearsal
    >>> *_, last = power_iterates(rehearsal(1), np.diag([9.0, 1.0, 0.0]), rank=1, iterations=9, multiplier=0.01)
    >>> bool(abs(last[0, 0]) > 0.99)
    True
    """
    d = len(matrix)
    basis = np.linalg.qr(randomness.normals(d, rank)).Q
    yield basis
    for _ in range(iterations):
        drawn = randomness.normals(d, rank) if noise == "normal" else _laplace(randomness, d, rank)
        basis = np.linalg.qr(matrix @ basis + np.abs(basis).max() * multiplier * drawn).Q
        yield basis


def row_multiplier(asked: Iterable[Floats], *, multiplier: float) -> float:
    """What these bases, all but the last, cost a person: μ of the Gaussian mechanism for the worst row of norm 1.

    A row x moves CX by x(xᵀX), of length |Xᵀx|. So μ² = max over x of xᵀ(Σ XXᵀ/‖X‖²_max)x / χ², one person in or
    out; twice that and more where one is replaced. It is conditional on the bases and holds for normal noise.
    """
    total = sum(x @ x.T / np.abs(x).max() ** 2 for x in asked)
    return math.sqrt(float(np.linalg.eigvalsh(total)[-1])) / multiplier


def _laplace(randomness: Randomness, *shape: int) -> Floats:
    u = randomness.uniforms(math.prod(shape)).reshape(shape) - 0.5
    return np.asarray(-np.sign(u) * np.log1p(-2 * np.abs(u)))
