"""Standard errors, intervals and p-values of coefficients that both sampling and privacy noise move.

The estimating equation of least squares is r(b) = m − M b = 0. At the true b its covariance is
S(b) = s²M + Cov(N ζ) with ζ = (−b, 1): sampling, plus the released noise N through its own law.

* Wald: V = M⁻¹ S(b̂) M⁻¹. Right when the noise is small against the smallest eigenvalue of M.
* Score inversion (Fieller): every value that r(b)ᵀS(b)⁻¹r(b), minimised over the other coefficients, does not
  reject. It never inverts M, and where the data cannot say it returns the whole line.

Assumes homoscedastic errors and values within the declared bounds; see docs/explain/regression.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dtrtrs

from privcov.linalg.arrays import Floats
from privcov.models.moments import Moments
from privcov.models.profile import Height, Profile, factored, solved
from privcov.models.score_sets import Pieces, brentq, rooted
from privcov.models.sweep import Swept
from privcov.models.tails import Tails, critical_value


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
            return rooted(profile(e)) - abs(theta - e) / (share * max(abs(e), abs(centre)))

        if not beyond(theta) > 0 or not beyond(centre) < 0:
            return 0.0
        return float(profile(brentq(beyond, centre, theta, rtol=1e-12)))

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
