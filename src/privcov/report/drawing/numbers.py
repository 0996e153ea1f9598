"""Numbers as people read them: so many digits as mean something, and no more."""

from __future__ import annotations

import math


def number(value: float | None, digits: int = 4) -> str:
    """A number of so many significant digits, plain where that is short; a dash where there is none.

    >>> number(48.4173), number(-0.00012346), number(1234567.0), number(float("nan"))
    ('48.42', '−0.0001235', '1,234,567', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e9 or size < 1e-4:
        words = f"{value:.{digits - 1}e}"
    else:
        decimals = max(0, digits - 1 - math.floor(math.log10(size)))
        words = f"{value:,.{decimals}f}"
    return words.replace("-", "−", 1) if words.startswith("-") else words


def plus_minus(value: float | None, noise: float | None) -> tuple[str, str]:
    """A value and the noise on it, both to the decimals at which the noise has two digits.

    >>> plus_minus(48.41731, 0.2518), plus_minus(48.41731, None), plus_minus(1234.5, 120.0)
    (('48.42', '0.25'), ('48.42', '–'), ('1,234', '120'))
    """
    if value is None or noise is None or not (math.isfinite(value) and 0 < noise < math.inf):
        return number(value), number(noise, 2)
    decimals = 1 - math.floor(math.log10(noise))
    if abs(value) >= 1e9 or not -3 <= decimals <= 8:
        return number(value), number(noise, 2)
    words, noises = (f"{one:,.{max(decimals, 0)}f}" for one in (value, noise))
    if not words.strip("-0.,"):
        words = words.removeprefix("-")
    return words.replace("-", "−", 1), noises
