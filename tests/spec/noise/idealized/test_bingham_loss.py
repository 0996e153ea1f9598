"""The privacy loss of one draw attains the claim and never exceeds it: c = ε/2 replace-one, c = ε add-remove.

The normalising constant is a one-dimensional integral at dimension 2, 3 and 4 (docs/proofs/bingham.md), so the
largest log density ratio between two neighbours is computed, not estimated.
"""

import math

import numpy as np
import pytest
from scipy.special import i0e

EPSILON = 1.0
_T, _W = np.polynomial.legendre.leggauss(400)
NODES = ((_T + 1) / 2) ** 4, 2 * ((_T + 1) / 2) ** 3 * _W  # crowded at 0, where the mass is at strong signal
EXPONENT = {"replace-one": 0.5, "add-remove": 1.0}


def log_constant(matrix, concentration):
    """log ∫ exp(c·uᵀMu) over the uniform law on the sphere, eigenvalues paired into circles."""
    values = concentration * np.sort(np.linalg.eigvalsh(matrix))[::-1]
    node, weight = NODES

    def circle(a, b, share):
        return share * max(a, b) + np.log(i0e(share * abs(a - b) / 2))

    if values.size == 2:
        return float(circle(*values, np.ones(1))[0])
    if values.size == 3:
        logs = circle(values[0], values[1], 1 - node**2) + node**2 * values[2]
    else:
        logs = circle(values[0], values[1], 1 - node) + circle(values[2], values[3], node)
    return float(logs.max() + math.log(np.sum(weight * np.exp(logs - logs.max()))))


def worst_loss(matrix, neighbour, concentration):
    """sup over u of |log p(u) − log p′(u)|."""
    change = np.linalg.eigvalsh(matrix - neighbour)
    shift = log_constant(matrix, concentration) - log_constant(neighbour, concentration)
    return max(concentration * change[-1] - shift, shift - concentration * change[0])


def unit(dimension, index):
    return np.eye(dimension)[index]


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_the_constant_is_the_mean_of_the_density_over_the_sphere(dimension):
    rng = np.random.default_rng(1)
    matrix = np.diag(rng.normal(size=dimension))
    points = rng.normal(size=(400_000, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    sampled = np.exp(0.7 * np.einsum("ni,ij,nj->n", points, matrix, points))
    error = sampled.std() / math.sqrt(len(points))
    assert abs(sampled.mean() - math.exp(log_constant(matrix, 0.7))) < 6 * error


@pytest.mark.parametrize("dimension", [2, 3, 4])
@pytest.mark.parametrize("relation", EXPONENT)
def test_the_loss_attains_the_claim_at_the_worst_neighbours_and_never_exceeds_it(dimension, relation):
    first, second = unit(dimension, 0), unit(dimension, 1)
    losses = []
    for rows in (1.0, 10.0, 1e3, 1e5):
        matrix = rows * np.outer(first, first)
        neighbour = matrix - np.outer(first, first)
        if relation == "replace-one":
            neighbour = neighbour + np.outer(second, second)
        losses.append(worst_loss(matrix, neighbour, EXPONENT[relation] * EPSILON))
    assert max(losses) <= EPSILON * (1 + 1e-9)
    assert losses[-1] >= 0.999 * EPSILON


@pytest.mark.parametrize("dimension", [2, 3, 4])
@pytest.mark.parametrize("relation", EXPONENT)
def test_random_neighbours_never_exceed_the_claim(dimension, relation):
    rng = np.random.default_rng(dimension)
    for _ in range(60):
        rows = rng.normal(size=(int(rng.integers(1, 30)), dimension)) * 10.0 ** rng.uniform(-2, 2)
        matrix = rows.T @ rows
        x, y = (v / max(1.0, np.linalg.norm(v)) for v in rng.normal(size=(2, dimension)))
        neighbour = matrix + np.outer(x, x)
        if relation == "replace-one":
            neighbour = neighbour - np.outer(y, y)
        assert worst_loss(matrix, neighbour, EXPONENT[relation] * EPSILON) <= EPSILON * (1 + 1e-9)


def test_a_larger_exponent_would_break_the_claim():
    first = np.diag([1e5, 0.0])
    assert worst_loss(first, first - np.diag([1.0, -1.0]), 0.51 * EPSILON) > EPSILON
