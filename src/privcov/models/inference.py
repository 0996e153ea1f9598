"""Standard errors, intervals and p-values of coefficients that both sampling and privacy noise move.

The estimating equation of least squares is r(b) = m − M b = 0. At the true b its covariance is
S(b) = s²M + Cov(N ζ) with ζ = (−b, 1): sampling, plus the released noise N through its own law.

* Wald: V = M⁻¹ S(b̂) M⁻¹. Right when the noise is small against the smallest eigenvalue of M.
* Score inversion (Fieller): every value that r(b)ᵀS(b)⁻¹r(b), minimised over the other coefficients, does not
  reject. It never inverts M, and where the data cannot say it returns the whole line.

Assumes homoscedastic errors and values within the declared bounds; see docs/explain/regression.md.

The sweep operator: a moment matrix becomes coefficients, an inverse and a residual sum in one pass.

The parametric bootstrap: redraw sampling and privacy noise around the fit, from public facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dtrtrs
from scipy.special import chdtrc, fdtrc, ndtri, stdtrit

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models.moments import Moments
from privcov.models.profile import Height, Profile, factored, solved
from privcov.noise.randomness import rehearsal

_LADDER = (0.7, 1.0, 1.3, 2.0, 5.0, 25.0)  # steps outwards, in half-widths of the Wald interval


@dataclass(frozen=True, kw_only=True, eq=False)
class Uncertainty:
    """Sampling and privacy covariance of the working coefficients, and the score statistic."""

    moments: Moments
    swept: Swept
    weight: float = 1.0
    """What sampling counts for: 1 for independent rows whose errors have one variance, the number of rows that one
    person may have where they are not independent, more where errors have any variance; 0 asks about the table itself,
    where only the noise is random."""

    @property
    def freedom(self) -> float:
        """Degrees of freedom of tests: persons less coefficients, or infinite where sampling does not count."""
        moments = self.moments
        return max(moments.rows / moments.per_person - moments.size, 1.0) if self.weight else np.inf

    def leverage(self, functionals: Floats) -> float:
        """By what errors of any variance may multiply the sampling variance of some combinations of coefficients.

        For one of them, with u = cᵀM⁻¹x, the variance is Σ u²v for errors of variance v: at most v_max Σ u², and at
        most u_max² Σ v. A bounded target limits v, and bounded rows limit u; both over what errors of one variance
        give. For several at once u² is a quadratic form of x. See docs/proofs/intervals.md.
        """
        moments, variance = self.moments, self.residual_variance
        pulls = self.swept.inverse @ np.atleast_2d(functionals).T
        inner = np.linalg.pinv(pulls.T @ self.positive_design @ pulls, hermitian=True)
        by_rows = moments.freedom * float(moments.limits @ np.abs(pulls @ inner @ pulls.T) @ moments.limits)
        by_target = moments.target_limit**2 / variance if variance > 0 else np.inf
        return max(1.0, float(min(by_rows, by_target)))

    @property
    def residual_variance(self) -> float:
        """s² with n − k degrees of freedom, never negative."""
        return max(self.residual_squares, 0.0) / self.moments.freedom

    @cached_property
    def residual_squares(self) -> float:
        """The residual sum of squares, which noise can make negative.

        The fit also absorbs privacy noise, tr(M⁻¹ Cov(Nζ)) of it in expectation; that is put back where the
        noise is small enough for the expansion to mean anything.
        """
        residual = self.swept.residual
        if self.wald_is_sound:
            residual += float((self.swept.inverse * self.entries.score_noise(self.direction)).sum())
        return residual

    @cached_property
    def direction(self) -> Floats:
        """ζ̂ = (−b̂, 1)."""
        return np.append(-self.swept.coefficients, 1.0)

    def score_noise(self, direction: Floats) -> Floats:
        """Cov(N ζ) on the rows of the regressors."""
        k = self.moments.size
        return np.zeros((k, k)) if self.moments.noise is None else self.moments.noise.times(direction)[:k, :k]

    @cached_property
    def entries(self) -> Uncertainty:
        """The same without doubt about units: what the score statistic counts, and what a fit absorbs."""
        moments, noise = self.moments, self.moments.noise
        if noise is None or noise.units is None:
            return self
        return replace(self, moments=replace(moments, noise=noise.entries))

    @cached_property
    def doubt(self) -> Floats:
        """What doubt about units adds to the covariance of the working coefficients."""
        pulls = self.pulls
        return np.asarray(pulls @ pulls.T)

    @property
    def pulls(self) -> Floats:
        """How far each source of doubt about units moves the working coefficients, a column each."""
        noise, k = self.moments.noise, self.moments.size
        if noise is None or noise.units is None:
            return np.zeros((k, 0))
        return np.asarray(self.swept.inverse @ (noise.units @ self.direction)[:, :k].T)

    def doubted(self, statistic: float, rows: Floats, away: Floats) -> float:
        """A squared score statistic at a distance from the estimates of rows·b, with doubt about units beside noise.

        Of one row it is the test that ``widened`` inverts: the least level at which noise reaches a place e from which
        doubt reaches θ. The distance that noise explains and the one that doubt explains add up, as standard deviations
        that go together; of several rows so do they, as if Q were a parabola.
        """
        spread = rows @ self.doubt @ rows.T
        if not spread.any():
            return statistic
        own = float(away @ np.linalg.pinv(spread, hermitian=True) @ away)
        if not (statistic > 0 and own > 0):
            return 0.0
        if len(rows) > 1:
            return float((statistic**-0.5 + own**-0.5) ** -2)
        profile, centre = self.profile(rows[0]), float(rows[0] @ self.swept.coefficients)
        theta, share = (
            centre - float(away[0]),
            float(np.sqrt(spread[0, 0])) / abs(centre) if centre else np.inf,
        )

        def beyond(e: float) -> float:
            return _root(profile(e)) - abs(theta - e) / (share * max(abs(e), abs(centre)))

        if not beyond(theta) > 0 or not beyond(centre) < 0:
            return 0.0
        return float(profile(_brentq(beyond, centre, theta, rtol=1e-12)))

    def widened(self, pieces: Pieces, functional: Floats, *, centre: float, critical: float) -> Pieces:
        """A confidence set of functional·b by score, with doubt about units: a share of the ends, as units are.

        The share is that of the estimate, ``centre``; of the estimate itself where an end is nearer zero.
        """
        doubt = float(np.sqrt(max(float(functional @ self.doubt @ functional), 0.0)))
        if not doubt > 0:
            return pieces
        share = float(np.sqrt(critical)) * doubt / abs(centre) if centre else np.inf
        found: list[tuple[float, float]] = []
        for low, high in pieces:
            ends = low - share * max(abs(low), abs(centre)), high + share * max(abs(high), abs(centre))
            if found and ends[0] <= found[-1][1]:
                before = found.pop()
                ends = before[0], max(before[1], ends[1])
            found.append(ends)
        return tuple(found)

    @cached_property
    def wald_is_sound(self) -> bool:
        """λ_min(M) ≥ 4σ√(2k), with σ the largest standard deviation of noise on a diagonal entry of M."""
        noise, k = self.moments.noise, self.moments.size
        sigma = 0.0
        if noise is not None:
            noise = noise.entries
            # Symmetric noise of this size has a spectral norm of about σ√(2k); the design must stand four times
            # above it, so that M⁻¹ is stable under noise.
            sigma = float(np.sqrt(noise.squares(np.eye(k + 1)[:k]).max()))
        smallest = float(np.linalg.eigvalsh(self.moments.design)[0])
        return smallest > 0 and smallest >= 4 * sigma * np.sqrt(2 * k)

    @cached_property
    def drowned(self) -> tuple[str, ...]:
        """Columns whose pivot is within two standard deviations of what noise alone could leave."""
        noise = self.moments.noise
        if noise is None:
            return tuple(n for n, p in zip(self.moments.names, self.swept.pivots, strict=True) if not p > 0)
        design, left = self.moments.design, np.eye(self.moments.size, self.moments.size + 1)
        for j in range(1, self.moments.size):
            left[j, :j] = -np.linalg.solve(design[:j, :j], design[:j, j])
        # The pivot of column j is the quadratic form of line j: the column less its regression on those before it.
        # So its noise is the same form of N, whose variance the law gives.
        limits = 2 * np.sqrt(noise.entries.squares(left))
        pairs = zip(self.moments.names, self.swept.pivots, limits, strict=True)
        return tuple(name for name, pivot, limit in pairs if not pivot > limit)

    @cached_property
    def hides(self) -> bool:
        """Whether noise hides a column or a combination of columns, so that estimates mean little."""
        if self.drowned or self.moments.noise is None:
            return bool(self.drowned)
        limit = critical_value(0.95, self.freedom)
        if self.wald_is_sound or self.entries.far_away > 2 * limit:  # twice: more than any tails make of it
            return False
        tails = (self.tails(row).critical(0.95) for row in self.moments.slope)
        return self.entries.far_away <= limit or any(self.entries.far_away <= end for end in tails)

    @property
    def nearly_hides(self) -> bool:
        """Whether a combination of columns stands so little above the noise that every interval is very wide."""
        near = 4 * critical_value(0.95, self.freedom)
        return self.hides or (not self.wald_is_sound and self.entries.far_away < near)

    @cached_property
    def positive_design(self) -> Floats:
        """M with negative eigenvalues, which only noise can make, set to zero; of weighted rows their spread."""
        design = self.moments.design if self.moments.spread is None else self.moments.spread
        values, vectors = np.linalg.eigh(design)
        return design if values[0] >= 0 else (vectors * np.maximum(values, 0)) @ vectors.T

    @cached_property
    def sampling(self) -> Floats:
        """The part of the covariance that a release without noise would have too."""
        inverse = self.swept.inverse
        spread = self.weight * self.residual_variance
        return np.asarray(spread * (inverse @ self.positive_design @ inverse))

    @cached_property
    def privacy(self) -> Floats:
        """The part that the noise of the release adds."""
        inverse = self.swept.inverse
        return np.asarray(inverse @ self.score_noise(self.direction) @ inverse)

    def statistic(self, direction: Floats, *, enough: float = -np.inf) -> Height:
        """Q = rᵀS⁻¹r for ζ, its gradient and its second derivatives; unchanged when ζ is multiplied.

        Where Q is not above what is ``enough`` the derivatives are left out, which are most of the work.
        """
        matrix, k, noise = self.moments.matrix, self.moments.size, self.moments.noise
        across = matrix @ direction
        score, square, share = across[:k], max(float(direction @ across), 0.0), self._share
        covariance = self.score_noise(direction) + square * share * self.positive_design
        # Both parts are positive semi-definite, so their sum is; a ridge of 1e-13 of the mean variance lifts it
        # above rounding, and 1e-300 above zero where there is no noise at all. So Cholesky never fails.
        own = covariance.flat[:: k + 1]
        covariance.flat[:: k + 1] = own + (1e-13 * own.sum() / k + 1e-300)
        upper = factored(covariance)
        if upper is None:
            raise LinAlgError("the covariance of the score is not positive")
        weights = solved(upper, score)
        height = float(score @ weights)
        if height <= enough:
            return height, np.zeros(0), np.zeros((0, 0))
        # With w = S⁻¹r held, wᵀS(ζ)w is a quadratic form in ζ; ``form`` is its matrix, ``bent`` d(Sw)/dζ.
        form, bent = np.zeros_like(matrix), np.zeros((k, k + 1))
        if noise is not None:
            form, bent = (
                noise.times(np.append(weights, 0.0)),
                noise.bend(direction, np.append(weights, 0.0))[:k],
            )
        if square > 0 and share > 0:
            pushed = self.positive_design @ weights * share
            form = form + float(weights @ pushed) * matrix
            bent = bent + (2 * pushed)[:, None] * across
        # dQ = 2wᵀdr − wᵀdS w, and dw = S⁻¹(dr − dS w), so the second derivatives below are exact too.
        slope = 2 * (matrix[:, :k] @ weights - form @ direction)
        # S = UᵀU, so xᵀS⁻¹x is the square of U⁻ᵀx.
        steep = dtrtrs(upper, matrix[:k] - bent, trans=1)[0]
        curve = 2 * (steep.T @ steep - form)
        return height, slope, np.asarray(curve)

    @property
    def _share(self) -> float:
        """What a squared residual sum is multiplied by for the variance of errors, without slopes."""
        return self.weight / (self.moments.freedom + (self.moments.size - 1))

    def _sampled(self, direction: Floats) -> float:
        """The variance of errors that ζ leaves, times what sampling counts for."""
        return self._share * max(float(direction @ self.moments.matrix @ direction), 0.0)

    @cached_property
    def total(self) -> Floats:
        """The covariance of the working coefficients: sampling and privacy."""
        return self.sampling + self.privacy

    def error(self, functional: Floats) -> float:
        """The standard error of functional·b."""
        return float(np.sqrt(max(float(functional @ self.total @ functional), 0.0)))

    def tails(self, functional: Floats) -> Tails:
        """The law of the statistic that tests functional·b.

        To first order the noise moves functional·b by ⟨K, N⟩, with K the symmetric part of M⁻¹ functional ζ̂ᵀ.
        """
        whole = float(functional @ self.total @ functional)
        own = float(functional @ self.privacy @ functional)
        return self._tails(self.swept.inverse @ functional, self.direction, own, whole)

    def joint_tails(self, rows: Floats) -> Tails:
        """The law of the statistic that tests rows·b: of all rows, the heaviest tails."""
        return self._heaviest([self.tails(row) for row in rows])

    def score_tails(self, rows: Floats, direction: Floats, free: Floats) -> Tails:
        """The law of the score statistic at ζ = (−b, 1), where rows·b is what is tested and Q lowest along ``free``.

        There the noise puts Nζ into the score r, and so ⟨K, N⟩ into w·r, with K the symmetric part of w ζᵀ, for every w
        that is at right angles to what the free directions do to r. At the estimate ζ has other and more entries, and
        lighter tails. Of one row the law is that of ``tails``, whose test its confidence set inverts.
        """
        if len(rows) == 1:
            return self.tails(rows[0])
        k, noise = self.moments.size, self.score_noise(direction)
        whole = noise + self._sampled(direction) * self.positive_design
        upper, places = qr((self.moments.design @ free).T, mode="r", pivoting=True)
        given = free.shape[1]
        basis = np.eye(k)[:, places[given:]]
        if given:
            basis[places[:given]] = -np.linalg.pinv(upper[:, :given]) @ upper[:, given:]
        return self._heaviest(
            [self._tails(w, direction, float(w @ noise @ w), float(w @ whole @ w)) for w in basis.T]
        )

    def _tails(self, left: Floats, direction: Floats, own: float, whole: float) -> Tails:
        """Of left·Nζ, of variance ``own``, and sampling beside it."""
        noise, freedom = self.moments.noise, self.freedom
        if noise is None or not whole > 0 or not own > 0:
            return Tails(share=0.0, excess=0.0, freedom=freedom)
        along = np.outer(np.append(left, 0.0), direction)
        return Tails(share=min(own / whole, 1.0), excess=noise.excess((along + along.T) / 2), freedom=freedom)

    def _heaviest(self, each: Sequence[Tails]) -> Tails:
        """The law of a sum of squares, each of a law of its own.

        One random variance for all q of them widens the tails of the sum (q + 2) / 3 times as much as q do.
        """
        heaviest = max(each, key=lambda one: one.excess * one.share**2)
        if self.moments.noise is None or not self.moments.noise.law.independent:
            return heaviest
        return replace(heaviest, excess=heaviest.excess * 3 / (len(each) + 2))

    @cached_property
    def at_estimate(self) -> float:
        """Q at b̂, where its score is zero but for rounding: one number for the profiles of all combinations."""
        return self.statistic(self.direction)[0]

    def profile(self, functional: Floats) -> Callable[[float], float]:
        """θ ↦ min of Q over all b with functional·b = θ; θ = ±inf is the limit, which decides boundedness."""
        return Profile(uncertainty=self.entries, functional=functional)

    @property
    def far_away(self) -> float:
        """What the profile of any functional tends to: the lowest Q of all (−b, 0).

        Q does not change when ζ is multiplied, so the limit for θ → ±∞ is the lowest Q of ζ/θ, where the 1 of the
        target is gone; and as any b has neighbours with functional·b ≠ 0, the functional does not matter. The search
        begins at the directions that the design or its covariance knows least about.
        """
        return self._far[0]

    @property
    def far_direction(self) -> Floats:
        """The b where Q of (−b, 0) is lowest: far away, floors of valleys lie along it."""
        return self._far[1]

    @cached_property
    def _far(self) -> tuple[float, Floats]:
        values, weakest = np.linalg.eigh(self.moments.design)
        weakest, widest = weakest[:, np.argsort(np.abs(values))], np.linalg.eigh(self.total)[1][:, ::-1]
        starts = [*weakest.T[:2], *widest.T[:2]]
        found = [Profile(uncertainty=self, functional=b).search(1.0, [b], tail=0.0) for b in starts]
        return min(found, key=lambda one: one[0])


Pieces = tuple[tuple[float, float], ...]
"""Closed intervals in rising order, a confidence set; an end may be infinite."""


def score_set(
    profile: Callable[[float], float], *, centre: float, step: float, critical: float, null: float
) -> Pieces:
    """{θ : profile(θ) ≤ critical} as intervals; ``null`` is the value that is tested, and in it only if accepted.

    Between the places that are asked the set is taken to be all in or all out.
    """
    if not np.isfinite(step) or not step > 0:
        return ((centre, centre),) if step == 0 else ((-np.inf, np.inf),)
    if is_lost(profile, centre):
        return ((-np.inf, np.inf),)
    # Asked first: where infinity is accepted the set has no outer ends to look for, only a gap around the null.
    unbounded = profile(np.inf) <= critical
    rungs = [] if unbounded else [side * rung * np.sqrt(critical) for side in (-1, 1) for rung in _LADDER]
    places = sorted({centre, null, *(centre + step * rung for rung in rungs)})
    accepted = _accepted(profile, places, centre, critical)

    def crossing(one: float, other: float) -> float:
        if np.isinf(one) or np.isinf(other):
            near = other if np.isinf(one) else one
            return _distant_end(
                profile, near, centre=centre, step=step, critical=critical, unbounded=unbounded
            )
        quick = _secant_end(profile, one, other, centre=centre, step=step, critical=critical)
        if quick is not None:
            return quick
        return _brentq(
            lambda t: _root(profile(t)) - _root(critical), one, other, xtol=max(1e-9 * step, 1e-300)
        )

    start, before, last = -np.inf, unbounded, -np.inf
    pieces = []
    for place, yes in [*zip(places, accepted, strict=True), (np.inf, unbounded)]:
        if yes and not before:
            start = crossing(last, place)
        elif before and not yes:
            pieces.append((start, crossing(place, last)))
        before, last = yes, place
    return (*pieces, (start, np.inf)) if before else tuple(pieces)


def _distant_end(
    profile: Callable[[float], float],
    near: float,
    *,
    centre: float,
    step: float,
    critical: float,
    unbounded: bool,
) -> float:
    """Where a profile is critical between a place and infinity: along step / (θ − centre), which is zero there.

    A search far out may miss how low the profile is, so that only infinity itself is accepted and no end is found:
    then the set reaches to the place, and the gap is no larger than what was asked. Likewise where an end recedes
    without end: then there is none.
    """
    try:
        far = _brentq(
            lambda u: profile(centre + step / u if u else np.inf) - critical,
            step / (near - centre),
            0.0,
            rtol=1e-7,
            xtol=1e-300,
        )
    except RuntimeError:  # it did not converge
        return near if unbounded else float(np.copysign(np.inf, near - centre))
    return float(centre + step / far) if far else float(np.copysign(np.inf, near - centre))


def _secant_end(
    profile: Callable[[float], float],
    one: float,
    other: float,
    *,
    centre: float,
    step: float,
    critical: float,
) -> float | None:
    """Where a profile is critical between two places, by secants; None where they leave them or turn back.

    Its root is nearly a line. What it tends to far away says how it bends, which gives a first place and a slope there.
    """
    far, (low, high) = profile(np.inf), sorted((one, other))
    if not far > critical or low < centre < high:
        return None
    wanted = _root(critical)
    place = centre + np.sign(low + high - 2 * centre) * step * wanted / np.sqrt(1 - critical / far)
    place = place if low < place < high else (low + high) / 2
    root = _root(profile(place))
    slope = root / (place - centre) * (1 - root**2 / far)
    if not slope * (place - centre) > 0:
        return None
    return _secants(
        lambda t: _root(profile(t)) - wanted,
        (place, root - wanted),
        place - (root - wanted) / slope,
        between=(low, high),
        tolerance=1e-9 * step,
    )


def _secants(
    rise: Callable[[float], float],
    known: tuple[float, float],
    place: float,
    *,
    between: tuple[float, float],
    tolerance: float,
) -> float | None:
    """A root from a place with its value and a second place; None where secants leave what it lies between, or turn.

    >>> root = _secants(lambda x: x**2 - 2, (1.0, -1.0), 1.5, between=(1.0, 2.0), tolerance=1e-9)
    >>> abs(root - 2**0.5) < 1e-12
    True
    >>> _secants(lambda x: x**2 + 2, (1.0, 3.0), 0.5, between=(0.0, 2.0), tolerance=1e-9)
    """
    before, height = known
    for _ in range(8):
        move = place - before
        if not between[0] <= place <= between[1]:
            return None
        if abs(move) <= tolerance:
            return float(place)
        reached = rise(place)
        if not (height - reached) * height > 0:  # each step goes towards the root
            return None
        before, height, place = place, reached, place - reached * move / (reached - height)
    return None


def _brentq(rise: Callable[[float], float], one: float, other: float, **words: float) -> float:
    from scipy.optimize import brentq  # on use: it takes a quarter of a second, and most commands do without

    return float(brentq(rise, one, other, **words))


def is_all(profile: Callable[[float], float], *, centre: float, critical: float, null: float) -> bool:
    """Whether ``score_set`` would give the whole line for this critical value, and so for any larger one."""
    return is_lost(profile, centre) or (profile(np.inf) <= critical and not _above(profile, null, critical))


def _accepted(
    profile: Callable[[float], float], places: Sequence[float], centre: float, critical: float
) -> list[bool]:
    """Which places are in the set.

    A short search says so for each. Where the statistic has several valleys a longer one may accept what a short one
    did not: so it is asked of every place outside that has a neighbour inside, where an end is then looked for.
    """
    found = [place == centre or not _above(profile, place, critical) for place in places]
    asked: set[int] = set()
    while True:
        doubtful = [
            at
            for at, yes in enumerate(found)
            if not yes and at not in asked and (any(found[max(at - 1, 0) : at + 2]))
        ]
        if not doubtful:
            return found
        for at in doubtful:
            asked.add(at)
            found[at] = profile(places[at]) <= critical


def _above(profile: Callable[[float], float], theta: float, limit: float) -> bool:
    return profile.above(theta, limit) if isinstance(profile, Profile) else not profile(theta) <= limit


def _root(value: float) -> float:
    return float(np.sqrt(max(value, 0.0)))


def is_lost(profile: Callable[[float], float], centre: float) -> bool:
    """Whether not even the estimate solves its own equation: noise of sixty digits leaves nothing known."""
    if isinstance(profile, Profile) and profile.uncertainty.at_estimate <= 0.5:
        return False
    return not profile(centre) <= 0.5


@dataclass(frozen=True, kw_only=True)
class Tails:
    """The law of a test statistic whose error is part sampling and part privacy noise with tails of its own.

    The noise is taken for normal with a random variance, which is Gamma with the shape that gives its excess kurtosis:
    exactly so for one Laplace entry, and for the product of two vectors with Wishart noise. Without excess the law is
    Student's, or F.

    ``share`` is the share of the variance that is privacy, ``excess`` the excess kurtosis of that part.
    """

    share: float
    excess: float
    freedom: float

    def p_value(self, size: float, count: int = 1) -> float:
        """The chance of a squared statistic as large as ``size`` with so many degrees of freedom.

        >>> round(Tails(share=1.0, excess=3.0, freedom=1e9).p_value(50.0), 6), round(float(np.exp(-10)), 6)  # Laplace
        (4.5e-05, 4.5e-05)
        """
        variances, weights = self._mixture
        if np.isinf(self.freedom):
            return float(np.minimum(1.0, weights @ chdtrc(count, size / variances)))
        return float(np.minimum(1.0, weights @ fdtrc(count, self.freedom, size / count / variances)))

    def critical(self, level: float) -> float:
        """The size that a squared statistic exceeds with the chance 1 − level."""
        normal = critical_value(level, self.freedom)
        if not self.is_heavy:
            return normal

        # Tails fall about as a power of e of the statistic's root, so that few steps meet the level.
        def beyond(root: float) -> float:
            return float(np.log(self.p_value(root**2) / (1 - level)))

        low, first = (float(np.sqrt(size)) for size in (self.least_critical(level), normal))
        height = beyond(first)
        # A normal tail falls by about first + 1 / first there.
        second = first + height / (first + 1 / first)
        root = _secants(beyond, (first, height), second, between=(low, 2 * first), tolerance=1e-10 * first)
        if root is None:
            high = 2 * first
            while beyond(high) > 0:
                high *= 2
            root = _brentq(beyond, low, high, rtol=1e-10)
        return root**2

    def least_critical(self, level: float) -> float:
        """What ``critical`` is not below, without a search."""
        return critical_value(level, self.freedom) / (4 if self.is_heavy else 1)

    @property
    def is_heavy(self) -> bool:
        """Whether the tails differ from Student's by anything that shows."""
        return self.excess * self.share**2 > 1e-3

    @cached_property
    def _mixture(self) -> tuple[Floats, Floats]:
        """Values of the random variance, 1 on average, and their weights."""
        if not self.is_heavy:
            return np.ones(1), np.ones(1)
        shape = 3 / self.excess
        steps = np.linspace(-24.0, 8.0, 1601) / np.sqrt(max(shape, 1.0))
        logs = shape * (steps - np.exp(steps))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        variances = np.exp(steps) / float(weights @ np.exp(steps))
        # The smallest of them make the smallest chances: what weighs nothing among them adds nothing to any sum.
        some = np.cumsum(weights) > 1e-20
        return 1 - self.share + self.share * variances[some], weights[some]


def critical_value(level: float, freedom: float) -> float:
    """The two-sided Student quantile, squared; the normal one for infinite freedom."""
    return float(ndtri(0.5 + level / 2) if np.isinf(freedom) else stdtrit(freedom, 0.5 + level / 2)) ** 2


_TOLERANCE = 1e-10  # of a column's own sum of squares: what rounding can leave of a pivot that should be zero


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept:
    """Coefficients b = M⁻¹m, the inverse M⁻¹, the residual sum of squares, and each column's pivot."""

    coefficients: Floats
    inverse: Floats
    residual: float
    pivots: Floats


def sweep(matrix: Floats, names: Sequence[str]) -> Swept:
    """Sweep every column but the last, which is the target.

    A pivot is what a column has left after the columns before it. Guarantee: a pivot that is zero up to
    rounding raises an error that names the column and those it is made of; a negative one, which only noise
    can make, is swept like any other.

    >>> swept = sweep(np.array([[4.0, 2.0, 6.0], [2.0, 2.0, 4.0], [6.0, 4.0, 11.0]]), ["(Intercept)", "age"])
    >>> swept.coefficients, swept.residual
    (array([1., 1.]), 1.0)
    """
    work, k = np.array(matrix, dtype=np.float64), len(matrix) - 1
    original, pivots = np.diag(matrix).copy(), np.empty(k)
    for j in range(k):
        pivot = work[j, j]
        if not abs(pivot) > _TOLERANCE * abs(original[j]):
            raise _singular(work[:j, j] * np.sqrt(np.abs(original[:j])), j, names, abs(original[j]))
        pivots[j] = pivot
        row = work[j] / pivot
        column = work[:, j].copy()
        work -= np.outer(column, row)
        work[j], work[:, j] = row, -column / pivot
        work[j, j] = 1 / pivot
    return Swept(
        coefficients=work[:k, k].copy(),
        inverse=(work[:k, :k] + work[:k, :k].T) / 2,
        residual=float(work[k, k]),
        pivots=pivots,
    )


def _singular(shares: Floats, j: int, names: Sequence[str], size: float) -> ParameterError:
    """Column j in terms of the columns before it: those with a share worth naming."""
    others = [name for name, share in zip(names, shares, strict=False) if abs(share) > 1e-6 * np.sqrt(size)]
    made = f"is a linear combination of {', '.join(others)}" if others else "has no values"
    return ParameterError(
        "E236", f"the design is singular: column {names[j]} {made}.", f"Leave {names[j]} out of the formula."
    )


_SEED = 20220704
_MOST_DRAWS, _FEWEST_DRAWS, _WORK = 2000, 400, 2 * 10**8


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """Deviations b* − b̂ of redrawn working coefficients from the fit, one line per draw."""

    deviations: Floats

    @classmethod
    def of(cls, uncertainty: Uncertainty) -> Bootstrap:
        """b* = (Q + N*)⁻¹ (Q b̂ + n* + s Q^½ g): Q the design, N* and n* new noise of the same law, g normal.

        Assumes that the design stands clear of the noise; eigenvalues of M below one standard deviation of it
        are raised to that. The draws come from a fixed seed and never meet data: this is post-processing.
        """
        moments, source = uncertainty.moments, rehearsal(_SEED)
        assert moments.noise is not None, "asked for a law alone, so the moments know their noise"
        noise, k = moments.noise, moments.size
        law, places = noise.law, noise.places
        values, vectors = np.linalg.eigh(moments.design)
        along = [np.outer(axis, axis) for axis in np.pad(vectors.T, ((0, 0), (0, 1)))]
        values = np.maximum(values, np.sqrt([noise.entries.inner(square, square) for square in along]))
        design = (vectors * values) @ vectors.T
        spread = np.sqrt(uncertainty.weight * uncertainty.residual_variance)
        root = (vectors * np.sqrt(values)) @ vectors.T * spread
        if moments.spread is not None:
            values, vectors = np.linalg.eigh(uncertainty.positive_design)
            root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T * spread
        centre = design @ uncertainty.swept.coefficients
        draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // law.dimension**2))
        shown = noise.variances > 0
        found = np.empty((draws, k))
        for i in range(draws):
            drawn = np.where(shown, law.simulate(source)[np.ix_(places, places)], 0.0)
            mixed = noise.mixing @ drawn @ noise.mixing.T
            right = centre + mixed[:k, k] + root @ source.normals(k)
            found[i] = np.linalg.solve(design + mixed[:k, :k], right)
        pulls = uncertainty.pulls
        if pulls.shape[1]:
            found += np.array([source.normals(pulls.shape[1]) for _ in range(draws)]) @ pulls.T
        return cls(deviations=found - uncertainty.swept.coefficients)

    def interval(self, functional: Floats, level: float) -> tuple[float, float]:
        """What to add to the estimate for the basic bootstrap interval of functional·b."""
        low, high = np.quantile(self.deviations @ functional, [0.5 - level / 2, 0.5 + level / 2])
        return -float(high), -float(low)

    def tail(self, functional: Floats, distance: float) -> float:
        """Twice the chance of a deviation at least as far out on its side, counted among the draws.

        It is the test that ``interval`` inverts: below 1 − level where the interval leaves out what was tested.
        """
        drawn = self.deviations @ functional
        further = min(int((drawn >= distance).sum()), int((drawn <= distance).sum()))
        return min(1.0, 2 * (1 + further) / (1 + len(drawn)))

    def tail_squared(self, precision: Floats, columns: slice, size: float) -> float:
        """The chance of a squared deviation, weighed by ``precision``, as large as ``size``."""
        part = self.deviations[:, columns]
        larger = int((np.einsum("ij,jk,ik->i", part, precision, part) >= size).sum())
        return (1 + larger) / (1 + len(self.deviations))
