"""The nearest matrix in a convex set that is also positive semi-definite.

Dykstra's alternating projections are proximal-gradient steps on the dual problem, so Nesterov's momentum with
restarts applies to them; on a table of 109 columns it gains in 100 rounds what plain alternation does not in
1000. One round costs one eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import composed, eigh


def nearest_positive(
    matrix: Floats, *, onto_set: Callable[[Floats], Floats], floor: float, rounds: int
) -> Floats:
    """A point of the set, nearest to ``matrix`` among those with eigenvalues of at least ``floor``.

    ``onto_set`` must be the Frobenius projection onto a convex set. The result is exactly in the set; its
    eigenvalues fall short of ``floor`` by what the projections still disagree, at most ``floor`` unless the
    rounds run out.
    """
    dual = previous = np.zeros_like(matrix)
    momentum = 1.0
    inside = matrix
    for _ in range(rounds):
        lifted = lift(matrix - dual, floor)
        inside = onto_set(dual + lifted)
        stepped = dual + lifted - inside
        if np.linalg.norm(inside - lifted) <= floor:  # then λ_min(inside) ≥ 0
            break
        if np.vdot(dual - stepped, stepped - previous) > 0:  # overshot: drop the momentum
            momentum = 1.0
        larger = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        dual = stepped + (momentum - 1) / larger * (stepped - previous)
        previous, momentum = stepped, larger
    return inside


def lift(matrix: Floats, floor: float) -> Floats:
    """Frobenius projection onto the matrices with eigenvalues of at least ``floor``."""
    eigenvalues, vectors = eigh(matrix)
    return composed(vectors, np.maximum(eigenvalues, floor))
