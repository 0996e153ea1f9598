"""What a release may cost, as values: ``PureDP``, ``ApproxDP`` and ``ZCDP``, each with its neighbours.

Losses of one kind and one neighbouring relation add (basic composition) and compare. Nothing converts
silently: adding a pure loss to a zCDP loss, or a replace-one loss to an add-remove loss, is an error that
names the function to call. Amounts are exact rationals, so ten spends of 0.1 are exactly 1.

>>> tenth = PureDP(epsilon=0.1, neighbours="replace-one")
>>> sum([tenth] * 9, tenth) == PureDP(epsilon=1, neighbours="replace-one")
True
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privcov.errors import ParameterError
from privcov.text.grammar import MOST_MAGNITUDE, brief, is_decimal, is_fraction

MOST = Fraction(10**60)
"""An epsilon or a rho that is asked for is from 1 / MOST to MOST: beyond, noise leaves the range of a double."""
_LARGEST = 10**MOST_MAGNITUDE

EPSILON_POLICY_CAP = 10
"""An epsilon above this protects people very little: see ``check_policy``."""

Amount = Fraction | int | float | str | Decimal


class Neighbours(StrEnum):
    """Which two tables must look alike to an observer of the release.

    Attributes
    ----------
    REPLACE_ONE : "replace-one"
        One person's rows are replaced by another's. With one row per person the number of rows is public.
    ADD_REMOVE : "add-remove"
        One person's rows are added or removed. The number of rows is private.

    Examples
    --------
    >>> from privcov import Neighbours
    >>> Neighbours("replace-one") is Neighbours.REPLACE_ONE
    True
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    def count_is_public(self, rows_per_person: int) -> bool:
        """Say whether all neighbours of a table have as many rows as it has, so that the number may be published.

        Where a person may have several rows, another person may have more or fewer, and the number moves with
        the person.

        Parameters
        ----------
        rows_per_person : int
            The most rows that one person may have.

        Returns
        -------
        bool
            True for "replace-one" with one row per person.

        Examples
        --------
        >>> from privcov import Neighbours
        >>> Neighbours.REPLACE_ONE.count_is_public(1), Neighbours.REPLACE_ONE.count_is_public(3)
        (True, False)
        """
        return self is Neighbours.REPLACE_ONE and rows_per_person == 1

    @classmethod
    def parse(cls, value: Neighbours | str | None) -> Neighbours:
        """Read a neighbouring relation from its name.

        Parameters
        ----------
        value : Neighbours, str or None
            "replace-one" or "add-remove". None is refused: there is no default.

        Returns
        -------
        Neighbours
            The relation.

        Raises
        ------
        ParameterError
            The value is no such name (E207).

        Examples
        --------
        >>> from privcov import Neighbours
        >>> Neighbours.parse("add-remove").value
        'add-remove'
        """
        try:
            return cls(value)  # type: ignore[arg-type]
        except ValueError:
            given = "but none was given" if value is None else f"got {value!r}"
            raise ParameterError(
                "E207", f"neighbours must be 'replace-one' or 'add-remove', {given}.", "There is no default."
            ) from None


def exact(value: Amount) -> Fraction:
    """The rational number a person meant: ``0.1`` is one tenth, ``"1/3"`` is one third.

    A text is a decimal, with or without an exponent, or a fraction of whole numbers, and no other; its length and its
    size are bounded (``privcov.text.grammar``) before anything is computed. Anything else is a ``ValueError``.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or value is None:
        raise ValueError("not a number")
    if isinstance(value, int):
        return _sized(value, 1)
    text = str(float(value)) if isinstance(value, float) else str(value).strip()
    if is_fraction(text):
        return _sized(*map(int, text.split("/")))
    if not is_decimal(text):
        raise ValueError("not a number of reasonable size")
    number = Decimal(text)
    if abs(number.adjusted()) > MOST_MAGNITUDE:
        raise ValueError("not a number of reasonable size")
    return Fraction(number)


def _sized(numerator: int, denominator: int) -> Fraction:
    """Their quotient, if it is zero or of a size that a double can have."""
    if denominator == 0 or not abs(numerator) <= denominator * _LARGEST:
        raise ValueError("not a number of reasonable size")
    if numerator and abs(numerator) * _LARGEST < denominator:
        raise ValueError("not a number of reasonable size")
    return Fraction(numerator, denominator)


def decimal_text(value: Fraction) -> str:
    """Exact text that ``exact`` reads back: a decimal where one exists, else a fraction.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    odd, twos, fives = value.denominator, 0, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    places = max(twos, fives)
    if odd != 1 or places > 60:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:]) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + (f".{fraction}" if fraction else "")


def _positive(name: str, value: Amount) -> Fraction:
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(0)
    # A fraction may be a share of an amount that was asked for, which ``check_asked`` has seen.
    if not (number > 0 if isinstance(value, Fraction) else 1 / MOST <= number <= MOST):
        raise _out_of_range(name, value)
    return number


def _out_of_range(name: str, value: Amount) -> ParameterError:
    return ParameterError(
        "E201", f"{name} must be a finite number above 0, from 1e-60 to 1e60, got {brief(value)}."
    )


def _probability(name: str, value: Amount) -> Fraction:
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(-1)
    if not 0 < number < 1:
        raise ParameterError(
            "E203",
            f"{name} must be between 0 and 1, got {brief(value)}.",
            "Choose a value well below 1 / rows.",
        )
    return number


@dataclass(frozen=True, kw_only=True)
class _Loss:
    """Shared by the three kinds: amounts add, and compare componentwise, within one neighbouring relation."""

    kind: ClassVar[str]
    advice: ClassVar[str]
    neighbours: Neighbours

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        for name, amount in self.amounts.items():
            check = _probability if name == "delta" else _positive
            object.__setattr__(self, name, check(name, amount))

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The numbers of this loss by name ("epsilon", "delta", "rho"), without the neighbouring relation."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "neighbours"}

    def check_asked(self) -> None:
        """Refuse amounts that no noise can be drawn for, before anything is paid.

        Raises
        ------
        ParameterError
            An epsilon or a rho is below 1e-60 or above 1e60 (E201).
        """
        for name, amount in self.amounts.items():
            if name != "delta" and not 1 / MOST <= amount <= MOST:
                raise _out_of_range(name, amount)

    def _like(self, other: object) -> Self:
        if not isinstance(other, type(self)):
            raise ParameterError(
                "E204", f"a {self.kind} loss cannot be combined with {type(other).__name__}.", self.advice
            )
        if other.neighbours != self.neighbours:
            raise ParameterError(
                "E207",
                f"a {self.neighbours} loss cannot be combined with a {other.neighbours} loss.",
                "An add-remove loss counts twice under replace-one. There is no rule for the other direction.",
            )
        return other

    def _with(self, amounts: dict[str, Any]) -> Self:
        return replace(self, **amounts)

    def __add__(self, other: object) -> Self:
        theirs = self._like(other).amounts
        return self._with({name: mine + theirs[name] for name, mine in self.amounts.items()})

    def __mul__(self, times: int) -> Self:
        if isinstance(times, bool) or not isinstance(times, int) or times < 1:
            raise ParameterError(
                "E204", f"a loss can only be multiplied by a whole number from 1, got {times}."
            )
        return self._with({name: times * mine for name, mine in self.amounts.items()})

    __rmul__ = __mul__

    def __le__(self, other: object) -> bool:
        theirs = self._like(other).amounts
        return all(mine <= theirs[name] for name, mine in self.amounts.items())

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {display(amount)}" for name, amount in self.amounts.items())
        return f"{self.kind} differential privacy, {given}, {self.neighbours}"


@dataclass(frozen=True, kw_only=True)
class PureDP(_Loss):
    """Pure ε-differential privacy: no observer's odds about a person move by more than a factor e^ε.

    Losses of one kind and one relation add and compare; ``2 * loss`` is the loss of two such releases.

    Parameters
    ----------
    epsilon : Fraction, int, float, str or Decimal
        The ε, a number above 0 without unit. Kept exactly: 0.1 and "1/10" are one tenth.
    neighbours : Neighbours or str
        "replace-one" or "add-remove". There is no default.

    Raises
    ------
    ParameterError
        Epsilon is not a finite number above 0 (E201), or the relation is not one of the two (E207).

    Examples
    --------
    >>> from privcov import PureDP
    >>> loss = PureDP(epsilon=0.1, neighbours="replace-one")
    >>> print(loss + loss)
    pure differential privacy, epsilon = 0.2, replace-one
    >>> loss.amounts, loss.check_asked()
    ({'epsilon': Fraction(1, 10)}, None)
    """

    kind = "pure"
    advice = "Convert explicitly with privcov.accounting.pure_to_zcdp."
    epsilon: Fraction

    if TYPE_CHECKING:

        def __init__(self, *, epsilon: Amount, neighbours: Neighbours | str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ApproxDP(_Loss):
    """(ε, δ)-differential privacy: the promise of ε, except with probability δ.

    Parameters
    ----------
    epsilon : Fraction, int, float, str or Decimal
        The ε, a number above 0 without unit. Kept exactly.
    delta : Fraction, int, float, str or Decimal
        The δ, a probability between 0 and 1. Choose one well below 1 / rows.
    neighbours : Neighbours or str
        "replace-one" or "add-remove". There is no default.

    Raises
    ------
    ParameterError
        Epsilon (E201), delta (E203) or the relation (E207) is out of range.

    Examples
    --------
    >>> from privcov import ApproxDP
    >>> loss = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    >>> loss.amounts["delta"], loss.check_asked()
    (Fraction(1, 1000000), None)
    """

    kind = "approximate"
    advice = "There is no exact way back from (epsilon, delta): keep the zCDP losses and convert their sum."
    epsilon: Fraction
    delta: Fraction

    if TYPE_CHECKING:

        def __init__(self, *, epsilon: Amount, delta: Amount, neighbours: Neighbours | str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ZCDP(_Loss):
    """ρ-zero-concentrated differential privacy: the privacy loss is as concentrated as that of Gaussian noise.

    Parameters
    ----------
    rho : Fraction, int, float, str or Decimal
        The ρ, a number above 0 without unit. Kept exactly.
    neighbours : Neighbours or str
        "replace-one" or "add-remove". There is no default.

    Raises
    ------
    ParameterError
        Rho (E201) or the relation (E207) is out of range.

    Examples
    --------
    >>> from privcov import ZCDP
    >>> loss = ZCDP(rho="0.5", neighbours="add-remove")
    >>> loss.amounts["rho"], loss.check_asked(), loss <= 2 * loss
    (Fraction(1, 2), None, True)
    """

    kind = "zcdp"
    advice = "Convert explicitly with privcov.accounting.zcdp_to_approx."
    rho: Fraction

    if TYPE_CHECKING:

        def __init__(self, *, rho: Amount, neighbours: Neighbours | str) -> None: ...


Loss = PureDP | ApproxDP | ZCDP


SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
"""The letter that people write for each amount of a loss."""


def check_policy(loss: PureDP | ApproxDP, way_out: str) -> None:
    """Refuse an epsilon that protects people very little; ``way_out`` says what whoever asked can do.

    The command line lets those pass who say ``--i-understand``, the page nobody; the library does not ask.
    """
    if loss.epsilon > EPSILON_POLICY_CAP:
        raise ParameterError(
            "E202",
            f"epsilon {display(loss.epsilon)} is above {EPSILON_POLICY_CAP} and protects people very little.",
            f"Choose a smaller one{way_out}",
        )


def display(value: Fraction) -> str:
    """A short decimal for people: exact when short, else six significant digits, never below the value.

    >>> display(Fraction(1, 10)), display(Fraction(1, 3))
    ('0.1', '0.333334')
    """
    text = decimal_text(value)
    if len(text) <= 10 and "/" not in text:
        return text
    with localcontext(prec=6, rounding=ROUND_CEILING):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):g}"
