"""From numbers to places: linear and logarithmic axes with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Numbers from ``low`` to ``high`` onto coordinates from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (self.low < self.high and math.isfinite(self.high - self.low)) or (self.log and self.low <= 0):
            raise ValueError("a scale needs finite numbers low < high, above zero where it is logarithmic")

    @classmethod
    def over(
        cls,
        values: Iterable[float],
        *,
        start: float,
        end: float,
        log: bool = False,
        margin: float = 0.04,
        zero: bool = False,
    ) -> Scale:
        """A scale on which these values fit; those that it cannot show do not count."""
        shown = [float(v) for v in values if math.isfinite(v) and (v > 0 or not log)]
        if zero and not log:
            shown.append(0.0)
        low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            room = max(margin * math.log(high / low), 0.02 if high > low else 0.7)
            return cls(low=low * math.exp(-room), high=high * math.exp(room), start=start, end=end, log=True)
        room = margin * (high - low) or 0.5 * abs(high) or 1.0
        return cls(low=low - room, high=high + room, start=start, end=end)

    def __call__(self, value: float) -> float:
        """The coordinate of a value."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def shows(self, value: float) -> bool:
        """Whether a value has a place on this scale."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers along the scale, at most about ``most``."""
        return self._decades(most) if self.log else self._steps(most)

    def labels(self, ticks: list[float]) -> list[str]:
        """The ticks as people write them, all with the same number of decimals on a linear scale."""
        if self.log or not ticks:
            return [readable(tick) for tick in ticks]
        step = min((b - a for a, b in pairwise(ticks)), default=abs(ticks[0]) or 1.0)
        if not step >= 1e-5 or max(map(abs, ticks)) >= 1e6:
            return [readable(tick) for tick in ticks]
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [
            f"{0.0 if abs(tick) < step / 1e6 else tick:,.{decimals}f}".replace("-", "−") for tick in ticks
        ]

    def _steps(self, most: int) -> list[float]:
        raw = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [count * step for count in range(first, last + 1)]

    def _decades(self, most: int) -> list[float]:
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [
                step * 10.0**power
                for power in range(low, high + 1)
                for step in steps
                if self.low <= step * 10.0**power <= self.high
            ]
            if len(found) <= most:
                return found if len(found) > 1 else [self.low, self.high]
        every = -(-len(found) // most)
        return found[::every]


def readable(value: float) -> str:
    """A tick of any size, short: plain where that is short, else a power of ten.

    >>> readable(0.002), readable(20000), readable(3e-7), readable(1e9)
    ('0.002', '20,000', '3·10⁻⁷', '10⁹')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if 1e-3 <= size < 1e6:
        return f"{float(f'{value:.3g}'):,.10g}".replace("-", "−")
    mantissa, power = f"{value:.2e}".split("e")
    raised = "10" + str(int(power)).translate(_RAISED)
    digits = f"{float(mantissa):g}".replace("-", "−")
    return raised if digits == "1" else f"{digits}·{raised}"
