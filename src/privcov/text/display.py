"""How results show themselves in a notebook: a method that asks whoever draws, and only when it is called.

Results live below the report layer, which draws them. They know that somebody draws, and not who: the package itself,
which is above all layers and is there before any result, says so. Why: docs/decisions/0011-display.md.
"""

from __future__ import annotations

from collections.abc import Callable

_draw: Callable[[object], str]


def drawn_by(draw: Callable[[object], str]) -> None:
    """Say who makes HTML of a result."""
    global _draw
    _draw = draw


class Shown:
    """Something that a notebook can show as more than its ``repr``."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _draw(self)
