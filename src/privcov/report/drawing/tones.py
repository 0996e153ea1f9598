"""Cells of a heat map by the thousand: whole steps of colour, one path for all cells of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from privcov.report.drawing.markup import Markup, short, tag
from privcov.report.drawing.theme import INK, MINUS, PLUS

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
