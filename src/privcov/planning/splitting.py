"""One release or several: what a budget is worth when it is divided, and what a joint release saves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privcov.accounting import approx_to_zcdp
from privcov.errors import ParameterError
from privcov.planning.candidates import choose
from privcov.planning.forecast import forecast
from privcov.planning.invert import loss_values
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.schema.grid import Grid

MOST_RELEASES = 10_000


@dataclass(frozen=True, kw_only=True)
class Share:
    """One way to divide a budget over several releases of one table."""

    rule: str
    each: Loss
    mechanism: str
    error: float
    """Expected Frobenius error per row of each release, in scaled units."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """The ways to divide a budget, and the one release that would answer the same questions."""

    releases: int
    joint: Share
    shares: tuple[Share, ...]

    @property
    def best(self) -> Share:
        return min(self.shares, key=lambda share: share.error)

    @property
    def saving(self) -> float:
        """How many times larger the error of each of the several releases is."""
        return self.best.error / self.joint.error

    def to_dict(self) -> dict[str, Any]:
        """The split as JSON values."""
        told = {
            share.rule: {"each": loss_values(share.each), "mechanism": share.mechanism, "error": share.error}
            for share in (self.joint, *self.shares)
        }
        return {"releases": self.releases, "ways": told, "joint_saves": self.saving}


def split(*, loss: Loss, grid: Grid, rows: int, releases: int) -> Split:
    """What each of several releases could have, by every rule of composition valid for the budget.

    Every release is of the whole schema. All their questions could be answered from one: models are free.

    >>> loss = PureDP(epsilon=1, neighbours="replace-one")
    >>> found = split(loss=loss, grid=Grid(dimension=3, exponent=20, squared_norm_bound=2**40), rows=1000, releases=4)
    >>> round(found.saving, 6)
    4.0
    """
    if isinstance(releases, bool) or not isinstance(releases, int) or not 1 <= releases <= MOST_RELEASES:
        raise ParameterError(
            "E265", f"releases must be a whole number from 1 to {MOST_RELEASES}, got {releases}."
        )
    ways = [("one joint release", loss), *_ways(loss, releases)]
    made = [_share(rule, each, grid, rows) for rule, each in ways]
    return Split(releases=releases, joint=made[0], shares=tuple(made[1:]))


def _ways(loss: Loss, k: int) -> list[tuple[str, Loss]]:
    if isinstance(loss, PureDP):
        return [("epsilons add", PureDP(epsilon=loss.epsilon / k, neighbours=loss.neighbours))]
    if isinstance(loss, ZCDP):
        return [("rhos add", ZCDP(rho=loss.rho / k, neighbours=loss.neighbours))]
    even = ApproxDP(epsilon=loss.epsilon / k, delta=loss.delta / k, neighbours=loss.neighbours)
    whole = approx_to_zcdp(loss).rho
    # Rounded down to a decimal that a person can type; the sum stays within the budget.
    rho = Fraction(int(whole / k * 10**9), 10**9) or whole / k
    return [
        ("epsilons and deltas add", even),
        ("through zCDP: rhos add", ZCDP(rho=rho, neighbours=loss.neighbours)),
    ]


def _share(rule: str, each: Loss, grid: Grid, rows: int) -> Share:
    taken = choose(loss=each, grid=grid)
    error = forecast(taken.mechanism, loss=taken.loss, grid=grid, rows=rows).frobenius.mean
    return Share(rule=rule, each=taken.loss, mechanism=taken.mechanism.name, error=error)
