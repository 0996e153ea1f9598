"""What a plan can promise of correlations: how large one must be to stand clear of the noise, and the verdict on that.

The rule is the one that a release is judged by (``report/standing.py``), per pair and centred. How far noise moves a
correlation depends on how much of its bounds a column fills, and how far off their middle, because noise on the means
moves it too. Nobody may look that up before a release. So a plan answers for two tables, one whose columns are spread
evenly over their bounds and one whose columns fill a fifth of them, at one end; where moments were declared public it
answers for those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.planning.moments import FILLED, PublicMoments, first_two
from privcov.report.standing import FINE, Verdict, grade, uncorrelated
from privcov.schema import Schema

_HIGH = 1.96
_SOME = 300
"""Columns of a wide schema that its middle pair is read off."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What the noise on a correlation stays below, 95 times in 100: smaller ones cannot be told from zero.

    Attributes
    ----------
    low, high : float
        For the pair in the middle: where columns fill their bounds, and where they fill a fifth of them, at one end.
        The same where moments were guessed. Of a single column, the noise on its mean in standard deviations.
    known : str
        What one number is for, where it is one: moments that someone declared public, or a private frame.
    single : bool
        Whether there is one column only, and so no correlation.

    Examples
    --------
    >>> made = Outlook(low=0.006, high=0.15)
    >>> made.verdict, made.words[:47]
    ('useful', 'the smallest single correlation that can be tol')
    >>> Outlook(low=0.05, high=0.6).verdict, Outlook(low=0.05, high=0.6).best
    ('marginal', 'useful')
    >>> Outlook(low=60, high=1500).rows_for
    {'useful': 7500, 'marginal': 300}
    """

    low: float
    high: float
    known: str = ""
    single: bool = False

    @classmethod
    def of(
        cls, schema: Schema, *, entry: float, count: float = 0.0, moments: PublicMoments | None = None
    ) -> Outlook:
        """Return the outlook for an error on the entries off the diagonal.

        Parameters
        ----------
        schema : Schema
            The columns.
        entry : float
            What the error on an entry stays below 95 times in 100, per row, in scaled units.
        count : float, default 0.0
            The same of the number of rows; 0 where that is public.
        moments : PublicMoments, optional
            What was declared public of the table. By default the outlook is for a range of tables.

        Returns
        -------
        Outlook
            For the pair of columns in the middle.

        Examples
        --------
        >>> columns = {name: {"lower": 0, "upper": 100} for name in ("age", "score")}
        >>> made = Outlook.of(Schema.from_dict({"columns": columns}), entry=0.002)
        >>> made.verdict, round(made.low, 3), round(made.high, 3)
        ('marginal', 0.006, 0.226)
        """
        single = len({feature.column for feature in schema.features if feature.kind != "intercept"}) < 2
        if moments is not None:
            found = entry * _middle(schema, *_mean_and_spread(moments), count / entry)
            return cls(low=found, high=found, known="for a table with the moments you gave", single=single)
        low, high = (
            entry * _middle(schema, *two, count / entry) for two in (first_two(schema, {}), _narrow(schema))
        )
        return cls(low=low, high=high, single=single)

    @classmethod
    def by_law(
        cls,
        schema: Schema,
        law: NoiseLaw,
        *,
        rows: float,
        counted: bool,
        moments: PublicMoments | None = None,
    ) -> Outlook:
        """Return the outlook for noise of a law, as if it were normal.

        Parameters
        ----------
        schema : Schema
            The columns.
        law : NoiseLaw
            The law of the noise.
        rows : float
            The number of rows.
        counted : bool
            Whether that number is public.
        moments : PublicMoments, optional
            What was declared public of the table.

        Returns
        -------
        Outlook
            For the pair of columns in the middle.

        Examples
        --------
        >>> from privcov.noise.laws import GaussianEnsemble
        >>> schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in ("age", "score")}})
        >>> law = GaussianEnsemble(dimension=3, scale=10.0)
        >>> public, private = (Outlook.by_law(schema, law, rows=20_000, counted=one) for one in (True, False))
        >>> public.low == private.low, public.high < private.high
        (True, True)
        """
        entry, own = (
            _HIGH * math.sqrt(one) / rows for one in (law.offdiagonal_variance, law.diagonal_variance)
        )
        return cls.of(schema, entry=entry, count=0.0 if counted else own, moments=moments)

    @classmethod
    def framed(cls, error: float) -> Outlook:
        """Return the outlook in a private frame.

        Parameters
        ----------
        error : float
            How far a correlation is off there, in root mean square.

        Returns
        -------
        Outlook
            One number, for columns like normal ones.

        Examples
        --------
        >>> Outlook.framed(0.05).verdict
        'useful'
        """
        high = _HIGH * error
        return cls(low=high, high=high, known="in a private frame, for columns like normal ones")

    @property
    def verdict(self) -> Verdict:
        """The one word."""
        return grade(self.low, self.high)

    @property
    def best(self) -> Verdict:
        """What a release would be called whose columns fill their bounds, by the rule of releases."""
        return self.verdict if self.known or self.single else uncorrelated(self.low)

    @property
    def words(self) -> str:
        """From where on one correlation, looked at alone, could be believed."""
        if self.single:
            low, high = (f"{_size(one)} standard deviations" for one in (self.low, self.high))
            if self.known:
                return f"the noise on the mean is {low}, {self.known}."
            said = f"the noise on the mean is {low} where the column fills its bounds"
            return f"{said}, and {high} where it fills a fifth of them."
        if self.low >= 1:
            return f"no correlation can be told from zero, {self.known or 'not even where columns fill their bounds'}."
        said = f"the smallest single correlation that can be told from zero is {_size(self.low)}"
        if self.known:
            return f"{said}, {self.known}."
        narrow = "where they fill a fifth of them, at one end"
        rest = f", and {_size(self.high)} {narrow}." if self.high < 1 else f"; {narrow}, there is none."
        said = f"{said} where columns fill their bounds{rest}"
        if self.best == self.verdict:
            return said
        return f"{said} If columns fill their bounds, the release would be {self.best}."

    def __str__(self) -> str:
        return f"{self.verdict}: {self.words}"

    @property
    def rows_for(self) -> dict[str, int]:
        """The fewest rows for the two better verdicts, where this is the outlook for a single row."""
        return {"useful": math.ceil(self.high / FINE), "marginal": math.ceil(math.sqrt(self.low * self.high))}


def _narrow(schema: Schema) -> tuple[Floats, Floats]:
    """Means and standard deviations of columns that fill a fifth of their bounds at one end, and of rare levels.

    A level that few rows have varies with the root of its share.
    """
    _, spread = first_two(schema, {})
    numbers = np.array([feature.kind == "numeric" for feature in schema.features])
    narrow = np.where(numbers, FILLED * spread, math.sqrt(FILLED) * spread)
    rare = 0.5 - np.sqrt(np.maximum(0.25 - narrow**2, 0.0))
    return np.where(numbers, (1 - FILLED) * math.sqrt(3) * spread, rare), narrow


def _mean_and_spread(moments: PublicMoments) -> tuple[Floats, Floats]:
    squares = np.diag(moments.matrix)
    mean = moments.matrix[0] if moments.schema.intercept else np.zeros_like(squares)
    return mean, np.sqrt(np.clip(squares - mean**2, 0, None))


def _middle(schema: Schema, mean: Floats, spread: Floats, count: float) -> float:
    """The error on a correlation for an error of 1 on every entry: of the pair in the middle, to first order.

    ``count`` is that on the number of rows. Of uncorrelated columns, so that variances do not matter.
    """
    places = [place for place, feature in enumerate(schema.features) if feature.kind != "intercept"][:_SOME]
    homes = np.array([schema.features[place].column for place in places])
    mean, spread = mean[places], np.maximum(spread[places], 1e-300)
    first, second = np.triu_indices(len(places), 1)
    apart = homes[first] != homes[second]
    first, second = first[apart], second[apart]
    if not len(first):
        return float(np.median(np.sqrt(1 + (count * mean) ** 2) / spread))
    one, other = mean[first] ** 2, mean[second] ** 2
    sizes = np.sqrt(1 + one + other + count**2 * one * other) / spread[first] / spread[second]
    # A level that others complete has the noise of its coordinates, which are shorter.
    short = {column.name: math.sqrt(column.squared_norm) for column in schema.exhaustive}
    lengths = np.array([short.get(home, 1.0) for home in homes])
    sizes = sizes * lengths[first] * lengths[second]
    return float(np.median(sizes))


def _size(value: float) -> str:
    return f"{value:.2g}"
