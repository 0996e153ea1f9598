"""Derived columns: from the expressions of a schema to columns with bounds, and from the cells of a row to theirs.

A derived cell is a function of the other cells of its row and of the schema. The function is total: what has no value
(a missing cell, the root of a negative number) is a missing cell. Source cells are clipped to their declared bounds
before anything is computed, so no derived cell leaves the bounds that ``intervals`` finds.
Proof: docs/proofs/derived.md.

>>> from privcov.schema.columns import Numeric
>>> recipe = Recipe.of((Numeric(name="age", lower=0, upper=100),), (("age2", "age^2"), ("old", "age >= 65")))
>>> recipe.ranges["age2"].upper
10000.0
>>> [cells.tolist() for cells in recipe.derived([np.array([20.0, 70.0, 1e9, np.nan])])]
[[400.0, 4900.0, 10000.0, nan], [0.0, 1.0, 1.0, nan]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import elementary
from privcov.schema.columns import Categorical, Column, Numeric
from privcov.schema.expressions import LONGEST, Node, parse
from privcov.schema.intervals import Range
from privcov.schema.names import check_name
from privcov.schema.steps import ARGUMENTS, FEWEST, Maker, Step, computed, derived_column
from privcov.text.grammar import brief

MOST_DERIVED = 500
"""Derived columns of a schema."""
_STEP = 8_192
"""Rows that are computed together, at most: their cells stay in the processor's cache."""
_CELLS = 2**22
"""Cells that are held for them, at most, where there are many steps."""
FUNCTIONS = frozenset(ARGUMENTS)
_SAME = 2.0**-40
"""Of a bound, beyond which it is another one: versions may differ in the last digits of an interval."""


@dataclass(frozen=True)
class Recipe:
    """The steps that make all derived columns of a schema; what several of them need is computed once."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    """The step that gives each derived column."""
    ranges: Mapping[str, Range]
    """Where the values of each derived column lie."""

    @staticmethod
    @lru_cache(maxsize=64)
    def of(sources: tuple[Column, ...], expressions: tuple[tuple[str, str], ...]) -> Recipe:
        """The recipe for derived columns, each a name and a text; ``InputError`` (E170 to E177) where there is none."""
        _check_count(len(expressions))
        maker = Maker(sources)
        results = {name: maker.add(name, parse(text, derived_column(name))) for name, text in expressions}
        ranges = {name: maker.ranges[place] for name, place in results.items()}
        return Recipe(tuple(maker.steps), tuple(results.values()), ranges)

    def derived(self, cells: Sequence[Floats] | Floats) -> Floats:
        """The derived columns of a block of rows, one after the other; ``cells`` holds the columns of the table."""
        rows = len(cells[0])
        made = np.empty((len(self.results), rows))
        with np.errstate(all="ignore"):  # a warning would tell that a value is there
            together = max(64, min(_STEP, _CELLS // max(1, len(self.steps))))
            for start in range(0, rows, together):
                part = [column[start : start + together] for column in cells]
                found: list[Floats] = []
                for step in self.steps:
                    found.append(computed(step, found, part))
                for out, place in zip(made, self.results, strict=True):
                    out[start : start + together] = found[place]
        return made

    @cached_property
    def reads(self) -> frozenset[int]:
        """The places, among the columns of the table, of those that some expression uses."""
        return frozenset(int(step.constants[0]) for step in self.steps if step.op in ("cell", "code"))


def derived_columns(sources: Sequence[Column], given: object) -> list[Column]:
    """The columns that ``[derived]`` declares: numeric with the bounds that follow, or with the levels of a ``cut``."""
    if not isinstance(given, Mapping):
        raise InputError(
            "E122", "[derived] may hold only expressions.", 'Write it as NAME = "log(income + 1)".'
        )
    nodes: dict[str, Node] = {}
    rules: dict[str, Mapping[str, Any]] = {}
    taken = {column.name for column in sources}
    for key, about in given.items():
        name = check_name(key)
        text, own = _declared(name, about)
        for made, node in columns_of(name, parse(text, derived_column(name))):
            if made in taken:
                raise InputError(
                    "E176", f"the derived column {made} has the name of another column.", "Rename it."
                )
            taken.add(made)
            nodes[made], rules[made] = node, own
            _check_count(len(nodes))
    whole: dict[str, Node] = {}
    for name in _ordered(nodes):
        whole[name] = written_out(nodes[name], whole, derived_column(name))
    expressions = {name: str(whole[name]) for name in nodes}
    recipe = Recipe.of(tuple(sources), tuple(expressions.items()))
    return [_column(name, text, recipe.ranges[name], rules[name]) for name, text in expressions.items()]


def written_out(node: Node, known: Mapping[str, Node], where: str = "this expression") -> Node:
    """The expression with those of derived columns in the place of their names.

    >>> print(written_out(parse("age * wealth"), {"wealth": parse("log(income + 1)")}))
    age * log(income + 1)
    """
    if sum(known[name].size for name in node.columns() if name in known) > LONGEST:
        raise InputError(
            "E177",
            f"{where} is too long once the derived columns in it are written out.",
            "Write it in a simpler way.",
        )
    if node.op == "column":
        return known.get(str(node.value), node)
    return replace(node, parts=tuple(written_out(part, known, where) for part in node.parts))


def _column(name: str, text: str, found: Range, rules: Mapping[str, Any]) -> Column:
    """The column with the bounds, or the levels, that were found."""
    if found.kind == "levels":
        return Categorical(name=name, levels=found.levels, expression=text, **rules)
    return Numeric(name=name, lower=found.lower, upper=found.upper, expression=text, **rules)


def of_other_bounds(columns: Sequence[Column], recipe: Recipe | None) -> list[tuple[Numeric, Range]]:
    """The derived columns whose bounds are not those that follow from their expressions, with what follows.

    >>> age = Numeric(name="age", lower=0, upper=100)
    >>> half = Numeric(name="half", lower=0, upper=40, expression="age / 2")
    >>> recipe = Recipe.of((age,), (("half", "age/2"),))
    >>> [(column.upper, found.upper) for column, found in of_other_bounds([age, half], recipe)]
    [(40.0, 50.0)]
    """
    ranges = {} if recipe is None else recipe.ranges
    return [
        (column, own)
        for column in columns
        if isinstance(column, Numeric)
        and (own := ranges.get(column.name)) is not None
        and max(abs(column.lower - own.lower), abs(column.upper - own.upper))
        > _SAME * max(abs(own.lower), abs(own.upper))
    ]


def basis_columns(node: Node) -> list[Node]:
    """The single columns that an expression stands for: those of a whole basis, or itself.

    >>> [str(one) for one in basis_columns(parse("poly(age, 2)"))]
    ['poly(age, 2, 1)', 'poly(age, 2, 2)']
    """
    if node.op not in FEWEST or len(node.parts) != 2:
        return [node]
    count = float(node.parts[1].value) if node.parts[1].op == "number" else 0.0
    if not (count.is_integer() and FEWEST[node.op] <= count <= elementary.MOST_BASIS):
        return [node]  # which is refused as it was written
    places = range(1, int(count) + 1)
    return [Node(node.op, (*node.parts, Node("number", value=float(place)))) for place in places]


def columns_of(name: str, node: Node) -> list[tuple[str, Node]]:
    """The columns that a name and its expression declare, several of a whole basis.

    >>> [name for name, _ in columns_of("age_p", parse("poly(age, 2)"))]
    ['age_p_1', 'age_p_2']
    """
    made = basis_columns(node)
    return (
        [(name, node)] if made == [node] else [(f"{name}_{place}", one) for place, one in enumerate(made, 1)]
    )


def _declared(name: str, about: object) -> tuple[str, Mapping[str, Any]]:
    """The expression of a derived column, and what else is said of it."""
    allowed = ("missing", "fill", "centre", "scale", "label", "unit")
    if isinstance(about, str):
        return about, {}
    if not isinstance(about, Mapping) or not isinstance(about.get("expression"), str):
        raise InputError(
            "E170",
            f"{derived_column(name)} has no expression: got {brief(about)}.",
            'Write it as NAME = "age^2".',
        )
    for word in about:
        if word not in ("expression", *allowed):
            raise InputError(
                "E122",
                f"{derived_column(name)} has an unknown entry {brief(word)!r}.",
                f"Known: {', '.join(allowed)}.",
            )
    return about["expression"], {word: about[word] for word in allowed if word in about}


def _check_count(columns: int) -> None:
    if columns > MOST_DERIVED:
        raise InputError(
            "E177", f"the schema has more than {MOST_DERIVED:,} derived columns.", "Leave some out."
        )


def _ordered(nodes: Mapping[str, Node]) -> list[str]:
    """The names in an order in which none comes before one that it needs."""
    needs = {name: [other for other in node.columns() if other in nodes] for name, node in nodes.items()}
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as reason:
        circle = " → ".join(reversed(reason.args[1]))
        raise InputError(
            "E172",
            f"derived columns depend on each other in a circle: {circle[:400]}.",
            "Write one of them without the others.",
        ) from None
