"""AdaSSP (Wang 2018): ridge regression from noisy XᵀX and Xᵀy with a private penalty; idealized arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np

from privcov.accounting import gaussian_delta, gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov.privacy import Amount, ApproxDP
from privcov_lab.experiments.output_perturbation import PrivateFit, unit_rows


def adassp(
    rows: Floats,
    targets: Floats,
    *,
    epsilon: Amount,
    delta: Amount,
    randomness: Randomness,
    constants: Literal["exact", "published"] = "exact",
    least_eigenvalue: Literal["bought", "weyl"] = "bought",
    row_norm_bound: float = 1.0,
    target_bound: float = 1.0,
    failure: float = 0.05,
) -> PrivateFit:
    """(XᵀX + N + λI)⁻¹(Xᵀy + n), λ as small as a private λ_min(XᵀX) allows: (ε, δ), add-remove.

    Guarantee: three Gaussian answers (λ_min, XᵀX, Xᵀy), each of sensitivity one in its own bound; their losses
    add as μ², so each has σ = √3/μ(ε, δ) in place of the published √ln(6/δ)/(ε/3). ``weyl`` takes the lower
    bound of λ_min from the noisy matrix, which is free, and leaves two answers with σ = √2/μ.
    ``published`` is the paper's algorithm, used where its joint loss is certified.
    """
    loss = ApproxDP(epsilon=epsilon, delta=delta, neighbours="add-remove")
    published, bought = constants == "published", least_eigenvalue == "bought"
    if published and not bought:
        raise ParameterError("E209", "the published algorithm buys its least eigenvalue.")
    x, y = unit_rows(rows, row_norm_bound), np.clip(targets, -target_bound, target_bound)
    d, log = x.shape[1], math.log(6 / float(loss.delta))
    square = row_norm_bound**2
    std = noise_multiplier(loss, constants=constants, answers=3 if bought else 2)

    noise = np.triu(randomness.normals(d, d))
    noise = noise + np.triu(noise, 1).T  # as in the paper: one variance on the whole triangle
    if not published:
        noise = (noise + np.diag(np.diag(noise)) * (math.sqrt(2) - 1)) / math.sqrt(2)
    gram = x.T @ x + std * square * noise
    moment = x.T @ y + std * row_norm_bound * target_bound * randomness.normals(d)
    if bought:
        least = float(np.linalg.eigvalsh(x.T @ x)[0]) + std * square * float(randomness.normals(1)[0])
        least -= std * square * math.sqrt(log)
    else:
        least = float(np.linalg.eigvalsh(gram)[0]) - std * square * _largest_noise(d, failure)
    wanted = std * square * math.sqrt(d * math.log(2 * d**2 / failure))
    penalty = max(0.0, wanted - max(0.0, least))
    solved = np.linalg.solve(gram + penalty * np.eye(d), moment)
    return PrivateFit(coefficients=solved.astype(np.float64), loss=loss)


def noise_multiplier(loss: ApproxDP, *, constants: str, answers: int) -> float:
    """σ over sensitivity of each of so many Gaussian answers that together cost at most the loss."""
    if constants == "exact":
        return math.sqrt(answers) / float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)) * (1 + 1e-12)
    std = math.sqrt(math.log(6 / float(loss.delta))) / (float(loss.epsilon) / 3)
    joint = Fraction(math.sqrt(answers) / std * (1 + 1e-12))
    if gaussian_delta(mu=joint, epsilon=loss.epsilon) > loss.delta:
        raise ParameterError("E203", "the published constants do not give this epsilon and delta.")
    return std


def _largest_noise(dimension: int, failure: float) -> float:
    """λ_max of the noise over σ, with this probability of failure.

    Its mean is below √(2d), and it is 1-Lipschitz in the Frobenius norm, in which the noise is isotropic.
    """
    return math.sqrt(2 * dimension) + math.sqrt(2 * math.log(1 / failure))
