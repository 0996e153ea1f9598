"""The facts that repair may use: the noise law, the count if it is public, and the row-norm bound. Never the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw

EVEN = 1 / 3
"""The variance of a scaled column that is spread evenly over its bounds."""


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What numeric columns are like, as far as their bounds or a private frame tell. All in scaled units.

    Parameters
    ----------
    places : tuple of int
        The columns, beside an intercept in column 0.
    variances : tuple of float
        What each of them is expected to have as its variance.
    most : float, default 1.0
        The largest variance that one of them can have.
    apart : float, default 0.0
        How far the variance of each may be from what is expected of all, as a share of it. With 0 no column is told
        from the others.

    Examples
    --------
    >>> from privcov.repair.facts import Usual
    >>> Usual(places=(1, 2), variances=(0.2, 0.4)).of_all(4).tolist()
    [0.2, 0.4, 0.3333333333333333]
    """

    places: tuple[int, ...]
    variances: tuple[float, ...]
    most: float = 1.0
    apart: float = 0.0

    @classmethod
    def within_bounds(cls, places: tuple[int, ...], *, room: float = math.inf) -> Usual:
        """Columns that are spread evenly over their bounds, in rows shortened to ``room``, the squares of all together.

        >>> Usual.within_bounds((1, 2), room=0.5).variances
        (0.25, 0.25)
        """
        each = min(EVEN, room / len(places))
        return cls(places=places, variances=(each,) * len(places), most=min(1.0, room))

    def of_all(self, dimension: int) -> Floats:
        """The variances of all columns but the intercept; nothing is expected of the others but that they vary."""
        found = np.full(dimension, EVEN)
        found[list(self.places)] = self.variances
        return found[1:]


def within_reach(moment: Floats, reaches: Floats) -> Floats:
    """The matrix with no variance above what a column can have that reaches so far to both sides of zero.

    A variance is at most the square of that, where half of the rows are at each end. What a column has beside its mean
    is shrunk as a whole, so that correlations, means and positive eigenvalues stay.

    >>> within_reach(np.array([[4.0, 2.0], [2.0, 10.0]]), np.array([np.inf, 1.0]))
    array([[4., 2.],
           [2., 5.]])
    """
    count = float(moment[0, 0])
    if not count > 0:
        return moment
    centred = moment - np.outer(moment[0], moment[0]) / count
    variances, most = np.diag(centred) / count, reaches**2
    shrunk = np.sqrt(np.divide(most, variances, out=np.ones_like(most), where=variances > most))
    return moment if (shrunk == 1).all() else moment + (np.outer(shrunk, shrunk) - 1) * centred


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """Everything besides the noisy matrix that a repair may use. All in scaled units.

    Parameters
    ----------
    law : NoiseLaw
        The law of the noise.
    rows : float or None
        The public count under replace-one; under add-remove a noisy count that was itself released, or None.
    squared_norm_bound : float
        The bound on the squared norm of a row: the true matrix has a trace of at most ``rows`` times this.

    Raises
    ------
    ParameterError
        The count (E270) or the bound (E271) is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.noise.laws import GaussianEnsemble
    >>> from privcov.repair import PublicFacts
    >>> facts = PublicFacts(law=GaussianEnsemble(dimension=2, scale=1.0), rows=10, squared_norm_bound=1.0)
    >>> facts.trace_cap, facts.clipped_trace(np.array([[-3.0, 20.0]]))
    (10.0, array([10.]))
    >>> bool(facts.believed_trace(np.array([[-3.0, 20.0]]))[0] < 10)
    True
    """

    law: NoiseLaw
    rows: float | None
    squared_norm_bound: float

    def __post_init__(self) -> None:
        if self.rows is not None and not (self.rows >= 0 and math.isfinite(self.rows)):
            raise ParameterError("E270", f"rows must be a finite count or None, got {self.rows}.")
        if not (self.squared_norm_bound > 0 and math.isfinite(self.squared_norm_bound)):
            raise ParameterError(
                "E271", f"squared_norm_bound must be positive and finite, got {self.squared_norm_bound}."
            )

    @property
    def trace_cap(self) -> float:
        """The largest trace that the true matrix can have; infinite when the count is private."""
        return math.inf if self.rows is None else self.rows * self.squared_norm_bound

    def clipped_trace(self, spectra: Floats) -> Floats:
        """Return the noisy trace of each spectrum, moved into the range that a true trace can take.

        Parameters
        ----------
        spectra : ndarray of shape (k, d)
            Noisy eigenvalues, one matrix per row.

        Returns
        -------
        ndarray of shape (k,)
            One trace per matrix, from 0 to ``trace_cap``.
        """
        return np.asarray(np.clip(spectra.sum(axis=-1), 0.0, self.trace_cap))

    def believed_trace(self, spectra: Floats) -> Floats:
        """Return the posterior mean of the true trace under a flat prior on [0, trace_cap] and normal trace noise.

        Equal to the noisy trace where the noise is small, and to half the cap where the noise drowns it, so
        that one wild draw cannot scale the whole matrix. The noisy trace is a sum of at least d independent
        terms; at d = 1 the normal law is an approximation.

        Parameters
        ----------
        spectra : ndarray of shape (k, d)
            Noisy eigenvalues, one matrix per row.

        Returns
        -------
        ndarray of shape (k,)
            One trace per matrix, from 0 to ``trace_cap``.
        """
        noise_std = math.sqrt(self.law.trace_variance)
        noisy = spectra.sum(axis=-1)
        if not noise_std > 0:
            return np.asarray(np.clip(noisy, 0.0, self.trace_cap))
        return truncated_normal_mean(noisy, noise_std, self.trace_cap)


_FAR = 1e3
"""Deviations, from which on the difference of two logarithms has too few digits left."""


def truncated_normal_mean(centre: Floats, std: float | Floats, upper: float) -> Floats:
    """Mean of N(centre, std²) conditioned on [0, upper], stable far outside the interval."""
    if upper == 0:
        return np.zeros_like(centre)
    # Reflect so that the nearer end of the interval is the lower one: tails are then computed as tails.
    reflected = (centre > upper / 2) if math.isfinite(upper) else np.zeros(centre.shape, dtype=bool)
    near = np.where(reflected, upper - centre, centre) if math.isfinite(upper) else centre
    far = near < -_FAR * std
    edge = std**2 / np.maximum(-near, _FAR * std)  # the law is exponential from the nearer end out there
    near = np.where(far, -_FAR * std, near)
    lower_z, upper_z = -near / std, (upper - near) / std
    log_lower_tail = scipy.special.log_ndtr(-lower_z)
    log_mass = log_lower_tail + np.log1p(
        -np.exp(np.minimum(scipy.special.log_ndtr(-upper_z) - log_lower_tail, -1e-15))
    )
    log_density = -0.5 * lower_z**2 - 0.5 * math.log(2 * math.pi)
    log_density_upper = -0.5 * upper_z**2 - 0.5 * math.log(2 * math.pi)
    mean = near + std * (np.exp(log_density - log_mass) - np.exp(log_density_upper - log_mass))
    with np.errstate(over="ignore"):
        beyond = edge - (upper / np.expm1(upper / edge) if math.isfinite(upper) else 0.0)
    mean = np.clip(np.where(far, beyond, mean), 0.0, upper)
    return np.asarray(np.where(reflected, upper - mean, mean))
