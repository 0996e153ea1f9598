"""The elementary functions of derived columns (``log``, dates, …): the same bits on every processor and in every row.

A cell must depend on its own row alone. The logarithm of a library may not: it may round the last bit of a number in
one way in the middle of an array and in another at its end, and differently on the next processor. Here everything is
made of single operations on single elements that IEEE 754 defines to the last bit (``+ - * /``, square root,
comparison, ``floor``, ``rint``, changes of the exponent), in an order that is written down, so a value is a function of
its arguments. What it is has a small error, below ``ERROR`` relative to the true value, that the bounds of a derived
column make room for.

>>> log(np.array([1.0, 2.0, -1.0, np.nan])).round(4).tolist()
[0.0, 0.6931, nan, nan]
>>> leap_day = np.array([951782400.0])  # 29 February 2000, a Tuesday
>>> year_and_month(leap_day), weekday(leap_day)
((array([2000.]), array([2.])), array([2.]))
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np

from privcov.linalg.arrays import Floats

ERROR = 2.0**-46
"""The most that ``log`` and ``exp`` are wrong, relative to the true value."""
DAY = 86_400.0
"""Seconds: the unit of dates and times."""
MOST_BASIS = 16
"""Columns of a basis: degrees of ``poly``, splines of ``bs``."""
SMALLEST = 1e-100
"""What ``log`` takes, at least."""
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of the root of one half, rounded up."""
_DEGREE = 3


def log(x: Floats) -> Floats:
    """The natural logarithm of numbers from ``SMALLEST`` up; NaN of 0 and below."""
    bits = np.ascontiguousarray(x).view(np.int64)
    power = (bits - _ROOT_HALF) >> 52  # x = part * 2^power, with the part between the roots of 1/2 and of 2
    part = (bits - (power << 52)).view(np.float64)
    part -= 1.0
    s = part / (part + 2.0)
    # log(1 + f) = 2 (s + s³/3 + s⁵/5 + …) with s = f/(2 + f), |s| < 0.172: what is left out is below 2^-49 of it. The
    # sum has the sign of s, and no logarithm of a part outweighs that of a power: the sign is never wrong.
    made = _horner(s * s, _ATANH)
    made *= s
    whole = power.astype(np.float64)
    made += whole * _LN2_LOW
    made += whole * _LN2_HIGH
    return np.where(x > 0.0, made, np.nan)


def exp(x: Floats) -> Floats:
    """The exponential of numbers below 700; 0 far below 0."""
    held = np.clip(x, -740.0, 700.0)
    power = np.rint(held * _PER_LN2)
    rest = held - power * _LN2_HIGH
    rest -= power * _LN2_LOW
    made = _horner(rest, _TAYLOR)
    whole = np.nan_to_num(power, nan=0.0).astype(np.int32)
    return np.asarray(np.ldexp(made, whole))


def raised(x: Floats, power: int) -> Floats:
    """A whole power, by multiplication from the left: the order is part of what it is."""
    made = x
    for bit in bin(power)[3:]:
        made = made * made
        if bit == "1":
            made = made * x
    return made


def legendre(degree: int, t: Floats, last: Floats | float, before: Floats | float) -> Floats:
    """The Legendre polynomial of numbers in [-1, 1], from those of one degree less and of two less.

    Over [-1, 1] it is orthogonal to those of other degrees.
    """
    made = t * last
    made *= (2 * degree - 1) / degree
    made -= np.multiply(before, (degree - 1) / degree)
    return made


def legendre_least(degree: int) -> float:
    """The least value: -1 of odd degree, and of an even one no less than that of degree 2."""
    return -1.0 if degree % 2 else -0.5


def cube_above(t: Floats, knot: float) -> Floats:
    """(t - knot)³ where that is positive, else 0: what cubic splines are made of."""
    over = np.maximum(t - knot, 0.0)
    return np.asarray(over * over * over)


def spline(count: int, which: int, t: Floats, *cubes: Floats) -> Floats:
    """The spline ``which`` (from 1) of ``count`` cubic ones; knots are the whole numbers from 0 to count - 2.

    ``cubes`` are those above the knots from 1 to count - 3.
    """
    terms = _spline_terms(count)[which]
    made = _horner(t, terms[:4])
    for factor, cube in zip(terms[4:], cubes, strict=True):
        if factor:
            made += factor * cube
    return np.clip(made, 0.0, spline_most(count, which))


@cache
def spline_most(count: int, which: int) -> float:
    """No value of a spline is larger: a multiple of 1/1024, 1 for the last."""
    # Between knots a spline rises by at most 3, so between these places by less than 2^-10.
    places = np.arange(4097) / 4096.0
    most = max(float(_horner(places, tuple(map(float, piece))).max()) for piece in _pieces(count)[which])
    return min(1.0, math.ceil((most + 2.0**-10) * 1024) / 1024)


@cache
def _spline_terms(count: int) -> tuple[tuple[float, ...], ...]:
    """Of each spline, the polynomial before the first knot, and what the cube above each knot adds to it."""
    made = []
    for pieces in _pieces(count):
        jumps = [after[3] - before[3] for before, after in pairwise(pieces)]
        made.append(tuple(float(term) for term in (*pieces[0], *jumps)))
    return tuple(made)


@cache
def _pieces(count: int) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
    """By spline and by piece, the polynomial in the place within the piece, from the constant up, exactly.

    Made by the recursion of Cox and de Boor. Spline 0 is the one that is left out, as all of them add up to 1.
    """
    pieces = count - _DEGREE + 1
    knots = [0] * _DEGREE + list(range(pieces + 1)) + [pieces] * _DEGREE
    table: list[list[tuple[Fraction, ...]]] = [
        [(Fraction(knots[i] == p and knots[i + 1] == p + 1),) for p in range(pieces)]
        for i in range(len(knots) - 1)
    ]
    for degree in range(1, _DEGREE + 1):
        table = [
            [
                _added(
                    _times(table[i][p], p - knots[i], 1, knots[i + degree] - knots[i]),
                    _times(
                        table[i + 1][p], knots[i + degree + 1] - p, -1, knots[i + degree + 1] - knots[i + 1]
                    ),
                )
                for p in range(pieces)
            ]
            for i in range(len(table) - 1)
        ]
    return tuple(map(tuple, table))


def _times(polynomial: tuple[Fraction, ...], constant: int, slope: int, width: int) -> tuple[Fraction, ...]:
    """A polynomial in u times (constant + slope·u)/width; 0 where knots coincide."""
    if not width:
        return (Fraction(0),) * (len(polynomial) + 1)
    first = [c * constant / width for c in polynomial]
    return _added((*first, Fraction(0)), (Fraction(0), *(c * slope / width for c in polynomial)))


def _added(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def year_and_month(seconds: Floats) -> tuple[Floats, Floats]:
    """Year, and month from 1, of seconds since the beginning of 1970; NaN stays NaN.

    By counting from the first of March, so that a leap day is the last day of its year. All numbers are whole and far
    below 2^53, so quotients are never rounded across a whole number, and ``floor`` is exact.
    """
    days = np.floor(seconds / DAY)
    days += 719_468.0
    era = np.floor(days / 146_097.0)
    days -= era * 146_097.0
    within = days - np.floor(days / 1_460.0) + np.floor(days / 36_524.0) - np.floor(days / 146_096.0)
    year = np.floor(within / 365.0)
    days -= 365.0 * year + np.floor(year / 4.0) - np.floor(year / 100.0)
    month = np.floor((5.0 * days + 2.0) / 153.0)  # from March, which is 0
    late = np.floor(month / 10.0)  # 1 in January and February of the next year
    return era * 400.0 + year + late, month + 3.0 - 12.0 * late


def weekday(seconds: Floats) -> Floats:
    """The day of the week, Monday is 1; NaN stays NaN."""
    days = np.floor(seconds / DAY) + 3.0
    return np.asarray(days - 7.0 * np.floor(days / 7.0) + 1.0)


def hour(seconds: Floats) -> Floats:
    """The hour of the day, 0 to 23; NaN stays NaN."""
    hours = np.floor(seconds / 3600.0)
    return np.asarray(hours - 24.0 * np.floor(hours / 24.0))


def _horner(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Σ c_i x^i, from the last coefficient."""
    made = x * coefficients[-1]
    for coefficient in reversed(coefficients[1:-1]):
        made += coefficient
        made *= x
    made += coefficients[0]
    return made


_ATANH = tuple(2.0 / (2 * n + 1) for n in range(9))
_TAYLOR: tuple[float, ...] = tuple(
    1 / float(np.prod(np.arange(1, n + 1, dtype=np.float64))) for n in range(14)
)
_PER_LN2 = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
"""ln 2 to 32 bits, so that it can be multiplied by any exponent exactly."""
_LN2_LOW = 1.90821492927058770002e-10
"""The rest of ln 2."""
