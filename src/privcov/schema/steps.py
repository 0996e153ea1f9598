"""From an expression to steps, with the range of values of each, and what a step computes of the cells of a row.

A step takes what earlier steps gave: a cell, a constant, an operation. ``Maker`` refuses what has no meaning or no
bound, in words of the expression as it was written. ``computed`` is what a step does to a run of rows, each by itself.
Proof: docs/proofs/derived.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Never

import numpy as np

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import elementary, intervals
from privcov.schema.columns import Categorical, Column
from privcov.schema.dialect import moment
from privcov.schema.expressions import COMPARISONS, Node, name_text, number_text
from privcov.schema.intervals import DividesByZero, Kind, Range, Unbounded

MOST_STEPS = 10_000
"""Operations of all of them; what several need counts once."""
_MOST_CUTS = 64
ARGUMENTS = {
    "log": (1, 2), "exp": (1, 1), "sqrt": (1, 1), "abs": (1, 1), "min": (2, 16), "max": (2, 16), "days": (1, 1),
    "hours": (1, 1), "year": (1, 1), "month": (1, 1), "weekday": (1, 1), "hour": (1, 1),
    "cut": (2, _MOST_CUTS + 1), "poly": (2, 3), "bs": (2, 3),
}  # fmt: skip
"""The functions, and how many arguments each has."""
FEWEST = {"poly": 1, "bs": 3}
"""Columns of a basis, at least."""
_WORDS: dict[Kind, str] = {
    "number": "a number",
    "condition": "a condition",
    "date": "a date",
    "duration": "a time between dates",
    "levels": "a column of levels",
    "text": "a text",
}


def derived_column(name: str) -> str:
    """A derived column as messages speak of it."""
    return f"the derived column {name}"


@dataclass(frozen=True)
class Step:
    """One operation: what is done with the results of earlier steps, and with which constants."""

    op: str
    inputs: tuple[int, ...] = ()
    constants: tuple[float, ...] = ()


class Maker:
    """The steps of all expressions, one after the other, with the range of each."""

    def __init__(self, sources: Sequence[Column]) -> None:
        self._sources = {column.name: (place, column) for place, column in enumerate(sources)}
        self._known: dict[Step, int] = {}
        self.steps: list[Step] = []
        self.ranges: list[Range] = []
        self._name = ""

    def add(self, name: str, node: Node) -> int:
        """Put the steps of a column; the place of the last of them."""
        self._name = name
        place = self._made(node)
        found = self.ranges[place]
        if found.kind not in ("number", "condition", "levels"):
            raise self._refused(f"is {_WORDS[found.kind]}", "Turn it into a number: days(a - b), year(a).")
        if found.kind == "levels" and node.op != "cut":
            raise self._refused(f"repeats {node}, which is a column of levels", "Use that column.")
        if found.lower == found.upper or len(found.levels) == 1:
            raise InputError(
                "E175", f"{derived_column(name)} has the same value in every row: {node}.", "Leave it out."
            )
        return place

    def _refused(self, what: str, remedy: str) -> InputError:
        return InputError("E173", f"{derived_column(self._name)} {what}.", remedy)

    def _put(self, step: Step, found: Range) -> int:
        if step not in self._known:
            if len(self.steps) == MOST_STEPS:
                raise InputError(
                    "E177",
                    f"the derived columns take more than {MOST_STEPS:,} operations together.",
                    "Leave some out, or write them in a simpler way.",
                )
            self._known[step] = len(self.steps)
            self.steps.append(step)
            self.ranges.append(found)
        return self._known[step]

    def _made(self, node: Node) -> int:
        if node.op == "number":
            value = float(node.value)
            return self._put(Step("constant", (), (value,)), Range("number", value, value))
        if node.op == "text":
            raise self._refused(
                f"has the text {node}",
                f"The column of this name is written {name_text(str(node.value))}."
                if node.value in self._sources
                else "A text is compared with a column of levels or with a date: sex == 'F'.",
            )
        if node.op == "column":
            return self._column(str(node.value))
        if node.op in (*COMPARISONS, "-") and (paired := self._with_text(node)) is not None:
            return paired
        if node.op in ARGUMENTS:
            return self._call(node)
        if node.op not in ("+", "-", "*", "/", "negative", "^", "and", "or", "not", *COMPARISONS):
            raise InputError(
                "E170",
                f"{derived_column(self._name)} has an unknown function {node.op[:40]!r}.",
                f"Known: {', '.join(ARGUMENTS)}. A name of a column with other marks goes between backticks.",
            )
        inputs = tuple(self._made(part) for part in node.parts)
        found = self._combined(node, [self.ranges[place] for place in inputs])
        constants = (float(node.value),) if node.op == "^" else ()
        return self._put(Step(node.op, inputs, constants), found)

    def _column(self, name: str) -> int:
        if name not in self._sources:
            known = ", ".join(map(name_text, [*self._sources][:8])) + (
                ", …" if len(self._sources) > 8 else ""
            )
            raise InputError(
                "E171",
                f"{derived_column(self._name)} needs a column {name[:64]!r}, which the schema does not declare.",
                f"It declares {known}. A name with other marks goes between backticks.",
            )
        place, column = self._sources[name]
        if isinstance(column, Categorical):
            fill = np.nan if column.fill is None else float(column.levels.index(column.fill))
            levels = tuple(map(str, column.levels))
            return self._put(
                Step("code", (), (place, fill)), Range("levels", -1.0, len(levels) - 1.0, levels)
            )
        fill = np.nan if column.fill is None else column.fill
        found = Range("date" if column.date else "number", column.lower, column.upper)
        return self._put(Step("cell", (), (place, column.lower, column.upper, fill)), found)

    def _with_text(self, node: Node) -> int | None:
        """A date beside a text, or a column of levels compared with one; None where neither side is such."""
        left, right = node.parts
        for said, other in ((right, left), (left, right)):
            if said.op == "text" or (said.op == "number" and self._is_levels(other)):
                break
        else:
            return None
        place = self._made(other)
        found = self.ranges[place]
        if found.kind == "levels" and node.op in ("==", "!="):
            word = number_text(float(said.value)) if said.op == "number" else str(said.value)
            if word not in found.levels:
                raise self._refused(
                    f"asks for {word[:40]!r}, which is none of the levels of {other}", "Correct it."
                )
            code = float(found.levels.index(word))
            return self._put(Step("is" + node.op, (place,), (code,)), Range("condition", 0.0, 1.0))
        if found.kind != "date":
            self._mixed(node, found)
        seconds = moment(str(said.value))
        if seconds is None:
            raise self._refused(f"has {said}, which is no date", "Write '2024-12-31' or '2024-12-31T18:00'.")
        constant = self._put(Step("constant", (), (seconds,)), Range("date", seconds, seconds))
        inputs = (place, constant) if said is right else (constant, place)
        return self._put(Step(node.op, inputs), self._combined(node, [self.ranges[one] for one in inputs]))

    def _is_levels(self, node: Node) -> bool:
        return node.op == "column" and self.ranges[self._made(node)].kind == "levels"

    def _mixed(self, node: Node, found: Range) -> Never:
        remedy = (
            "Numbers are made of levels by comparing: (sex == 'F')."
            if found.kind == "levels"
            else "Numbers are made of dates by days(a - b), hours(a - b), year, month, weekday and hour."
        )
        raise self._refused(f"cannot have {_WORDS[found.kind]} in {str(node)[:200]!r}", remedy)

    def _combined(self, node: Node, given: list[Range]) -> Range:
        """The range of an operation, once the kinds of its parts agree with it."""
        dates = [one.kind == "date" for one in given]
        if node.op in ("and", "or", "not"):
            for one in given:
                if one.kind != "condition":
                    raise self._refused(
                        f"cannot have {_WORDS[one.kind]} beside {node.op!r}", "Compare it first: age >= 65."
                    )
            return Range("condition", 0.0, 1.0)
        if node.op == "-" and all(dates):
            found = intervals.minus(*given)
            return Range("duration", found.lower, found.upper)
        if not (node.op in COMPARISONS and all(dates)):
            for one in given:
                if one.kind not in ("number", "condition"):
                    self._mixed(node, one)
        return self._ranged(node, given)

    def _ranged(self, node: Node, given: list[Range]) -> Range:
        try:
            if node.op in COMPARISONS:
                return intervals.compared(node.op, *given)
            if node.op == "^":
                return intervals.raised(given[0], int(float(node.value)))
            if node.op == "log" and len(node.parts) == 2:
                return intervals.log(given[0], float(node.parts[1].value))
            return _RANGES[node.op](*given)
        except DividesByZero:
            raise InputError(
                "E174",
                f"{derived_column(self._name)} divides by {node.parts[1]}, which can be 0: it lies in "
                f"[{given[1].lower:g}, {given[1].upper:g}].",
                "Divide by what cannot be 0, such as x + 1 or max(x, 1).",
            ) from None
        except Unbounded as reason:
            raise InputError("E175", f"{derived_column(self._name)}: {str(node)[:200]} {reason}.") from None

    def _call(self, node: Node) -> int:
        fewest, most = ARGUMENTS[node.op]
        if not fewest <= len(node.parts) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self._refused(
                f"gives {node.op} {len(node.parts)} arguments; it takes {wanted}", "Correct it."
            )
        if node.op in ("cut", "poly", "bs") or (node.op == "log" and len(node.parts) == 2):
            return self._with_constants(node)
        inputs = tuple(self._made(part) for part in node.parts)
        given = [self.ranges[place] for place in inputs]
        wanted_kind = {"days": "duration", "hours": "duration"} | dict.fromkeys(
            ("year", "month", "weekday", "hour"), "date"
        )
        for one in given:
            if node.op in wanted_kind and one.kind != wanted_kind[node.op]:
                shown = (
                    "the time between two dates, as in days(a - b)"
                    if wanted_kind[node.op] == "duration"
                    else "a date"
                )
                raise self._refused(f"gives {node.op} {_WORDS[one.kind]}; it takes {shown}", "Correct it.")
            if node.op not in wanted_kind and one.kind not in ("number", "condition"):
                self._mixed(node, one)
        return self._put(Step(node.op, inputs), self._ranged(node, given))

    def _with_constants(self, node: Node) -> int:
        """A function whose arguments behind the first are numbers that are written out."""
        first, *rest = node.parts
        place = self._made(first)
        found = self.ranges[place]
        if found.kind not in ("number", "condition"):
            self._mixed(node, found)
        if any(part.op != "number" for part in rest):
            raise self._refused(f"needs plain numbers behind the first argument of {node.op}", f"Got {node}.")
        numbers = tuple(float(part.value) for part in rest)
        if node.op == "log":
            return self._put(Step("log", (place,), numbers), self._ranged(node, [found]))
        if node.op == "cut":
            return self._cut(node, place, numbers)
        return self._basis(node, place, numbers)

    def _cut(self, node: Node, place: int, points: tuple[float, ...]) -> int:
        if any(a >= b for a, b in pairwise(points)):
            raise self._refused(f"needs rising points in {node}", "Write cut(age, 18, 40, 65).")
        found = self.ranges[place]
        # Levels that no cell can have are left out: their points are at or below the least value, or above the largest.
        kept = tuple(point for point in points if found.lower < point <= found.upper)
        words = [number_text(point) for point in kept]
        levels = tuple(f"{a}..{b}" for a, b in zip(["", *words], [*words, ""], strict=True))
        return self._put(Step("cut", (place,), kept), Range("levels", 0.0, float(len(kept)), levels))

    def _basis(self, node: Node, place: int, numbers: tuple[float, ...]) -> int:
        fewest, most = FEWEST[node.op], elementary.MOST_BASIS
        count, which = (*numbers, 0.0)[:2]
        if not (count.is_integer() and fewest <= count <= most):
            raise self._refused(
                f"has {node}; it makes {fewest} to {most} columns", "Correct the second argument."
            )
        if not (which.is_integer() and 1 <= which <= count):
            raise self._refused(
                f"uses {node} within an expression, where it is one column",
                f"Say which: {node.op}({node.parts[0]}, {count:g}, 1).",
            )
        found = self.ranges[place]
        if found.lower == found.upper:
            raise InputError(
                "E175",
                f"{derived_column(self._name)} has the same value in every row: {node}.",
                "Leave it out.",
            )
        return (
            self._polynomial(place, int(which))
            if node.op == "poly"
            else self._spline(place, int(count), int(which))
        )

    def _polynomial(self, place: int, degree: int) -> int:
        """The Legendre polynomials up to a degree, each from the two before it, and the last of them."""
        found = self.ranges[place]
        middle, half = found.lower + (found.upper - found.lower) / 2, (found.upper - found.lower) / 2
        whole = Range("number", -1.0, 1.0)
        chain = [self._made(Node("number", value=1.0))]
        chain.append(self._put(Step("unit", (place,), (middle, half, -1.0)), whole))
        for n in range(2, degree + 1):
            chain.append(self._put(Step("legendre", (chain[1], chain[n - 1], chain[n - 2]), (n,)), whole))
        least = elementary.legendre_least(degree)
        return self._put(Step("within", (chain[degree],), (least, 1.0)), Range("number", least, 1.0))

    def _spline(self, place: int, count: int, which: int) -> int:
        """A cubic spline with knots at the whole numbers, of cells that are scaled to them."""
        found, pieces = self.ranges[place], count - 2
        width = Range("number", 0.0, float(pieces))
        scaled = self._put(
            Step("unit", (place,), (found.lower, (found.upper - found.lower) / pieces, 0.0, pieces)), width
        )
        cubes = [self._put(Step("cube", (scaled,), (knot,)), width) for knot in range(1, pieces)]
        most = elementary.spline_most(count, which)
        return self._put(Step("bs", (scaled, *cubes), (count, which)), Range("number", 0.0, most))


_RANGES: dict[str, Any] = {
    "+": intervals.plus,
    "-": intervals.minus,
    "*": intervals.times,
    "/": intervals.over,
    "negative": intervals.negative,
    "abs": intervals.magnitude,
    "sqrt": intervals.root,
    "log": intervals.log,
    "exp": intervals.exp,
    "min": intervals.least,
    "max": intervals.largest,
    "year": intervals.year,
    "month": intervals.month,
    "weekday": lambda one: Range("number", 1.0, 7.0),
    "hour": lambda one: Range("number", 0.0, 23.0),
    "days": lambda one: intervals.per(one, elementary.DAY),
    "hours": lambda one: intervals.per(one, 3600.0),
}


def computed(step: Step, found: Sequence[Floats], cells: Sequence[Floats]) -> Floats:
    """The cells of one step, each from the cells of its own row."""
    given, numbers = [found[place] for place in step.inputs], step.constants
    if step.op == "cell":
        place, lower, upper, fill = numbers
        own = cells[int(place)]
        if fill == fill:
            return np.clip(np.where(np.isfinite(own), own, fill), lower, upper)
        made = own + (own - own)  # an infinite cell is missing, as it is in a column of the release
        return np.clip(made, lower, upper, out=made)
    if step.op == "code":
        own = cells[int(numbers[0])]
        return np.where(np.isfinite(own), own, numbers[1])
    if step.op == "constant":
        return np.array(numbers)
    return np.asarray(_OPERATIONS[step.op](*given, *numbers))


def _told(condition: Any, *given: Floats) -> Floats:
    """1 and 0 for true and false, and NaN where a cell is missing: a number times 0 is 0, and NaN is not."""
    made = given[0] * 0.0
    for other in given[1:]:
        made = made + other * 0.0
    return np.asarray(made + condition)


def _log(x: Floats, least: float = elementary.SMALLEST) -> Floats:
    return elementary.log(np.where(x >= least, x, np.nan))


def _cut(x: Floats, *points: float) -> Floats:
    """How many of the points are not above each number."""
    made = x * 0.0
    for point in points:
        made += x >= point
    return np.asarray(made)


def _unit(x: Floats, zero: float, one: float, least: float, most: float = 1.0) -> Floats:
    """Numbers in other units, and nothing beyond the ends that rounding might leave."""
    made = x - zero
    made /= one
    return np.clip(made, least, most, out=made)


_OPERATIONS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "negative": np.negative,
    "^": lambda x, power: elementary.raised(x, int(power)),
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": _log,
    "exp": elementary.exp,
    "min": lambda *given: _folded(np.minimum, given),
    "max": lambda *given: _folded(np.maximum, given),
    "and": np.minimum,
    "or": np.maximum,
    "not": lambda x: 1.0 - x,
    "<": lambda x, y: _told(x < y, x, y),
    "<=": lambda x, y: _told(x <= y, x, y),
    ">": lambda x, y: _told(x > y, x, y),
    ">=": lambda x, y: _told(x >= y, x, y),
    "==": lambda x, y: _told(x == y, x, y),
    "!=": lambda x, y: _told(x != y, x, y),
    "is==": lambda x, code: _told(x == code, x),
    "is!=": lambda x, code: _told(x != code, x),
    "cut": _cut,
    "unit": _unit,
    "within": np.clip,
    "legendre": lambda t, last, before, n: elementary.legendre(int(n), t, last, before),
    "cube": elementary.cube_above,
    "bs": lambda *given: elementary.spline(int(given[-2]), int(given[-1]), *given[:-2]),
    "year": lambda x: elementary.year_and_month(x)[0],
    "month": lambda x: elementary.year_and_month(x)[1],
    "weekday": elementary.weekday,
    "hour": elementary.hour,
    "days": lambda x: x / elementary.DAY,
    "hours": lambda x: x / 3600.0,
}
"""What each operation does. Each is one operation of IEEE 754 on single elements, or made of such in ``elementary``."""


def _folded(operation: Any, given: Sequence[Floats]) -> Floats:
    made = given[0]
    for other in given[1:]:
        made = operation(made, other)
    return made
