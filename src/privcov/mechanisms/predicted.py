"""Expected errors of mechanisms that need the matrix, from a public spectrum: formulas, each with its own reach.

A formula returns None where it is not known to be good to 10 %. All are root mean square Frobenius errors to
the whole matrix, for eigenvalues λ in any unit. Derivations: docs/proofs/predicted-error.md.

What a mechanism does to a matrix that is public: the error to expect where no formula gives it.

Mechanisms are rotation equivariant up to the rounding to the grid: the answer for QCQᵀ has the law of Q(the
answer for C)Qᵀ, so the law of the error depends on the spectrum of C alone. Exceptions draw entries whose law
prefers the axes: ``laplace``, the pure ``power-method``, Gaussian noise as published. For them a random basis stands
for that of a table. Proof, and what was measured: docs/proofs/predicted-error.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism, answer
from privcov.noise.randomness import rehearsal
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

_LEAK = 0.6
"""``separate``: how much of an eigenvector may lie on others; one other that is close takes a half."""
_CLEAR = 4.0
"""``separate``: how many standard deviations the least value must be above 0, where it would be clipped."""
_TURN = 0.1
"""The others: how much of a vector may lie outside the leading ones, or on others of them."""
_START = 0.05
"""``power-method``: the share of the squared error that the random start may still be worth."""


def paired_error(spectrum: Sequence[float], *, vectors_std: float, values_std: float) -> float | None:
    """``separate``: d·σ_Λ² + Σ over pairs of g²(1 − A(g)), A(g) the mean cosine of twice the angle a pair turns by.

    Two eigenvectors g apart are turned by half the angle of (g + a, b), a and b normal; A is the mean length of
    that unit vector along the first axis, known in closed form because a and b have one variance, 2σ_V².
    """
    values, d = _descending(spectrum), len(spectrum)
    if values[-1] < _CLEAR * values_std:
        return None
    gaps = np.abs(values[:, None] - values)
    ratio = gaps**2 / (8 * vectors_std**2)
    turned = 1 - np.sqrt(np.pi / 2 * ratio) * (scipy.special.ive(0, ratio) + scipy.special.ive(1, ratio))
    if ((turned.sum(1) - 1) / 2).max() > _LEAK:
        return None
    return math.sqrt(d * values_std**2 + float((gaps**2 * turned).sum()) / 2)


def iterated_error(
    spectrum: Sequence[float], *, rank: int, steps: int, step_std: float, value_std: float
) -> float | None:
    """``power-method``: what lies beyond the rank, what vectors lose by turning, and the noise of the values."""
    values = _descending(spectrum)
    total = rank * value_std**2 + float((values[rank:] ** 2).sum())
    if not steps:
        return math.sqrt(total)
    if values[rank - 1] <= 0:
        return None
    kept, left = values[:rank, None], values[None, rank:]
    sums, gaps = kept**2 + kept.T**2, kept**2 - kept.T**2
    with np.errstate(divide="ignore"):
        inside = np.where(np.eye(rank, dtype=bool), 0.0, step_std**2 * sums / gaps**2)
    decay = (left / kept) ** 2
    outside = (step_std / kept) ** 2 * (decay ** np.arange(steps)[:, None, None]).sum(0)
    if max(inside.sum(1).max(), outside.sum(1).max(initial=0.0)) > _TURN:
        return None
    total += float(((kept - kept.T) ** 2 * inside).sum())
    total += float((2 * kept * (kept - left) * outside).sum())
    # A start that is nearly orthogonal to a leading vector is forgotten slowly: what it costs on average falls as
    # ratio^steps, and not as the square of that.
    start = 2 * math.sqrt(rank) * float((kept * (kept - left) * decay ** (steps / 2)).sum())
    return math.sqrt(total) if start <= _START * total else None


def subspace_error(
    spectrum: Sequence[float], *, rank: int, concentration: float, noise: float, cap: float | None
) -> float | None:
    """``matrix-bingham``: Σ_{j>k} λⱼ² + (d − k)/c·Σ_{i≤k} λᵢ + E‖N‖², where the subspace leans little."""
    values, d = _descending(spectrum), len(spectrum)
    kept, left = values[:rank, None], values[None, rank:]
    if cap is not None and kept.sum() > cap:
        return None
    with np.errstate(divide="ignore"):
        leans = 1 / (2 * concentration * (kept - left))
    if max(leans.sum(0).max(), leans.sum(1).max()) > _TURN:
        return None
    lost = (d - rank) / concentration * float(kept.sum())
    return math.sqrt(float((left**2).sum()) + lost + noise**2)


def _descending(spectrum: Sequence[float]) -> Floats:
    return np.sort(np.array(spectrum, dtype=np.float64))[::-1]


def simulated_differences(
    mechanism: Mechanism,
    *,
    loss: Loss,
    grid: Grid,
    spectrum: Sequence[float],
    rows: int,
    runs: int,
    seed: int,
) -> Floats:
    """The error matrices of ``runs`` answers about a public matrix of these eigenvalues: answer less truth, scaled.

    Runs the mechanism itself, in idealized arithmetic and on a repeatable stream. No data is involved.
    ``rows`` is the number of rows that mechanisms take for public under replace-one.

    >>> from privcov.mechanisms.separate import Separate
    >>> from privcov.privacy import ZCDP
    >>> grid = Grid(dimension=2, exponent=20, squared_norm_bound=2**40)
    >>> loss = ZCDP(rho=1, neighbours="replace-one")
    >>> simulated_differences(Separate(), loss=loss, grid=grid, spectrum=[90, 9], rows=99, runs=3, seed=1).shape
    (3, 2, 2)
    """
    d = grid.dimension
    values = np.array(spectrum, dtype=np.float64)
    if values.shape != (d,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ParameterError("E209", f"spectrum must be {d} numbers of at least 0, one for each column.")
    randomness, quick = rehearsal(seed), mechanism.idealized()
    basis = np.linalg.qr(randomness.normals(d, d)).Q
    upper = np.triu_indices(d)
    scaled = ((basis * values) @ basis.T)[upper] * 4.0**grid.exponent
    truth = np.array([round(entry) for entry in scaled.tolist()], dtype=object)
    gram = Gram.of_public(grid, truth, rows=rows)
    differences = np.zeros((runs, d, d))
    for difference in differences:
        made, _ = answer(quick.draw(loss=loss, grid=grid, randomness=randomness), gram)
        difference[upper] = (made - truth).astype(np.float64) * float(grid.unit)
        difference += np.triu(difference, 1).T
    return differences
