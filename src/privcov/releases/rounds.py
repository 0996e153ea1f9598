"""The rounds of a private frame as readers see them: the shares of the budget, and how much of the rows was cut.

Post-processing of the noisy counts on the certificate. The radius is found again from them, by the formula that chose
it: ``privcov.frame.fitting`` asks here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privcov.accounting import approx_to_zcdp, gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import Normal
from privcov.privacy import ApproxDP, PureDP
from privcov.releases.certificate import RADII, TOTAL, Certificate, Round
from privcov.releases.means import Means
from privcov.repair.facts import Usual
from privcov.repair.histogram import denoised
from privcov.schema import Numeric, Schema
from privcov.schema.names import split_names
from privcov.schema.weights import declared, usual_share

if TYPE_CHECKING:
    from privcov.releases.release import Release

_SMALL = 0.001
"""Noise on the share of a cell that needs no care."""
_APART = 0.7
"""How far variances of columns are from one another in a frame, as a share of them."""
BIAS = 0.08
"""The root mean square bias of correlations over the root of the squared length that a radius cuts off, by row."""


def shares(certificate: Certificate) -> dict[str, float]:
    """The share of the whole loss that each kind of question cost, and what was left for the matrix.

    Pure ε adds up, and so does ρ; an (ε, δ) promise of Gaussian noise is ρ = μ²/2 in the same sense. They add up to 1.

    >>> from privcov.noise.laws import WishartDifference
    >>> loss, part = PureDP(epsilon=1, neighbours="replace-one"), PureDP(epsilon="0.05", neighbours="replace-one")
    >>> law = WishartDifference(dimension=2, scale=1.0)
    >>> rounds = tuple(Round(name=name, loss=part, std=1.0, answers=(9, 1)) for name in ("scales", "scales", "radius"))
    >>> made = Certificate(mechanism="symmetric-wishart", options={}, loss=loss, law=law, arithmetic="exact",
    ...                    randomness="kernel", proof="", timing="", rounds=rounds)
    >>> {name: round(share, 2) for name, share in shares(made).items()}
    {'matrix': 0.85, 'scales': 0.1, 'radius': 0.05}
    """
    total, found = _total(certificate), {"matrix": 1.0}
    for one in certificate.rounds:
        share = _amount(one) / total
        found[one.name] = found.get(one.name, 0.0) + share
        found["matrix"] -= share
    return found


def share(certificate: Certificate, one: Round) -> float:
    """The share of the whole loss that one round cost."""
    return _amount(one) / _total(certificate)


def _amount(one: Round) -> float:
    return float(next(iter(one.loss.amounts.values())))


def _total(certificate: Certificate) -> float:
    """The loss in the unit that its rounds are paid in."""
    loss = certificate.loss
    if isinstance(loss, ApproxDP) and not isinstance(certificate.rounds[0].loss, PureDP):
        if not isinstance(certificate.law, Normal):
            return float(approx_to_zcdp(loss).rho)
        return float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)) ** 2 / 2
    return float(next(iter(loss.amounts.values())))


def weight_in(emphasis: tuple[str, ...], column: Numeric) -> float:
    """What a column weighs in the norm of a row: 1, or a half where it is not in an emphasis."""
    return 1.0 if not emphasis or column.name in emphasis else 0.5


def width_of(schema: Schema, emphasis: tuple[str, ...]) -> float:
    """The number of numeric columns, each counted with the square of its weight."""
    return sum(weight_in(emphasis, column) ** 2 for column in measured(schema))


def measured(schema: Schema) -> list[Numeric]:
    """The numeric columns that a frame measures: all but a weight."""
    return [column for column in declared(schema) if isinstance(column, Numeric)]


def usual_variances(release: Release, columns: Mapping[int, Numeric]) -> Usual:
    """What the rounds of a release tell of its numeric columns beside the matrix: in one scale, and shortened alike.

    Parameters
    ----------
    release : Release
        A release in a private frame without a shape.
    columns : mapping of int to Numeric
        The columns by their places in the sum.
    """
    norms, emphasis = Norms.of(release), _emphasis(release.certificate)
    level = norms.spread**2 * norms.kept(norms.radius)
    return Usual(
        places=tuple(columns),
        variances=tuple(level * weight_in(emphasis, column) ** 2 for column in columns.values()),
        most=norms.weight,
        apart=_APART,
    )


def _emphasis(certificate: Certificate) -> tuple[str, ...]:
    stated = certificate.options.get("emphasis")
    return () if stated is None else tuple(split_names(stated))


def can_be_counted(release: Release) -> bool:
    """Whether a release of such rows could count what a private frame cuts: all rows at once, each as one."""
    return release.certificate.strata is None and release.schema.weight is None


def framed_means(release: Release) -> Means | None:
    """Means and how far they may be off, in original units, of a release in a private frame; None for any other."""
    return release._means if any(one.name == "means" for one in release.certificate.rounds) else None


def uncounted(release: Release) -> str | None:
    """That intervals do not count what a private frame cut off rows, and about how much that is.

    None in the declared frame, and where the release was made with ``cut="counted"``.
    """
    if not release.certificate.rounds or release.calibration is not None:
        return None
    return (
        "What the private frame cut off long rows is not counted here: it may have moved correlations by about "
        f"{Norms.of(release).bias:.1g}, which is a model and no proof."
    )


def counted(release: Release, *, units: bool = True) -> str | None:
    """What intervals allow for where the cut of a private frame is counted; None for other releases.

    ``units`` says whether what they are of rests on standard deviations, as correlations do not.
    """
    if (found := release.calibration) is None:
        return None
    deviations = "for the error of standard deviations, and for one" if units else "for an error"
    return (
        f"Intervals allow for what the private frame cut off long rows: {deviations} of {found.bias:.1g} on "
        "correlations, which is a model and no proof."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Norms:
    """How long rows were before they were shortened, in root mean square deviations of the frame's columns.

    Attributes
    ----------
    counts : ndarray of shape (31,)
        The share of the rows in each cell, with noise: below the first of ``RADII``, between two, above the last.
    noise_std : float
        The standard deviation of the noise on each of these shares.
    width : float
        The number of numeric columns, each counted with the square of its weight.
    weight : float
        The squared norm that the numeric columns of a row may have, in scaled units.
    entry_std : float
        The standard deviation of the noise on an entry of the matrix off the diagonal, in scaled units; times the
        number of strata, where there are several.
    rows : float
        The number of rows: public, or the noisy number that the first round counted.
    laplace : bool, default False
        Whether the noise on the shares has the tails of Laplace's law.
    """

    counts: Floats
    noise_std: float
    width: float
    weight: float
    entry_std: float
    rows: float
    laplace: bool = False

    @classmethod
    def of(cls, release: Release) -> Norms:
        """Read them off a release; refuses one that was made in the declared frame (E210)."""
        schema, certificate = release.schema, release.certificate
        columns = len(measured(schema))
        if not certificate.rounds or certificate.law is None or not columns:
            raise ParameterError("E210", "this release has no rounds: it was made in the declared frame.")
        last = next(one for one in certificate.rounds if one.name == "radius")
        # Rounds are about all rows. Of one stratum of K, noise counts against a Kth of them; that of the total is √K
        # times that of one, and so K times it is √K times that of the total.
        stated, strata = certificate.options.get("all_rows"), certificate.strata or 1
        rows = release.rows if stated is None else int(stated)
        times = math.sqrt(strata) if certificate.options.get("stratum") == TOTAL else strata
        count = (
            max(1.0, sum(certificate.rounds[0].answers) / columns) if rows is None else float(max(1, rows))
        )
        return cls(
            counts=np.array(last.answers, dtype=np.float64) / count,
            noise_std=last.std / count,
            width=width_of(schema, _emphasis(certificate)),
            weight=float(schema.squared_norm_bound - schema.fixed_squared_norm),
            entry_std=times * math.sqrt(certificate.law.offdiagonal_variance) / usual_share(schema),
            rows=count,
            laplace=isinstance(last.loss, PureDP),
        )

    @cached_property
    def radius(self) -> float:
        """What rows were shortened to: the radius with the least error of correlations, noise and bias together."""
        return min(RADII, key=self.error)

    def error(self, radius: float) -> float:
        """The error of a correlation that a radius leaves, in root mean square: noise, and the bias of what it cuts.

        A radius c leaves noise·c²·d/(n·kept) on a correlation, with kept = mean min(u², c²) for u = |z|/√d, and a bias
        of about ``BIAS``·√g, g = mean (1 − c²/u²)₊. Both means are over the likely shares.
        """
        square, kept = radius * radius, self.kept(radius)
        cut = max(float(self.likely @ _cut(square)), 0.0)
        noise = self.entry_std / self.weight * square * self.width / (self.rows * kept)
        return math.sqrt(noise * noise + BIAS * BIAS * cut)

    def kept(self, radius: float) -> float:
        """The mean square of a column of rows that are shortened to a radius, of 1 before."""
        square = radius * radius
        # Where few long rows have most of the squared length, it lies in few columns: the others have no more than 1.
        return min(max(float(self.likely @ np.minimum(_MIDDLES, square)), 0.4 * min(1.0, square)), 1.0)

    @cached_property
    def likely(self) -> Floats:
        """The shares with most of their noise taken off; where it is small they speak for themselves."""
        if self.noise_std < _SMALL:
            return self.counts
        ends = np.log([RADII[0] / 2, *RADII, RADII[-1] * 1.5])
        noise = np.full(len(self.counts), self.noise_std)
        edges = (ends - ends[0]) / (ends[-1] - ends[0])
        return denoised(self.counts, noise, edges, total=1.0, laplace=self.laplace).counts

    @property
    def spread(self) -> float:
        """What one standard deviation of a column, as the frame has it, is in scaled units."""
        return math.sqrt(self.weight / self.width) / self.radius

    @property
    def shortened(self) -> tuple[float, float]:
        """The share of the rows that were shortened, and one standard deviation of the noise on it."""
        return self._mean((self.radius**2 < _MIDDLES).astype(np.float64))

    @property
    def cut(self) -> tuple[float, float]:
        """The share of its squared length that a row lost, on average over rows; and the noise on it.

        An average over rows, of numbers below 1: so noise on a count does little harm. The share of the whole squared
        length would rest on the few longest rows, which noise hides.
        """
        return self._mean(_cut(self.radius**2))

    @property
    def bias(self) -> float:
        """What shortening may have moved a correlation by, in root mean square: a model, and no theorem.

        Twice what the radius was chosen by, with what noise may hide of the cut: docs/explain/frame.md has how often
        that was enough.
        """
        return 2 * BIAS * math.sqrt(sum(self.cut))

    @property
    def lost(self) -> float:
        """The most that shortening is taken to have cut off the variance of a column, in scaled units.

        The squared length that rows lost up to twice the radius, as it was counted, with one standard deviation of the
        noise; beyond, what a tail like u⁻³ would have, an eighth of the rows beyond the radius at twice as much, or as
        many rows as counts show clearly; and all of it in one column.
        """
        square = self.radius**2
        near, far = (square < _MIDDLES) & (4 * square >= _MIDDLES), 4 * square < _MIDDLES
        weights = np.where(
            near, _MIDDLES - square + 11 * square / 7, 0.0
        )  # each with a seventh of a row further out
        lost = max(float(self.counts @ weights), 0.0) + self.noise_std * float(np.linalg.norm(weights))
        seen, noise = float(self.counts @ far), self.noise_std * math.sqrt(float(far.sum()))
        if seen > 3 * noise:
            lost = max(
                lost, float(self.counts @ np.clip(_MIDDLES - square, 0.0, 3 * square)) + 8 * square * seen
            )
        return lost * self.width * self.spread**2

    def _mean(self, weights: Floats) -> tuple[float, float]:
        value = float(self.counts @ weights)
        return min(1.0, max(0.0, value)), self.noise_std * float(np.linalg.norm(weights))


def _inside() -> Floats:
    """The squared norm that a row in each cell counts with: in the middle, in squares; the last cell has no end."""
    squares = np.array([0.0, *(radius * radius for radius in RADII)])
    return np.append((squares[:-1] + squares[1:]) / 2, 1.25 * squares[-1])


def _cut(square: float) -> Floats:
    """The share of its squared length that a row in each cell loses to a squared radius."""
    return np.maximum(1.0 - square / _MIDDLES, 0.0)


_MIDDLES = _inside()
