"""The moments one regression needs, cut from a release, with the covariance of the noise they carry.

Everything is in working units: scaled columns z in [-1, 1], the target last. With an intercept the columns are
the released ones. Without one, a line through the origin of the original units is a line in z + (middle /
unit) · 1, so the columns are mixed with the constant by the public matrix ``mixing``. What the schema
makes certain (a public count, levels that exclude each other) replaces the noisy entry and carries no noise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models.formula import Formula
from privcov.models.levels import Regressor
from privcov.noise.laws import NoiseLaw
from privcov.releases.certificate import TOTAL
from privcov.releases.release import Release
from privcov.schema.names import INTERCEPT
from privcov.text.grammar import brief


@dataclass(frozen=True, kw_only=True, eq=False)
class EntryNoise:
    """Second moments of additive noise on the entries of a symmetric matrix, then mixed.

    ``variances`` holds the variance of every entry, zero where it is public. Entries are uncorrelated but for
    the diagonal, where a pair that carries noise has covariance ``shared`` (the free trace). They are those of ``law``
    at ``places``; through the shape of a frame, others than those asked for, which ``mixing`` makes of them.

    ``units`` are symmetric matrices B, in working units: Σ g B with independent standard normal g is what doubt about
    units and means adds to the moments of a release in a private frame. None of it can make them singular.
    """

    variances: Floats
    shared: float
    mixing: Floats
    law: NoiseLaw
    places: tuple[int, ...]
    units: Floats | None = None

    @classmethod
    def of(
        cls,
        law: NoiseLaw,
        *,
        places: list[int],
        known: Iterable[Sequence[int]],
        mixing: Floats,
        units: Floats | None = None,
    ) -> EntryNoise:
        """That of a law at some places of a release; ``known`` are entries of the columns that were summed."""
        law, there, behind = law.behind(places)
        variances = law.entry_variances[np.ix_(there, there)]
        where = {place: at for at, place in enumerate(there)}
        for i, j in ((where.get(int(i)), where.get(int(j))) for i, j in known):
            if i is not None and j is not None:
                variances[i, j] = variances[j, i] = 0.0
        return cls(
            variances=variances,
            shared=law.shared,
            mixing=mixing @ behind,
            law=law,
            places=tuple(there),
            units=None if units is None else mixing @ units @ mixing.T,
        )

    @cached_property
    def entries(self) -> EntryNoise:
        """The noise on the entries alone, without doubt about units."""
        return self if self.units is None else replace(self, units=None)

    def times(self, vector: Floats) -> Floats:
        """Cov(N z) for a vector z in working units: diag(Σ_j v_ij z_j²) and v_ik z_i z_k off the diagonal."""
        z = self._unmixed(vector)
        covariance = self._pairs * (z[:, None] * z)
        covariance.flat[:: len(z) + 1] = self.variances @ z**2
        found = self._mixed(covariance)
        if self.units is None:
            return found
        moved = self._moved(vector)
        return found + moved.T @ moved

    def bend(self, vector: Floats, weights: Floats) -> Floats:
        """The derivative of Cov(N z) w with respect to z, in working units."""
        z, w = self._unmixed(vector), self._unmixed(weights)
        both = w[:, None] * z
        derivative = self._doubled * both
        derivative += self._apart * both.T
        derivative.flat[:: len(z) + 1] += self._apart @ (z * w)
        found = self._mixed(derivative)
        if self.units is None:
            return found
        by_z, by_w = self._moved(vector), self._moved(weights)
        return found + np.einsum("m,mij->ij", by_z @ weights, self.units) + by_z.T @ by_w

    def squares(self, vectors: Floats) -> Floats:
        """Var(vᵀN v) for the rows v of ``vectors``, in working units."""
        squared = (vectors @ self.mixing) ** 2
        halves = self.variances - np.diag(np.diag(self.variances)) / 2
        noisy = squared * self._noisy
        own = 2 * np.einsum("ni,ij,nj->n", squared, halves, squared, optimize=True)
        moved = np.einsum("ni,mij,nj->nm", vectors, self._units(vectors.shape[1]), vectors, optimize=True)
        own += (moved**2).sum(axis=1)
        return np.asarray(own + self.shared * (noisy.sum(axis=1) ** 2 - (noisy**2).sum(axis=1)))

    def inner(self, first: Floats, second: Floats) -> float:
        """Cov(⟨K, N⟩, ⟨L, N⟩) for symmetric K and L in working units."""
        k, m = (self.mixing.T @ matrix @ self.mixing for matrix in (first, second))
        own = 2 * float((self.variances * k * m).sum()) - float(np.diag(self.variances * k * m).sum())
        on, kd, md = self._noisy, np.diag(k), np.diag(m)
        units = self._units(len(first))
        own += float(np.tensordot(units, first) @ np.tensordot(units, second))
        return own + self.shared * float((on @ kd) * (on @ md) - (on * kd) @ md)

    def forms(self, a: Floats, b: Floats, c: Floats, d: Floats) -> float:
        """Cov(aᵀNb, cᵀNd) for vectors in working units: ``inner`` of their products, at the cost of a vector."""
        doubt = float((self._moved(b) @ a) @ (self._moved(d) @ c))
        a, b, c, d = (self.mixing.T @ vector for vector in (a, b, c, d))
        v, on, all_four = self.variances, self._noisy, a * b * c * d
        own = (a * c) @ v @ (b * d) + (a * d) @ v @ (b * c) - np.diag(v) @ all_four
        return float(own + self.shared * ((on @ (a * b)) * (on @ (c * d)) - on @ all_four)) + doubt

    def excess(self, weights: Floats) -> float:
        """The excess kurtosis of ⟨K, N⟩ for a symmetric K in working units."""
        mixed = weights if self._plain else self.mixing.T @ weights @ self.mixing
        return self.law.excess(mixed * (self.variances > 0))

    def absorbed(self, inverse: Floats, a: Floats, b: Floats) -> float:
        """tr(G Cov(Na, Nb)): the noise in aᵀCb that a regression with inverse moments G takes for its own."""
        g = self.mixing.T @ inverse @ self.mixing
        a, b = self.mixing.T @ a, self.mixing.T @ b
        v, on, own = self.variances, self._noisy, np.diag(g)
        found = own @ v @ (a * b) + b @ (g * v) @ a - (own * np.diag(v)) @ (a * b)
        return float(found + self.shared * ((on * a) @ g @ (on * b) - on @ (own * a * b)))

    def _units(self, size: int) -> Floats:
        return np.zeros((0, size, size)) if self.units is None else self.units

    def _moved(self, vector: Floats) -> Floats:
        """B z for each B, a line each."""
        return np.asarray(self._units(len(vector)) @ vector)

    def _unmixed(self, vector: Floats) -> Floats:
        return vector if self._plain else np.asarray(self.mixing.T @ vector)

    def _mixed(self, matrix: Floats) -> Floats:
        return matrix if self._plain else np.asarray(self.mixing @ matrix @ self.mixing.T)

    @cached_property
    def _plain(self) -> bool:
        """Whether nothing is mixed, which saves two products of matrices each time."""
        return bool(np.array_equal(self.mixing, np.eye(len(self.mixing))))

    @cached_property
    def _doubled(self) -> Floats:
        return 2 * self.variances

    @cached_property
    def _apart(self) -> Floats:
        """Covariances of pairs of different entries of one row."""
        return np.asarray(self._pairs - np.diag(np.diag(self._pairs)))

    @cached_property
    def _noisy(self) -> Floats:
        return (np.diag(self.variances) > 0).astype(np.float64)

    @cached_property
    def _pairs(self) -> Floats:
        return np.asarray(self.variances + self.shared * np.outer(self._noisy, self._noisy))


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """The (k+1) × (k+1) working moments of k regressors and the target, and the way back to original units."""

    names: tuple[str, ...]
    matrix: Floats
    rows: float
    rows_public: bool
    noise: EntryNoise | None
    """None where the mechanism has no additive law."""
    intercept: bool
    slope: Floats
    """Original coefficients are ``slope`` @ working coefficients + ``shift``."""
    shift: Floats
    target_width: float
    limits: Floats
    """The most that each working regressor can be in size, by the declared bounds."""
    target_limit: float
    """The largest standard deviation that a bounded target can have, in working units."""
    per_person: int = 1
    """The most rows that one person has."""
    spread: Floats | None = None
    """Of weighted rows: Σu²zzᵀ of the regressors, by which sampling moves Σu z(y − zᵀb); None: as the design."""

    @property
    def size(self) -> int:
        """k, the number of regressors with the intercept."""
        return len(self.names)

    @property
    def freedom(self) -> float:
        """Residual degrees of freedom, n − k."""
        return self.rows - self.size

    @property
    def design(self) -> Floats:
        return self.matrix[:-1, :-1]

    @property
    def cross(self) -> Floats:
        return self.matrix[:-1, -1]

    @classmethod
    def of(cls, release: Release, formula: Formula, *, without: Collection[int] = ()) -> Moments:
        """The moments of a formula, from the raw and unbiased matrix, without the regressors at some places."""
        schema, features = release.schema, release.schema.features
        kept = [one for one in formula.regressors(schema) if not set(one.places) <= set(without)]
        columns = [*kept, Regressor(formula.target, (release.columns.index(formula.target),))]
        chosen = list(dict.fromkeys(place for column in columns for place in column.places))
        if not schema.intercept and (
            formula.intercept or any(features[place].middle for place in chosen) or release.rows is None
        ):
            raise ParameterError(
                "E237",
                "this release has no intercept column, which the model needs for the means and the count.",
                "Release again with intercept = true in the schema.",
            )
        places = [0, *chosen] if schema.intercept else chosen
        k = len(columns) - 1 + formula.intercept
        mixing, middles, widths = _mixing(release, columns, chosen, intercept=formula.intercept)
        raw, known = release.informed_moment()[np.ix_(places, places)], release.structure.fixed
        rows, public = _count(release, k, known=places[0] == 0 and [0, 0] in known.tolist())
        # In units of an effective row, so that sampling has the size it has: docs/proofs/weights.md.
        mixing = mixing / np.sqrt(release.row_weight)
        spread = None
        if schema.weight is not None:
            spread = (mixing @ _squared_weights(release, places) @ mixing.T)[:-1, :-1] / release.row_weight
        slope, shift = _back(middles, widths, intercept=formula.intercept)
        law = release.law
        names = [column.name for column in columns[:-1]]
        longest = schema.longest_row if release.calibration is None else np.inf
        reaches = [min(features[place].reach, longest) for place in chosen]
        target = features[columns[-1].places[0]]
        return cls(
            names=tuple([INTERCEPT, *names] if formula.intercept else names),
            matrix=mixing @ raw @ mixing.T,
            rows=rows,
            rows_public=public,
            noise=None
            if law is None
            else EntryNoise.of(
                law, places=places, known=known, mixing=mixing, units=_doubts(release, places, raw)
            ),
            intercept=formula.intercept,
            slope=slope,
            shift=shift,
            target_width=float(widths[-1]),
            limits=(np.abs(mixing) @ ([1.0, *reaches] if schema.intercept else reaches))[:-1],
            target_limit=(target.upper - target.lower) / 2 / target.unit,
            per_person=schema.max_rows_per_person,
            spread=spread,
        )


def _mixing(
    release: Release, columns: list[Regressor], chosen: list[int], *, intercept: bool
) -> tuple[Floats, Floats, Floats]:
    """Working columns from released ones, and each one's middle and unit.

    A single column stays as it is, about the origin of its original units where there is no intercept. Levels that
    count as one are added up in original units.
    """
    features = release.schema.features
    middles, widths = np.zeros(len(columns)), np.ones(len(columns))
    constant, mixing = np.zeros(len(columns)), np.zeros((len(columns), len(chosen)))
    for row, column in enumerate(columns):
        parts = [features[place] for place in column.places]
        here = [chosen.index(place) for place in column.places]
        if len(parts) == 1:
            middles[row], widths[row] = parts[0].middle, parts[0].unit
            mixing[row, here] = 1.0
            constant[row] = 0.0 if intercept else middles[row] / widths[row]
        else:
            mixing[row, here] = [part.unit for part in parts]
            constant[row] = sum(part.middle for part in parts)
    if release.schema.intercept:
        mixing = np.hstack([constant[:, None], mixing])
    if intercept:
        mixing = np.vstack([np.eye(1, mixing.shape[1]), mixing])
    return mixing, middles, widths


def _doubts(release: Release, places: list[int], moment: Floats) -> Floats | None:
    """What doubt about units and means adds to some moments, a matrix for each source; None where there is none.

    A unit that is larger by a share τ takes a column z to z + τ(z − m), m its mean, and the moments M to
    M + EM + MEᵀ with E = τ e(e − m e₀)ᵀ; a mean that is larger by s adds s e e₀ᵀ to E.
    """
    found = release.calibration
    if found is None:
        return None
    unit = np.eye(len(places))
    means = moment[0] / max(1.0, float(moment[0, 0]))
    there = [
        (places.index(place), row) for row, place in enumerate(release.schema.numbers) if place in places
    ]
    if not there:
        return None
    steps = [
        sum(
            found.doubts[row, column] * np.outer(unit[at], unit[at] - means[at] * unit[0])
            for at, row in there
        )
        for column in range(found.doubts.shape[1])
    ]
    steps += [found.mean_doubts[row] * np.outer(unit[at], unit[0]) for at, row in there]
    moved = np.array(steps) @ moment
    return np.asarray(moved + np.swapaxes(moved, 1, 2))


def _squared_weights(release: Release, places: list[int]) -> Floats:
    """Σu²zzᵀ at some places, of rows that count as u: the first is the intercept.

    The weight's own column gives Σu²z, and so what indicators add; between other columns covariances are taken to be
    the same whether rows count as u or as u². Proof: docs/proofs/weights.md.
    """
    raw, features = release.second_moment(raw=True, scaled=True), release.schema.features
    count, sums = max(1.0, float(raw[0, 0])), raw[0, places]
    squares = raw[release.columns.index(str(release.schema.weight)), places] + sums / 2
    squares[0] = total = release.row_weight * count
    about = raw[np.ix_(places, places)] - np.outer(sums, sums) / count
    made = total / count * about + np.outer(squares, squares) / total
    marks = {i: features[place].column for i, place in enumerate(places) if features[place].kind != "numeric"}
    for i, column in marks.items():
        made[i, i] = max(float(squares[i]), 0.0)
        for j in marks:
            if i != j and column == marks[j]:
                made[i, j] = 0.0
    made[0], made[:, 0] = squares, squares
    return made


def _count(release: Release, k: int, *, known: bool) -> tuple[float, bool]:
    """The number of rows behind the moments: public, or the noisy entry of the intercept with itself.

    Where that entry is noisy (add-remove, rows emptied or clipped) it estimates the rows that count; it enters
    only through n − k, where its relative error σ/n is of second order, while the same noisy entry in the
    design has its variance in every interval. Of weighted rows it is their effective number.
    """
    if known or not release.schema.intercept:
        rows = float(release.rows or 0)
    else:
        noisy = float(release.second_moment(raw=True, scaled=True)[0, 0]) / release.row_weight
        rows = noisy if release.rows is None else min(noisy, float(release.rows))
    public = known or not release.schema.intercept
    if not rows > k:
        about = f"{rows:.6g} rows" if public else f"about {max(rows, 0):,.0f} rows (a noisy count)"
        stratum = release.certificate.options.get("stratum")
        about += "" if stratum in (None, TOTAL) else f" of the stratum {brief(stratum)}"
        raise ParameterError(
            "E236",
            f"{about} are too few for {k} coefficient{'s' * (k > 1)}.",
            "Name fewer terms, or release more rows.",
        )
    return rows, public


def _back(middles: Floats, widths: Floats, *, intercept: bool) -> tuple[Floats, Floats]:
    """Working coefficients to original units: β_j = h_y b_j / h_j, and the intercept takes the middles."""
    ratios = widths[-1] / widths[:-1]
    if not intercept:
        return np.diag(ratios), np.zeros(len(ratios))
    slope = np.diag([widths[-1], *ratios])
    slope[0, 1:] = -ratios * middles[:-1]
    return slope, np.array([middles[-1], *np.zeros(len(ratios))])
