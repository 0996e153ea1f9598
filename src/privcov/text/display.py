"""How results show themselves to ``print`` and in a notebook: methods that ask whoever writes and draws, when called.

Results live below the report layer, which draws them. They know that somebody draws, and not who: the package itself,
which is above all layers and is there before any result, says so. Why: docs/decisions/0011-display.md.
"""

from __future__ import annotations

from collections.abc import Callable

_write: Callable[[object], str]
_draw: Callable[[object], str]


def shown_by(*, write: Callable[[object], str], draw: Callable[[object], str]) -> None:
    """Say who makes text of a result, and who makes HTML of it."""
    global _write, _draw
    _write, _draw = write, draw


class Shown:
    """Something that ``print`` and a notebook show as more than its ``repr``."""

    __slots__ = ()

    def __str__(self) -> str:
        return _write(self)

    def _repr_html_(self) -> str:
        return _draw(self)
