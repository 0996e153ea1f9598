"""Texts that line up on a terminal, where a character of East Asia is two cells wide and an accent none.

>>> print("\\n".join([line(["人口", "1"], [6, 3], {0}), line(["people", "22"], [6, 3], {0})]))
人口     1
people  22
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from textwrap import fill

from rich.cells import cell_len, set_cell_size

MOST_ROOM, LEAST_ROOM = 100, 40
"""A line of a terminal is read with ease up to this many cells, and nothing is made narrower than the least."""
_HELD = "\x00"
"""In place of a blank at which no line ends; no printed text has one of its own (``text/grammar.py``)."""
_TOGETHER = re.compile(r"(?<=\d)\s(?=%)|(?<=±)\s(?=\d)|(?<=[\d%])\s(?=±)|(?<=\w)\s(?==\s)|(?<=\s=)\s(?=\S)")
NAME_CELLS = 40
"""What a table on a terminal shows of a name; JSON, HTML and LaTeX have all of it."""


def width(text: str) -> int:
    """How many cells a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def widths(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[int]:
    """The width of every column of a table."""
    return [max(map(width, column)) for column in zip(headings, *rows, strict=True)]


def cut(name: str, cells: int = NAME_CELLS) -> str:
    """The name, or its beginning and an ellipsis where it is wider than ``cells``.

    >>> cut("Household Income (USD)", 11)
    'Household…'
    """
    return name if width(name) <= cells else set_cell_size(name, cells - 1).rstrip() + "…"


def terminal() -> int:
    """The cells of a line of the terminal that is written to; in a pipe, a file or a notebook, without end.

    ``COLUMNS`` is not asked: where a program was started by Python it may be of a terminal that nobody writes to.
    """
    if sys.stdout is not sys.__stdout__:  # a notebook shows what is printed in a place of its own
        return sys.maxsize
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        return sys.maxsize
    return max(LEAST_ROOM, columns or sys.maxsize)


def room() -> int:
    """The cells of a line of prose: 100, or those of the terminal where they are fewer."""
    return min(MOST_ROOM, terminal())


def parts(widths: Sequence[int], within: int, *, between: int = 1) -> list[list[int]]:
    """The columns of a table in as many tables as lines of ``within`` cells need; each has the first column.

    >>> parts([5, 8, 8, 8], 24), parts([5, 8, 8, 8], 99)
    ([[0, 1, 2], [0, 3]], [[0, 1, 2, 3]])
    """
    found, left = [[0]], within - widths[0]
    for place, wide in enumerate(widths[1:], start=1):
        if between + wide > left and len(found[-1]) > 1:
            found.append([0])
            left = within - widths[0]
        found[-1].append(place)
        left -= between + wide
    return found


def together(text: str, blank: str) -> str:
    """The text with ``blank`` in place of each blank at which no line may end.

    >>> together("about 5 % ± 1 % of rows at epsilon = 1", "~")
    'about 5~%~±~1~% of rows at epsilon~=~1'
    """
    return _TOGETHER.sub(blank, text)


def paragraph(text: str, *, first: str = "", hang: str = "  ", within: int | None = None) -> str:
    """The text in lines of ``within`` cells, or for which there is ``room``; words stay whole.

    All lines but the first are indented by ``hang``. A number stays with its per cent sign and its ±, and what is on
    the two sides of an equals sign stays together. A word with a hyphen is one word: ``replace-one`` can be copied.

    >>> print(paragraph("The loss is pure, epsilon = 1, " * 3 + "replace-one, as declared."))
    The loss is pure, epsilon = 1, The loss is pure, epsilon = 1, The loss is pure, epsilon = 1,
      replace-one, as declared.
    >>> paragraph("word " * 19 + "and 1 %").splitlines()[-1]
    '  1 %'
    >>> paragraph("word " * 19 + "say epsilon = 1").splitlines()[-1]
    '  epsilon = 1'
    """
    lines = fill(
        together(text, _HELD),
        width=room() if within is None else within,
        initial_indent=first,
        subsequent_indent=hang,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines.replace(_HELD, " ")


def squeezed(name: str, cells: int) -> str:
    """The name, or its beginning and its end where it is wider than ``cells``: often only the end tells two apart.

    >>> squeezed("question number 18", 11), squeezed("married[yes]", 11), squeezed("都道府県の人口", 9)
    ('quest…er 18', 'marri…[yes]', '都道…人口')
    """
    if width(name) <= cells:
        return name
    end = name[-(cells // 2) :]
    while width(end) > cells // 2 or width(end[:1]) == 0:  # an accent goes with its letter
        end = end[1:]
    return set_cell_size(name, cells - 1 - width(end)).rstrip() + "…" + end


def line(cells: Sequence[str], widths: Sequence[int], left: Collection[int], *, between: str = " ") -> str:
    """One line of a table; the columns in ``left`` begin at one place, the others end at one."""
    placed = []
    for place, (cell, room) in enumerate(zip(cells, widths, strict=True)):
        blank = " " * (room - width(cell))
        placed.append(cell + blank if place in left else blank + cell)
    return between.join(placed).rstrip()
