"""Means and standard deviations in a private frame: of its shortened rows, and from rounds of their own.

The matrix knows the means and variances of rows that were shortened, with little noise. The rounds "means" and
"squares" have more noise, and clip each column to an interval of its own; what lies beyond is known from histograms. So
they keep the tails that shortening takes away. All are public, and so is what is made of them here. Why these weights:
docs/explain/frame.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcov.linalg.arrays import Floats, Matrix
from privcov.noise.laws import NoiseLaw
from privcov.releases.certificate import Round
from privcov.schema import Schema

_SEEN = 2.0
"""By how many of its standard deviations a factor must differ from 1 to be taken for another."""
_LARGEST_BIAS = 0.25
"""What shortening rows is taken to move a mean by at most, over the standard deviation of its column."""
_CLEAR = 4.0
"""So many standard deviations of their noise apart, two means differ by a bias of any size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Means:
    """Means of the columns but the intercept, in original units, and how far they are off.

    Attributes
    ----------
    values : ndarray of shape (d - 1,)
        The means.
    stds : ndarray of shape (d - 1,)
        How far each may be off, as a standard deviation: its noise, and for a column with a round of its own the bias
        that the two means show, or that noise may hide.
    """

    values: Floats
    stds: Floats

    @classmethod
    def of_matrix(cls, values: Floats, *, schema: Schema, law: NoiseLaw, count: float) -> Means:
        """What the matrix says, with the noise on its first row."""
        units = np.array([feature.unit for feature in schema.features[1:]])
        return cls(values=values, stds=units * (np.sqrt(law.sums_variances) / count))

    def with_round(
        self, one: Round, *, schema: Schema, count: float, spreads: Floats, around: bool = False
    ) -> Means:
        """The same with what a round of means says of the numeric columns.

        Two means of one column, with variances v (matrix) and w (round), have the weights w and v + b², where b² is
        what their squared distance exceeds v + w by, and at most a quarter of the column's standard deviation,
        squared: a bias that can be seen takes the weight from the matrix, and a round that has far more noise than
        that takes none. A bias that the noise hides may be as large as that noise, and what is seen of it depends on
        the noise: so the error is stated with max(b², w), within the same limit, and the parts are added up as if they
        went together.
        """
        places = np.array([at for at, feature in enumerate(schema.features[1:]) if feature.kind == "numeric"])
        # All in halves of the widths: no bound is too large for it.
        (lower, _, halves), (mean, beyond, doubt) = _interval(one), _stated(one, count)
        ours, own = (self.values[places] - lower) / halves - 1, (self.stds[places] / halves) ** 2
        theirs = mean + beyond
        noise = (one.std / (one.unit * count)) ** 2 + doubt**2
        apart = (theirs - ours) ** 2
        free = around | (apart > _CLEAR**2 * (noise + own))
        most = np.where(free, np.inf, (_LARGEST_BIAS * spreads[places] / halves) ** 2)
        bias = np.clip(apart - noise - own, 0.0, most)
        share = noise / (noise + own + bias)  # of the mean of shortened rows
        values, stds = self.values.copy(), self.stds.copy()
        values[places] = lower + halves * (1 + ours + (1 - share) * (theirs - ours))
        stds[places] = halves * (
            share * np.sqrt(own + np.maximum(bias, np.minimum(noise, most))) + (1 - share) * np.sqrt(noise)
        )
        return Means(values=values, stds=stds)


def centred_squares(one: Round, means: Round, *, count: float) -> tuple[Floats, Floats, Floats]:
    """The variances that rounds of squares and of means state.

    Of each column: the furthest distance that counted, and over its square the variance and how far it may be off.
    """
    (_, centres, halves), (share, beyond, doubt) = _interval(one), _stated(one, count)
    (lower, _, widths), (mean, outside, around) = _interval(means), _stated(means, count)
    values, stds = (1 + share) / 2 + beyond, np.hypot(one.std / (one.unit * count) / 2, doubt)
    # The mean about the same centre, in the same units: what it is away from it is no variance.
    times = widths / halves  # no bound is too large for it
    away = (lower / 2 - centres / 2) / (halves / 2) + times * (1 + mean + outside)
    noise = np.hypot(means.std / (means.unit * count), around) * times
    return halves, values - away**2, np.hypot(stds, 2 * away * noise)


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """What makes columns of shortened rows have the means and standard deviations that all rounds together state.

    A shortened column z stands for ``shift + factor · z``, in scaled units.

    Attributes
    ----------
    factors : ndarray of shape (p,)
        By what each numeric column is multiplied.
    shifts : ndarray of shape (p,)
        What is added to it then.
    doubts : ndarray of shape (p, p + 1)
        How far the factors may be off, as shares of them: ``doubts @ g`` for independent standard normal g.
    mean_doubts : ndarray of shape (p,)
        How far each mean may be off, in scaled units.
    bias : float
        What shortening is taken to have moved a correlation of 0 by, as a standard deviation: a model.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1000} for name in ("a", "b")}})
    >>> loss = pc.ZCDP(rho=1, neighbours="replace-one")
    >>> rows = np.column_stack([np.linspace(400, 500, 9000), np.linspace(0, 90, 9000)])
    >>> made = pc.release(rows, schema=schema, loss=loss, frame="scales", cut="counted").calibration
    >>> made.factors.shape, made.doubts.shape, bool(made.bias >= 0)
    ((2,), (2, 3), True)
    """

    factors: Floats
    shifts: Floats
    doubts: Floats
    mean_doubts: Floats
    bias: float


def cut_deviations(
    rows: Matrix, own: Floats, *, rounds: tuple[Round, Round], units: Floats, count: float, most: float
) -> tuple[Floats, Matrix]:
    """The logarithms of what shortening has divided standard deviations by, and how far they may be off.

    Before the rounds are looked at these are normal about zero. Shortening keeps what is exactly linear in a row, so
    columns of correlation ±1 have the same; the difference of others is in proportion to 1 − ρ², what is left of a
    column beside the other, and so their correlation is 1 − (1 − ρ²)². What a round states moves them, as far as its
    noise allows, with those of the columns that go with its own.

    Parameters
    ----------
    rows : ndarray of shape (p, p)
        The covariance of the columns of shortened rows, in scaled units.
    own : ndarray of shape (p,)
        The standard deviation of the noise on its diagonal.
    rounds : tuple of Round
        The rounds "squares" and "means".
    units : ndarray of shape (p,)
        What one scaled unit is.
    count : float
        The number of rows.
    most : float
        What shortening is taken to have cut off a variance at most.

    Returns
    -------
    tuple of ndarray
        The logarithms, zero where rounds do not contradict that; and a matrix L, so that L g is how far they are off
        for independent standard normal g. Its last column is what zeros leave out of what was found.
    """
    halves, stated, stds = centred_squares(*rounds, count=count)
    squares, ours = (halves / units) ** 2, np.maximum(np.diag(rows), 1e-12)
    theirs, noise = stated * squares, np.hypot(stds * squares, own)
    near = np.maximum(
        ours, theirs - 2 * noise
    )  # where logarithms are taken: nothing that noise may have made
    seen, error = (np.log(near / ours) + (theirs - near) / near) / 2, noise / (2 * near)
    together = 1 - (1 - np.clip(rows**2 / np.outer(ours, ours), 0.0, 1.0)) ** 2
    values, vectors = np.linalg.eigh(together)  # no correlations of so many columns where one is negative
    spread = np.log1p(most / ours.mean()) / 2
    prior = spread**2 * ((vectors * np.maximum(values, 0.0)) @ vectors.T) + 1e-12 * np.eye(len(ours))
    gain = np.linalg.solve(prior + np.diag(error**2), prior).T
    left = prior - gain @ prior
    left = (left + left.T) / 2
    values, vectors = np.linalg.eigh(left)
    found, taken = gain @ seen, _taken(gain @ seen, left)
    doubts = vectors * np.sqrt(np.maximum(values, 0.0))
    return taken, np.column_stack([doubts, found - taken])


def _taken(found: Floats, left: Matrix) -> Floats:
    """The logarithms that are taken: zero where what was found is within two standard deviations of it.

    The others are what is to be expected of them then, so that columns that go together stay together.

    >>> _taken(np.array([0.1, 0.5]), np.array([[0.01, 0.0], [0.0, 0.01]]))
    array([0. , 0.5])
    """
    plain = np.abs(found) <= _SEEN * np.sqrt(np.diag(left))
    if not plain.any():
        return found
    pulled = left[:, plain] @ np.linalg.pinv(left[np.ix_(plain, plain)], hermitian=True) @ found[plain]
    return np.where(plain, 0.0, found - pulled)


def _interval(one: Round) -> tuple[Floats, Floats, Floats]:
    """The lower ends, the middles and half the widths of the intervals of a round."""
    lower, upper, *_ = np.array(one.intervals).T
    return lower, lower / 2 + upper / 2, upper / 2 - lower / 2


def _stated(one: Round, count: float) -> tuple[Floats, Floats, Floats]:
    """What the rows of a round have on average, what lies beyond and how far that may be off: over half the widths."""
    *_, halves = _interval(one)
    *_, beyond, doubt = np.array(one.intervals).T
    mean = np.clip(np.array(one.answers, dtype=np.float64) / (one.unit * count), -1.0, 1.0)
    return mean, beyond / halves, doubt / halves
