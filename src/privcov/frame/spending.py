"""A loss that several rounds and a release share: what a round costs, and what is left for the matrix.

Rounds are asked one after the other, and what each costs is fixed before the first of them; which are asked may depend
on answers that were paid for. Proof that the parts add up to the promise: docs/proofs/frame.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privcov.accounting import approx_to_zcdp, gaussian_mu, pure_to_zcdp
from privcov.errors import ParameterError
from privcov.mechanisms.base import Mechanism
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP, decimal_text
from privcov.text.grammar import brief

_DIGITS = 6
_LEAST = Fraction(1, 1000)


@dataclass(frozen=True, kw_only=True)
class Purse:
    """A loss in the unit in which its parts add up: pure ε, or ρ.

    Pure ε adds up, and so does ρ. An (ε, δ) promise of Gaussian noise is μ² of one Gaussian, which adds up over
    Gaussians, as ρ = μ²/2 does; in front of a mechanism of another kind rounds are pure, and δ stays with the matrix.
    """

    loss: Loss
    unit: type[PureDP] | type[ZCDP]
    total: Fraction

    @classmethod
    def of(cls, loss: Loss, mechanism: Mechanism) -> Purse:
        """How a loss is shared by rounds and a release by ``mechanism``."""
        if isinstance(loss, ZCDP):
            return cls(loss=loss, unit=ZCDP, total=loss.rho)
        assert isinstance(loss, PureDP | ApproxDP)
        if isinstance(loss, ApproxDP) and mechanism.is_one_gaussian:
            mu = gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)
            return cls(loss=loss, unit=ZCDP, total=mu**2 / 2)
        if isinstance(loss, ApproxDP) and "zcdp" in mechanism.kinds:
            return cls(loss=loss, unit=ZCDP, total=approx_to_zcdp(loss).rho)
        return cls(loss=loss, unit=PureDP, total=loss.epsilon)

    def part(self, share: Fraction) -> PureDP | ZCDP:
        """A share of it, rounded down to a few digits."""
        amount, unit = share * self.total, Fraction(1)
        while unit > amount:
            unit /= 10
        unit /= 10**_DIGITS
        amount = amount // unit * unit
        if self.unit is PureDP:
            return PureDP(epsilon=amount, neighbours=self.loss.neighbours)
        return ZCDP(rho=amount, neighbours=self.loss.neighbours)

    def rest(self, spent: Sequence[PureDP | ZCDP]) -> Loss:
        """What is left for the matrix after some rounds."""
        if any(type(one) is not self.unit for one in spent):
            raise ParameterError(
                "E218", "the rounds of this release are not paid in the unit of its promise."
            )
        left = self.total - sum((next(iter(one.amounts.values())) for one in spent), start=Fraction(0))
        if left <= 0:
            raise ParameterError("E218", "the rounds cost all of the loss: nothing is left for the matrix.")
        if self.unit is ZCDP:
            return ZCDP(rho=left, neighbours=self.loss.neighbours)
        if isinstance(self.loss, ApproxDP):
            return ApproxDP(epsilon=left, delta=self.loss.delta, neighbours=self.loss.neighbours)
        return PureDP(epsilon=left, neighbours=self.loss.neighbours)


def shared_with_total(loss: Loss, mechanism: Mechanism, share: Fraction) -> tuple[PureDP | ZCDP, Loss]:
    """What a total over strata costs that has a share of the loss, and what is left for the strata together.

    Proof that both add up: docs/proofs/strata.md.

    >>> from privcov.mechanisms import MECHANISMS
    >>> whole = PureDP(epsilon=1, neighbours="add-remove")
    >>> total, strata = shared_with_total(whole, MECHANISMS["symmetric-wishart"](), Fraction(1, 5))
    >>> str(total.epsilon), str(strata.amounts["epsilon"])
    ('1/5', '4/5')
    """
    if not _LEAST <= share <= 1 - _LEAST:
        raise ParameterError(
            "E225",
            f"total_share must be 0, or a number from 0.001 to 0.999, or best, got {brief(decimal_text(share))}.",
            "It is the share of the loss for the total of strata; privcov plan names the best.",
        )
    purse = Purse.of(loss, mechanism)
    total = purse.part(share)
    return total, purse.rest([total])


def as_rho(loss: PureDP | ZCDP) -> Fraction:
    """What a round costs as zCDP."""
    return loss.rho if isinstance(loss, ZCDP) else pure_to_zcdp(loss).rho
