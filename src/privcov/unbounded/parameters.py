"""Public parameters of the estimators, refused from public facts before a value is read."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from privcov.errors import ParameterError
from privcov.privacy import ZCDP, Loss, Neighbours, exact
from privcov.text.grammar import brief

_LARGEST = Fraction(10**120)
"""Scales between 10^-120 and 10^120 leave room for every square and every inverse in float64."""
_MOST_ROUNDS = 30


def positive(name: str, value: Any) -> Fraction:
    """A public scale as the exact number a person meant."""
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(0)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise ParameterError(
            "E240",
            f"{name} must be a number above 0, from 1e-120 to 1e120, got {brief(value)}.",
            "Choose it from public knowledge.",
        )
    return number


def probability(name: str, value: Any) -> Fraction:
    """A number strictly between 0 and 1."""
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(-1)
    if not Fraction(1, 10**100) <= number < 1:
        raise ParameterError("E241", f"{name} must be between 0 and 1, got {brief(value)}.")
    return number


def whole_rounds(value: Any) -> int:
    """A number of rounds, from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_ROUNDS:
        raise ParameterError(
            "E242", f"rounds must be a whole number from 1 to {_MOST_ROUNDS}, got {value!r}."
        )
    return value


def replace_one(loss: Loss) -> None:
    """Refuse add-remove: sums are divided by the number of rows and rows are paired by their place."""
    if loss.neighbours is not Neighbours.REPLACE_ONE:
        raise ParameterError(
            "E243",
            "estimates of unbounded data need neighbours='replace-one': the number of rows has to be public.",
            "Under add-remove, declare bounds in a schema and use privcov.release.",
        )


def zcdp(loss: Any) -> ZCDP:
    """Only ρ-zCDP composes over the rounds without loss; nothing is converted silently."""
    if not isinstance(loss, ZCDP):
        raise ParameterError(
            "E244",
            f"estimate_gaussian needs a zCDP loss, got {getattr(loss, 'kind', type(loss).__name__)}.",
            "Give privcov.ZCDP(rho=…, neighbours='replace-one').",
        )
    replace_one(loss)
    loss.check_asked()
    return loss


def chi_squared_tail(dimension: int, log_inverse: float) -> float:
    """d + 2√(dL) + 2L: ‖z‖² exceeds it with probability at most e^-L for z ~ N(0, I) (Laurent and Massart)."""
    return dimension + 2 * math.sqrt(dimension * log_inverse) + 2 * log_inverse


def log_inverse(probability: Fraction) -> float:
    """ln(1/p) of an exact probability, however small."""
    return math.log(probability.denominator) - math.log(probability.numerator)
