"""A matrix as coloured cells: numbers where they fit, a stroke through what is negative, any number of columns.

Cells of a heat map by the thousand: whole steps of colour, one path for all cells of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from privcov.report.drawing.frame import chart, label, rule, text_width
from privcov.report.drawing.markup import Markup, short, tag
from privcov.report.drawing.theme import INK, MINUS, PAPER, PLUS, SMALL, WIDTH

_NAMED = 60
"""Columns beyond which names would be too small to read."""
_MOST = 150
"""Cells a side beyond which neighbours are drawn as one."""
_FLAT = 22.0
"""The room above the cells where names of columns lie flat."""


def heat_map(
    labels: Sequence[str],
    values: Values,
    *,
    title: str,
    description: str = "",
    columns: Sequence[str] | None = None,
    limit: float = 1.0,
    signed: bool = True,
    digits: int = 2,
    clear: Sequence[Sequence[bool]] | None = None,
) -> Markup:
    """A matrix with a name for each row (and column, where they differ); full colour at ``limit`` and beyond.

    ``signed=False`` is for sizes: one colour, from 0. NaN is missing. What is not ``clear`` has no colour. Up to 60
    rows have their names; beyond 150 a cell stands for a block of neighbours and shows the value in it that is
    farthest from zero.

    >>> heat_map(["a", "b"], [[1.0, -0.5], [-0.5, 1.0]], title="Correlation").count("× ")
    4
    """
    table = [[float(value) for value in row] for row in values]
    across = list(labels if columns is None else columns)
    if len(table) != len(labels) or any(len(row) != len(across) for row in table):
        raise ValueError("a heat map needs a value for every pair of labels")
    coloured = table
    if clear is not None:
        coloured = [
            [value if sure or not math.isfinite(value) else 0.0 for value, sure in zip(*both, strict=True)]
            for both in zip(table, clear, strict=True)
        ]
    block = -(-max(len(labels), len(across)) // _MOST)
    if block > 1:
        table = coloured = list(blocks(coloured, block))
    high, wide = len(table), len(table[0]) if table else 0
    named = len(labels) <= _NAMED and len(across) <= _NAMED
    left = _margin(labels) if named else 4.0
    cell = _cell(max(wide, high, 1), left)
    flat = all(text_width(name) <= cell - 2 for name in across) or cell >= 58
    top = (_FLAT if flat else _margin(across)) if named else 4.0
    width = max(float(WIDTH), left + wide * cell + 4)
    parts = list(_names(labels, across, left=left, top=top, cell=cell)) if named else []
    if len(table) * wide <= 26 * 26:
        parts += _cells(
            table,
            coloured,
            labels,
            across,
            at=(left, top),
            cell=cell,
            limit=limit,
            signed=signed,
            digits=digits,
        )
    else:
        parts += tones(coloured, at=(left, top), cell=cell, limit=limit, signed=signed)
    foot = top + high * cell + 22
    parts += _legend(left if named else 40.0, foot, limit=limit, signed=signed, digits=digits)
    if block > 1:
        words = f"each cell: the strongest value among {block} × {block} columns"
        parts.append(label(words, 40.0, foot + 44, font_size=SMALL))
    return chart(
        parts,
        shrinks=not named,
        title=title,
        description=description,
        width=width,
        height=foot + (52 if block > 1 else 32),
    )


def _cell(count: int, left: float) -> float:
    fits = (WIDTH - left - 4) / count
    if count <= 14:
        return min(max(fits, 36.0), 64.0)
    return min(max(fits, 13.0 if count <= _NAMED else 4.0), 24.0)


def _margin(names: Sequence[str]) -> float:
    return min(max((text_width(name) for name in names), default=0.0) + 10, 116.0)


def _names(
    labels: Sequence[str], across: Sequence[str], *, left: float, top: float, cell: float
) -> Iterator[Markup]:
    size = min(12.0, cell - 1.5)
    for i, name in enumerate(labels):
        y = top + (i + 0.5) * cell + size / 3
        yield label(name, left - 6, y, room=left - 8, text_anchor="end", font_size=size)
    for j, name in enumerate(across):
        x = left + (j + 0.5) * cell
        if top == _FLAT:
            yield label(name, x, top - 6, room=cell - 2, text_anchor="middle", font_size=size)
        else:
            turned = f"rotate(-90 {short(x + size / 3)} {short(top - 6)})"
            yield label(name, x + size / 3, top - 6, room=top - 10, font_size=size, transform=turned)


def _cells(
    table: Values,
    coloured: Values,
    labels: Sequence[str],
    across: Sequence[str],
    *,
    at: tuple[float, float],
    cell: float,
    limit: float,
    signed: bool,
    digits: int,
) -> Iterator[Markup]:
    """One element a cell, which says its value where it can be read and always when it is pointed at."""
    size = min(12.0, (cell - 3) / (0.62 * max(_longest(table, digits), 4)))
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            x, y = at[0] + j * cell, at[1] + i * cell
            words = _words(value, digits)
            said = tag(
                "title", f"{labels[i]} × {across[j]}: {words if math.isfinite(value) else 'not known'}"
            )
            share = depth(coloured[i][j], limit)
            inside = tag(
                "rect",
                x=x + 0.5,
                y=y + 0.5,
                width=cell - 1,
                height=cell - 1,
                fill=MINUS if value < 0 and signed else PLUS,
                fill_opacity=round(share, 3),
                stroke=INK,
                stroke_opacity=0.12,
            )
            parts = [said, inside]
            if value < 0 and signed and share > 0.04:
                parts.append(_slash(x, y, cell, bold=share > 0.7))
            if size >= 8.4:
                parts.append(
                    label(
                        words,
                        x + cell / 2,
                        y + cell / 2 + size / 3,
                        text_anchor="middle",
                        font_size=size,
                        fill=PAPER if share > 0.7 else INK,
                    )
                )
            elif not math.isfinite(value):
                parts.append(rule(x + cell * 0.3, y + cell / 2, x + cell * 0.7, y + cell / 2))
            yield tag("g", *parts)


def _slash(x: float, y: float, cell: float, *, bold: bool) -> Markup:
    """A stroke in the corner: what is negative is so in grey too."""
    reach = min(cell * 0.28, 9.0)
    end = y + cell - 2
    return rule(x + 2, end - reach, x + 2 + reach, end, stroke=PAPER if bold else INK, stroke_width=1.3)


def _legend(x: float, y: float, *, limit: float, signed: bool, digits: int) -> Iterator[Markup]:
    shown = [step / 4 for step in range(-4 if signed else 0, 5)]
    side = 18.0
    for place, share in enumerate(shown):
        yield tag(
            "rect",
            x=x + place * side,
            y=y - 9,
            width=side,
            height=10,
            fill=MINUS if share < 0 else PLUS,
            fill_opacity=abs(share),
            stroke=INK,
            stroke_opacity=0.12,
        )
        if share < 0:
            yield rule(x + place * side + 3, y - 6, x + place * side + 8, y - 1, stroke_width=1.2)
    for place, value in (
        (0, -limit if signed else 0.0),
        *(((4, 0.0),) if signed else ()),
        (len(shown) - 1, limit),
    ):
        yield label(
            _words(value, digits).rstrip("0").rstrip(".") or "0",
            x + (place + 0.5) * side,
            y + 15,
            text_anchor="middle",
            font_size=SMALL,
        )


def _words(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "–"
    words = f"{value:.{digits}f}"
    return (words[1:] if float(words) == 0 and words[0] == "-" else words).replace("-", "−")


def _longest(table: Values, digits: int) -> int:
    return max((len(_words(value, digits)) for row in table for value in row), default=1)


Values = Sequence[Sequence[float]]

_TONES = 12


def tones(
    table: Values, *, at: tuple[float, float], cell: float, limit: float, signed: bool
) -> Iterator[Markup]:
    """One path for all cells of a tone, as runs along the rows: small however many cells there are."""
    runs: dict[int, list[str]] = {}
    strokes: list[str] = []
    for i, row in enumerate(table):
        steps = [_tone(value, limit, signed) for value in row]
        start = 0
        for j in range(1, len(steps) + 1):
            if j < len(steps) and steps[j] == steps[start]:
                continue
            if steps[start]:
                x, y = at[0] + start * cell, at[1] + i * cell
                side = short((j - start) * cell)
                runs.setdefault(steps[start], []).append(
                    f"M{short(x)} {short(y)}h{side}v{short(cell)}h-{side}z"
                )
            start = j
        if cell >= 8:
            strokes += [
                f"M{short(at[0] + j * cell + 1.5)} {short(at[1] + (i + 1) * cell - 1.5 - cell / 3)}l{short(cell / 3)} "
                f"{short(cell / 3)}"
                for j, tone in enumerate(steps)
                if tone < 0
            ]
    for tone in sorted(runs):
        yield tag(
            "path",
            d="".join(runs[tone]),
            fill=INK if abs(tone) > _TONES else MINUS if tone < 0 else PLUS,
            fill_opacity=0.18 if abs(tone) > _TONES else abs(tone) / _TONES,
        )
    if strokes:
        yield tag("path", d="".join(strokes), fill="none", stroke=INK, stroke_opacity=0.75)
    yield tag(
        "rect",
        x=at[0],
        y=at[1],
        width=cell * len(table[0]),
        height=cell * len(table),
        fill="none",
        stroke=INK,
        stroke_opacity=0.3,
    )


def depth(value: float, limit: float) -> float:
    """How much of its colour a cell has."""
    return min(abs(value) / limit, 1.0) if math.isfinite(value) and limit > 0 else 0.0


def blocks(table: Values, size: int) -> Iterator[list[float]]:
    """A smaller matrix: of each block of neighbours the value farthest from zero."""
    for i in range(0, len(table), size):
        rows = table[i : i + size]
        yield [
            max(
                (value for row in rows for value in row[j : j + size]),
                key=lambda value: abs(value) if math.isfinite(value) else -1.0,
            )
            for j in range(0, len(table[0]), size)
        ]


def _tone(value: float, limit: float, signed: bool) -> int:
    """The colour of a cell in whole steps, negative below zero; one beyond the last is for what is missing."""
    if not math.isfinite(value):
        return _TONES + 1
    step = round(_TONES * depth(value, limit))
    return -step if value < 0 and signed else step
