"""The obvious chain, many at once: one eigendecomposition and one full rejection sampler per vector, O(d⁴) each.

Written from the definition and from Kent, Ganeiber and Mardia's own formulas, sharing nothing with the library.
"""

import numpy as np


def plain_bingham(randomness, matrices, concentration):
    """One draw of exp(c·uᵀMu) for each matrix of a stack."""
    count, dimension, _ = matrices.shape
    values, bases = np.linalg.eigh(matrices)
    rates = concentration * (values[:, -1:] - values)
    b = np.ones((count, 1))
    upper = np.full((count, 1), float(dimension))
    for _ in range(60):  # bisection on Σ 1/(b + 2·rate) = 1
        middle = (b + upper) / 2
        above = (1 / (middle + 2 * rates)).sum(axis=1, keepdims=True) > 1
        b, upper = np.where(above, middle, b), np.where(above, upper, middle)
    omega = 1 + 2 * rates / b
    bound = -(dimension - b[:, 0]) / 2 + dimension / 2 * np.log(dimension / b[:, 0])
    chosen = np.empty((count, dimension))
    waiting = np.arange(count)
    while waiting.size:
        z = randomness.normals(waiting.size, dimension) / np.sqrt(omega[waiting])
        v = z / np.linalg.norm(z, axis=1, keepdims=True)
        log_target = -(rates[waiting] * v**2).sum(axis=1)
        log_envelope = -dimension / 2 * np.log((omega[waiting] * v**2).sum(axis=1))
        accept = np.log(randomness.uniforms(waiting.size)) < log_target - log_envelope - bound[waiting]
        chosen[waiting[accept]] = v[accept]
        waiting = waiting[~accept]
    return np.einsum("nij,nj->ni", bases, chosen)


def plain_chains(randomness, matrix, concentrations, *, count):
    """``count`` chains, as an array (count, dimension, vectors)."""
    dimension = matrix.shape[0]
    complements = np.broadcast_to(np.eye(dimension), (count, dimension, dimension))
    vectors = []
    for concentration in concentrations:
        inside = np.swapaxes(complements, 1, 2) @ matrix @ complements
        directions = plain_bingham(randomness, (inside + np.swapaxes(inside, 1, 2)) / 2, concentration)
        vectors.append(np.einsum("nij,nj->ni", complements, directions))
        full = np.linalg.qr(np.stack(vectors, axis=2), mode="complete").Q
        complements = full[:, :, len(vectors) :]
    return np.stack(vectors, axis=2)
