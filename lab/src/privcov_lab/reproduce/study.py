"""What a reproduction is made of: cells that are measured, and findings that are read off them.

A ``Cell`` names a function of its paper's module and its arguments, plain JSON values. The function is called as
``function(data, randomness, **arguments)``, where ``data`` finds tables by name (``data.load("wine")``) and
``randomness`` is a rehearsal seeded by the cell's own name, so that a cell gives the same numbers in any order, in any
process. It returns JSON values; lists of numbers (one a run) rather than their mean, so that figures can show spread.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from privcov.errors import ParameterError

Verdict = Literal["agrees", "agrees in part", "not reproduced", "refuted", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is measured: everything the paper did, or a smoke run that only shows that it works."""

    quick: bool = False
    published_only: bool = False
    """Leave out the lines that are ours and measure the paper's own constants alone."""

    def runs(self, wanted: int, quick: int = 2) -> int:
        """How often to repeat a measurement.

        >>> Effort().runs(50), Effort(quick=True).runs(50)
        (50, 2)
        """
        return min(wanted, quick) if self.quick else wanted


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement; its function and arguments are its name."""

    function: str
    arguments: Mapping[str, Any]
    cost: float = field(default=1.0, compare=False)
    """Roughly how many seconds it takes: the longest go first."""

    def key(self, study: Study) -> str:
        """What its result is kept under; a new revision of the study forgets the results of the old."""
        named = [study.name, study.revision, self.function, dict(self.arguments)]
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Results:
    """Every measured cell: its arguments and its values in one mapping."""

    lines: tuple[Mapping[str, Any], ...]

    def of(self, function: str, **arguments: Any) -> list[dict[str, Any]]:
        """The cells of a function with these arguments, in the order they were listed.

        >>> made = Results(({"function": "error", "epsilon": 1, "errors": [0.5]},))
        >>> made.of("error", epsilon=1)[0]["errors"]
        [0.5]
        """
        wanted = {"function": function, **arguments}
        return [dict(line) for line in self.lines if all(line.get(k) == v for k, v in wanted.items())]

    def one(self, function: str, **arguments: Any) -> dict[str, Any]:
        """The only cell of a function with these arguments."""
        (found,) = self.of(function, **arguments)
        return found


@dataclass(frozen=True, kw_only=True)
class Table:
    """Numbers for people and programs; ``rows`` hold words and numbers, and a number that is None is a blank."""

    name: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | int | float | None]]
    digits: int = 4
    """Significant digits in Markdown and HTML; CSV has them all."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture: ``draw`` is given matplotlib.pyplot and returns a figure (see ``privcov_lab.reproduce.charts``)."""

    name: str
    caption: str
    draw: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper in our words, what we measured, and whether they agree."""

    where: str
    says: str
    measured: str
    verdict: Verdict
    note: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise ParameterError(
                "E299", f"a verdict is one of {', '.join(get_args(Verdict))}, got {self.verdict}."
            )


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a reproduction has to say, in the order it is read."""

    claims: Sequence[Claim]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    """Paragraphs: what differs from the paper's set-up, and why."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper's experiments: which tables they need, what is measured, what is found."""

    name: str
    title: str
    citation: str
    about: str
    """Two or three sentences: what the paper did, and what is repeated here."""
    tables: Sequence[str]
    """The data sets it needs, by their names in ``datasets``."""
    cells: Callable[[Effort], Iterable[Cell]]
    find: Callable[[Results], Findings]
    revision: int = 1
    """Raised when a cell's function changes, so that kept results are measured again."""
