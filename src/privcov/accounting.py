"""Conversions and composition, rounded toward privacy: a returned loss is never below the true one.

Formulas are evaluated in Arb balls (python-flint) and the outer end of the ball is used, so a result is a
bound and not an approximation: docs/proofs/accounting.md. Functions ending in a budget (``gaussian_mu``,
``approx_to_zcdp``) return the largest parameter that is *certified* to stay within it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from privcov.errors import ParameterError
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, Neighbours, PureDP, exact

_PRECISION = 256


def gaussian_delta(*, mu: Amount, epsilon: Amount) -> Fraction:
    """Return the exact δ(ε) of Gaussian noise, rounded up.

    δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018), valid for every ε ≥ 0.

    Parameters
    ----------
    mu : Fraction, int, float or str
        The sensitivity in standard deviations of the noise.
    epsilon : Fraction, int, float or str
        The ε, at least 0.

    Returns
    -------
    Fraction
        The δ, never below the true one.

    Raises
    ------
    ValueError
        A number cannot be read.

    Examples
    --------
    >>> from privcov.accounting import gaussian_delta
    >>> f"{float(gaussian_delta(mu=1 / 4.2247, epsilon=1)):.2e}"
    '1.00e-06'
    """
    with ctx.workprec(_PRECISION):
        return upper_end(_gaussian_delta(ball(exact(mu)), ball(exact(epsilon))))


def gaussian_mu(*, epsilon: Amount, delta: Amount) -> Fraction:
    """Return the largest certified μ (sensitivity over standard deviation) that costs at most (ε, δ).

    Parameters
    ----------
    epsilon : Fraction, int, float or str
        The ε, above 0.
    delta : Fraction, float or str
        The δ, between 0 and 1.

    Returns
    -------
    Fraction
        The μ, never above the true one.

    Raises
    ------
    ValueError
        A number cannot be read.

    Examples
    --------
    >>> from privcov.accounting import gaussian_mu
    >>> round(1 / float(gaussian_mu(epsilon=1, delta="1e-6")), 4)
    4.2247
    """
    return _gaussian_mu(exact(epsilon), exact(delta))


def zcdp_to_approx(loss: ZCDP, *, delta: Amount) -> ApproxDP:
    """Return the (ε, δ) that ρ-zCDP implies: the optimal-order formula of Canonne, Kamath and Steinke 2020.

    Parameters
    ----------
    loss : ZCDP
        The loss to convert.
    delta : Fraction, float or str
        The δ to convert to, between 0 and 1.

    Returns
    -------
    ApproxDP
        A loss with this δ, its ε never below the true one; the same neighbours.

    Raises
    ------
    ParameterError
        Delta is not between 0 and 1 (E203).

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.accounting import zcdp_to_approx
    >>> loss = zcdp_to_approx(pc.ZCDP(rho="0.02436", neighbours="replace-one"), delta=1e-6)
    >>> round(float(loss.epsilon), 3)
    1.0
    """
    epsilon = _zcdp_epsilon(loss.rho, exact(delta))
    return ApproxDP(epsilon=epsilon, delta=delta, neighbours=loss.neighbours)


@lru_cache
def approx_to_zcdp(loss: ApproxDP) -> ZCDP:
    """Return the largest certified ρ whose zCDP implies this (ε, δ).

    Parameters
    ----------
    loss : ApproxDP
        The loss to convert.

    Returns
    -------
    ZCDP
        A loss that implies the given one; the same neighbours.

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.accounting import approx_to_zcdp
    >>> round(float(approx_to_zcdp(pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")).rho), 4)
    0.0244
    """
    rho = _largest(lambda rho: _zcdp_epsilon(_fraction(rho), loss.delta) <= loss.epsilon)
    return ZCDP(rho=rho, neighbours=loss.neighbours)


def pure_to_zcdp(loss: PureDP) -> ZCDP:
    """Return the zCDP that pure ε implies: ρ = ε tanh(ε/2), at most ε²/2; randomized response attains it.

    Parameters
    ----------
    loss : PureDP
        The loss to convert.

    Returns
    -------
    ZCDP
        A loss whose ρ is never below the true one; the same neighbours.

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.accounting import pure_to_zcdp
    >>> float(pure_to_zcdp(pc.PureDP(epsilon=1, neighbours="add-remove")).rho) <= 0.5
    True
    """
    with ctx.workprec(_PRECISION):
        epsilon = ball(loss.epsilon)
        return ZCDP(rho=upper_end(epsilon * (epsilon / 2).tanh()), neighbours=loss.neighbours)


def bounded_range_to_zcdp(*, eta: Amount) -> Fraction:
    """A privacy loss confined to an interval of width η is η²/8-zCDP (Cesar and Rogers 2021)."""
    return exact(eta) ** 2 / 8


def add_remove_to_replace_one(loss: Loss) -> Loss:
    """An add-remove loss under replace-one, which is one row out and one row in: 2ε, (2ε, δ(1 + e^ε)), 4ρ.

    >>> print(add_remove_to_replace_one(PureDP(epsilon=1, neighbours="add-remove")))
    pure differential privacy, epsilon = 2, replace-one
    """
    if loss.neighbours is Neighbours.REPLACE_ONE:
        return loss
    words = Neighbours.REPLACE_ONE
    if isinstance(loss, ZCDP):
        return ZCDP(rho=4 * loss.rho, neighbours=words)
    if isinstance(loss, PureDP):
        return PureDP(epsilon=2 * loss.epsilon, neighbours=words)
    with ctx.workprec(_PRECISION):
        delta = upper_end(ball(loss.delta) * (1 + ball(loss.epsilon).exp()))
    return ApproxDP(epsilon=2 * loss.epsilon, delta=delta, neighbours=words)


def compose(losses: Iterable[Loss]) -> Loss:
    """The joint loss of several releases, by the tightest rule that needs no further choice.

    Losses of one kind add. Pure losses beside zCDP losses are first turned into zCDP. An (ε, δ) loss beside
    another kind is refused: convert the sum of the others with a δ of your choice.
    """
    given = list(losses)
    if not given:
        raise ParameterError("E204", "compose needs at least one loss.")
    kinds = {loss.kind for loss in given}
    if kinds == {"pure", "zcdp"}:
        given = [pure_to_zcdp(loss) if isinstance(loss, PureDP) else loss for loss in given]
    total = given[0]
    for loss in given[1:]:
        total = total + loss
    return total


def _gaussian_delta(mu: arb, epsilon: arb) -> arb:
    root = arb(2).sqrt()

    def upper_tail(x: arb) -> arb:
        return (x / root).erfc() / 2

    return upper_tail(epsilon / mu - mu / 2) - epsilon.exp() * upper_tail(epsilon / mu + mu / 2)


@lru_cache
def _gaussian_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    with ctx.workprec(_PRECISION):
        loss, budget = ball(epsilon), ball(delta)
        return _largest(lambda mu: bool(_gaussian_delta(mu, loss) <= budget))


def _zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Every order above 1 gives a valid bound, so a float may choose it; the bound itself is a ball."""
    log_delta, cost = math.log(delta.numerator) - math.log(delta.denominator), float(rho)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * cost + math.log(excess / order) - (log_delta + math.log(order)) / excess

    low, high = -20.0, 60.0
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    with ctx.workprec(_PRECISION):
        excess = ball(Fraction(math.exp(low)))
        order = excess + 1
        epsilon = order * ball(rho) + (excess / order).log() - (ball(delta).log() + order.log()) / excess
        return max(upper_end(epsilon), Fraction(1, 10**12))


def _largest(certified: Callable[[arb], bool]) -> Fraction:
    """The largest positive float for which a monotone predicate is certified, by bisection."""
    low, high = -700.0, 700.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if certified(ball(Fraction(math.exp(middle)))) else (low, middle)
    return Fraction(math.exp(low))


def ball(value: Fraction) -> arb:
    """A rational as a ball at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def _fraction(value: arb) -> Fraction:
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def upper_end(value: arb) -> Fraction:
    """The upper end of a ball, rounded up to 64 significant bits."""
    top = _fraction(value.upper())
    shift = 64 - abs(top.numerator).bit_length() + top.denominator.bit_length()
    unit = Fraction(2) ** -shift
    return -((-top) // unit) * unit
