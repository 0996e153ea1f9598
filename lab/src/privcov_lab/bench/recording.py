"""A recorder, as services that collect failures have one: everything in reach of the variables of every frame."""

from __future__ import annotations

import functools
import itertools
import math
import traceback
import types
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


class Seen:
    """All that can be reached from a failure, its causes and its contexts, but for the frames of one file.

    >>> def fails(total):
    ...     raise OSError
    >>> try:
    ...     fails([3, 5])
    ... except OSError as error:
    ...     seen = Seen(error)
    >>> (3, 5) in seen.sequences, seen.frames[-1], seen.matrix_follows((3, 5)), seen.matrix_follows((3, 4))
    (True, 'fails', True, False)
    """

    def __init__(self, failure: BaseException, *, but: str = "") -> None:
        self.sequences: set[tuple[Any, ...]] = set()
        self.numbers: set[Any] = set()
        self.texts: set[bytes] = set()
        self.frames: list[str] = []
        self._but = but
        self._known: dict[int, object] = {}
        todo: list[object] = [failure]
        while todo:
            found = todo.pop()
            if id(found) not in self._known:
                self._known[id(found)] = found  # kept, so that no other object gets its number
                todo.extend(self._inside(found))

    def matrix_follows(self, exact: Sequence[int]) -> bool:
        """Whether these integers are there, or two sequences that differ by them: noise, and what it was added to."""
        whole = [some for some in self.sequences if len(some) == len(exact) and all(map(math.isfinite, some))]
        return tuple(exact) in self.sequences or any(
            tuple(int(one) + other for one, other in zip(some, exact, strict=True)) in self.sequences
            for some in whole
        )

    def _inside(self, found: Any) -> Iterator[Any]:
        if isinstance(found, type | types.ModuleType | Path):
            return
        if isinstance(found, BaseException):
            yield from (found.__cause__, found.__context__, found.args)
            for frame, _ in traceback.walk_tb(found.__traceback__):
                if frame.f_code.co_filename != self._but:
                    self.frames.append(frame.f_code.co_qualname)
                    yield from frame.f_locals.values()
        elif isinstance(found, int | float | np.number):
            self.numbers.add(found.item() if isinstance(found, np.number) else found)
        elif isinstance(found, str | bytes | bytearray | memoryview):
            self.texts.add(found.encode("utf-8", "replace") if isinstance(found, str) else bytes(found))
        elif isinstance(found, np.ndarray):
            yield found.base
            yield from self._sequence(found.ravel().tolist())
        elif isinstance(found, dict):
            yield from itertools.chain(found.keys(), found.values())
        elif isinstance(found, list | tuple | set | frozenset):
            yield from self._sequence(list(found))
        elif isinstance(found, types.GeneratorType):
            if found.gi_frame is not None:
                yield from found.gi_frame.f_locals.values()
        elif isinstance(found, types.MethodType | types.BuiltinMethodType):
            yield from (found.__self__, getattr(found, "__func__", None))
        elif isinstance(found, types.CellType):
            with suppress(ValueError):  # an empty cell
                yield found.cell_contents
        elif isinstance(found, types.FunctionType):
            yield from (*(found.__closure__ or ()), *(found.__defaults__ or ()), found.__dict__)
        elif isinstance(found, functools.partial):
            yield from (found.func, found.args, found.keywords)
        else:
            yield from getattr(found, "__dict__", {}).values()
            for kind in type(found).__mro__:
                names = kind.__dict__.get("__slots__", ())
                for name in (names,) if isinstance(names, str) else names:
                    hidden = f"_{kind.__name__.lstrip('_')}{name}" if name[:2] == "__" != name[-2:] else name
                    if name not in ("__dict__", "__weakref__"):
                        yield getattr(found, hidden, None)

    def _sequence(self, values: list[Any]) -> Iterator[Any]:
        if {type(value) for value in values} <= {int, float, bool}:
            self.sequences.add(tuple(values))
            self.numbers.update(values)
        else:
            yield from values
