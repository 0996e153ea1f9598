"""The exact integer Gram matrix Σ qqᵀ of bounded rows: sensitive, so it never prints, copies or compares.

Blocks are multiplied in float64, where every partial sum is a whole number below 2^53 and therefore exact in
any order; blocks are added in int64, and carried into a second int64 word before that could overflow. The
sum is the same bits for every order, batching, thread and engine. Proof: docs/proofs/exact-gram.md.

Things that tell about people if they are seen: they never print, copy, compare or become an array.

A debugger, a log line and a service that records the variables of a failed program all ask an object for its text.
Two kinds are sealed: the exact sum of rows, here, and a mechanism's draw (``mechanisms/base.py``), which
together with the release is the exact sum. What each of them says is in ``_refusal``.
"""

from __future__ import annotations

import hmac
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Never, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import is_wide, symmetric
from privcov.schema.grid import BLOCK_ROWS, Grid


def _refuse(self: Sealed, *_: object, **__: object) -> Never:
    raise TypeError(self._refusal)


class Sealed:
    """Refuses ``repr``, ``==``, pickle, ``copy`` and NumPy's conversions."""

    __slots__ = ()

    _refusal: ClassVar[str]

    __repr__ = __str__ = __format__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __array__ = __iter__ = __getitem__ = __len__ = __contains__ = __bool__ = __int__ = __float__ = _refuse
    __array_ufunc__ = None


_LOW_BITS = 32
WORD = 2**62  # two words of this size still fit one int64
MOST_ROWS = 2**50
"""More than any cluster holds; the sum of so many fits two words."""
_BAND = 2**24
"""Entries of a product that are turned into integers at once: all of them, but for wide matrices."""
_LINES = 2**20


def _bands(dimension: int) -> Iterator[slice]:
    step = max(1, _BAND // dimension)
    return (slice(start, start + step) for start in range(0, dimension, step))


class Gram(Sealed):
    """A running sum of qqᵀ over rows of one grid. Add rows, merge partial sums, hand it to a mechanism.

    >>> gram = Gram(Grid(dimension=2, exponent=20, squared_norm_bound=2**40))
    >>> gram.add(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> gram.reveal_to_mechanism().tolist()
    [9, 12, 17]
    >>> print(gram)
    Traceback (most recent call last):
    TypeError: a Gram matrix is sensitive: only a mechanism may read it
    """

    __slots__ = ("__weakref__", "_high", "_low", "_reach", "_rows", "grid")
    _refusal = "a Gram matrix is sensitive: only a mechanism may read it"

    _word = WORD
    """The magnitude at which int64 entries are carried; tests lower it to watch the carry."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._rows = 0
        self._reach = 0
        """A bound on the magnitude of every entry of ``_low``."""
        self._low: NDArray[Any] = np.zeros((grid.dimension, grid.dimension), dtype=np.int64)
        self._high: NDArray[np.int64] | None = None
        """Multiples of 2^32, once there are more rows than one int64 word surely holds."""

    @classmethod
    def of_public(cls, grid: Grid, upper: NDArray[Any], *, rows: int) -> Gram:
        """An invented matrix of a public upper triangle, for simulation alone: no row was ever read for it."""
        made = cls(grid)
        made._rows = rows
        made._low = np.zeros((grid.dimension, grid.dimension), dtype=object)
        made._low[np.triu_indices(grid.dimension)] = upper
        return made

    @property
    def rows(self) -> int:
        """How many rows were added: public under replace-one, sensitive under add-remove."""
        return self._rows

    def add(self, rows: Floats) -> None:
        """Add the rows of a block that ``Bounding.rows`` made."""
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            self._make_room(len(part) * self.grid.squared_norm_bound)
            product = _times(_beside(part), part, np.empty_like(self._low, dtype=np.float64))
            for some in _bands(self.grid.dimension):
                self._low[some] += product[some].astype(np.int64)
            self._rows += len(part)

    def merge(self, other: Gram) -> None:
        """Add another partial sum over other rows of the same grid."""
        if other.grid is not self.grid and other.grid != self.grid:
            raise ValueError("partial sums of two different grids do not add")
        self._make_room(other._reach)
        self._low += other._low
        self._rows += other._rows
        if other._high is not None:
            self._high = other._high.copy() if self._high is None else self._high + other._high

    def reveal_to_mechanism(self) -> NDArray[Any]:
        """The exact upper triangle in ``numpy.triu_indices`` order: Python integers, or int64 where it is wide.

        A wide one that int64 does not hold is Python integers all the same; one that it does is below 2^62 + 2^32.
        For a mechanism's ``answer`` and nothing else: what leaves a mechanism is private, this is not.
        """
        exact = upper_of(self._low)
        if self._high is not None:
            return exact.astype(object) + upper_of(self._high).astype(object) * 2**_LOW_BITS
        return exact if is_wide(self.grid.dimension) else exact.astype(object)

    def is_possible(self) -> bool:
        """Whether rows of the grid, as many as were counted, can have this sum: asked of one that another process made.

        The trace is at most rows times the bound, the intercept's entry is what the rows say, no diagonal entry is
        negative and none off it is larger than the two on it allow. Necessary, not sufficient: some other rows have it.
        """
        diagonal = [int(value) for value in self._low.diagonal()]
        if self._high is not None:
            diagonal = [
                low + int(high) * 2**_LOW_BITS
                for low, high in zip(diagonal, self._high.diagonal(), strict=True)
            ]
        most = self._rows * self.grid.squared_norm_bound
        if not 0 <= self._rows <= MOST_ROWS or min(diagonal) < 0 or sum(diagonal) > most:
            return False
        if self.grid.intercept and diagonal[0] != self._rows * 4**self.grid.exponent:
            return False
        if (
            max(int(self._low.max()), -int(self._low.min())) > self._reach
            or self._reach > WORD + 2**_LOW_BITS
        ):
            return False
        lengths = np.sqrt(np.array(diagonal, dtype=np.float64)) * (1 + 2**-40)  # floats err by far less
        for some in _bands(self.grid.dimension):
            entries = self._low[some].astype(np.float64)
            if self._high is not None:
                entries += self._high[some] * 2.0**_LOW_BITS
            if (np.abs(entries) > np.multiply.outer(lengths[some], lengths)).any():
                return False
        return True

    def agrees_with(self, weights: NDArray[np.int32], expected: NDArray[np.int32]) -> bool:
        """Whether the sum times ``weights`` is ``expected`` modulo 2^32: Freivalds' check, which says no more."""
        low = self._low.astype(np.uint32).view(np.int32)  # what was carried is a multiple of 2^32
        return bool(np.array_equal(np.einsum("ij,j->i", low, weights), expected))

    def words_for_transport(self) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, int]:
        """The upper triangle in words, and their reach: for ``encode_sensitive_sum`` and another process."""
        return upper_of(self._low), None if self._high is None else upper_of(self._high), self._reach

    @classmethod
    def from_transport(
        cls, grid: Grid, low: NDArray[np.int64], high: NDArray[np.int64] | None, *, rows: int, reach: int
    ) -> Gram:
        """What ``words_for_transport`` took apart, or a whole matrix of words that nobody else keeps."""
        made = cls(grid)
        made._low = symmetric(low, grid.dimension) if low.ndim == 1 else low
        made._high = None if high is None else symmetric(high, grid.dimension)
        made._rows, made._reach = rows, reach
        return made

    def fingerprint(self, key: bytes, about: str) -> str:
        """Tells to the holder of the key, and to nobody else, whether two sums are the same: for a private ledger.

        An HMAC of the exact sum, its grid, its number of rows and ``about``; the same for every order and engine.
        """
        facts = (self.grid.dimension, self.grid.exponent, self._rows)
        made, exact = (
            hmac.new(key, "\n".join(map(str, facts)).encode("ascii"), "sha256"),
            self.reveal_to_mechanism(),
        )
        for start in range(0, len(exact), _LINES):
            made.update(("\n" + "\n".join(map(str, exact[start : start + _LINES].tolist()))).encode("ascii"))
        made.update(f"\n{about}".encode())
        return made.hexdigest()

    def _make_room(self, reach: int) -> None:
        """Carry, if entries ``reach`` larger might not fit one word; then expect them."""
        if self._reach + reach > self._word:
            carried = self._low >> _LOW_BITS
            self._high = carried if self._high is None else self._high + carried
            self._low &= 2**_LOW_BITS - 1
            self._reach = 2**_LOW_BITS
        self._reach += reach


class Stack(Sealed):
    """The running sums of several strata, side by side: a call of NumPy then adds to, merges or checks all of them."""

    __slots__ = ("__weakref__", "_done", "_low", "_products", "_reach", "_rows", "grid")
    _refusal = Gram._refusal

    def __init__(self, grid: Grid, count: int) -> None:
        self.grid = grid
        self._low = np.zeros((count, grid.dimension, grid.dimension), dtype=np.int64)
        self._products = np.empty((0, grid.dimension, grid.dimension))
        self._rows = [0] * count
        self._reach = 0
        """A bound on the magnitude of every entry of ``_low``."""
        self._done: tuple[Gram, ...] | None = None
        """What was carried, in sums that never overflow."""

    @classmethod
    def of(cls, grams: tuple[Gram, ...]) -> Stack:
        """The sums of strata that were summed apart; they are the stack's from then on."""
        made = cls(grams[0].grid, len(grams))
        made._done = grams
        return made

    @property
    def rows(self) -> int:
        """How many rows were added to all of them: as sensitive as that of one sum."""
        return sum(self._rows) + sum(gram.rows for gram in self._done or ())

    def add(self, rows: Floats, ends: Sequence[int], start: int = 0) -> None:
        """Add rows of a block that stands stratum by stratum, those from ``start`` on.

        ``ends`` says where each stratum ends in the block. However many rows there are, a product of floats is one of
        at most ``BLOCK_ROWS`` of them, so it is exact; longer runs of one stratum are added to it part by part.
        """
        if not len(rows):
            return
        self._make_room(len(rows) * self.grid.squared_norm_bound)
        first, last = bisect_right(ends, start), bisect_left(ends, start + len(rows))
        if len(self._products) <= last - first:
            self._products = np.empty((last + 1 - first, *self._low.shape[1:]))
        products, lines, begin = self._products[: last + 1 - first], _beside(rows), 0
        at_once, totals = min(BLOCK_ROWS, _at_once(rows)), self._rows
        cuts = [end - start for end in ends[first:last]]
        for place, product, end in zip(range(first, last + 1), products, (*cuts, len(rows)), strict=True):
            while end - begin > at_once:
                cut = min(end, begin + BLOCK_ROWS)
                self._low[place] += _times(lines[:, begin:cut], rows[begin:cut], product).astype(np.int64)
                totals[place] += cut - begin
                begin = cut
            if begin < end:
                np.matmul(lines[:, begin:end], rows[begin:end], product)
                totals[place] += end - begin
                begin = end
            else:
                product.fill(0.0)
        self._low[first : last + 1] += products.astype(np.int64)

    def merge(self, other: Stack) -> None:
        """Add partial sums of the same strata over other rows, which nobody else keeps."""
        if other._reach:
            self._make_room(other._reach)
            self._low += other._low
            self._rows = [sum(both) for both in zip(self._rows, other._rows, strict=True)]
        if other._done is not None:
            self._keep(other._done)

    def agrees_with(self, weights: NDArray[np.int32], expected: NDArray[np.int32]) -> bool:
        """``Gram.agrees_with`` of the sum of them all."""
        low = self._low.sum(axis=0)  # wraps around, as the check does
        for gram in self._done or ():
            low += gram._low
        pooled = Gram.from_transport(self.grid, low, None, rows=self.rows, reach=WORD)
        return pooled.agrees_with(weights, expected)

    def grams(self) -> tuple[Gram, ...]:
        """The sums, each by itself. Nothing is added afterwards."""
        self._carry()
        assert self._done is not None
        return self._done

    def _make_room(self, reach: int) -> None:
        """Carry, if entries ``reach`` larger might not fit one word; then expect them."""
        if self._reach + reach > Gram._word:
            self._carry()
        self._reach += reach

    def _carry(self) -> None:
        """Hand what is summed so far to sums that never overflow."""
        facts = zip(self._low, self._rows, strict=True)
        self._keep(
            tuple(Gram.from_transport(self.grid, low, None, rows=n, reach=self._reach) for low, n in facts)
        )
        self._low, self._rows, self._reach = np.zeros_like(self._low), [0] * len(self._rows), 0

    def _keep(self, parts: tuple[Gram, ...]) -> None:
        if self._done is None:
            self._done = parts
            return
        for done, part in zip(self._done, parts, strict=True):
            done.merge(part)


Sums: TypeAlias = Gram | Stack
"""One sum, or one a stratum."""


_NARROW = 32
"""The most columns for which a general product is quicker than one of a matrix with itself."""
_PRODUCTS = 10**6
"""What OpenBLAS multiplies without bringing it into another order first."""


def _beside(rows: Floats) -> Floats:
    """The same numbers, a column on each line: of few columns in other memory, so that NumPy takes them for others.

    A matrix times its own transpose is a case of its own, half of the products, but takes longer where they are few.
    """
    return rows.T.copy() if rows.shape[1] <= _NARROW else rows.T


def _at_once(rows: Floats) -> int:
    """How many of the rows are multiplied in one step."""
    count = rows.shape[1]
    return _PRODUCTS // count**2 if count <= _NARROW else len(rows)


def _times(lines: Floats, rows: Floats, out: Floats) -> Floats:
    """The product of at most ``BLOCK_ROWS`` rows with themselves, each entry a whole number."""
    step = _at_once(rows)
    # Unlike ``matmul``, ``dot`` lets other threads of Python run; but it copies what is part of a larger array.
    product = np.dot if len(rows) <= step and rows.T.flags.c_contiguous else np.matmul
    product(lines[:, :step], rows[:step], out=out)
    for start in range(step, len(rows), step):
        out += np.matmul(lines[:, start : start + step], rows[start : start + step])
    return out


def fingerprint(grams: Iterable[Gram], key: bytes, about: str) -> str:
    """The fingerprint of one sum, or of several in their order."""
    for gram in grams:
        about = gram.fingerprint(key, about)
    return about


def upper_of(matrix: NDArray[Any]) -> NDArray[Any]:
    """The upper triangle in the order of ``numpy.triu_indices``, without the indices, which are as large again.

    >>> upper_of(np.arange(9).reshape(3, 3)).tolist()
    [0, 1, 2, 4, 5, 8]
    """
    none = matrix[:0].ravel()  # of a matrix without columns
    return np.concatenate([none, *(row[place:] for place, row in enumerate(matrix))])
