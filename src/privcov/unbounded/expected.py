"""The error to expect of an estimate, by simulation on invented Gaussian rows: no data is involved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privcov.errors import InputError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import rehearsal
from privcov.privacy import ZCDP, Amount
from privcov.unbounded.entry import estimate_gaussian
from privcov.unbounded.estimate import GaussianEstimate, mahalanobis_error
from privcov.unbounded.parameters import positive

_MOST_NUMBERS = 2**28
_RUNS = 39
"""The second largest of so many errors is exceeded by a fresh one with probability 2 in 40."""
_MOST_REHEARSED = 250_000
"""Numbers in a table that is rehearsed so often: seconds."""


def expected_error(
    *,
    rows: int,
    dimension: int,
    loss: ZCDP,
    largest_variance: Amount,
    method: str = "coinpress",
    rounds: int = 5,
    known_mean: bool = False,
    mean_radius: Amount | None = None,
    smallest_variance: Amount = 1,
    tail: Amount = "0.1",
    as_published: bool = False,
    variances: Sequence[float] | None = None,
    runs: int = 20,
    seed: int = 0,
) -> float:
    """Simulate the error of ``estimate_gaussian`` with these public facts, on invented tables. No data is involved.

    Rows are drawn from N(0, diag(variances)). The methods do not know one direction from another, so the error
    is the same for any covariance with these eigenvalues. Where rounds fail now and then, the mean is that of
    rare disasters: a large result says that, and is not itself precise.

    Parameters
    ----------
    rows : int
        The number of rows.
    dimension : int
        The number of columns.
    loss : ZCDP
        What the estimate may cost, under "replace-one".
    largest_variance : Fraction, int, float or str
        As for ``estimate_gaussian``, in squared original units.
    method : {"coinpress", "truncated", "preconditioned"}, default "coinpress"
        As for ``estimate_gaussian``.
    rounds : int, default 5
        How often "coinpress" whitens.
    known_mean : bool, default False
        Whether the mean is public.
    mean_radius : Fraction, int, float or str, optional
        As for ``estimate_gaussian``, in original units.
    smallest_variance : Fraction, int, float or str, default 1
        As for ``estimate_gaussian``, in squared original units.
    tail : Fraction, float or str, default "0.1"
        As for ``estimate_gaussian``, between 0 and 1.
    as_published : bool, default False
        As for ``estimate_gaussian``.
    variances : sequence of float, optional
        The eigenvalues of the true covariance, one per column. By default spread evenly in the logarithm from
        the smallest variance to the largest.
    runs : int, default 20
        How many tables are invented.
    seed : int, default 0
        The seed of the simulation.

    Returns
    -------
    float
        The mean Mahalanobis error: see ``mahalanobis_error``.

    Raises
    ------
    ParameterError
        A parameter is out of range (E24x).

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.unbounded import expected_error
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> error = expected_error(rows=2000, dimension=2, loss=loss, largest_variance=9, known_mean=True, runs=3)
    >>> 0.01 < error < 0.2
    True
    """
    for name, count in (("rows", rows), ("dimension", dimension), ("runs", runs)):
        if isinstance(count, bool) or not isinstance(count, int) or not count >= 1:
            raise ParameterError("E242", f"{name} must be a whole number from 1, got {count!r}.")
    if rows * dimension > _MOST_NUMBERS:
        raise ParameterError("E242", f"{rows} rows of {dimension} columns are too many to simulate.")
    values = _variances(variances, dimension, smallest_variance, largest_variance)
    source, truth, errors = rehearsal(seed), np.diag(values), []
    for _ in range(runs):
        made = estimate_gaussian(
            source.normals(rows, dimension) * np.sqrt(values),
            loss=loss,
            largest_variance=largest_variance,
            method=method,
            rounds=rounds,
            known_mean=[0.0] * dimension if known_mean else None,
            mean_radius=mean_radius,
            smallest_variance=smallest_variance,
            tail=tail,
            as_published=as_published,
            randomness=source,
        )
        errors.append(mahalanobis_error(made.covariance, truth))
    return float(np.mean(errors))


@dataclass(frozen=True, kw_only=True, eq=False)
class Margins:
    """How far the numbers of an estimate are off, 95 times in 100, if rows are Gaussian as it says.

    Attributes
    ----------
    mean : ndarray of shape (d,) or None
        Of means, in original units; None where no mean was bought.
    std : ndarray of shape (d,)
        Of standard deviations, in original units.
    correlation : ndarray of shape (d, d)
        Of correlations; infinite where a rehearsed one was undefined.
    """

    mean: Floats | None
    std: Floats
    correlation: Floats


def margins(estimate: GaussianEstimate) -> Margins | None:
    """Rehearse an estimate: draw Gaussian rows of its mean and covariance, and estimate them with its public facts.

    It costs no privacy: nothing but the estimate and public facts is used. None for tables too large to rehearse, and
    for facts that no estimate is made from.
    """
    made = estimate.certificate
    if made.rows * len(estimate.columns) > _MOST_REHEARSED or set(made.options) - _FACTS:
        return None
    try:
        found = [_numbers(again.mean, again.covariance) for again in _rehearsals(estimate)]
    except (ParameterError, InputError, ValueError, np.linalg.LinAlgError):  # a file may say anything
        return None
    off = []
    for true, parts in zip(
        _numbers(estimate.mean, estimate.covariance), zip(*found, strict=True), strict=True
    ):
        with np.errstate(invalid="ignore"):
            errors = np.nan_to_num(np.abs(np.array(parts) - true), nan=np.inf)
        off.append(np.sort(errors, axis=0)[-2])
    bought = "mean_radius" in made.options
    return Margins(mean=off[0] if bought else None, std=off[1], correlation=off[2])


_FACTS = {"largest_variance", "smallest_variance", "tail", "mean_radius", "rounds", "constants", "centring"}
_MOST_ROUNDS = 30


def _rehearsals(estimate: GaussianEstimate) -> Iterator[GaussianEstimate]:
    """Estimates of invented rows that are as this one says they are."""
    made, dimension, source = estimate.certificate, len(estimate.columns), rehearsal(0)
    facts, known = made.options, made.options.get("centring") == "known mean"
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    centre = np.zeros(dimension) if estimate.mean is None else estimate.mean
    for _ in range(_RUNS):
        yield estimate_gaussian(
            source.normals(made.rows, dimension) @ root.T + centre,
            loss=made.loss,
            largest_variance=facts.get("largest_variance", "0"),
            method=made.mechanism,
            rounds=min(int(facts.get("rounds", 5)), _MOST_ROUNDS),
            known_mean=centre.tolist() if known else None,
            mean_radius=facts.get("mean_radius"),
            smallest_variance=facts.get("smallest_variance", 1),
            tail=facts.get("tail", "0.1"),
            as_published=facts.get("constants") == "published",
            randomness=source,
        )


def _numbers(mean: Floats | None, covariance: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations and correlations."""
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.zeros(len(std)) if mean is None else mean, std, covariance / np.outer(std, std)


def _variances(given: Sequence[float] | None, dimension: int, smallest: Amount, largest: Amount) -> Floats:
    """As given, or the public guess."""
    if given is None:
        high = float(positive("largest_variance", largest))
        low = min(float(positive("smallest_variance", smallest)), high)
        return np.geomspace(low, high, dimension)
    if len(given) != dimension:
        raise ParameterError("E247", f"variances must be {dimension} numbers, one for each column.")
    return np.array([float(positive("variances", value)) for value in given])
