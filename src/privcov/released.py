"""The public result: a noisy matrix, what its rows and columns mean, and the promise it was made under.

Everything here is post-processing of a release: free, repeatable, and blind to the data. The sum over rows
M = Σ zzᵀ of the scaled rows z comes raw (unbiased, what intervals need) or repaired (a valid moment matrix).
Units: with x = middle + half_width · z the moments of the original columns are S M Sᵀ for a public S; see
docs/explain/units.md.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from privcov.repair import MOST_REHEARSED, Observed, Structure, repair
from privcov.repair.lawless import repair_without_law
from privcov.schema import Categorical, Schema
from privcov.shown import Shown
from privcov.signing import PrivateKey, PublicKey
from privcov.sketch import Sketch, ridge_of
from privcov.triangle import Triangle, symmetric

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Release(Shown):
    """A differentially private second-moment matrix and its certificate."""

    schema: Schema
    rows: int | None
    """The number of rows where it is public (replace-one, one row a person); None where it is private."""
    upper: tuple[int, ...] | Triangle
    """The noisy integers of the upper triangle, in units of the grid; in machine words where they are many."""
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
        if not self.schema.intercept and self.rows is None:
            raise _needs_intercept("the count")
        if self.rows is not None and (
            not self.schema.intercept or (self._is_bare and self._every_row_counts)
        ):
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
        """The canonical text of the release file, signed where a key is given; a rehearsal has none.

        Of a wide release it is the head of the file, which names the digest of the matrix that follows.
        """
        if self.certificate.randomness != "kernel":
            raise OutputError(
                "E402",
                "a rehearsal is not a release: its noise can be repeated, so it protects nobody.",
                "Release without a seed.",
            )
        return to_text(self.to_dict(key=key))

    def file_bytes(self, *, key: PrivateKey | None = None) -> Iterator[bytes | memoryview]:
        """The release file in pieces: its text, and the matrix where it is too wide for text."""
        yield self.to_json(key=key).encode("ascii")
        if isinstance(self.upper, Triangle):
            yield from self.upper.pieces()

    def save(self, path: str | Path, *, key: PrivateKey | None = None, force: bool = False) -> None:
        """Write the release file, whole or not at all. Without a key it is unsigned, even if it was loaded signed."""
        files.write(path, self.file_bytes(key=key), force=force)

    def __repr__(self) -> str:
        rows = "private" if self.rows is None else self.rows
        return (
            f"<Release of {len(self.columns)} columns, {rows} rows: "
            f"{self.certificate.mechanism}, {self.certificate.loss}>"
        )

    @cached_property
    def _raw(self) -> Matrix:
        d, unit = len(self.columns), float(Grid.of(self.schema).unit)
        if isinstance(self.upper, Triangle):
            return np.asarray(symmetric(self.upper.floats(unit), d))
        return np.asarray(symmetric(np.array([value * unit for value in self.upper]), d))

    @cached_property
    def _repairs(self) -> dict[str, Matrix]:
        return {}

    def _repaired(self, method: str) -> Matrix:
        if method not in self._repairs:
            self._repairs[method] = self._repair(method)
        return self._repairs[method]

    def _repair(self, method: str) -> Matrix:
        law, bound = self.certificate.law, float(self.schema.squared_norm_bound)
        structure = None if self._is_bare else self.structure
        if law is None:
            return repair_without_law(
                self._raw, rows=self.rows, squared_norm_bound=bound, structure=structure, method=method
            )
        observed = Observed(
            matrix=self._raw, law=law, rows=self.rows, squared_norm_bound=bound, structure=structure
        )
        return repair(observed, method=method)

    @property
    def _is_bare(self) -> bool:
        """Whether repair leaves the public structure out: each of its rounds decomposes the matrix once more."""
        return self.schema.dimension > MOST_REHEARSED

    @property
    def _every_row_counts(self) -> bool:
        """Whether the first entry of the sum is the number of rows, whatever the rows say."""
        return self.schema.keeps_indicators and not self.schema.empties_rows

    @cached_property
    def structure(self) -> Structure:
        """What the schema makes certain about the matrix: features that exclude each other, a public count."""
        places: dict[str, list[int]] = {}
        for place, feature in enumerate(self.schema.features):
            places.setdefault(feature.column, []).append(place)
        return Structure.one_hot(
            dimension=self.schema.dimension,
            groups=[
                *(places[c.name] for c in self.schema.columns if isinstance(c, Categorical)),
                *([place] for place in self.schema.number_indicators),
            ],
            apart=[(place - 1, place) for place in self.schema.number_indicators],
            intercept=0 if self.schema.intercept else None,
            rows=self.rows if self._every_row_counts else None,
        )

    @property
    def units(self) -> Matrix:
        """The public S that carries a scaled row z to original units: x = Sz, with the intercept's help."""
        half_widths, middles = self._scales
        scale = np.diag(half_widths)
        scale[:, 0] += middles
        return scale

    @property
    def _scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Half widths and middles, of columns that have original units."""
        features = self.schema.features
        middles = np.array([feature.middle for feature in features])
        if middles.any() and not self.schema.intercept:
            raise _needs_intercept("a moment in original units")
        return np.array([feature.half_width for feature in features]), middles

    def _in_original_units(self, moment: Matrix) -> Matrix:
        """S M Sᵀ with S = diag(h) + m e₀ᵀ, entry by entry: two products of wide matrices would take minutes."""
        half_widths, middles = self._scales
        made = np.outer(half_widths, half_widths)
        made *= moment
        if middles.any():
            shift = half_widths * moment[0] + middles * (moment[0, 0] / 2)
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
