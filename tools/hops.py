"""The way of a row: every file of privcov that one row passes, from a CSV file to its release, in order.

    python tools/hops.py                     # the tree beside this script
    python tools/hops.py --source DIR        # the package in DIR, such as an older checkout's src/privcov
    python tools/hops.py --calls             # with every function that has the row in its hands
    python tools/hops.py --drawing           # the drawing in CONTRIBUTING
    python tools/hops.py --json

One real release is made of a CSV file, by the path that ``privcov.release`` takes for every table: check, draw,
read, sum, certify. Python tells of every call and return on the way (``sys.setprofile``).

What a hop is
-------------
One row of the file is followed. It is recognized by its numbers, not by names of functions, so that the count
means the same in any tree: its text in the file, its cells as they are read, its cells on the grid, their
products (the other rows lie in the middle of their bounds, where a cell is 0, and add nothing), and the
released integers. The latter are known from an earlier release, whose randomness has the same seed.

* A function *takes* the row when an argument holds one of these numbers, and *gives* it when it returns or
  yields one. To hold is to be it, or to have it in an array, table, text, list, dictionary or attribute, a few
  deep.
* A module of privcov is a file. What is called through another library (polars, pyarrow, a thread pool) has the
  nearest function of privcov as its caller.
* A **hop** is each time the row is handed on to another file: a function takes it from a caller in another
  file, or gives it to a caller in another file that had not handed it down. Where a function gives back what it
  was handed, that is the *way back* of the same hop. Hops and ways back together are the **passages**: how
  often a reader turns to another file.
* A method that has the row as nothing but ``self``, hands it to nobody and gives none of it, answers a question
  about it (how many rows?) and is no hop.
* A file is **entered** as often as there are hops to it.

The end of the way is the release: a finished ``Release`` is public, the row is not looked for in one, and that it
is handed to whoever asked for it is no hop. The row is in one block: in a file of many, each takes the same way.
Where polars is installed, CSV files are read through it, and so is this one.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
FILLERS = 4_000
"""Rows in front of the one that is followed, so that it is not among the lines by which the header is judged."""
TABLE = "age,income\n" + "50,40\n" * FILLERS + "61.3728,27.1934\n"
SCHEMA = {"columns": {"age": {"lower": 0, "upper": 100}, "income": {"lower": 0, "upper": 80}}}
CELLS = (61.3728, 27.1934)
OUTSIDE = "the caller"
ROOMS = {
    "table": "bytes become blocks of cells",
    "summing": "whole numbers within bounds, and their exact sum",
    "publish": "the guarded sequence: paid and drawn before a row is read",
    "mechanisms": "opens the sum and adds the noise",
    "releases": "the public result with its certificate",
}
"""What happens to a row in each room."""
DEPTH = 5
"""How far inside an argument the row is looked for."""


class Row:
    """The numbers by which the row is recognized."""

    def __init__(self, numbers: Iterable[float], *, end: type | None = None) -> None:
        self.texts = [str(cell) for cell in CELLS]
        self.numbers = {*numbers}
        self._end = (type, type(None), bool) if end is None else (type, type(None), bool, end)
        """What does not hold the row: among it the kind of thing with which the way ends."""

    def in_any(self, things: Iterable[object]) -> bool:
        """Whether one of them holds the row."""
        return any(self._is_in(thing, DEPTH) for thing in things)

    def _is_in(self, thing: Any, depth: int) -> bool:
        import numpy as np
        import pyarrow as pa

        if isinstance(thing, self._end) or inspect.isroutine(thing):
            return False
        if isinstance(thing, str):
            return any(text in thing for text in self.texts)
        if isinstance(thing, (bytes, bytearray, memoryview, pa.Buffer)):
            return any(text.encode() in bytes(thing) for text in self.texts)
        if isinstance(thing, (int, float, np.number)):
            return thing in self.numbers
        if isinstance(thing, np.ndarray):
            numbers = thing.dtype.kind in "iufO" and not self.numbers.isdisjoint(thing.ravel().tolist())
            return numbers or (thing.dtype.kind in "OSU" and self._is_in(thing.ravel().tolist(), depth))
        if depth == 0:
            return False
        return any(self._is_in(inner, depth - 1) for inner in _parts(thing))


def _parts(thing: Any) -> Iterator[object]:
    """What a thing holds, without asking it anything that it might answer by reading on."""
    import pyarrow as pa

    if isinstance(thing, (list, tuple, set, frozenset)):
        yield from thing
    elif isinstance(thing, Mapping):
        yield from [*thing.values()]
    elif isinstance(thing, (pa.RecordBatch, pa.Table)):
        yield from thing.columns
    elif isinstance(thing, (pa.Array, pa.ChunkedArray)):
        yield thing.to_pylist()
    elif type(thing).__module__.partition(".")[0] == "polars":
        if hasattr(thing, "rows"):
            yield thing.rows()
        elif hasattr(thing, "to_list"):
            yield thing.to_list()
    else:
        yield from getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if name != "__weakref__" and hasattr(thing, name):
                    yield getattr(thing, name)


@dataclass
class Step:
    """The row passes from one file to another, or from one function to another of the same file."""

    source: str
    target: str
    how: str
    back: bool = False
    """Whether it comes back to the one who had handed it down."""
    question: bool = False
    """Whether it may turn out to be no more than a question about the row."""

    @property
    def passage(self) -> bool:
        return self.source != self.target != OUTSIDE and not self.question


class Way:
    """Listens to the calls of one release, and keeps where the row was."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._calls: dict[FrameType, int | None] = {}
        """The step at which a function that is still at work took the row; none where it did not."""
        self.steps: list[Step] = []

    def __call__(self, frame: FrameType, event: str, given: object) -> None:
        here = _module(frame)
        if here is None or event not in ("call", "return"):
            return
        if event == "call":
            if frame not in self._calls:  # or a generator goes on
                self._calls[frame] = self._took(frame, here)
            return
        taken = self._calls.get(frame)
        if frame.f_code.co_flags & inspect.CO_GENERATOR == 0:
            del self._calls[frame]
        if self._row.in_any([given]):
            how = f"is given it by {frame.f_code.co_qualname}"
            self._note(Step(here, _caller(frame), how, back=taken is not None))
            if taken is not None:
                self.steps[taken].question = False

    def _took(self, frame: FrameType, here: str) -> int | None:
        itself, others = _arguments(frame)
        question = not self._row.in_any(others)
        if question and not self._row.in_any(itself):
            return None
        how = f"takes it as {frame.f_code.co_qualname}"
        self._note(Step(_caller(frame), here, how, question=question))
        return len(self.steps) - 1

    def _note(self, step: Step) -> None:
        """Keep it; whoever hands the row on was asked for more than an answer about it."""
        self.steps.append(step)
        if step.question or step.back:
            return
        for taken in self._calls.values():
            if taken is not None and self.steps[taken].target == step.source:
                self.steps[taken].question = False

    @property
    def passages(self) -> list[Step]:
        """Every time the row comes to another file."""
        return [step for step in self.steps if step.passage]

    @property
    def hops(self) -> list[Step]:
        """Every time the row is handed on to another file."""
        return [step for step in self.passages if not step.back]


def _module(frame: FrameType) -> str | None:
    """The module of privcov that a function belongs to; none for other packages, and for the bodies of modules."""
    package, _, module = str(frame.f_globals.get("__name__")).partition(".")
    inside = package == "privcov" and frame.f_code.co_flags & inspect.CO_NEWLOCALS
    return module or "privcov" if inside else None


def _caller(frame: FrameType) -> str:
    """The nearest module of privcov below; whoever asked for the release is none."""
    back = frame.f_back
    while back is not None:
        name = _module(back)
        if name is not None:
            return name
        back = back.f_back
    return OUTSIDE


def _arguments(frame: FrameType) -> tuple[list[object], list[object]]:
    """What a function was given: itself, and the rest."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    values = [(name, frame.f_locals[name]) for name in code.co_varnames[:count] if name in frame.f_locals]
    return [v for n, v in values if n in ("self", "cls")], [v for n, v in values if n not in ("self", "cls")]


def watched(source: Path) -> Way:
    """The way of the row in one release."""
    sys.path.insert(0, str(source.parent))
    import privcov as pc

    if Path(pc.__file__).resolve().parent != source.resolve():
        raise SystemExit(f"hops: Python imports {Path(pc.__file__).parent}, not {source}.")
    schema = pc.Schema.from_dict(SCHEMA)
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    rehearsal = _rehearsal(source)

    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "people.csv"
        table.write_text(TABLE)

        def make() -> Any:
            return pc.release(table, schema=schema, loss=loss, randomness=rehearsal(7))

        released = make()
        way = Way(Row([*CELLS, *_on_the_grid(released), *released.upper], end=pc.Release))
        sys.setprofile(way)
        try:
            make()
        finally:
            sys.setprofile(None)
    return way


def _on_the_grid(released: Any) -> Iterator[int]:
    """The cells of the row as whole numbers, and their products; 2^k, which every row has, is no sign of this one."""
    exponent = int(released.to_dict()["matrix"]["grid"].removeprefix("2^-")) // 2
    one = 2**exponent
    declared = SCHEMA["columns"].values()
    halves = [(bounds["upper"] - bounds["lower"]) / 2 for bounds in declared]
    middles = [(bounds["upper"] + bounds["lower"]) / 2 for bounds in declared]
    scaled = [(cell - middle) / half for cell, middle, half in zip(CELLS, middles, halves, strict=True)]
    cells = [round(value * one) for value in scaled]
    yield from cells
    for place, left in enumerate(cells):
        yield left * one
        yield from (left * right for right in cells[place:])


def _rehearsal(source: Path) -> Callable[[int], Any]:
    """``rehearsal`` of the module of randomness, wherever that is in this tree."""
    (path,) = source.rglob("randomness.py")
    home = import_module(".".join(path.relative_to(source.parent).with_suffix("").parts))
    made: Callable[[int], Any] = home.rehearsal
    return made


def drawing(way: Way) -> str:
    """The files on the way, a line for each room that is entered, with what happens there."""
    names = [way.hops[0].source, *(step.target for step in way.hops)]
    lines, words = [], dict(ROOMS)  # of a room that is entered again they are said
    for room, files in groupby(names, key=lambda name: name.partition(".")[0]):
        path = " → ".join(name.replace(".", "/") for name in files)
        lines.append((f"  → {path}" if lines else path, words.pop(room, "")))
    width = max(len(path) for path, _ in lines)
    return "\n".join(f"{path:<{width}}   {said}".rstrip() for path, said in lines)


def main() -> None:
    """Release, listen, print."""
    parser = argparse.ArgumentParser(
        description="The files of privcov that a row passes on its way to a release."
    )
    parser.add_argument("--source", type=Path, default=ROOT / "src/privcov", help="the folder of the package")
    parser.add_argument(
        "--calls", action="store_true", help="print every function that takes or gives the row"
    )
    parser.add_argument("--drawing", action="store_true", help="print the way as CONTRIBUTING shows it")
    parser.add_argument("--json", action="store_true", help="print the way as JSON")
    given = parser.parse_args()
    way = watched(given.source)
    entered = Counter(step.target for step in way.hops)
    files = {name for step in way.passages for name in (step.source, step.target)}
    figures: dict[str, Any] = {
        "hops": len(way.hops),
        "passages": len(way.passages),
        "files": len(files),
        "entered most": dict(entered.most_common(3)),
    }
    if given.json:
        figures |= {"way": [f"{s.source} → {s.target}" for s in way.hops], "drawing": drawing(way)}
        print(json.dumps(figures, indent=2))
        return
    if given.drawing:
        print(drawing(way))
        return
    if given.calls:
        for step in way.steps:
            print(f"{step.source} → {step.target}{' (back)' * step.back}: {step.how}")
        print()
    for number, step in enumerate(way.hops, 1):
        print(f"{number:>3}  {step.source:>18} → {step.target:<18} {step.how}")
    most = ", ".join(f"{name} {count}" for name, count in figures["entered most"].items())
    print(f"\n{len(way.hops)} hops over {len(files)} files, {len(way.passages)} passages with the ways back")
    print(f"entered most often: {most}")


if __name__ == "__main__":
    main()
