"""Everything a mechanism's proof page promises at one loss: often more than the loss itself says.

At (1, 1e-6) no feasible number of runs sees noise that is halved: the violation hides where δ is compared with a
millionth. But a Gaussian mechanism promises a whole trade-off curve, others an exact profile or a zCDP budget
behind their (ε, δ), and in the middle of those curves a fault is plain.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from privcov.accounting import gaussian_mu
from privcov.audit.claims import Claim, Delta, Epsilon, Gaussian, Rho
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.sketch_loss import sketch_delta
from privcov.mechanisms.wishart import Wishart
from privcov.mechanisms.wishart_accounting import cheapest_delta
from privcov.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from privcov.schema.grid import Grid

GAUSSIAN = ("gaussian", "separate", "joint-gaussian")
"""The mechanisms whose proof gives the trade-off curve of a Gaussian."""


def promises(mechanism: Mechanism, loss: Loss, grid: Grid) -> tuple[Claim, ...]:
    """The loss as a claim, first; then the sharper claims of the mechanism's own proof."""
    if isinstance(loss, PureDP):
        return (Epsilon(allowed=float(loss.epsilon)),)
    curved = mechanism.name in GAUSSIAN and getattr(mechanism, "noise", "rounded") == "rounded"
    if isinstance(loss, ZCDP):
        found: tuple[Claim, ...] = (Rho(allowed=float(loss.rho)),)
        return (*found, Gaussian(allowed=math.sqrt(2 * loss.rho))) if curved else found
    found = (Epsilon(allowed=float(loss.epsilon), at_delta=float(loss.delta)),)
    if curved:
        return (*found, Gaussian(allowed=float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta))))
    rho = mechanism.as_zcdp(loss)
    behind = () if rho is None else (Rho(allowed=float(rho)),)
    return (*found, *behind, *_exact_profile(mechanism, loss, grid))


def profile(claims: tuple[Claim, ...], loss: Loss) -> tuple[Delta, ...]:
    """Points of the privacy profile δ(ε), each with the least δ that any of the claims implies.

    None where the claims are points of an exact profile already.
    """
    if any(isinstance(claim, Delta) for claim in claims):
        return ()
    top = float(loss.amounts.get("epsilon", 0)) or math.sqrt(float(loss.amounts.get("rho", 1)))
    points = [0.0, top / 4, top / 2, top]
    return tuple(
        Delta(allowed=min(claim.delta(point) for claim in claims), at_epsilon=point) for point in points
    )


def _exact_profile(mechanism: Mechanism, loss: ApproxDP, grid: Grid) -> tuple[Claim, ...]:
    """Points of the exact accountants of the two mechanisms that have one."""
    found, moved = [], Sensitivity.of(grid, loss.neighbours).operator
    for share in (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4)):
        epsilon = share * loss.epsilon
        if isinstance(mechanism, JohnsonLindenstrauss):
            least = sketch_delta(
                ratio=moved / mechanism.ridge(loss=loss, grid=grid),
                sketch_rows=mechanism.rows(grid),
                epsilon=epsilon,
                replaced=loss.neighbours is Neighbours.REPLACE_ONE and grid.dimension > 1,
            )
        elif isinstance(mechanism, Wishart):
            law = replace(mechanism, centred="yes").law(loss=loss, grid=grid)
            assert law is not None
            least = cheapest_delta(
                shift=moved * grid.unit / Fraction(law.scale),
                epsilon=epsilon,
                freedom=law.degrees - grid.dimension + 1,
                neighbours=loss.neighbours,
            )
        else:
            return ()
        found.append(Delta(allowed=float(least), at_epsilon=float(epsilon)))
    return tuple(found)
