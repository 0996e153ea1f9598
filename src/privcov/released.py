"""The public result: a noisy matrix, what its rows and columns mean, and the promise it was made under.

Everything here is post-processing of a release: free, repeatable, and blind to the data. The sum over rows
M = Σ zzᵀ of the scaled rows z comes raw (unbiased, what intervals need) or repaired (a valid moment matrix).
Units: with x = middle + half_width · z the moments of the original columns are S M Sᵀ for a public S; see
docs/explain/units.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov import codec, files
from privcov.certificate import Certificate
from privcov.documents import to_text
from privcov.errors import OutputError, ParameterError
from privcov.grid import Grid
from privcov.repair import Observed, Structure, repair
from privcov.repair.lawless import repair_without_law
from privcov.schema import Categorical, Schema
from privcov.signing import PrivateKey, PublicKey
from privcov.sketch import Sketch, ridge_of

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Release:
    """A differentially private second-moment matrix and its certificate."""

    schema: Schema
    rows: int | None
    """The number of rows where it is public (replace-one); None under add-remove."""
    upper: tuple[int, ...]
    """The noisy integers of the upper triangle, in units of the grid."""
    certificate: Certificate
    sketch: Sketch | None = None
    """Published rows in units of the row grid 2^-k, where the mechanism makes rows; the matrix follows."""
    signer: PublicKey | None = field(default=None, init=False, compare=False)
    """The key whose signature ``load`` found to hold; None for a release that was made here, or not signed."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the rows and columns of the matrix."""
        return tuple(feature.name for feature in self.schema.features)

    def second_moment(self, *, raw: bool = False, scaled: bool = False, repair: str = "auto") -> Matrix:
        """The sum over rows of zzᵀ. ``raw``: unrepaired and unbiased; ``scaled``: in [-1, 1] units."""
        moment = self._raw if raw else self._repaired(repair)
        return moment.copy() if scaled else self._in_original_units(moment)

    def sketched_rows(self, *, scaled: bool = False) -> Matrix:
        """The synthetic rows of a release by sketch, one a row of the result; no row is a person.

        Each is a draw of N(0, M + w²I), M the sum over people of zzᵀ: their mean square less the ridge is the
        raw second moment. ``scaled``: in [-1, 1] units, else carried to original units like a person's row.
        """
        rows = np.array(self._sketch, dtype=np.float64) * 2.0 ** -Grid.of(self.schema).exponent
        return rows if scaled else rows @ self.units.T

    @property
    def sketch_ridge(self) -> float:
        """The w² of the sketch in scaled units: what its rows have more than people in every direction."""
        return float(ridge_of(self._sketch, self.upper) * Grid.of(self.schema).unit)

    def count(self, *, repair: str = "auto") -> float:
        """The number of rows: exact where it is public, else the noisy count the intercept carries."""
        if not self.schema.intercept:
            if self.rows is None:
                raise _needs_intercept("the count")
            return float(self.rows)
        return max(1.0, float(self._repaired(repair)[0, 0]))

    def mean(self, *, scaled: bool = False, repair: str = "auto") -> NDArray[np.float64]:
        """The mean of every column but the intercept."""
        if not self.schema.intercept:
            raise _needs_intercept("the mean")
        moment = self.second_moment(scaled=scaled, repair=repair)
        return moment[0, 1:] / self.count(repair=repair)

    def covariance(self, *, scaled: bool = False, repair: str = "auto") -> Matrix:
        """The centred covariance of every column but the intercept, divided by rows − 1."""
        if not self.schema.intercept:
            raise _needs_intercept("the covariance")
        moment, count = self.second_moment(scaled=scaled, repair=repair), self.count(repair=repair)
        centred = moment[1:, 1:] - np.outer(moment[0, 1:], moment[0, 1:]) / count
        return centred / max(1.0, count - 1)

    def correlation(self, *, repair: str = "auto") -> Matrix:
        """Correlations in [-1, 1]; NaN where the release leaves a column no variance."""
        covariance = self.covariance(scaled=True, repair=repair)
        variance = np.diag(covariance)
        known = variance > 1e-12 * max(1.0, float(variance.max(initial=0.0)))
        std = np.where(known, np.sqrt(np.abs(variance)), np.nan)
        correlation = np.clip(covariance / np.outer(std, std), -1.0, 1.0)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """The release as the JSON values of its file, signed where a key is given."""
        return codec.encode(self.schema, self.rows, self.upper, self.sketch, self.certificate, key=key)

    def to_json(self, *, key: PrivateKey | None = None) -> str:
        """The canonical text of the release file, signed where a key is given; a rehearsal has none."""
        if self.certificate.randomness != "kernel":
            raise OutputError(
                "E402", "a rehearsal is not a release: its noise can be repeated.", "Release without a seed."
            )
        return to_text(self.to_dict(key=key))

    def save(self, path: str | Path, *, key: PrivateKey | None = None, force: bool = False) -> None:
        """Write the release file, whole or not at all. Without a key it is unsigned, even if it was loaded signed."""
        files.write(path, self.to_json(key=key), force=force)

    def __repr__(self) -> str:
        rows = "private" if self.rows is None else self.rows
        return (
            f"<Release of {len(self.columns)} columns, {rows} rows: "
            f"{self.certificate.mechanism}, {self.certificate.loss}>"
        )

    @cached_property
    def _raw(self) -> Matrix:
        d, unit = len(self.columns), float(Grid.of(self.schema).unit)
        matrix = np.zeros((d, d))
        matrix[np.triu_indices(d)] = [value * unit for value in self.upper]
        return matrix + np.triu(matrix, 1).T

    @cached_property
    def _repairs(self) -> dict[str, Matrix]:
        return {}

    def _repaired(self, method: str) -> Matrix:
        if method not in self._repairs:
            self._repairs[method] = self._repair(method)
        return self._repairs[method]

    def _repair(self, method: str) -> Matrix:
        law, bound = self.certificate.law, float(self.schema.squared_norm_bound)
        if law is None:
            return repair_without_law(
                self._raw, rows=self.rows, squared_norm_bound=bound, structure=self.structure, method=method
            )
        observed = Observed(
            matrix=self._raw, law=law, rows=self.rows, squared_norm_bound=bound, structure=self.structure
        )
        return repair(observed, method=method)

    @cached_property
    def structure(self) -> Structure:
        """What the schema makes certain about the matrix: levels that exclude each other, a public count."""
        places: dict[str, list[int]] = {}
        for place, feature in enumerate(self.schema.features):
            places.setdefault(feature.column, []).append(place)
        every_row_counts = self.schema.keeps_indicators and self.schema.missing == "midpoint"
        return Structure.one_hot(
            dimension=self.schema.dimension,
            groups=[places[c.name] for c in self.schema.columns if isinstance(c, Categorical)],
            intercept=0 if self.schema.intercept else None,
            rows=self.rows if every_row_counts else None,
        )

    @property
    def units(self) -> Matrix:
        """The public S that carries a scaled row z to original units: x = Sz, with the intercept's help."""
        features = self.schema.features
        scale = np.diag([feature.half_width for feature in features])
        middles = np.array([feature.middle for feature in features])
        if self.schema.intercept:
            scale[:, 0] += middles
        elif middles.any():
            raise _needs_intercept("a moment in original units")
        return scale

    def _in_original_units(self, moment: Matrix) -> Matrix:
        return self.units @ moment @ self.units.T

    @property
    def _sketch(self) -> Sketch:
        if self.sketch is None:
            raise ParameterError(
                "E210",
                f"a release by {self.certificate.mechanism} has no sketched rows.",
                "Release with the mechanism johnson-lindenstrauss.",
            )
        return self.sketch


def load(path: str | Path, *, signed_by: PublicKey | None = None) -> Release:
    """A release from its file, after strict validation; with ``signed_by``, only one that this key signed.

    A signature that does not hold is refused, and so is one that cannot be checked for want of the extra
    ``sign``.
    """
    parts, signer = codec.read(path, signed_by=signed_by)
    release = assembled(parts)
    object.__setattr__(release, "signer", signer)  # no argument: a copy with other contents has no signer
    return release


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
