"""The means of a release in a private frame: those of its shortened rows, and those that a round was asked for.

The matrix knows the means of rows that were shortened, with little noise. The round "means" has more noise, and clips
each column to an interval of its own; what lies beyond is known from histograms. So it keeps the tails that shortening
takes away. Both are public, and so is what is made of them here. Why these weights: docs/explain/frame.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.releases.certificate import Round
from privcov.schema import Schema

_LARGEST_BIAS = 0.25
"""What shortening rows is taken to move a mean by at most, over the standard deviation of its column."""


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

    def with_round(self, one: Round, *, schema: Schema, count: float, spreads: Floats) -> Means:
        """The same with what a round of means says of the numeric columns.

        Two means of one column, with variances v (matrix) and w (round), have the weights w and v + b², where b² is
        what their squared distance exceeds v + w by, and at most a quarter of the column's standard deviation,
        squared: a bias that can be seen takes the weight from the matrix, and a round that has far more noise than
        that takes none. A bias that the noise hides may be as large as that noise, and what is seen of it depends on
        the noise: so the error is stated with max(b², w), within the same limit, and the parts are added up as if they
        went together.
        """
        places = np.array([at for at, feature in enumerate(schema.features[1:]) if feature.kind == "numeric"])
        lower, upper, beyond, doubt = np.array(one.intervals).T
        halves = upper / 2 - lower / 2  # in this order, and all below in halves: no bound is too large for it
        ours, own = (self.values[places] - lower) / halves - 1, (self.stds[places] / halves) ** 2
        theirs = np.clip(np.array(one.answers, dtype=np.float64) / (one.unit * count), -1.0, 1.0)
        theirs += beyond / halves
        noise = (one.std / (one.unit * count)) ** 2 + (doubt / halves) ** 2
        most = (_LARGEST_BIAS * spreads[places] / halves) ** 2
        bias = np.clip((theirs - ours) ** 2 - noise - own, 0.0, most)
        share = noise / (noise + own + bias)  # of the mean of shortened rows
        values, stds = self.values.copy(), self.stds.copy()
        values[places] = lower + halves * (1 + ours + (1 - share) * (theirs - ours))
        stds[places] = halves * (
            share * np.sqrt(own + np.maximum(bias, np.minimum(noise, most))) + (1 - share) * np.sqrt(noise)
        )
        return Means(values=values, stds=stds)
