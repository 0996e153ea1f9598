"""The numbers that pages and notebooks show of a release: repaired, or the first columns as released where it is wide.

A wide release (``releases/triangle.py``) is too large to repair or to draw for the sake of a page, so its page shows a
corner of it, raw, and says so.

How large the noise is on what people read: means, covariances, correlations; to first order, before repair.

With centred sums C = M − n·μμᵀ of the scaled rows, noise N on the released M moves them by
N_ij − μ_j N_0i − μ_i N_0j + (μ_i μ_j − C_ij/n) N_00. Variances follow, because entries of the noise are uncorrelated
but for the diagonal (``EntryNoise``), and entries that the schema fixes carry none. Repair uses the same facts to come
nearer than this; how much nearer depends on the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import diagonal_places
from privcov.models.moments import EntryNoise
from privcov.noise.composed import Congruent
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release
from privcov.releases.rounds import framed_means
from privcov.releases.triangle import Triangle
from privcov.schema import Feature
from privcov.schema.grid import Grid

CORNER = 150
ODDS = 0.05
"""That some pair stands clear of the noise although its covariance is zero has at most these odds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """A second-moment matrix in scaled units, what its rows mean, and how many columns are not in it."""

    features: tuple[Feature, ...]
    moment: Floats
    """With the intercept first, where there is one."""
    count: float | None
    """None where there is neither an intercept nor a public count: then products are sums, not means."""
    noise: NoiseSizes | None
    off: NoiseSizes | None
    """How far noise moves each number in 95 of 100 releases, at most: what ± means beside it."""
    scores: Floats | None
    """Covariances before repair in standard deviations of their noise; None where its size is not known."""
    squares: Floats | None
    """The diagonal of centred sums before repair, in scaled units; None as for ``scores``."""
    reach: float
    """The score from which on a covariance stands clear of the noise."""
    raw: bool
    hidden: int
    cut: str = ""
    """What ± beside standard deviations and covariances has to do with what a private frame cut off; or nothing."""

    @classmethod
    def of(cls, release: Release) -> View:
        """The whole release, repaired; of a wide one its first columns, raw."""
        features = release.schema.features
        known = release.schema.intercept or release.rows is not None
        wide = isinstance(release.upper, Triangle)
        if not isinstance(release.upper, Triangle):
            moment = release.second_moment(scaled=True)
            count, places = release.count() if known else None, release.structure.fixed
        else:
            moment = _corner(release, release.upper)
            noisy = float(moment[0, 0]) if release.schema.intercept else 0.0
            counted = release.counted_rows
            count = float(counted) if counted is not None else max(1.0, noisy) if known else None
            places = np.empty((0, 2), dtype=np.intp)
        shown = features[: len(moment)]
        law = release.law
        noise = off = scores = squares = None
        reach = np.inf
        if law is not None and count is not None:
            noise = noise_sizes(moment, law=law, features=shown, count=count, known=places)
            scores, squares = _scores(moment if wide else release.informed_moment(), release, law, places)
            # Where the variance of a column is noise, so is whatever is divided by it.
            varies = np.diag(scores) > 2
            known_sizes = np.where(np.outer(varies, varies), noise.correlation, np.nan)
            np.fill_diagonal(known_sizes, 0.0)
            noise = replace(noise, correlation=known_sizes)
            off = noise.within(law, mean=None if wide else mean_noise(release))
            off = replace(off, covariance=_with_doubt(off.covariance, moment, release, count))
            reach = law.reach(ODDS / 2 / max(1, len(scores) * (len(scores) - 1) // 2))
        return cls(
            features=shown,
            moment=moment,
            count=count,
            noise=noise,
            off=off,
            scores=scores,
            squares=squares,
            reach=reach,
            raw=wide,
            hidden=len(features) - len(shown),
            cut=_cut(release),
        )

    @property
    def intercept(self) -> bool:
        """Whether there are means."""
        return self.features[0].kind == "intercept"

    @property
    def columns(self) -> tuple[Feature, ...]:
        """Everything but the intercept."""
        return self.features[int(self.intercept) :]

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        """Which covariances stand clear of the noise; all do where its size is not known, and a column with itself.

        So do those of two levels of one column, which are no pair but numbers like the others, that noise can drown.
        """
        own = np.eye(len(self.columns), dtype=np.bool_)
        return np.ones_like(own) if self.scores is None else own | (np.abs(self.scores) > self.reach)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Places of every pair of different columns of the table, levels of one column left out."""
        first, second = np.triu_indices(len(self.columns), 1)
        apart = self._homes[first] != self._homes[second]
        return first[apart], second[apart]

    @cached_property
    def _homes(self) -> NDArray[np.intp]:
        """The column of the table that each column of the matrix belongs to."""
        return np.unique([feature.column for feature in self.columns], return_inverse=True)[1]

    @property
    def titles(self) -> tuple[str, ...]:
        """What figures call the columns: their labels, where they have any."""
        return tuple(feature.title for feature in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.columns)

    @property
    def scaled(self) -> bool:
        """Whether products can be told in [-1, 1] units only: without an intercept, about a middle that is not 0."""
        return not self.intercept and any(feature.middle for feature in self.columns)

    @property
    def widths(self) -> Floats:
        """What a scaled unit is, for each column."""
        return np.array([1.0 if self.scaled else feature.unit for feature in self.columns])

    @cached_property
    def mean(self) -> Floats | None:
        """Means in original units."""
        if not self.intercept or self.count is None:
            return None
        middles = np.array([feature.middle for feature in self.columns])
        return np.asarray(middles + self.widths * self.moment[0, 1:] / self.count)

    @cached_property
    def covariance(self) -> Floats:
        """Covariances, or mean products without an intercept; sums of products where the count is private."""
        return np.asarray(self._centred / self._divisor * np.outer(self.widths, self.widths))

    @property
    def _divisor(self) -> float:
        """Of centred sums, for covariances."""
        return 1.0 if self.count is None else max(1.0, self.count - self.intercept)

    @property
    def spread(self) -> Floats:
        """Standard deviations."""
        return np.sqrt(np.clip(np.diag(self.covariance), 0, None))

    @property
    def off_spread(self) -> Floats | None:
        """How far noise moves each standard deviation in 95 of 100 releases: to the farther end of what it may be."""
        if (ends := self._spread_ends) is None:
            return None
        low, high = ends
        return np.maximum(np.maximum(high - self.spread, self.spread - low), 0.0)

    @property
    def _spread_ends(self) -> tuple[Floats, Floats] | None:
        """Between what ends each standard deviation is in 95 of 100 releases.

        About the variance before repair, which is unbiased: among many columns repair may lift a small one above its
        noise. A variance within its noise may be 0, so that this is no first-order error; and none is larger than where
        half of the rows are at each bound.
        """
        if self.off is None or self.squares is None:
            return None
        variance, moved = self.squares / self._divisor * self.widths**2, np.diag(self.off.covariance)
        low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (variance - moved, variance + moved))
        return low, np.minimum(high, self._most_spread)

    @property
    def _most_spread(self) -> Floats:
        """The largest standard deviations that bounds allow: about the mean, or about zero without an intercept.

        n over n − 1 in place of its root, because n may be noisy.
        """
        if self.scaled:
            return np.array([feature.reach for feature in self.columns])
        ends = np.array([(feature.lower, feature.upper) for feature in self.columns])
        if not self.intercept or self.count is None:
            return np.abs(ends).max(axis=1)
        return np.asarray((ends[:, 1] / 2 - ends[:, 0] / 2) * self.count / max(1.0, self.count - 1))

    @property
    def filled(self) -> Floats | None:
        """The share of its bounds that each numeric column fills, at most; None where the noise is not known.

        A column that is spread evenly over its bounds has a standard deviation of half their width over √3, and fills
        all of them. The noise is counted, 95 times in 100 for each column. None also without an intercept: about zero
        nothing is known of it.
        """
        if (ends := self._spread_ends) is None or not self.intercept:
            return None
        halves = np.array([feature.half_width for feature in self.columns])
        numeric = [feature.kind == "numeric" for feature in self.columns]
        return np.minimum(1.0, np.sqrt(3) * np.maximum(self.spread, ends[1]) / halves)[numeric]

    @cached_property
    def correlation(self) -> Floats:
        """Correlations, about zero without an intercept; NaN where a column has no variance."""
        squares = np.diag(self._centred)
        known = squares > 1e-12 * max(1.0, float(squares.max(initial=0.0)))
        size = np.where(known, np.sqrt(np.abs(squares)), np.nan)
        values = np.clip(self._centred / np.outer(size, size), -1.0, 1.0)
        np.fill_diagonal(values, 1.0)
        return np.asarray(values)

    @property
    def _centred(self) -> Floats:
        if not self.intercept or self.count is None:
            return self.moment
        sums = self.moment[0, 1:]
        return np.asarray(self.moment[1:, 1:] - np.outer(sums, sums) / self.count)


def _cut(release: Release) -> str:
    """Whether ± counts what a private frame cut off long rows: a sentence; nothing of a declared frame."""
    if not release.certificate.rounds:
        return ""
    if release.calibration is None:
        # Of strata and of weighted rows no round has asked for the means.
        first = "Standard deviations" if framed_means(release) is not None else "Means, standard deviations"
        return (
            f"{first} and covariances are those of the rows as the private frame shortened them: ± does not count what "
            "was cut."
        )
    return "± of standard deviations and covariances counts the doubt about what the private frame cut off."


def _with_doubt(off: Floats, moment: Floats, release: Release, count: float) -> Floats:
    """How far covariances may be off, with the doubt about units that a calibrated release has beside its noise.

    A unit that is larger by a share τ makes covariances of its column larger by τ, and its variance by 2τ.
    """
    found, law = release.calibration, release.law
    if found is None or law is None:
        return off
    doubts = np.zeros((len(moment), found.doubts.shape[1]))
    for row, place in enumerate(release.schema.numbers):
        if place < len(moment):
            doubts[place] = found.doubts[row]
    first = len(moment) - len(off)
    both = np.linalg.norm(doubts[first:, None] + doubts[None, first:], axis=2)
    sums = moment[0, first:] if first else np.zeros(len(off))
    centred = moment[first:, first:] - np.outer(sums, sums) / count
    units = np.array([feature.unit for feature in release.schema.features[first : len(moment)]])
    moved = law.reach(0.025) * both * np.abs(centred) / count * np.outer(units, units)
    return np.asarray(np.hypot(off, moved))


def _scores(
    raw: Floats, release: Release, law: NoiseLaw, known: Iterable[Sequence[int]]
) -> tuple[Floats, Floats]:
    """Centred sums of the raw matrix in standard deviations of the noise on them, zero where there is no noise.

    And their diagonal as it is.
    """
    features = release.schema.features[: len(raw)]
    counted = release.counted_rows
    count = float(counted) if counted is not None else max(1.0, float(raw[0, 0]))
    parts = _parts(raw, law=law, features=features, count=count, known=known)
    sizes = np.sqrt(parts.covariance())
    scores = np.divide(parts.centred, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return scores, np.diag(parts.centred)


def _corner(release: Release, upper: Triangle) -> Floats:
    """The first columns of a wide matrix, read from its words without the rest."""
    d = len(release.columns)
    size, unit = min(CORNER + 1, d), float(Grid.of(release.schema).unit)
    made = np.zeros((size, size))
    for i, start in enumerate(diagonal_places(d)[:size].tolist()):
        made[i, i:] = [unit * value for value in upper[start : start + size - i]]
    return made + np.triu(made, 1).T


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseSizes:
    """Standard deviations that noise alone puts on each number, for every column but the intercept."""

    mean: Floats | None
    """Original units; None without an intercept."""
    covariance: Floats
    """Of covariances; without an intercept, of mean products. In original units, where products have them."""
    correlation: Floats
    """NaN where a column has no variance, or one within two standard deviations of its noise; without an intercept, of
    correlations about zero."""

    def within(self, law: NoiseLaw, *, mean: Floats | None) -> NoiseSizes:
        """What numbers stay within in 95 of 100 releases; of means this is ``mean``, where it is known."""
        usual = law.reach(0.025)
        return NoiseSizes(
            mean=usual * self.mean if mean is None and self.mean is not None else mean,
            covariance=usual * self.covariance,
            correlation=usual * self.correlation,
        )


def noise_sizes(
    moment: Floats,
    *,
    law: NoiseLaw,
    features: Sequence[Feature],
    count: float,
    known: Iterable[Sequence[int]] = (),
) -> NoiseSizes:
    """The sizes for a scaled moment matrix of these features; entries in ``known`` are public and carry no noise.

    >>> from privcov.noise.laws import GaussianEnsemble
    >>> features = [Feature(name="1", kind="intercept"), Feature(name="age", kind="numeric", half_width=50.0)]
    >>> moment = np.array([[1000.0, 0.0], [0.0, 250.0]])
    >>> noise_sizes(moment, law=GaussianEnsemble(dimension=2, scale=10.0), features=features, count=1000).mean.round(3)
    array([0.354])
    """
    intercept = features[0].kind == "intercept"
    parts = _parts(moment, law=law, features=features, count=count, known=known)
    columns = features[int(intercept) :]
    has_units = intercept or not any(feature.middle for feature in columns)
    widths = np.array([feature.unit if has_units else 1.0 for feature in columns])
    return NoiseSizes(
        mean=np.sqrt(parts.mean()) / count * widths if intercept else None,
        covariance=np.sqrt(parts.covariance()) / count * np.outer(widths, widths),
        correlation=np.sqrt(parts.correlation()),
    )


def _parts(
    moment: Floats,
    *,
    law: NoiseLaw,
    features: Sequence[Feature],
    count: float,
    known: Iterable[Sequence[int]],
) -> _Parts | _Mixed:
    """What the sizes are made of, in scaled units and sums over all rows."""
    d, intercept = len(moment), features[0].kind == "intercept"
    noise = EntryNoise.of(law, places=list(range(d)), known=known, mixing=np.eye(d))
    if intercept:
        mu = moment[0, 1:] / count
        centred = moment[1:, 1:] - count * np.outer(mu, mu)
        if isinstance(law, Congruent):
            return _Mixed(mu=mu, centred=centred, noise=noise, count=count)
        edge, corner, inner = noise.variances[0, 1:], float(noise.variances[0, 0]), noise.variances[1:, 1:]
    else:
        mu, centred = np.zeros(d), moment
        edge, corner, inner = np.zeros(d), 0.0, noise.variances
    return _Parts(
        mu=mu, centred=centred, edge=edge, corner=corner, inner=inner, shared=noise.shared, count=count
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parts:
    """Means, centred sums, and the variances of noise on the intercept's row (``edge``), entry and the rest."""

    mu: Floats
    centred: Floats
    edge: Floats
    corner: float
    inner: Floats
    shared: float
    count: float

    def mean(self) -> Floats:
        """The variance of noise on each mean, times the square of the number of rows."""
        return np.asarray(self.edge + self.mu**2 * self.corner)

    def covariance(self) -> Floats:
        """The variance of noise on each centred sum."""
        mu, middle = self.mu, np.outer(self.mu, self.mu) - self.centred / self.count
        cross = np.outer(self.edge, mu**2)
        product = np.outer(self.edge, self.edge) / self.count**2  # of the noise on two means
        with np.errstate(over="ignore"):  # beyond all numbers is what such noise is
            variance = self.inner + cross + cross.T + product + middle**2 * self.corner
            own = (
                np.diag(self.inner)
                + 4 * mu**2 * self.edge
                + 2 * np.diag(product)
                + np.diag(middle) ** 2 * self.corner
            )
        own = own + 2 * np.diag(middle) * self.shared * (np.diag(self.inner) > 0) * (self.corner > 0)
        np.fill_diagonal(variance, own)
        return np.asarray(np.maximum(variance, 0.0))

    def correlation(self) -> Floats:
        """The variance of noise on each correlation; zero on the diagonal, which is one whatever the noise."""
        squares = np.diag(self.centred)
        fine = squares > 1e-12 * max(1.0, float(squares.max(initial=0.0)))
        s = np.where(fine, np.sqrt(np.abs(squares)), np.nan)
        r = np.clip(self.centred / np.outer(s, s), -1.0, 1.0)
        lean = self.mu / s
        # How much each entry of the noise moves a correlation: N_ij, N_ii (and N_jj), N_0i (and N_0j), N_00.
        across = 1 / np.outer(s, s)
        here = -r / (2 * s**2)[:, None]
        along = (r * lean[:, None] - lean[None, :]) / s[:, None]
        base = np.outer(lean, lean) - r / 2 * (lean[:, None] ** 2 + lean[None, :] ** 2)
        own, noisy = np.diag(self.inner)[:, None], (np.diag(self.inner) > 0)[:, None]
        variance = across**2 * self.inner + here**2 * own + (here**2 * own).T
        variance = variance + along**2 * self.edge[:, None] + (along**2 * self.edge[:, None]).T
        variance = variance + base**2 * self.corner
        pairs = here * here.T * noisy * noisy.T + (here * noisy + (here * noisy).T) * base * (self.corner > 0)
        variance = np.maximum(variance + 2 * self.shared * pairs, 0.0)
        np.fill_diagonal(variance, 0.0)
        return np.asarray(variance)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Mixed:
    """The same where the shape of a frame mixed the noise: there is an intercept.

    Noise N moves a centred sum C = (−μ, 1) M (−μ, 1)ᵀ by (−μ, 1) N (−μ, 1)ᵀ, the divisor by N₀₀, and a correlation by
    D_ij − r(D_ii + D_jj)/2, where D is the noise of columns divided by the roots of their squares.
    """

    mu: Floats
    centred: Floats
    noise: EntryNoise
    count: float

    @cached_property
    def _carry(self) -> Floats:
        """The columns less their means, in terms of the noise."""
        return np.asarray(np.hstack([-self.mu[:, None], np.eye(len(self.mu))]) @ self.noise.mixing)

    @cached_property
    def _first(self) -> Floats:
        """The intercept, once for each column."""
        return self.noise.mixing[[0] * len(self.mu)]

    def _among(self, a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
        """Cov(aᵀN b, cᵀN d), line by line, for entries N that are uncorrelated but for the diagonal."""
        noise, shape = self.noise, self._carry.shape
        a, b, c, d = (np.broadcast_to(one, shape) for one in (a, b, c, d))
        halves = noise.variances - np.diag(np.diag(noise.variances)) / 2
        on = np.diag(noise.variances) > 0
        crossed = (((a * c) @ halves) * (b * d)).sum(axis=1) + (((a * d) @ halves) * (b * c)).sum(axis=1)
        one, other = (a * b)[:, on], (c * d)[:, on]
        return np.asarray(
            crossed + noise.shared * (one.sum(axis=1) * other.sum(axis=1) - (one * other).sum(axis=1))
        )

    def mean(self) -> Floats:
        """The variance of noise on each mean, times the square of the number of rows."""
        return np.maximum(self._among(self._carry, self._first, self._carry, self._first), 0.0)

    def covariance(self) -> Floats:
        """The variance of noise on each centred sum."""
        carry, first = self._carry, self._first
        rows, sums = self.noise.mixing[1:], np.empty_like(self.centred)
        corner, variance = self._among(first, first, first, first), np.empty_like(self.centred)
        for i, one in enumerate(carry):
            lean = -self.centred[i] / self.count
            variance[i] = self._among(one, carry, one, carry) + lean**2 * corner
            variance[i] += 2 * lean * self._among(one, carry, first, first)
            sums[i] = self._among(rows[i], first, rows, first)
        product = (
            np.outer(np.diag(sums), np.diag(sums)) + sums**2
        ) / self.count**2  # of the noise on two means
        return np.maximum(variance + product, 0.0)

    def correlation(self) -> Floats:
        """The variance of noise on each correlation; zero on the diagonal, which is one whatever the noise."""
        squares = np.diag(self.centred)
        fine = squares > 1e-12 * max(1.0, float(squares.max(initial=0.0)))
        sizes = np.where(fine, np.sqrt(np.abs(squares)), np.nan)
        ratios = np.clip(self.centred / np.outer(sizes, sizes), -1.0, 1.0)
        lines, variance = self._carry / sizes[:, None], np.empty_like(self.centred)
        own = self._among(lines, lines, lines, lines)
        for i, (one, r) in enumerate(zip(lines, ratios, strict=True)):
            both = self._among(one, one, lines, lines)
            leaning = self._among(one, lines, one, one) + self._among(one, lines, lines, lines)
            variance[i] = self._among(one, lines, one, lines) - r * leaning
            variance[i] += r**2 / 4 * (own[i] + own + 2 * both)
        variance = np.maximum(variance, 0.0)
        np.fill_diagonal(variance, 0.0)
        return variance


def mean_noise(release: Release, *, scaled: bool = False) -> Floats | None:
    """How far noise moves each mean in 95 of 100 releases, at most; None where its law is not known.

    A mean is a sum over a count. Where the count is noisy too, its noise moves the mean in proportion to the mean, in
    scaled units: the means that Fieller's set holds, whose sums less so many counts are within their noise, are within
    this distance. It ends at the width of the bounds, which is all that is known where the count may be noise alone.
    In a private frame it is the error of the combined means, which allows for what shortening takes.
    """
    law = release.law
    if law is None or not release.schema.intercept:
        return None
    units = np.array([feature.unit for feature in release.schema.features[1:]])
    if (framed := framed_means(release)) is not None:
        return np.asarray(law.reach(0.025) * framed.stds / (units if scaled else 1.0))
    public = any(i == j == 0 for i, j in release.structure.fixed.tolist())
    count, means = max(release.count(repair="none"), 1.0), release.mean(scaled=True, repair="none")
    variance, corner = law.sums_variances, float(law.entry_variances[0, 0])
    _, there, mixing = law.behind(range(1, law.dimension))
    # A level that is told from the others and the count has a share of the count's noise in its sum already.
    owed = mixing[:, 0] if there[0] == 0 else np.zeros(len(means))
    variance = variance + corner * ((0.0 if public else (owed - means) ** 2) - owed**2)
    near = (law.reach(0.025) / count) ** 2
    known = 1.0 if public else 1.0 - near * corner
    widths = np.array([feature.upper - feature.lower for feature in release.schema.features[1:]])
    if not known > 0:
        return widths / (units if scaled else 1.0)
    lean = 0.0 if public else near * corner * np.abs(means - owed)
    off = (lean + np.sqrt(lean**2 + known * near * variance)) / known
    return np.asarray(np.minimum(off * units, widths) / (units if scaled else 1.0))
