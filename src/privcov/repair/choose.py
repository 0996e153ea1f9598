"""The choice among repairs, from the release and public facts alone.

No repair wins everywhere: where the signal is strong shrinkage wins, where a few directions rise above the
noise the spiked estimate, where nothing does the flat spectrum. ``auto`` rehearses. It writes down spectra
the truth might have (what each repair made of the release, and power laws of the believed trace), adds
simulated noise of the known law to each, repairs the results, and sees which mixture of repairs lands nearest
the truth. A possible truth counts for more when its noisy spectra look like the released one, and for less
when every repair misses it by far, so that the mixture is good for each truth that could lie behind the
release.

Where the products of a release cannot be told from noise about what the bounds alone would say, ``towards_guess`` takes
that for its covariances: numeric columns apart from each other, all of one variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh
from privcov.noise.laws import NoiseLaw
from privcov.repair import spectra as repairs
from privcov.repair.facts import PublicFacts, truncated_normal_mean
from privcov.repair.spectra import noise_bank

CANDIDATES: dict[str, Callable[[Floats, PublicFacts], Floats]] = {
    "believed": repairs.believed,
    "shrink": repairs.shrink,
    "spiked": repairs.spiked,
    "isotropic": repairs.isotropic,
}
_DECAYS = (0.0, 0.5, 1.0, 2.0, 4.0)  # possible truths: eigenvalue k proportional to k to the minus this
_SUMMARIES = 8
_LEAST = 0.1  # of the mean squared noise: no truth counts as easier than that
_TIE = 1e-2  # repairs that rehearse alike: lean to the flatter one
_UNIFORM = 1 / 3  # the variance of a scaled column that is spread evenly over its bounds
_DOUBT = 0.1  # how far the variances of columns are from that
_CLEAR, _STEEP = 1.5, 8  # deviations of noise that do not refute the guess; how fast it gives way beyond them


def auto(spectra: Floats, facts: PublicFacts) -> Floats:
    """A weighted mean of the candidate repairs, weights chosen by rehearsal; one spectrum per row."""
    return np.stack([_mixture(spectrum, facts) for spectrum in spectra])


def weights(spectrum: Floats, facts: PublicFacts) -> dict[str, float]:
    """The weight ``auto`` gives each candidate for this released spectrum."""
    answers = _candidates(spectrum[None, :], facts)[:, 0]
    return dict(zip(CANDIDATES, _weights(spectrum, answers, facts).tolist(), strict=True))


def towards_guess(made: Floats, noisy: Floats, law: NoiseLaw, numeric: Sequence[int]) -> Floats:
    """A repaired matrix, its numeric columns moved to what the bounds guess as far as the release does not refute it.

    The guess has the repaired means, no correlation of numeric columns with any other, and one variance for all of
    them: the mean of a normal law about the uniform third, given the noisy sum of their squares. With t the squared
    distance of the noisy products from it, and m and s the mean and deviation of that for noise alone, its weight is
    ((m + 1.5 s) / t)⁸, at most 1; and at most the same of the largest product alone, in its own deviations. The first
    column is the intercept; no equality of a structure may touch numeric ones.
    """
    count, means = float(made[0, 0]), made[0] / max(float(made[0, 0]), 1e-300)
    at = np.array(numeric, dtype=np.intp)
    if not (at.size and count > 0 and law.scale > 0):
        return made
    k = len(at)
    seen = float(np.mean(noisy[at, at] / count - means[at] ** 2))
    variance = (law.diagonal_variance + (k - 1) * law.shared) / k / count**2
    weight = _DOUBT**2 / (_DOUBT**2 + variance)
    centre, spread = np.array([_UNIFORM + weight * (seen - _UNIFORM)]), float(np.sqrt(weight * variance))
    level = (
        float(truncated_normal_mean(centre, spread, 1.0)[0]) if spread > 0 else float(np.clip(seen, 0.0, 1.0))
    )
    guess = made.copy()
    guess[at] = count * np.outer(means[at], means)
    guess[:, at] = guess[at].T
    guess[at, at] += count * level
    touched = np.zeros(made.shape, dtype=bool)
    touched[at, 1:] = touched[1:, at] = True
    sizes = np.maximum(law.entry_variances, 1e-300)[touched]
    alone, apart = noise_bank(law).draws[:, touched] ** 2, (noisy - guess)[touched] ** 2
    sums, largest = alone.sum(axis=1), (alone / sizes).max(axis=1)
    whole = float(sums.mean() + _CLEAR * sums.std()) / max(float(apart.sum()), 1e-300)
    one = float(largest.mean() + _CLEAR * largest.std()) / max(float((apart / sizes).max()), 1e-300)
    share = min(1.0, whole, one) ** _STEEP
    return np.asarray((1 - share) * made + share * guess)


def _mixture(spectrum: Floats, facts: PublicFacts) -> Floats:
    answers = _candidates(spectrum[None, :], facts)[:, 0]
    if spectrum.size == 1:  # one number: all candidates agree on the believed trace
        return np.asarray(answers[0])
    return np.asarray(_weights(spectrum, answers, facts) @ answers)


def _candidates(spectra: Floats, facts: PublicFacts) -> Floats:
    return np.stack([repair(spectra, facts) for repair in CANDIDATES.values()])


def _weights(spectrum: Floats, answers: Floats, facts: PublicFacts) -> Floats:
    truths = _possible_truths(answers)
    noisy, best = _rehearse(truths, facts)
    count, draws, d = noisy.shape
    # Every candidate repairs every noisy spectrum. ``best`` is the spectrum nearest the truth among matrices
    # with the same noisy eigenvectors, so a miss is the part of the error that another repair could have
    # avoided.
    tried = _candidates(noisy.reshape(-1, d), facts).reshape(-1, count, draws, d)
    misses = (tried - best).transpose(1, 0, 2, 3)  # truth, candidate, draw, eigenvalue
    # Mean products of misses, candidate by candidate: a mixture with weights a loses aᵀ losses[k] a on truth k.
    losses = np.einsum("kmbd,knbd->kmn", misses, misses) / draws
    # ‖C‖² − ‖diag(VᵀCV)‖², the part that sits in the eigenvectors. It is not negative but for rounding.
    unavoidable = np.maximum((truths**2).sum(axis=1) - (best**2).sum(axis=2).mean(axis=1), 0.0)
    attainable = np.diagonal(losses, axis1=1, axis2=2).min(axis=1) + unavoidable
    # Midway between loss relative to the truth's size and loss relative to the best repair for it.
    attainable = np.maximum(attainable, _LEAST * facts.law.rms_frobenius**2)
    scale = np.sqrt(attainable * (truths**2).sum(axis=1))
    if not (scale > 0).all():  # no noise, or a believed trace of zero: the candidates agree
        return np.full(len(answers), 1 / len(answers))
    quadratic = np.einsum("k,kmn->mn", _plausibility(spectrum, noisy) / scale, losses)
    # The tie-break is 1 % of the smallest loss, so it decides only between repairs that rehearse alike.
    boldness = (answers**2).sum(axis=1)
    tie_break = _TIE * np.diag(quadratic).min() * boldness / boldness.max()
    return _smallest_on_simplex(quadratic + np.diag(tie_break))


def _possible_truths(answers: Floats) -> Floats:
    # Spectra ascend here, so the ranks descend: the last eigenvalue has rank 1. The sum of the first answer,
    # ``believed``, is the believed trace, which every power law is scaled to.
    ranks = np.arange(answers.shape[1], 0, -1, dtype=np.float64)
    shapes = np.stack([ranks**-decay for decay in _DECAYS])
    total = answers[0].sum()
    return np.vstack([answers, answers.mean(axis=0), total * shapes / shapes.sum(axis=1, keepdims=True)])


def _rehearse(truths: Floats, facts: PublicFacts) -> tuple[Floats, Floats]:
    """Noisy spectra of each possible truth, and the best spectrum for their eigenvectors: diag(VᵀCV)."""
    d = truths.shape[1]
    bank, count = noise_bank(facts.law).draws, _draws(d)
    noisy = np.empty((len(truths), count, d))
    best = np.empty_like(noisy)
    diagonal = np.arange(d)
    # A diagonal truth stands for every matrix with these eigenvalues: exactly so where the law of the noise
    # does not change under rotations, and as an approximation elsewhere. Only accuracy rests on it, never
    # privacy.
    for k, truth in enumerate(truths):
        # Fresh noise for each truth. Indexing by an array copies, so the kept bank is not written to below.
        matrices = bank[(k * count + np.arange(count)) % len(bank)]
        matrices[:, diagonal, diagonal] += truth
        noisy[k], vectors = eigh(matrices)
        best[k] = np.einsum("bie,i->be", vectors**2, truth)
    return noisy, best


def _draws(dimension: int) -> int:
    """Rehearsals per possible truth: few in high dimension, where one spectrum is like the next."""
    return max(2, min(100, 400 // dimension))


def _plausibility(spectrum: Floats, noisy: Floats) -> Floats:
    """How likely each truth makes the released spectrum: normal likelihood of a digest, pooled covariance."""
    seen, rehearsed = _digest(spectrum), _digest(noisy)
    centres = rehearsed.mean(axis=1)
    residuals = (rehearsed - centres[:, None]).reshape(-1, seen.size)
    freedom = len(residuals) - len(centres)
    covariance = residuals.T @ residuals / freedom
    pull = seen.size / (seen.size + freedom)  # few draws: lean on the diagonal
    covariance = (1 - pull) * covariance + pull * np.diag(np.diag(covariance))
    # The ridge keeps ``solve`` defined where a number of the digest does not vary at all.
    covariance += 1e-12 * np.trace(covariance) * np.eye(seen.size)
    gaps = seen - centres
    distances = np.einsum("kd,kd->k", gaps, np.linalg.solve(covariance, gaps.T).T)
    # The nearest truth has exponent 0, so the sum below is at least 1 and cannot underflow.
    likelihood = np.exp(-0.5 * (distances - distances.min()))
    return np.asarray(likelihood / likelihood.sum())


def _digest(spectra: Floats) -> Floats:
    """At most eight numbers per spectrum: the eigenvalues, or means over blocks, finest at the top."""
    d = spectra.shape[-1]
    if d <= _SUMMARIES:
        return spectra
    edges = np.unique(np.round(d - np.geomspace(1, d, _SUMMARIES)).astype(np.intp))
    sizes = np.diff(np.append(edges, d))
    return np.asarray(np.add.reduceat(spectra, edges, axis=-1) / sizes)


def _smallest_on_simplex(quadratic: Floats) -> Floats:
    """The weights a ≥ 0 with sum 1 that minimise aᵀQa.

    The non-negative least-squares solution of [√Q; 1ᵀ] a = [0; 1] points the same way, whatever its length.
    """
    from scipy.optimize import nnls  # on use: it takes a fifth of a second, and a plan does without

    size = len(quadratic)
    quadratic = quadratic / max(float(np.trace(quadratic)), 1e-300)
    # Any root of Q will do. This one is made from eigenvalues, so that those which rounding made negative can
    # be raised; Q has trace 1, so 1e-12 is relative. The row of ones keeps the solution away from zero: at a =
    # 0 the objective is 1, and a short step along any weights lowers it. So the sum that is divided by is
    # positive.
    values, vectors = np.linalg.eigh(quadratic)
    root = np.sqrt(np.maximum(values, 0.0) + 1e-12)[:, None] * vectors.T
    solution, _ = nnls(np.vstack([root, np.ones(size)]), np.append(np.zeros(size), 1.0))
    return np.asarray(solution / solution.sum())
