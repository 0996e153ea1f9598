"""The error to expect of an estimate, by simulation on invented Gaussian rows: no data is involved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import rehearsal
from privcov.privacy import ZCDP, Amount
from privcov.unbounded.entry import estimate_gaussian
from privcov.unbounded.estimate import mahalanobis_error
from privcov.unbounded.parameters import positive

_MOST_NUMBERS = 2**28


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


def _variances(given: Sequence[float] | None, dimension: int, smallest: Amount, largest: Amount) -> Floats:
    """As given, or the public guess."""
    if given is None:
        high = float(positive("largest_variance", largest))
        low = min(float(positive("smallest_variance", smallest)), high)
        return np.geomspace(low, high, dimension)
    if len(given) != dimension:
        raise ParameterError("E247", f"variances must be {dimension} numbers, one for each column.")
    return np.array([float(positive("variances", value)) for value in given])
