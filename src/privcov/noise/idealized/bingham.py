"""The Bingham law on the sphere, density ∝ exp(c·uᵀMu), by exact rejection (Kent, Ganeiber and Mardia).

Idealized: float64 arithmetic, log-space throughout. Proof: ``docs/proofs/bingham.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh
from privcov.noise.randomness import Randomness

_BATCH_CELLS = 2**16
"""The most normals drawn at once: half a megabyte."""

_LARGEST = 1e100
"""Beyond this a product of matrix and concentration could overflow; nothing real comes near."""


def sample_bingham(
    randomness: Randomness, matrix: ArrayLike, *, concentration: float, envelope: float | None = None
) -> tuple[Floats, int]:
    """One unit vector of density ∝ exp(concentration · uᵀ matrix u), and how many proposals it took.

    The law is exact for every ``envelope`` in (0, dimension]; the default is the most efficient one, about
    1.2·√dimension proposals at worst.

    >>> from privcov.noise.randomness import rehearsal
    >>> vector, proposals = sample_bingham(rehearsal(1), [[2.0, 0.0], [0.0, 1.0]], concentration=1e9)
    >>> bool(abs(vector[0]) > 0.999)
    True
    """
    symmetric = checked_matrix(matrix)
    c = float(checked_concentrations([concentration])[0])
    dimension = symmetric.shape[0]
    values, basis = eigh(symmetric)
    preference = 2.0 * c * (values[-1] - values)  # ≥ 0 and exactly 0 at the top
    if envelope is None:
        b = tuned_envelope(preference)
    else:
        b = float(envelope)
        if not 0 < b <= dimension:
            raise ParameterError(
                "E223", f"envelope must be in (0, {dimension}], the dimension, got {envelope!r}."
            )
    precision = b + preference
    scale = 1.0 / np.sqrt(precision)
    proposals, batch = 0, 4
    while True:
        points = randomness.normals(batch, dimension) * scale
        squares = points * points
        size = squares.sum(axis=1)
        logs = np.log(randomness.uniforms(batch))
        accepted = np.flatnonzero(logs < log_acceptance(squares @ precision / size, dimension))
        if accepted.size:
            first = int(accepted[0])
            vector = basis @ (points[first] / math.sqrt(size[first]))
            return vector / np.linalg.norm(vector), proposals + first + 1
        proposals += batch
        batch = max(1, min(2 * batch, _BATCH_CELLS // dimension))


def log_acceptance(forms: Floats, dimension: int) -> Floats:
    """The log probability to accept a proposal u, given v = uᵀΩu for the envelope's precision Ω.

    (q − v)/2 + (q/2)·ln(v/q): its maximum, 0, is at v = q whatever Ω is. The sign trap: the logarithm is
    *added*. Subtracting it samples another law, which looks right at high concentration and is not private.
    """
    return 0.5 * (dimension - forms) + (0.5 * dimension) * np.log(forms / dimension)


def tuned_envelope(preference: Floats, guess: float | None = None) -> float:
    """The b > 0 where Σ 1/(b + preference) = 1, to 0.1 percent: the most efficient envelope.

    Newton on the reciprocal of the sum, which is concave in b and nearly a line: from b = 1, or from any guess
    after at most one step back, it climbs to the root without passing it.

    >>> round(tuned_envelope(np.zeros(5)), 3)
    5.0
    """
    b = guess or 1.0
    for _ in range(60):
        inverse = 1.0 / (b + preference)
        total = float(np.add.reduce(inverse))
        if abs(total - 1.0) < 1e-3:
            break
        b = max(b + total * (total - 1.0) / float(inverse @ inverse), 0.1 * b)
    return min(b, float(preference.size))


def checked_matrix(matrix: ArrayLike) -> Floats:
    """A float64 copy of a real symmetric matrix, or a refusal that says what is wrong."""
    try:
        values: NDArray[Any] = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("E220", "the matrix must hold real numbers.") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise ParameterError("E220", f"the matrix must be square and not empty, got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ParameterError("E221", "the matrix must be finite; it holds an infinity or a NaN.")
    largest = float(np.abs(values).max())
    if largest > _LARGEST:
        raise ParameterError("E221", f"the entries of the matrix must be below {_LARGEST:g}.", "Rescale it.")
    if np.abs(values - values.T).max() > 1e-10 * largest:
        raise ParameterError("E221", "the matrix must be symmetric.", "Give (M + Mᵀ)/2 if that is meant.")
    return 0.5 * (values + values.T)


def checked_concentrations(concentrations: ArrayLike) -> Floats:
    """Concentrations as float64: finite and not negative."""
    try:
        values: NDArray[Any] = np.array(concentrations, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("E222", "a concentration must be a number.") from None
    if values.ndim != 1 or not ((values >= 0) & (values <= _LARGEST)).all():
        raise ParameterError("E222", f"concentrations must be numbers between 0 and {_LARGEST:g}.")
    return values
