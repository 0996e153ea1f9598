"""The private integers of a release: Python integers, or machine words where the matrix is wide.

A narrow release holds a tuple of Python integers and is written as text. A wide one, of more than ``WIDE`` entries,
holds a ``Triangle``: words of 8 or 16 bytes, which follow the text of its file as they are in memory. How long a word
is follows from public facts alone, so the size of a file says nothing about the data. See docs/explain/wide.md.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO, overload

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ReleaseError
from privcov.linalg.triangle import is_wide
from privcov.noise.laws import NoiseLaw
from privcov.schema.grid import Grid

_PIECE = 2**20
_ENCODINGS = {8: "int64-le", 16: "int128-le"}
_WORD = np.dtype("<i8")
_TAIL = 8
"""Root mean square norms of the whole noise matrix that no entry exceeds, but for odds below e^-400."""


def word_bytes(*, grid: Grid, rows: int | None, law: NoiseLaw | None) -> int:
    """The length of a word that surely holds an entry, from public facts: 8 bytes, or 16 where they cannot tell.

    An entry of the sum is at most rows · 4^k, or more where cells reach further. Where the count is private, or the
    noise has no law, it is 16.
    """
    if rows is None or law is None:
        return 16
    return 8 if rows * grid.largest_product + _TAIL * law.rms_frobenius / float(grid.unit) < 2.0**62 else 16


def kept(
    upper: NDArray[Any], *, grid: Grid, rows: int | None, law: NoiseLaw | None
) -> tuple[int, ...] | Triangle:
    """The private integers of a release, as a release keeps them."""
    if not is_wide(grid.dimension):
        return tuple(int(value) for value in upper)
    return Triangle.of(upper, word=word_bytes(grid=grid, rows=rows, law=law))


class Triangle(Sequence[int]):
    """Integers of one word each: a sequence of Python integers that never holds them all.

    >>> made = Triangle.of(np.array([3, -1, 2**70], dtype=object), word=16)
    >>> list(made), made[1], made.floats(0.5).tolist()[:2]
    ([3, -1, 1180591620717411303424], -1, [1.5, -0.5])
    """

    def __init__(self, words: NDArray[np.int64]) -> None:
        """From words of shape (entries,), or (entries, 2) with the lower half of an integer first."""
        self._words = np.ascontiguousarray(words, dtype=_WORD)
        self._words.setflags(write=False)

    @classmethod
    def of(cls, upper: NDArray[Any], *, word: int) -> Triangle:
        """Integers in words of so many bytes. One that does not fit becomes the nearest that does.

        What is put here is private already, so that rule costs nothing; and an error instead would tell.
        """
        words = np.empty(upper.shape if word == 8 else (*upper.shape, 2), dtype=_WORD)
        limit = 2 ** (8 * word - 1)
        for start in range(0, len(upper), _PIECE):
            part, room = upper[start : start + _PIECE], words[start : start + _PIECE]
            if part.dtype == object:
                part = np.clip(part, -limit, limit - 1)
            if word == 8:
                room[:] = part
            elif part.dtype == object:
                room[:, 0] = (part & (2**64 - 1)).astype(np.uint64).view(np.int64)
                room[:, 1] = part >> 64
            else:
                room[:, 0], room[:, 1] = part, part >> 63
        return cls(words)

    @classmethod
    def read(cls, file: BinaryIO, *, count: int, word: int) -> Triangle:
        """Exactly so many words from here to the end of a file; fewer or more are refused.

        So is a file with holes, which takes little room on a disk and all of it here: no release is written with any.
        """
        _check_length(file, count * word)
        words = np.empty(count if word == 8 else (count, 2), dtype=_WORD)
        room = words.data.cast("B")
        done = 0
        while done < len(room) and (got := file.readinto(room[done : done + 8 * _PIECE])):  # type: ignore[attr-defined]
            done += got
        if done < len(room) or file.read(1):
            raise _misfit(
                "longer than the first line says" if done == len(room) else "shorter than the first line says"
            )
        return cls(words)

    @property
    def word(self) -> int:
        """Bytes of one integer."""
        return 8 * self._words.ndim

    @property
    def encoding(self) -> str:
        """The word as the head of a file names it."""
        return _ENCODINGS[self.word]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the words."""
        made = hashlib.sha256()
        for piece in self.pieces():
            made.update(piece)
        return made.hexdigest()

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of a file's body, a few megabytes at a time."""
        whole = self._words.data.cast("B")
        for start in range(0, len(whole), 8 * _PIECE):
            yield whole[start : start + 8 * _PIECE]

    def floats(self, unit: float) -> NDArray[np.float64]:
        """Every integer times a unit that is a power of two."""
        if self.word == 8:
            made: NDArray[np.float64] = self._words.astype(np.float64)
        else:
            low, high = self._words[:, 0], self._words[:, 1]
            made = low.astype(np.float64)
            large = np.flatnonzero(high != low >> 63)  # those of more than 64 bits, which are rounded twice
            made[large] = high[large] * 2.0**64 + low[large].view(np.uint64)
        made *= unit
        return made

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        chosen = self._words[place]
        if isinstance(place, slice):
            return tuple(map(_integer, chosen.tolist()))
        return _integer(chosen.tolist())

    def __iter__(self) -> Iterator[int]:
        for start in range(0, len(self), _PIECE):
            yield from self[start : start + _PIECE]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Triangle) and bool(np.array_equal(self._words, other._words))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Triangle of {len(self):,} integers, {self.encoding}>"


def _check_length(file: BinaryIO, expected: int) -> None:
    """Before room is made: whether a file on a disk has so many bytes left, and has them all."""
    handle = file.fileno()
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        return
    left = about.st_size - file.tell()
    if left != expected:
        raise _misfit(f"{'longer' if left > expected else 'shorter'} than the first line says")
    if not hasattr(os, "SEEK_HOLE"):
        return
    here = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        hole = os.lseek(handle, file.tell(), os.SEEK_HOLE)
    except OSError:  # a file system that does not know
        hole = about.st_size
    os.lseek(handle, here, os.SEEK_SET)
    if hole < about.st_size:
        raise _misfit("stored with holes, which no release has")


def _misfit(how: str) -> ReleaseError:
    return ReleaseError("E612", f"the binary part of the release is {how}.", "Ask for the original.")


def _integer(words: int | list[int]) -> int:
    if isinstance(words, int):
        return words
    low, high = words
    return (high << 64) + low % 2**64
