"""The choice among repairs, from the release and public facts alone.

No repair wins everywhere: where the signal is strong shrinkage wins, where a few directions rise above the
noise the spiked estimate, where nothing does the flat spectrum. ``auto`` rehearses. It writes down spectra
the truth might have (what each repair made of the release, and power laws of the believed trace), adds
simulated noise of the known law to each, repairs the results, and sees which mixture of repairs lands nearest
the truth. A possible truth counts for more when its noisy spectra look like the released one, and for less
when every repair misses it by far, so that the mixture is good for each truth that could lie behind the
release.

``towards_guess`` then moves the covariances of numeric columns to what the bounds or the frame alone would say (columns
apart from each other, of their usual variances) as far as an estimate of the risk of such mixtures advises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh
from privcov.noise.laws import NoiseLaw
from privcov.repair import spectra as repairs
from privcov.repair.facts import PublicFacts, Usual, truncated_normal_mean
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
_DOUBT = 0.3  # how far the variances of columns are from the usual ones, as a share of them
_NOTHING_SEEN = 1e100  # from this noise on a variance says nothing, and its square would be no number
_EXPECTED = 0.18  # how far correlations are from the guess, it is expected
_CLEAR = 3.0  # deviations of the largest product of noise: what a pair has to stand clear of
_STEEP = 8  # how fast the guess gives way beyond that
_SMALL = 1e-3  # of the squared distance from the guess: less noise than that, and nothing is gained by it
_FEWEST = 8  # rehearsals of what a repair takes from noise


Repair = Callable[[Floats, PublicFacts], Floats]
"""Spectra, one per row, and the public facts; as many repaired spectra."""


def auto(spectra: Floats, facts: PublicFacts) -> Floats:
    """A weighted mean of the candidate repairs, weights chosen by rehearsal; one spectrum per row."""
    return np.stack([rehearsed(spectrum, facts)(spectrum[None, :], facts)[0] for spectrum in spectra])


def rehearsed(spectrum: Floats, facts: PublicFacts) -> Repair:
    """The mixture of candidates that ``auto`` chooses for a released spectrum, for any spectra."""
    chosen = np.array(list(weights(spectrum, facts).values()))
    return lambda spectra, facts: np.asarray(np.einsum("m,mbd->bd", chosen, _candidates(spectra, facts)))


def weights(spectrum: Floats, facts: PublicFacts) -> dict[str, float]:
    """The weight ``auto`` gives each candidate for this released spectrum."""
    if spectrum.size == 1:  # one number: all candidates agree on the believed trace
        return dict(zip(CANDIDATES, (1.0, *[0.0] * (len(CANDIDATES) - 1)), strict=True))
    answers = _candidates(spectrum[None, :], facts)[:, 0]
    return dict(zip(CANDIDATES, _weights(spectrum, answers, facts).tolist(), strict=True))


def towards_guess(
    made: Floats, noisy: Floats, law: NoiseLaw, usual: Usual, remake: Callable[[Floats], Floats]
) -> Floats:
    """A repaired matrix, its numeric columns moved to what is usual as far as the risk of mixtures advises.

    Of the mixtures G + a·D, where G is the guess and D the repaired matrix less the guess, the one with
    a = ⟨D, T − G⟩ / ‖D‖² is nearest the truth T. The product is not known, but ⟨D, Y − G⟩ of the noisy matrix Y is: it
    is larger by what D takes from the noise. That is rehearsed: its mean c and deviation s for noise about the
    repaired matrix. So the product is seen at ⟨D, Y − G⟩ − c, give or take s. It is taken to be the mean of that normal
    law weighted with an exponential one, whose mean is c times the square of expected differences over that of the
    noise; in drowning noise little is expected, whatever is seen. One pair that stands clear of the noise, where any
    could, is believed in any case.

    Parameters
    ----------
    made, noisy : ndarray of shape (d, d)
        The repaired matrix, and the one it was made from. The first column is the intercept.
    law : NoiseLaw
        The law of the noise.
    usual : Usual
        What numeric columns are like, as far as bounds or a frame tell; no equality of a structure may touch them.
    remake : callable
        Repairs a stack of matrices in the same way.

    Returns
    -------
    ndarray of shape (d, d)
        Positive semi-definite, if the repaired matrix is.
    """
    count, at = float(made[0, 0]), np.array(usual.places, dtype=np.intp)
    if not (at.size and count > 0 and law.scale > 0):
        return made
    touched = np.zeros(made.shape, dtype=bool)
    touched[at, 1:] = touched[1:, at] = True
    guess, bank = _guess(made, noisy, law, usual), noise_bank(law).draws
    alone, apart, away = bank[:, touched], (noisy - guess)[touched], (made - guess)[touched]
    noise, distance = float((alone**2).sum(axis=1).mean()), float(away @ away)
    if noise <= _SMALL * float(apart @ apart) or not distance > 0:
        return made
    rehearsals = max(_FEWEST, _draws(len(made)))
    again = made + bank[:rehearsals]
    # Without noise D takes nothing, so that only what noise changes in it has a mean: the rest would hide it.
    changes = np.array(
        [
            (new - _guess(new, old, law, usual))[touched] - away
            for new, old in zip(remake(again), again, strict=True)
        ]
    )
    chance = alone[:rehearsals]
    by_chance = float((changes * chance).sum(axis=1).mean())
    spread = float(((changes + away) * chance).sum(axis=1).std())
    variances = np.append(0.0, usual.of_all(len(made)))
    expected = (
        by_chance * (_EXPECTED * count) ** 2 * float(np.outer(variances, variances)[touched].sum()) / noise
    )
    believed = 0.0
    if expected > 0 and spread > 0:
        seen = np.array([float(away @ apart) - by_chance - spread * (spread / expected)])
        believed = float(truncated_normal_mean(seen, spread, np.inf)[0])
    noises = np.maximum(law.entry_variances, 1e-300)[touched]
    largest = (alone**2 / noises).max(axis=1)
    clear = float(largest.mean() + _CLEAR * largest.std())
    # Products of a row are at most 1, so that in drowning noise no pair can stand clear but by chance.
    pair = clear / max(float((apart**2 / noises).max()), clear) if count**2 > clear * noises.max() else 1.0
    share = min(1.0, max(believed / distance, 1.0 - pair**_STEEP))
    return np.asarray(guess + share * (made - guess))


def _guess(made: Floats, noisy: Floats, law: NoiseLaw, usual: Usual) -> Floats:
    """The repaired means, no correlation of numeric columns with any other, and variances in their usual proportions.

    How large they are together is the mean of a normal law about the usual, given the noisy sum of their squares; and
    so is each of them, where columns may differ from one another.
    """
    count, at, variances = float(made[0, 0]), np.array(usual.places, dtype=np.intp), np.array(usual.variances)
    rows, parts = max(count, 1e-300), 1 / (len(at) * variances)
    means = made[0] / rows
    # The noise on the mean of squares over usual variances: parts that are shared by all squares do not average out.
    own, shared = law.diagonal_variance - law.shared, law.shared
    size = math.sqrt(own * float(parts @ parts) + shared * float(parts.sum()) ** 2) / rows
    if size < _NOTHING_SEEN:
        seen = float(parts @ (noisy[at, at] / rows - means[at] ** 2))
        weight = _DOUBT**2 / (_DOUBT**2 + size**2)
        centre, spread = np.array([1 + weight * (seen - 1)]), math.sqrt(weight) * size
    else:  # a rehearsal that noise left without rows: sums are not divided by nothing
        centre, spread = np.array([1.0]), _DOUBT
    most = usual.most / float(variances.max())
    level = (
        float(truncated_normal_mean(centre, spread, most)[0])
        if spread > 0
        else float(np.clip(seen, 0.0, most))
    )
    own_variances = level * variances
    if usual.apart > 0 and 0 < size < _NOTHING_SEEN:  # each column is looked at, too
        around, noise = usual.apart * own_variances, math.sqrt(law.diagonal_variance) / rows
        weights = around**2 / (around**2 + noise**2)
        moved = own_variances + weights * (noisy[at, at] / rows - means[at] ** 2 - own_variances)
        own_variances = truncated_normal_mean(moved, np.sqrt(weights) * noise, usual.most)
    guess = made.copy()
    guess[at] = count * np.outer(means[at], means)
    guess[:, at] = guess[at].T
    guess[at, at] += count * own_variances
    return guess


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
