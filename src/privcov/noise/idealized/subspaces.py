"""Random subspaces with a quadratic preference: the matrix Bingham law, density ∝ exp(c·min(tr VᵀMV, cap)).

Idealized: float64, log-space throughout. Proposals are the column spaces of normal matrices whose rows have the
precision Ω = b + 2c(λ₁ − M); acceptance is exact for every b. Proof: docs/proofs/matrix-bingham.md#sampler.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh
from privcov.noise.idealized.bingham import checked_concentrations, checked_matrix
from privcov.noise.randomness import Randomness

_BATCH_CELLS = 2**16
_GRID = 80


def sample_subspace(
    randomness: Randomness,
    matrix: ArrayLike,
    *,
    concentration: float,
    rank: int,
    cap: float = math.inf,
    envelope: float | None = None,
) -> tuple[Floats, int]:
    """Orthonormal columns V of density ∝ exp(concentration·min(tr VᵀMV, cap)), and how many proposals it took.

    The law is exact for every ``envelope`` b > 0; the default is nearly the most efficient. Given its subspace, V
    is a uniformly random basis of it: its columns mean nothing one by one.

    >>> from privcov.noise.randomness import rehearsal
    >>> columns, _ = sample_subspace(rehearsal(1), np.diag([9.0, 8.0, 1.0, 0.0]), concentration=30.0, rank=2)
    >>> bool(abs(columns[:2]).max() > 0.9), columns.shape
    (True, (4, 2))
    """
    symmetric = checked_matrix(matrix)
    c, d = float(checked_concentrations([concentration])[0]), symmetric.shape[0]
    if not 1 <= rank <= d:
        raise ParameterError("E224", f"rank must be between 1 and {d}, the dimension, got {rank}.")
    if rank == d:
        return np.eye(d), 0
    values, basis = eigh(symmetric)
    values, basis = values[::-1], basis[:, ::-1]
    capped = float(values[:rank].sum()) > cap
    # Where the cap is below the best subspace the plain law is no guide: uniform proposals then serve.
    preference = np.zeros(d) if capped else 2.0 * c * (values[0] - values)
    b = float(d) if capped else envelope or tuned_envelope(preference, rank)
    precision = b + preference
    scale = 1.0 / np.sqrt(precision)
    proposals, batch = 0, 8
    while True:
        points = randomness.normals(batch, d, rank) * scale[:, None]
        transposed = points.transpose(0, 2, 1)
        size, form = transposed @ points, transposed @ (precision[:, None] * points)
        if capped:
            scores = np.trace(
                np.linalg.solve(size, transposed @ (values[:, None] * points)), axis1=1, axis2=2
            )
            logs = c * (np.minimum(scores, cap) - cap)
        else:
            logs = log_acceptance(size, form, precision)
        accepted = np.flatnonzero(np.log(randomness.uniforms(batch)) < logs)
        if accepted.size:
            first = int(accepted[0])
            # The polar factor, a uniform frame of its subspace. That of QR would lean towards large eigenvalues
            # and so say more about the matrix than the subspace does.
            left, _, right = np.linalg.svd(basis @ points[first], full_matrices=False)
            return left @ right, proposals + first + 1
        proposals += batch
        batch = max(1, min(2 * batch, _BATCH_CELLS // (d * rank)))


def log_acceptance(size: Floats, form: Floats, precision: Floats) -> Floats:
    """The log probability to accept proposals Z, from ZᵀZ and ZᵀΩZ; Ω ascending.

    Σ h(fᵢ) − Σ h(max(d, ωᵢ)) with h(f) = (d·ln f − f)/2, over the eigenvalues f of VᵀΩV. h rises up to d and falls
    from there, and fᵢ ≥ ωᵢ by interlacing: so it is at most 0. The logarithm is *added*, as for one vector.
    """
    d, rank = precision.size, size.shape[-1]
    traces = np.trace(np.linalg.solve(size, form), axis1=1, axis2=2)
    logs = np.linalg.slogdet(form).logabsdet - np.linalg.slogdet(size).logabsdet
    best = np.maximum(precision[:rank], d)
    return 0.5 * (d * logs - traces) - 0.5 * float((d * np.log(best) - best).sum())


def tuned_envelope(preference: Floats, rank: int) -> float:
    """The b of a grid that accepts most often: the rate is known up to a factor that b does not change.

    >>> 2.0 < tuned_envelope(np.array([0.0, 0.0, 90.0, 90.0]), 2) < 2.2
    True
    """
    d, reach = preference.size, float(preference[-1])
    candidates = np.append(np.geomspace(0.25, 100.0 * (d + reach) * d, _GRID), float(d))
    precision = candidates[:, None] + preference
    best = np.maximum(precision[:, :rank], d)
    rates = rank * np.log(precision).sum(axis=1) - rank * candidates - (d * np.log(best) - best).sum(axis=1)
    return float(candidates[int(np.argmax(rates))])


def acceptance_floor(*, dimension: int, rank: int, strength: float) -> float:
    """A lower bound on the rate at which uniform proposals are accepted, from c·cap alone (``strength``).

    The larger of Jensen's bound and that of the polynomial tail; docs/proofs/matrix-bingham.md#work.

    >>> acceptance_floor(dimension=4, rank=2, strength=10.0) > 0.006
    True
    """
    d, k = dimension, rank
    jensen = -strength * (1 - k / d)
    logs = sum(_digamma_half(i) + math.log(2) - math.log(k + 2 * strength / k) for i in range(1, k + 1))
    return math.exp(max(jensen, 0.5 * (d - k) * logs)) * (1 - 1e-9)


def _digamma_half(i: int) -> float:
    """ψ(i/2) for a whole number i ≥ 1, by the recurrence from ψ(½) and ψ(1)."""
    start, value = (0.5, -np.euler_gamma - 2 * math.log(2)) if i % 2 else (1.0, -np.euler_gamma)
    return float(value + sum(1 / (start + j) for j in range((i - 1) // 2)))
