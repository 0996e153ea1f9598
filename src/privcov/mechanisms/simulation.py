"""What a mechanism does to a matrix that is public: the error to expect where no formula gives it.

Mechanisms are rotation equivariant up to the rounding to the grid: the answer for QCQᵀ has the law of Q(the
answer for C)Qᵀ, so the law of the error depends on the spectrum of C alone. Exceptions draw entries whose law
prefers the axes: ``laplace``, the pure ``power-method``, Gaussian noise as published. For them a random basis stands
for that of a table. Proof, and what was measured: docs/proofs/predicted-error.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism, answer
from privcov.noise.randomness import rehearsal
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram


def simulated_error(
    mechanism: Mechanism,
    *,
    loss: Loss,
    grid: Grid,
    spectrum: Sequence[float],
    rows: int,
    runs: int,
    seed: int,
) -> Floats:
    """Frobenius errors, in scaled units, of ``runs`` answers about a public matrix of these eigenvalues.

    Runs the mechanism itself, in idealized arithmetic and on a repeatable stream. No data is involved.
    ``rows`` is the number of rows that mechanisms take for public under replace-one.

    >>> from privcov.mechanisms.separate import Separate
    >>> from privcov.privacy import ZCDP
    >>> grid = Grid(dimension=2, exponent=20, squared_norm_bound=2**40)
    >>> loss = ZCDP(rho=1, neighbours="replace-one")
    >>> simulated_error(Separate(), loss=loss, grid=grid, spectrum=[90, 9], rows=99, runs=3, seed=1).shape
    (3,)
    """
    differences = simulated_differences(
        mechanism, loss=loss, grid=grid, spectrum=spectrum, rows=rows, runs=runs, seed=seed
    )
    return np.asarray(np.sqrt((differences**2).sum(axis=(1, 2))))


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
    """The error matrices themselves, one for each run: answer less truth, in scaled units."""
    d = grid.dimension
    values = np.array(spectrum, dtype=np.float64)
    if values.shape != (d,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ParameterError("E209", f"spectrum must be {d} numbers from 0, one for each column.")
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
