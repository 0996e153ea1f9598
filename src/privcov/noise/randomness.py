"""All randomness of privcov, in one file: where bits come from and what they are fit for.

``kernel()`` reads the operating system's generator. It is the only source a release may be saved from; it
takes no seed, refuses to be pickled, and never hands the same bits to two processes after a fork.
``rehearsal(seed)`` is a reproducible stream for tests and for simulations that never touch data; whatever it
touches is marked ``rehearsal`` and refuses to be saved.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from abc import ABC, abstractmethod
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privcov.errors import RandomnessError
from privcov.linalg.arrays import Floats

Words = NDArray[np.uint64]


class Randomness(ABC):
    """A stream of independent uniform 64-bit words. Exact samplers in ``privcov.noise.exact`` use words alone."""

    kind: Literal["kernel", "rehearsal"]

    @abstractmethod
    def words(self, count: int) -> Words:
        """``count`` fresh uniform words; no word is ever given twice."""

    def uniforms(self, count: int) -> Floats:
        """Idealized uniforms in (0, 1): odd multiples of 2^-54, so never 0 and never 1."""
        result = (self.words(count) >> np.uint64(11)).astype(np.float64)
        result += 0.5
        result *= 2.0**-53
        return result

    def normals(self, *shape: int) -> Floats:
        """Idealized standard normals in float64 (Box–Muller); exact ones are in ``privcov.noise.exact``."""
        count = math.prod(shape)
        pairs = (count + 1) // 2
        both = self.uniforms(2 * pairs)
        radius = np.log(both[..., :pairs])
        radius *= -2.0
        np.sqrt(radius, out=radius)
        angle = both[..., pairs:] * (2.0 * np.pi)
        np.multiply(radius, np.cos(angle), out=both[..., :pairs])
        np.multiply(radius, np.sin(angle, out=angle), out=both[..., pairs:])
        return both[..., :count].reshape(*both.shape[:-1], *shape)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of randomness cannot be pickled: a copy would repeat its bits")


class Kernel(Randomness):
    """Bits of the operating system, buffered; a forked child drops the buffer before it can reuse a bit."""

    kind = "kernel"
    _BUFFER_WORDS = 8192
    _lock: threading.Lock
    _buffer: Words
    _process: int

    def __init__(self) -> None:
        self.forget()
        _LIVE.add(self)

    def words(self, count: int) -> Words:
        if self._process != os.getpid():  # a fork that bypassed the hook below
            self.forget()
        if count > self._BUFFER_WORDS // 2:
            return _read(count)
        with self._lock:
            if count > self._buffer.size:
                self._buffer = _read(self._BUFFER_WORDS).copy()
            taken = self._buffer[:count].copy()
            self._buffer[:count] = (
                0  # a word that made noise is kept nowhere: not even behind the view of the rest
            )
            self._buffer = self._buffer[count:]
        return taken

    def forget(self) -> None:
        """Drop buffered bits, as every forked child does."""
        self._lock = threading.Lock()
        self._buffer = np.empty(0, dtype=np.uint64)
        self._process = os.getpid()


class Rehearsal(Randomness):
    """A seeded stream: for tests and simulations, never for a release that leaves the house."""

    kind = "rehearsal"

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, count: int) -> Words:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64).reshape(count)


class Stacked(Randomness):
    """Rows of words, each a stream: whatever is drawn has one more axis, in front. For simulations in one go.

    >>> words = rehearsal(1).words(8).reshape(2, 4)
    >>> Stacked(words).normals(3).shape
    (2, 3)
    """

    kind = "rehearsal"

    def __init__(self, words: Words) -> None:
        self._words, self.taken = words, 0

    def words(self, count: int) -> Words:
        self.taken += count
        return self._words[:, self.taken - count : self.taken]


class Counted(Randomness):
    """Another source, and how many words it gave."""

    kind = "rehearsal"

    def __init__(self, source: Randomness) -> None:
        self._source, self.taken = source, 0

    def words(self, count: int) -> Words:
        self.taken += count
        return self._source.words(count)


class FirstBit(Exception):
    """Someone asked for the first random bit."""


class NoBits(Randomness):
    """A source that gives nothing: it finds out what comes before the first random bit."""

    kind = "rehearsal"

    def words(self, count: int) -> Words:
        raise FirstBit


def kernel() -> Kernel:
    """The source every release uses."""
    return Kernel()


def rehearsal(seed: int) -> Rehearsal:
    """Make a reproducible source of random bits, for tests and simulation.

    Releases made with it are marked as rehearsals and refuse to be saved: noise that can be repeated protects
    nobody.

    Parameters
    ----------
    seed : int
        The seed, at least 0. The same seed gives the same bits.

    Returns
    -------
    Rehearsal
        The source, for ``release(…, randomness=…)``.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.noise.randomness import rehearsal
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> first, second = (pc.release(np.ones((9, 1)), schema=schema, loss=loss, randomness=rehearsal(1)) for _ in "ab")
    >>> first.upper == second.upper, first.certificate.randomness
    (True, 'rehearsal')
    """
    return Rehearsal(seed)


def _read(count: int) -> Words:
    try:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    except (OSError, NotImplementedError) as reason:
        raise RandomnessError(
            "E501",
            "the operating system gives no random numbers.",
            "There is no other source: nothing can be released.",
        ) from reason


_LIVE: weakref.WeakSet[Kernel] = weakref.WeakSet()


def _forget_all() -> None:
    for source in list(_LIVE):
        source.forget()


os.register_at_fork(after_in_child=_forget_all)
