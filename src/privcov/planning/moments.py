"""Moments the steward declares to be public: guesses written beside the schema, or those of a surrogate table.

Planning needs them for questions whose answer depends on the table, such as the width of a regression's
intervals. They are never read from the table that will be released.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from privcov.errors import InputError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.privacy import Loss, exact
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.schema import Categorical, Column, Feature, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.schema.names import canonical, split_names
from privcov.schema.recovery import coding
from privcov.text.grammar import brief

FILLED = 0.2
"""The share of its bounds that a column fills in a cautious guess: bounds five times too wide."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicMoments:
    """Second moments per row that somebody declared public, to plan with.

    Attributes
    ----------
    schema : Schema
        The columns they belong to.
    matrix : ndarray of shape (d, d)
        E[zzᵀ] of the scaled rows z.
    columns : frozenset of str
        The columns that anything was said about.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> moments = pc.surrogate(np.array([[50.0], [100.0]]), schema=schema)
    >>> moments.spectrum.round(2)
    array([1.31, 0.19])
    >>> moments.pretend(rows=100, loss=pc.PureDP(epsilon=1, neighbours="replace-one"), law=None).rows
    100
    """

    schema: Schema
    matrix: Floats
    columns: frozenset[str]

    @cached_property
    def spectrum(self) -> Floats:
        """The eigenvalues per row of the columns that are summed, in scaled units, largest first."""
        return np.maximum(np.linalg.eigvalsh(self._summed)[::-1], 0.0)

    @cached_property
    def _summed(self) -> Floats:
        """The moments of the columns that are summed."""
        return coding(self.schema).seen(self.matrix) if self.schema.exhaustive else self.matrix

    def pretend(self, *, rows: int, loss: Loss, law: NoiseLaw | None) -> Release:
        """Return the release that a table of these moments would have if the noise happened to be zero: a rehearsal.

        Parameters
        ----------
        rows : int
            The number of rows; of weighted ones, what they count as together, in units of the largest weight.
        loss : PureDP, ApproxDP or ZCDP
            What its certificate says.
        law : NoiseLaw or None
            The law of noise that its certificate says.

        Returns
        -------
        Release
            A release that cannot be saved.
        """
        grid = Grid.of(self.schema)
        upper = self._summed[np.triu_indices(grid.dimension)] * (rows / float(grid.unit))
        return Release(
            schema=self.schema,
            rows=rows
            if self.schema.weight is None
            else None,  # what rows count as together, and not their number
            upper=tuple(round(value) for value in upper.tolist()),
            certificate=Certificate(
                mechanism="none",
                options={},
                loss=loss,
                law=law,
                arithmetic="idealized",
                randomness="rehearsal",
                proof="none: nothing was released",
                timing="",
            ),
        )

    def part(self, schema: Schema) -> PublicMoments:
        """Return the moments of some of the columns.

        Parameters
        ----------
        schema : Schema
            A subset of the columns of ``schema``.

        Returns
        -------
        PublicMoments
            The rows and columns of the matrix that the subset has.

        Examples
        --------
        >>> import privcov as pc
        >>> from privcov.planning import PublicMoments
        >>> columns = {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}
        >>> schema = pc.Schema.from_dict({"columns": columns})
        >>> moments = PublicMoments.guessed(schema, {"columns": {"age": {"mean": 40, "std": 10}}})
        >>> moments.part(schema.subset(["age"])).matrix.round(2).tolist()
        [[1.0, -0.2], [-0.2, 0.08]]
        """
        if schema == self.schema:
            return self
        places = {feature.name: place for place, feature in enumerate(self.schema.features)}
        kept = [places[feature.name] for feature in schema.features]
        named = self.columns.intersection(column.name for column in schema.columns)
        return PublicMoments(schema=schema, matrix=self.matrix[np.ix_(kept, kept)], columns=named)

    @classmethod
    def guessed(cls, schema: Schema, given: Mapping[str, Any]) -> PublicMoments:
        """Make moments from guesses: the ``[planning]`` part of a schema file.

        Parameters
        ----------
        schema : Schema
            The columns.
        given : mapping
            ``columns`` with ``mean`` and ``std`` (original units) or shares of levels, and ``correlations``.

        Returns
        -------
        PublicMoments
            The moments; a column that nothing is said of is spread evenly over its bounds.

        Raises
        ------
        ParameterError
            A word is unknown, or no table has these moments together (E262).

        Examples
        --------
        >>> import privcov as pc
        >>> from privcov.planning import PublicMoments
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> PublicMoments.guessed(schema, {"columns": {"age": {"mean": 40, "std": 10}}}).matrix.round(2).tolist()
        [[1.0, -0.2], [-0.2, 0.08]]
        """
        _only(given, {"columns", "correlations"}, "[planning]")
        columns, correlations = given.get("columns", {}), given.get("correlations", {})
        if not isinstance(columns, Mapping) or not isinstance(correlations, Mapping):
            raise ParameterError("E262", "[planning] may hold only the tables columns and correlations.")
        columns = {canonical(str(name)): about for name, about in columns.items()}
        mean, std = first_two(schema, columns)
        covariance = _correlations(schema, correlations) * np.outer(std, std)
        _complete(schema, covariance, mean)
        for i, one in enumerate(schema.features):  # features of one column exclude each other: E[zz'] = 0
            for j, other in enumerate(schema.features):
                if i != j and one.column == other.column:
                    covariance[i, j] = -mean[i] * mean[j]
        if np.linalg.eigvalsh(covariance).min() < -1e-9:
            raise ParameterError(
                "E262",
                "these standard deviations and correlations contradict each other: no table can have them.",
            )
        return cls(schema=schema, matrix=covariance + np.outer(mean, mean), columns=frozenset(columns))

    @classmethod
    def read(cls, schema: Schema, path: str | Path) -> PublicMoments | None:
        r"""Read the guesses in a schema file that was read before.

        Parameters
        ----------
        schema : Schema
            The columns of the same file.
        path : str or Path
            The schema file.

        Returns
        -------
        PublicMoments or None
            The moments; None where the file has no ``[planning]`` part.

        Raises
        ------
        ParameterError
            A word is unknown, or no table has these moments together (E262).

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import privcov as pc
        >>> from privcov.planning import PublicMoments
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.toml"
        >>> text = "[columns.age]\nlower = 0\nupper = 100\n[planning.columns.age]\nmean = 40\nstd = 10\n"
        >>> _ = path.write_text(text)
        >>> PublicMoments.read(pc.Schema.read(path), path).columns
        frozenset({'age'})
        """
        given = tomllib.loads(Path(path).read_bytes().decode("utf-8-sig")).get("planning")
        return None if given is None else cls.guessed(schema, given)


def _complete(schema: Schema, covariance: Floats, mean: Floats) -> None:
    """Give exhaustive levels that nothing is said of what the others leave: they add up to a constant."""
    for column in schema.exhaustive:
        own = np.array([feature.column == column.name for feature in schema.features])
        for place in np.flatnonzero(~own):
            here = covariance[own, place]
            rest = float(here.sum())
            free = (here == 0) * mean[own]
            if abs(rest) > 1e-9 * float(np.abs(here).max(initial=0.0)) and not free.sum() > 0:
                raise ParameterError(
                    "E262",
                    f"the correlations of the levels of {column.name} with {schema.features[place].name} contradict "
                    "each other: the levels add up to the intercept.",
                )
            if free.sum() > 0:
                here = here - rest * free / free.sum()
            covariance[own, place] = covariance[place, own] = here


def cautious(schema: Schema, moments: PublicMoments | None) -> tuple[Floats, Floats]:
    """Scaled means and standard deviations to promise with: those declared public, and else bad ones for noise.

    A mean at a bound has the most noise in a variance; a column that fills a fifth of its bounds has much in a
    correlation.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> [values.round(3).tolist() for values in cautious(schema, None)]
    [[1.0, 1.0], [0.0, 0.115]]
    """
    mean, std = first_two(schema, {})
    known = frozenset[str]() if moments is None else moments.columns
    for place, feature in enumerate(schema.features):
        if feature.kind == "intercept":
            continue
        if moments is not None and feature.column in known and schema.intercept:
            mean[place] = moments.matrix[0, place]
            std[place] = math.sqrt(max(float(moments.matrix[place, place]) - mean[place] ** 2, 0.0))
        elif feature.kind == "numeric":
            mean[place], std[place] = std[place] * math.sqrt(3), FILLED * std[place]
        else:
            mean[place], std[place] = 1.0, math.sqrt(FILLED) * std[place]
    return mean, std


def says_nothing(error: float, one: Feature, other: Feature | None = None) -> bool:
    """Whether an error is half of what bounds allow to a mean, or to the covariance of two columns, or more.

    Who knows the bounds alone, and takes the middle of what they allow, is off by no more.

    >>> columns = {"age": {"lower": 0, "upper": 100}, "temp": {"lower": -30, "upper": 30}}
    >>> _, age, temp = Schema.from_dict({"columns": columns}).features
    >>> says_nothing(49, age), says_nothing(665, temp), says_nothing(450, temp, temp), says_nothing(1500, age, temp)
    (False, True, True, True)
    """
    half = (one.upper - one.lower) / 2
    if other is None:
        return error >= half
    # A variance is between 0 and the square of half the width, a covariance between two such products.
    return error >= (half / 2 if other == one else half) * (other.upper - other.lower) / 2


def first_two(schema: Schema, columns: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Scaled mean and standard deviation of every feature; a column nothing is said of is spread evenly."""
    declared = {column.name: column for column in schema.columns}
    if strange := sorted(set(columns) - set(declared)):
        raise ParameterError(
            "E262", f"[planning.columns] names {strange[0]}, which the schema does not have."
        )
    mean, std = [], []
    for feature in schema.features:
        if feature.kind == "intercept":
            mean.append(1.0)
            std.append(0.0)
            continue
        about = columns.get(feature.column)
        column = declared[feature.column]
        if isinstance(column, Categorical):
            share = _share(column, about, feature)
            mean.append(share)
            std.append(math.sqrt(share * (1 - share)))
        elif feature.kind == "missing":
            share = _missing_share(column, about)
            mean.append(share)
            std.append(math.sqrt(share * (1 - share)))
        else:
            centre, spread = _centre_and_spread(column, about)
            if column.name == schema.weight:  # the mean over what rows count as, Σu² / Σu, and not over rows
                centre = ((centre + 0.5) ** 2 + spread**2) / (centre + 0.5) - 0.5
                centre, spread = (
                    min(centre, 0.5),
                    min(spread, math.sqrt(max(0.0, 0.25 - min(centre, 0.5) ** 2))),
                )
            present = 1 - _missing_share(column, about) if column.indicator else 1.0
            mean.append(present * centre)  # a missing cell counts as 0
            std.append(math.sqrt(present * (spread**2 + centre**2) - (present * centre) ** 2))
    return np.array(mean), np.array(std)


def _centre_and_spread(column: Numeric, about: Any) -> tuple[float, float]:
    """Scaled mean and standard deviation of the cells that are there."""
    if about is None:
        return 0.0, column.reach / math.sqrt(3)
    where = f"[planning.columns.{column.name}]"
    _only(about, {"mean", "std"} | ({"missing"} if column.indicator else set()), where)
    centre, spread = _number(about.get("mean"), where), _number(about.get("std"), where)
    if not column.lower <= centre <= column.upper or not spread > 0:
        raise ParameterError("E262", f"{where}: mean must lie within the bounds and std above 0.")
    unit = column.half_width / column.reach
    return (centre - column.middle) / unit, spread / unit


def _missing_share(column: Column, about: Any, *, otherwise: float = 0.1) -> float:
    """The share of missing cells, where a column has an indicator of them; one in ten if nothing is said."""
    where = f"[planning.columns.{column.name}]"
    share = otherwise if about is None or "missing" not in about else _number(about["missing"], where)
    if not 0 <= share < 1:
        raise ParameterError("E262", f"{where}: missing must be a share from 0 to below 1.")
    return share


def _share(column: Categorical, about: Any, feature: Feature) -> float:
    if about is None:  # beside a single level there are cells that match none, or it would not vary
        return 1 / max(2, column.width)
    where = f"[planning.columns.{column.name}]"
    _only(about, {"shares"} | ({"missing"} if column.indicator else set()), where)
    shares = about.get("shares")
    if not isinstance(shares, list) or len(shares) != len(column.levels):
        raise ParameterError(
            "E262", f"{where}: shares must be {len(column.levels)} numbers, one for each level."
        )
    numbers = [_number(share, where) for share in shares]
    rest = max(0.0, 1 - sum(numbers))
    if column.exhaustive and not column.indicator and rest > 0:
        named = column.fill if column.otherwise is None else column.otherwise
        if named is not None:  # what is not said of a level counts as this one
            numbers[column.levels.index(named)] += rest
        elif rest < 1:  # other cells empty their rows
            numbers = [share / (1 - rest) for share in numbers]
    missing = _missing_share(column, about, otherwise=rest) if column.indicator else 0.0
    if min(numbers) < 0 or sum(numbers) + missing > 1 + 1e-9:
        raise ParameterError("E262", f"{where}: shares must be at least 0 and add up to at most 1.")
    return missing if feature.level is None else numbers[column.levels.index(feature.level)]


def _correlations(schema: Schema, given: Mapping[str, Any]) -> Floats:
    names = [feature.name for feature in schema.features]
    matrix = np.eye(len(names))
    for pair, value in given.items():
        where = f"[planning.correlations] {brief(pair)!r}"
        try:
            ends = split_names(pair)
        except InputError:
            ends = []
        if len(ends) != 2 or not set(ends) <= set(names) or ends[0] == ends[1]:
            raise ParameterError(
                "E262",
                f"{where} must name two columns of the release, as in 'age, income'.",
                "Put a name with a comma between backticks: '`last, first`, income'.",
            )
        number = _number(value, where)
        if not -1 <= number <= 1:
            raise ParameterError("E262", f"{where} must be between -1 and 1, got {brief(value)}.")
        i, j = names.index(ends[0]), names.index(ends[1])
        matrix[i, j] = matrix[j, i] = number
    return matrix


def _only(given: Any, allowed: set[str], where: str) -> None:
    if not isinstance(given, Mapping) or set(given) - allowed:
        raise ParameterError("E262", f"{where} may hold only {' and '.join(sorted(allowed))}.")


def _number(value: Any, where: str) -> float:
    try:
        return float(exact(value))
    except (ValueError, TypeError):
        raise ParameterError("E262", f"{where}: {brief(value)!r} is not a number.") from None
