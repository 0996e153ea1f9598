"""The public result: a noisy matrix, what its rows and columns mean, and the promise it was made under.

Everything here is post-processing of a release: free, repeatable, and blind to the data. The sum over rows
M = Σ zzᵀ of the scaled rows z comes raw (unbiased, what intervals need) or repaired (a valid moment matrix).
Units: with x = middle + unit · z the moments of the original columns are S M Sᵀ for a public S; see
docs/explain/units.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError, ReleaseError
from privcov.linalg.arrays import Floats, Matrix
from privcov.linalg.mixing import Mixing
from privcov.linalg.triangle import symmetric
from privcov.noise.composed import Congruent
from privcov.noise.laws import NoiseLaw
from privcov.releases import codec
from privcov.releases.certificate import TOTAL, Certificate, Round
from privcov.releases.documents import Written
from privcov.releases.means import Calibration, Means, cut_deviations
from privcov.releases.rounds import Norms, usual_variances
from privcov.releases.signing import PrivateKey, PublicKey
from privcov.releases.sketch import Sketch, ridge_of
from privcov.releases.triangle import Triangle
from privcov.repair import MOST_REHEARSED, Observed, Structure, Usual, repair, repair_without_law
from privcov.schema import Categorical, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.schema.recovery import recovery, scaled_corners
from privcov.text.display import Shown


@dataclass(frozen=True, kw_only=True)
class Release(Written, Shown):
    """A differentially private second-moment matrix and its certificate.

    Everything it answers is computed from the noisy matrix alone, so it costs no further privacy. Numbers are
    in the original units of the columns, or with ``scaled=True`` in scaled units, where a column runs from -1
    to 1. Made by ``privcov.release`` and ``privcov.load``.

    Attributes
    ----------
    schema : Schema
        The public facts about the table: columns, bounds and rules.
    rows : int or None
        The number of rows where it is public (replace-one, one row per person). None where it is private.
    upper : tuple of int, or Triangle
        The noisy integers of the upper triangle, row by row, in units of the grid. Wide releases hold machine
        words.
    certificate : Certificate
        What was promised, and how the noise was made.
    sketch : Sketch or None
        The published rows, where the mechanism makes rows. Then the matrix follows from them.
    signer : PublicKey or None
        The key whose signature ``load`` checked. None for a release that was made here, or is not signed.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> schema = pc.Schema.from_dict({"columns": bounds})
    >>> release = pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> release.columns, release.rows, release.count()
    (('(Intercept)', 'dose', 'effect'), 4000, 4000.0)
    >>> release.mean().round()
    array([ 5., 10.])
    >>> release.correlation().round(1)
    array([[1., 1.],
           [1., 1.]])
    >>> release.second_moment().shape, release.units.tolist(), release.structure.dimension
    ((3, 3), [[1.0, 0.0, 0.0], [5.0, 5.0, 0.0], [10.0, 0.0, 10.0]], 3)
    >>> release.law == release.certificate.law, release.counted_rows
    (True, 4000)
    >>> release.weight_sum, release.row_weight
    (None, 1.0)
    >>> release.calibration is None, release.as_added is release
    (True, True)
    """

    schema: Schema
    rows: int | None
    upper: tuple[int, ...] | Triangle
    certificate: Certificate
    sketch: Sketch | None = None
    signer: PublicKey | None = field(default=None, init=False, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows and columns of the matrix, the intercept first."""
        return tuple(feature.name for feature in self.schema.features)

    def second_moment(self, *, raw: bool = False, scaled: bool = False, repair: str = "auto") -> Matrix:
        """Return the sum over rows of zzᵀ, where z is one row of the table.

        Parameters
        ----------
        raw : bool, default False
            Whether to leave the matrix unrepaired: unbiased, but perhaps not a moment matrix of any table.
        scaled : bool, default False
            Whether to answer in scaled units, where a column runs from -1 to 1, instead of original units.
        repair : str, default "auto"
            How the noisy matrix is turned into a valid moment matrix: a name of ``privcov.repair.METHODS``.
            Not read with ``raw=True``.

        Returns
        -------
        ndarray of shape (d, d)
            Sums of products, in products of the columns' units.

        Raises
        ------
        ParameterError
            Original units are asked for and the release has no intercept (E210), or there is no such repair
            (E272).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=9, neighbours="replace-one")
        >>> release = pc.release(np.full((1000, 1), 80.0), schema=schema, loss=loss)
        >>> release.second_moment(scaled=True).round(-2)
        array([[1000.,  600.],
               [ 600.,  400.]])
        """
        moment = self._raw if raw else self._repaired(repair)
        return moment.copy() if scaled else self._in_original_units(moment)

    def sketched_rows(self, *, scaled: bool = False) -> Matrix:
        """Return the synthetic rows of a release by sketch. No row is a person.

        Each row is a draw of N(0, M + w²I), where M is the sum over people of zzᵀ. Their mean square, less the
        ridge w², is the raw second moment.

        Parameters
        ----------
        scaled : bool, default False
            Whether to answer in scaled units instead of original units.

        Returns
        -------
        ndarray of shape (r, d)
            One synthetic row per line.

        Raises
        ------
        ParameterError
            The mechanism makes no rows, or original units need an intercept (E210).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
        >>> release = pc.release(np.ones((9, 1)), schema=schema, loss=loss, mechanism="johnson-lindenstrauss")
        >>> release.sketched_rows().shape[1], release.sketch_ridge > 0
        (2, True)
        """
        rows = np.array(self._sketch, dtype=np.float64) * 2.0 ** -Grid.of(self.schema).exponent
        if self._recovery is not None:
            rows = self._recovery.rows(rows.T).T
        return rows if scaled else rows @ self.units.T

    @property
    def sketch_ridge(self) -> float:
        """The w² of the sketch, in scaled units. It is what its rows have more than people, in every direction.

        An error (E210) where the mechanism makes no rows.
        """
        return float(ridge_of(self._sketch, self.upper) * Grid.of(self.schema).unit)

    def count(self, *, repair: str = "auto") -> float:
        """Return the number of rows: exact where it is public, else a noisy count.

        Of weighted rows it is the noisy sum of what they count as, in units of the largest weight; ``weight_sum`` is
        the same in units of the weights.

        Parameters
        ----------
        repair : str, default "auto"
            The repair whose first entry is the noisy count: a name of ``privcov.repair.METHODS``.

        Returns
        -------
        float
            Rows, or rows of the largest weight; at least 1 where it is noisy.

        Raises
        ------
        ParameterError
            The number is private and the release has no intercept to carry it (E210).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=9, neighbours="add-remove")
        >>> release = pc.release(np.full((1000, 1), 80.0), schema=schema, loss=loss)
        >>> release.rows is None, bool(950 < release.count() < 1050)
        (True, True)
        """
        if not self.schema.intercept and self.rows is None:
            raise _needs_intercept("the count")
        if self.rows is not None and (
            not self.schema.intercept or (self._is_bare and self._every_row_counts)
        ):
            return float(self.rows)
        return max(1.0, float(self._summed(repair)[0, 0]))  # the intercept is summed as it is told

    @property
    def weight_sum(self) -> float | None:
        """The noisy sum of the weights, in their own units; None where rows are not weighted.

        With a power below 1 it is the sum of the weights that were evened out, of which the largest stays as it is.
        """
        largest = self.schema.largest_weight
        return None if largest is None else largest * self.count()

    @cached_property
    def row_weight(self) -> float:
        """What a row counts as, on an average over what rows count as, in units of the largest weight; from noisy sums.

        It is Σu² / Σu, so that ``count() / row_weight`` is the effective number of rows, (Σu)² / Σu² (Kish), and 1
        where rows are not weighted.
        """
        if self.schema.weight is None:
            return 1.0
        row = self._raw[0]
        sums, place = max(1.0, float(row[0])), self.columns.index(self.schema.weight)
        least = 1e-6 if self.rows is None else min(1.0, max(1e-6, sums / self.rows))  # Σu² ≥ (Σu)²/n
        return min(1.0, max(least, float(row[place]) / sums + 0.5))

    def mean(self, *, scaled: bool = False, repair: str = "auto") -> NDArray[np.float64]:
        """Return the mean of every column but the intercept.

        In a private frame the means of shortened rows are combined with those of the round "means", which keeps the
        tails of columns. Where a mechanism has less noise on sums than on products, means are not repaired, but
        clipped to the bounds. Of numeric columns no mean is outside of them, unless a repair is named.

        Parameters
        ----------
        scaled : bool, default False
            Whether to answer in scaled units instead of original units.
        repair : str, default "auto"
            The repair that the means are taken from: a name of ``privcov.repair.METHODS``. Any but "auto" leaves the
            round "means" out.

        Returns
        -------
        ndarray of shape (d - 1,)
            One mean per column, in the order of ``columns``.

        Raises
        ------
        ParameterError
            The release has no intercept (E210), or there is no such repair (E272).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=9, neighbours="replace-one")
        >>> release = pc.release(np.full((4000, 1), 80.0), schema=schema, loss=loss)
        >>> release.mean().round(), release.mean(scaled=True).round(1)
        (array([80.]), array([0.6]))
        """
        if not self.schema.intercept:
            raise _needs_intercept("the mean")
        if repair != "auto" or not (self._asked_means or self._sums_are_spared):
            means = self.second_moment(scaled=scaled, repair=repair)[0, 1:] / self.count(repair=repair)
            return self._clipped(means, scaled=scaled) if repair == "auto" else means
        values = self._means.values
        units, middles = self._scales
        return (values - middles[1:]) / units[1:] if scaled else values.copy()

    def _clipped(self, means: NDArray[np.float64], *, scaled: bool) -> NDArray[np.float64]:
        """Means of numeric columns within their bounds; those of levels as they are, since they may add up to one."""
        features = self.schema.features[1:]
        numeric = np.array([feature.kind == "numeric" for feature in features])
        lower, upper = np.array([(feature.lower, feature.upper) for feature in features]).T
        if scaled:
            units, middles = self._scales
            lower, upper = (lower - middles[1:]) / units[1:], (upper - middles[1:]) / units[1:]
        return np.where(numeric, np.clip(means, lower, upper), means)

    @property
    def _asked_means(self) -> list[Round]:
        return [one for one in self.certificate.rounds if one.name == "means"]

    @property
    def _sums_are_spared(self) -> bool:
        """Whether sums have less noise than products: then repair, which knows one size of noise, makes them worse."""
        law = self.certificate.law
        return law is not None and law.sums_variance < law.offdiagonal_variance

    @cached_property
    def _means(self) -> Means:
        """Means with their errors, in original units; for a mechanism whose noise has a law."""
        law = self._law_of_rows
        assert law is not None
        count, (units, middles) = self.count(), self._scales
        moment = self._of_rows(self._summed("auto"))
        sums = (self._of_rows(self._released) if self._sums_are_spared else moment)[0, 1:]
        values = middles[1:] + units[1:] * (sums / count)
        if self._sums_are_spared:
            lower, upper = np.array(
                [(feature.lower, feature.upper) for feature in self.schema.features[1:]]
            ).T
            values = np.clip(values, lower, upper)
        found = Means.of_matrix(values, schema=self.schema, law=law, count=count)
        spreads = units[1:] * np.sqrt(np.maximum(self._variances_of_rows, 0.0))
        for one in self._asked_means:
            first = one is self.certificate.rounds[0]
            found = found.with_round(one, schema=self.schema, count=count, spreads=spreads, around=first)
        return found

    def covariance(self, *, scaled: bool = False, repair: str = "auto") -> Matrix:
        """Return the centred covariance of every column but the intercept, divided by rows − 1.

        Of weighted rows: divided by Σu − Σu² / Σu, where u is what a row counts as.

        Parameters
        ----------
        scaled : bool, default False
            Whether to answer in scaled units instead of original units.
        repair : str, default "auto"
            The repair that the covariance is taken from: a name of ``privcov.repair.METHODS``.

        Returns
        -------
        ndarray of shape (d - 1, d - 1)
            Covariances, in products of the columns' units. Positive semi-definite, unless ``repair="none"``.

        Raises
        ------
        ParameterError
            The release has no intercept (E210), or there is no such repair (E272).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"dose": {"lower": -1, "upper": 1}}})
        >>> loss = pc.PureDP(epsilon=9, neighbours="replace-one")
        >>> release = pc.release(np.linspace(-1, 1, 4000)[:, None], schema=schema, loss=loss)
        >>> release.covariance().round(1)
        array([[0.3]])
        """
        if not self.schema.intercept:
            raise _needs_intercept("the covariance")
        moment, count = self.second_moment(scaled=scaled, repair=repair), self.count(repair=repair)
        return self._centred(moment, count)

    def _centred(self, moment: Matrix, count: float) -> Matrix:
        centred = moment[1:, 1:] - np.outer(moment[0, 1:], moment[0, 1:]) / count
        return np.asarray(centred / max(1.0, count - self.row_weight))

    def correlation(self, *, repair: str = "auto") -> Matrix:
        """Return the correlations of every column but the intercept.

        Parameters
        ----------
        repair : str, default "auto"
            The repair that the correlations are taken from: a name of ``privcov.repair.METHODS``.

        Returns
        -------
        ndarray of shape (d - 1, d - 1)
            Correlations in [-1, 1]. NaN where the release leaves a column no variance.

        Raises
        ------
        ParameterError
            The release has no intercept (E210), or there is no such repair (E272).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {name: {"lower": -1, "upper": 1} for name in "ab"}})
        >>> line = np.linspace(-1, 1, 4000)
        >>> loss = pc.PureDP(epsilon=9, neighbours="replace-one")
        >>> pc.release(np.stack([line, -line], axis=1), schema=schema, loss=loss).correlation().round(1)
        array([[ 1., -1.],
               [-1.,  1.]])
        """
        covariance = self.covariance(scaled=True, repair=repair)
        variance = np.diag(covariance)
        known = variance > 1e-12 * max(1.0, float(variance.max(initial=0.0)))
        std = np.where(known, np.sqrt(np.abs(variance)), np.nan)
        correlation = np.clip(covariance / np.outer(std, std), -1.0, 1.0)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """Return the release as the JSON values of its file.

        Parameters
        ----------
        key : PrivateKey, optional
            The key to sign with. Without one the document carries a digest, and no signature.

        Returns
        -------
        dict
            The document: format, columns, scaling, rows, matrix, certificate and signature.

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss).to_dict()["format"]
        'privcov/release/1'
        """
        return codec.encode(self.schema, self.rows, self.upper, self.sketch, self.certificate, key=key)

    def _check_may_leave(self) -> None:
        options = self.certificate.options
        if options.get("stratum") == TOTAL or "combined" in options:
            raise ReleaseError(
                "E614",
                "a total over strata, or a stratum combined with one, has no file of its own.",
                "Save the whole stratified release: the file holds what it is computed from.",
            )
        super()._check_may_leave()

    def _after_text(self) -> Iterator[bytes | memoryview]:
        return self.upper.pieces() if isinstance(self.upper, Triangle) else iter(())

    def __repr__(self) -> str:
        rows = "private" if self.rows is None else self.rows
        return (
            f"<Release of {len(self.columns)} columns, {rows} rows: "
            f"{self.certificate.mechanism}, {self.certificate.loss}>"
        )

    @cached_property
    def law(self) -> NoiseLaw | None:
        """The law of the noise on the scaled matrix, that of the certificate seen in the columns of this release.

        None for a mechanism that does not add noise.
        """
        law = self.certificate.law
        return law if law is None or self._recovery is None else Congruent.of(law, self._recovery)

    @cached_property
    def _law_of_rows(self) -> NoiseLaw | None:
        """The same for rows as they were added up, before they are calibrated."""
        law, through = self.certificate.law, recovery(self.schema)
        return law if law is None or through is None else Congruent.of(law, through)

    @cached_property
    def _recovery(self) -> Mixing | None:
        """What takes the columns that were summed to those of this release; None where they are the same."""
        found = self.calibration
        if found is None:
            return recovery(self.schema)
        return recovery(self.schema, factors=found.factors, shifts=found.shifts)

    @cached_property
    def calibration(self) -> Calibration | None:
        """What gives shortened columns the means and deviations that rounds found; None without a round for that."""
        asked = {one.name: one for one in self.certificate.rounds}
        law, places = self._law_of_rows, np.array(self.schema.numbers) - 1
        if law is None or "squares" not in asked or "means" not in asked:
            return None
        norms, count, (units, middles) = Norms.of(self), self.count(), self._scales
        units, middles = units[1:][places], middles[1:][places]
        moment = self._of_rows(self._summed("auto"))
        logs, doubts = cut_deviations(
            self._centred(moment, count)[np.ix_(places, places)],
            np.sqrt(np.diag(law.entry_variances)[1:][places]) / count,
            rounds=(asked["squares"], asked["means"]),
            units=units,
            count=count,
            most=norms.lost,
        )
        factors = np.exp(np.clip(logs, -1.0, 8.0))
        means, rows = self._means, moment[0, 1:][places] / count
        return Calibration(
            factors=factors,
            shifts=(means.values[places] - middles) / units - factors * rows,
            doubts=doubts,
            mean_doubts=means.stds[places] / units,
            bias=norms.bias,
        )

    @property
    def as_added(self) -> Release:
        """The same release of rows as they were added up, shortened and not calibrated."""
        if self.calibration is None:
            return self
        rounds = tuple(one for one in self.certificate.rounds if one.name != "squares")
        return replace(self, certificate=replace(self.certificate, rounds=rounds))

    @cached_property
    def _variances_of_rows(self) -> NDArray[np.float64]:
        """The variances of the columns of rows as they were added up, in scaled units."""
        return np.diag(self._centred(self._of_rows(self._summed("auto")), self.count()))

    def _of_rows(self, moment: Matrix) -> Matrix:
        """The matrix of the columns of this release for rows as they were added up, before they are calibrated."""
        through = recovery(self.schema)
        return moment if through is None else through.seen(moment)

    @cached_property
    def _raw(self) -> Matrix:
        return self._recovered(self._released)

    @cached_property
    def _released(self) -> Matrix:
        """The matrix as it was released, of the columns that were summed."""
        d, unit = self.schema.summed_dimension, float(Grid.of(self.schema).unit)
        if isinstance(self.upper, Triangle):
            return np.asarray(symmetric(self.upper.floats(unit), d))
        return np.asarray(symmetric(np.array([value * unit for value in self.upper]), d))

    def _recovered(self, moment: Matrix) -> Matrix:
        """The matrix of the scaled columns behind one of the columns that were summed: T M Tᵀ."""
        return moment if self._recovery is None else self._recovery.seen(moment)

    def informed_moment(self) -> Matrix:
        """Return the raw matrix with the entries put in that the schema makes certain, such as a public count.

        Returns
        -------
        ndarray of shape (d, d)
            Sums of products in scaled units: unbiased, and not repaired. Its noise is that of ``law``, without the
            entries ``structure.fixed`` of the columns that were summed.

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> float(pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss).informed_moment()[0, 0])
        9.0
        """
        moment = self._released.copy()
        for (i, j), value in zip(self.structure.fixed, self.structure.values, strict=True):
            moment[i, j] = moment[j, i] = value
        return self._recovered(moment)

    @cached_property
    def _repairs(self) -> dict[str, Matrix]:
        return {}

    def _repaired(self, method: str) -> Matrix:
        return self._recovered(self._summed(method))

    def _summed(self, method: str) -> Matrix:
        """The repaired matrix, of the columns that were summed."""
        if method not in self._repairs:
            self._repairs[method] = self._repair(method)
        return self._repairs[method]

    def _repair(self, method: str) -> Matrix:
        law, bound = self.certificate.law, float(self.schema.squared_norm_bound)
        structure = None if self._is_bare else self.structure
        if law is None:
            return repair_without_law(
                self._released, rows=self.rows, squared_norm_bound=bound, structure=structure, method=method
            )
        # As it was released: there the noise has its law, and the row norm its bound.
        observed = Observed(
            matrix=self._released,
            law=law,
            rows=self.rows,
            squared_norm_bound=bound,
            structure=structure,
            usual=self._usual,
            reaches=self._reaches,
        )
        return repair(observed, method=method)

    @property
    def _usual(self) -> Usual | None:
        """What numeric columns are like: as their bounds or a chosen row norm guess, or as the rounds of a frame tell.

        None where nothing guesses it: about a declared centre, in rows shortened as declared, or with a shape.
        """
        schema, missing = self.schema, {place - 1 for place in self.schema.number_indicators}
        if not schema.intercept or self._is_bare or schema.shape is not None:
            return None
        numbers = {
            at: schema.summed[at]
            for at in schema.summed_numbers
            if at not in missing and schema.summed[at].column != schema.weight
        }
        if self.certificate.rounds:
            columns = {column.name: column for column in schema.columns if isinstance(column, Numeric)}
            return usual_variances(self, {at: columns[one.column] for at, one in numbers.items()})
        places = tuple(at for at, one in numbers.items() if one.unit == one.half_width)
        if not places or schema.row_norm_bound is None:
            return Usual.within_bounds(places) if places else None
        chosen = self.certificate.options.get("row_norm") == "private" and schema.keeps_indicators
        room = float(schema.squared_norm_bound - schema.fixed_squared_norm)
        return Usual.within_bounds(places, room=room) if chosen else None

    @property
    def _reaches(self) -> Floats | None:
        """How far each column that is summed can be from zero, where its bounds tell it; None where no column has any.

        A number with an indicator of missing cells is tied to that, and the shape of a frame mixes numbers.
        """
        schema, missing = self.schema, {place - 1 for place in self.schema.number_indicators}
        if not schema.intercept or self._is_bare or schema.shape is not None:
            return None
        reaches = np.full(schema.summed_dimension, np.inf)
        for place in set(schema.summed_numbers) - missing:
            reaches[place] = schema.summed[place].reach
        return reaches

    @property
    def _is_bare(self) -> bool:
        """Whether repair leaves the public structure out: each of its rounds decomposes the matrix once more."""
        return self.schema.summed_dimension > MOST_REHEARSED

    @property
    def counted_rows(self) -> int | None:
        """How many rows the sums are of, where it is public; None also where rows that lack a cell count as zeros."""
        return self.rows if self._every_row_counts or not self.schema.intercept else None

    @property
    def _every_row_counts(self) -> bool:
        """Whether the first entry of the sum is the number of rows, whatever the rows say."""
        schema = self.schema
        return schema.keeps_indicators and not schema.empties_rows and schema.weight is None

    @cached_property
    def structure(self) -> Structure:
        """What the schema makes certain about the matrix that was summed, such as features that exclude each other.

        Its columns are those of the release, but for the coordinates of levels that add up to the intercept. All of it
        is about the intercept and indicators, but for numeric columns that are zero where they are missing. The shape
        of a frame mixes these, and leaves them out here.
        """
        schema = self.schema
        places: dict[str, list[int]] = {}
        for place, feature in enumerate(schema.summed):
            places.setdefault(feature.column, []).append(place)
        return Structure.one_hot(
            dimension=schema.summed_dimension,
            groups=[
                *(places[c.name] for c in schema.columns if isinstance(c, Categorical) and not c.exhaustive),
                *([place] for place in schema.number_indicators),
            ],
            apart=[(place - 1, place) for place in schema.number_indicators] if schema.shape is None else [],
            simplices=[(places[column.name], corner) for column, corner in scaled_corners(schema)],
            intercept=0 if schema.intercept else None,
            rows=self.rows if self._every_row_counts else None,
        )

    @property
    def units(self) -> Matrix:
        """The public matrix S that carries a scaled row z to original units, x = Sz.

        The intercept adds the middles of the bounds. An error (E210) where there is none and a column is not
        centred at zero.
        """
        units, middles = self._scales
        scale = np.diag(units)
        scale[:, 0] += middles
        return scale

    @property
    def _scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scaled units and middles, of columns that have original units."""
        features = self.schema.features
        middles = np.array([feature.middle for feature in features])
        if middles.any() and not self.schema.intercept:
            raise _needs_intercept("a moment in original units")
        return np.array([feature.unit for feature in features]), middles

    def _in_original_units(self, moment: Matrix) -> Matrix:
        """S M Sᵀ with S = diag(h) + m e₀ᵀ, entry by entry: two products of wide matrices would take minutes."""
        units, middles = self._scales
        made = np.outer(units, units)
        made *= moment
        if middles.any():
            shift = units * moment[0] + middles * (moment[0, 0] / 2)
            made += np.outer(middles, shift) + np.outer(shift, middles)
        return made

    @property
    def _sketch(self) -> Sketch:
        if self.sketch is None:
            raise ParameterError(
                "E210",
                f"a release by {self.certificate.mechanism} has no sketched rows.",
                "Release with the mechanism johnson-lindenstrauss.",
            )
        return self.sketch


def assembled(parts: codec.Parts) -> Release:
    """The release that the parts of a file make."""
    schema, rows, upper, sketch, certificate = parts
    return Release(schema=schema, rows=rows, upper=upper, sketch=sketch, certificate=certificate)


def _needs_intercept(what: str) -> ParameterError:
    return ParameterError(
        "E210",
        f"{what} needs a release with an intercept.",
        "Release again with intercept = true in the schema.",
    )
