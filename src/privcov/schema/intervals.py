"""Where the value of an expression lies, by interval arithmetic from the bounds of the columns in it.

A ``Range`` holds every value that a part of an expression can have in any row, missing aside: the true value, and the
double that is computed. Ends are computed as fractions and rounded outward, so an end that is a double stays what it
is. Every operation on doubles rounds its true result once, and rounding keeps order, so a computed value lies between
the rounded ends too. Proof: docs/proofs/derived.md.

>>> age = Range("number", 0.0, 100.0)
>>> raised(age, 2), minus(age, Range("number", 1.0, 1.0))
(Range(kind='number', lower=0.0, upper=10000.0), Range(kind='number', lower=-1.0, upper=99.0))
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from privcov.schema import elementary

Kind = Literal["number", "condition", "date", "duration", "levels", "text"]
LARGEST = 1e100
"""What an end may not exceed: beyond it a value counts as unbounded."""


class Unbounded(ValueError):
    """A value has no bound, or one that no double holds; the text says why."""


class DividesByZero(ValueError):
    """What is divided by may be zero."""


@dataclass(frozen=True)
class Range:
    """The least and the largest value of a part of an expression, and what kind of value it is."""

    kind: Kind
    lower: float
    upper: float
    levels: tuple[str, ...] = field(default=(), repr=False)
    """Of ``levels``: what the codes 0, 1, … stand for."""

    @property
    def magnitude(self) -> float:
        return max(abs(self.lower), abs(self.upper))


def plus(one: Range, other: Range) -> Range:
    return _outward(
        (Fraction(one.lower) + Fraction(other.lower), Fraction(one.upper) + Fraction(other.upper))
    )


def minus(one: Range, other: Range) -> Range:
    return _outward(
        (Fraction(one.lower) - Fraction(other.upper), Fraction(one.upper) - Fraction(other.lower))
    )


def times(one: Range, other: Range) -> Range:
    return _outward(
        Fraction(a) * Fraction(b) for a in (one.lower, one.upper) for b in (other.lower, other.upper)
    )


def over(one: Range, other: Range) -> Range:
    if other.lower <= 0 <= other.upper:
        raise DividesByZero
    return _outward(
        Fraction(a) / Fraction(b) for a in (one.lower, one.upper) for b in (other.lower, other.upper)
    )


def negative(one: Range) -> Range:
    return Range("number", -one.upper, -one.lower)


def magnitude(one: Range) -> Range:
    ends = sorted((abs(one.lower), abs(one.upper)))
    return Range("number", 0.0 if one.lower <= 0 <= one.upper else ends[0], ends[1])


def raised(one: Range, power: int) -> Range:
    """Rounded outward after each multiplication, in the order of ``elementary.raised``."""
    ends = magnitude(one)
    made = ends
    for bit in bin(power)[3:]:
        made = times(made, made)
        if bit == "1":
            made = times(made, ends)
    if power % 2 and one.lower < 0:
        other = raised(Range("number", max(one.lower, 0.0), one.upper), power) if one.upper > 0 else None
        low = raised(Range("number", max(-one.upper, 0.0), -one.lower), power)
        return Range("number", -low.upper, -low.lower if other is None else other.upper)
    return made


def root(one: Range) -> Range:
    if one.upper < 0:
        raise Unbounded("has no value in any row, because it takes the root of negative numbers")
    low, high = math.sqrt(max(one.lower, 0.0)), math.sqrt(one.upper)
    low = math.nextafter(low, 0.0) if Fraction(low) ** 2 > Fraction(max(one.lower, 0.0)) else low
    return Range(
        "number", low, math.nextafter(high, math.inf) if Fraction(high) ** 2 < Fraction(one.upper) else high
    )


def log(one: Range, least: float | None = None) -> Range:
    """With ``least``, cells below it are missing."""
    low = one.lower if least is None else max(one.lower, least)
    if not low >= elementary.SMALLEST:
        raise Unbounded(
            "has no lower bound, because it takes the logarithm of numbers down to 0 or below: write "
            "log(x + 1), or log(x, 1), where cells below 1 are missing"
        )
    if one.upper < low:
        raise Unbounded("has no value in any row, because all numbers are below the least one of log")
    ends = elementary.log(np.array([low, one.upper]))
    return _nearly(float(ends[0]), float(ends[1]), least=0.0 if low >= 1 else None)


def exp(one: Range) -> Range:
    if one.upper > 230:
        raise Unbounded("has no useful upper bound, because it takes the exponential of numbers above 230")
    ends = elementary.exp(np.array([one.lower, one.upper]))
    return _nearly(float(ends[0]), float(ends[1]), least=0.0)


def least(*given: Range) -> Range:
    return Range("number", min(one.lower for one in given), min(one.upper for one in given))


def largest(*given: Range) -> Range:
    return Range("number", max(one.lower for one in given), max(one.upper for one in given))


def compared(mark: str, one: Range, other: Range) -> Range:
    """Whether a comparison holds: decided where the two do not overlap."""
    always, never = False, False
    if mark in ("<", "<="):
        always = one.upper < other.lower or (mark == "<=" and one.upper == other.lower)
        never = one.lower > other.upper or (mark == "<" and one.lower == other.upper)
    elif mark in (">", ">="):
        return compared(mark.replace(">", "<"), other, one)
    else:
        apart = one.upper < other.lower or other.upper < one.lower
        alike = one.lower == one.upper == other.lower == other.upper
        always, never = (alike, apart) if mark == "==" else (apart, alike)
    return Range("condition", float(always), float(not never))


def year(one: Range) -> Range:
    years, _ = elementary.year_and_month(np.array([one.lower, one.upper]))
    return Range("number", float(years[0]), float(years[1]))


def month(one: Range) -> Range:
    years, months = elementary.year_and_month(np.array([one.lower, one.upper]))
    within = bool(years[0] == years[1])
    return Range("number", float(months[0]) if within else 1.0, float(months[1]) if within else 12.0)


def per(one: Range, seconds: float) -> Range:
    """A duration in other units than seconds."""
    return over(one, Range("number", seconds, seconds))


def _nearly(low: float, high: float, *, least: float | None) -> Range:
    """Ends that were computed with a small error, moved outward by more than it."""
    room = 4 * elementary.ERROR
    low, high = low - room * max(abs(low), 1e-300), high + room * max(abs(high), 1e-300)
    return Range("number", low if least is None else max(low, least), high)


def _outward(ends: Iterable[Fraction]) -> Range:
    found = sorted(ends)
    if max(abs(found[0]), abs(found[-1])) > Fraction(LARGEST):
        raise Unbounded(f"can be larger than {LARGEST:g}")
    low, high = float(found[0]), float(found[-1])
    low = math.nextafter(low, -math.inf) if Fraction(low) > found[0] else low
    return Range("number", low, math.nextafter(high, math.inf) if Fraction(high) < found[-1] else high)
