"""Ridge regression with noise on its answer (Chaudhuri, Monteleoni and Sarwate 2011): pure ε, idealized arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov.privacy import Amount, ApproxDP, PureDP


@dataclass(frozen=True, kw_only=True)
class PrivateFit:
    """Coefficients, and the loss they were bought with in real arithmetic; no release, and never one."""

    coefficients: Floats
    loss: PureDP | ApproxDP
    arithmetic: str = "idealized"


def output_perturbation(
    rows: Floats, targets: Floats, *, epsilon: Amount, penalty: float, randomness: Randomness
) -> PrivateFit:
    """argmin (1/n)Σ½(y − xᵀw)² + (Λ/2)|w|², plus noise of density exp(−(nΛε/2L)|b|): pure ε, replace-one.

    Rows are cut to norm 1 and targets to [-1, 1]. The squared loss has no Lipschitz constant on all of space;
    every minimiser has |w| ≤ 1/√Λ, where L = 1 + 1/√Λ holds, and two minimisers are all that the proof
    compares. (The 2019 paper files this method under (ε, δ); it is pure.)
    """
    if not penalty > 0:
        raise ParameterError("E209", f"penalty must be above 0, got {penalty}.")
    loss = PureDP(epsilon=epsilon, neighbours="replace-one")
    x, y = unit_rows(rows), np.clip(targets, -1.0, 1.0)
    n, d = x.shape
    best = np.linalg.solve(x.T @ x / n + penalty * np.eye(d), x.T @ y / n)
    noise = answer_noise(randomness, count=d, rows=n, penalty=penalty, epsilon=float(loss.epsilon))
    return PrivateFit(coefficients=best + noise, loss=loss)


def answer_noise(randomness: Randomness, *, count: int, rows: int, penalty: float, epsilon: float) -> Floats:
    """What is added to ``count`` coefficients: a Gamma-distributed length in a uniform direction."""
    scale = answer_sensitivity(rows=rows, penalty=penalty) / epsilon
    length = -scale * np.log(randomness.uniforms(count)).sum()
    direction = randomness.normals(count)
    return np.asarray(length * direction / np.linalg.norm(direction))


def answer_sensitivity(*, rows: int, penalty: float) -> float:
    """2L/(nΛ), L = 1 + 1/√Λ: how far one replaced person moves the minimiser."""
    return 2 * (1 + 1 / math.sqrt(penalty)) / (rows * penalty)


def unit_rows(rows: Floats, bound: float = 1.0) -> Floats:
    """Rows cut to this norm, each by itself."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, bound / np.maximum(norms, 1e-300))
