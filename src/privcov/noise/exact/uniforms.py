"""Uniform reals in [0, 1) of which only the leading bits are known, and more can be revealed at will.

A uniform real is an endless string of independent fair bits. Knowing its first 64·w bits says that it lies
in ``[m, m+1)·2^(-64w)`` for an integer m; the bits not yet drawn are still fair, so drawing them later, or
never, changes nothing. Every exact sampler of this package is built on that one fact.

Proof: docs/proofs/exact-sampling.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privcov.noise.randomness import Randomness, Words

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Ball = Any  # flint.arb: a real known to lie within a radius of a midpoint

# How many 64-bit words of a real are consulted, one depth after the other, before giving up. That the last
# depth leaves a decision open has probability below 2^-4000; it keeps every loop finite, and every whole part
# of an exponential below 2^12, since exp(-2^12) is below the last bit consulted.
DEPTHS = (1, 2, 4, 8, 16, 32, 64)

# So many places are worked on at once: memory beside the result does not grow with it.
PIECE = 2**20


def in_pieces(places: Indices) -> Iterator[Indices]:
    """The places, so many at a time that what is computed for them fits in memory."""
    return (places[start : start + PIECE] for start in range(0, places.size, PIECE))


class LazyUniforms:
    """Independent uniform reals, each known by one or more leading 64-bit words.

    Revealing only ever appends bits: an interval given once contains every interval given later.

    >>> from privcov.noise.randomness import rehearsal
    >>> reals = LazyUniforms(rehearsal(1), 3)
    >>> reals.prefix(0, 2) >> 64 == reals.prefix(0, 1)
    True
    """

    def __init__(self, randomness: Randomness, count: int) -> None:
        self._randomness = randomness
        self._columns = [randomness.words(count).copy()]  # the words known of every real, first word first
        self._tails: dict[int, list[int]] = {}  # further words that a judge has drawn for single reals

    @property
    def first(self) -> Words:
        """The leading word of each real."""
        return self._columns[0]

    def renew(self, where: Indices) -> None:
        """Forget the reals at these places and start fresh ones there."""
        for column in self._columns:
            column[where] = self._randomness.words(where.size)
        if self._tails:
            for index in where.tolist():
                self._tails.pop(index, None)

    def columns(self, words: int) -> list[Words]:
        """The leading words of every real, drawn where they are not known yet."""
        while len(self._columns) < words:
            fresh = self._randomness.words(self.first.size).copy()
            # A judge may have drawn this word already. Then it is the word: a bit of a real is drawn once.
            for index, tail in self._tails.items():
                if tail:
                    fresh[index] = tail.pop(0)
            self._columns.append(fresh)
        return self._columns[:words]

    def prefix(self, index: int, words: int) -> int:
        """The integer m with the real in ``[m, m+1)·2^(-64·words)``; draws for this real alone."""
        known = [int(column[index]) for column in self._columns]
        if len(known) < words:
            tail = self._tails.setdefault(index, [])
            lack = words - len(known) - len(tail)
            tail.extend(self._randomness.words(max(lack, 0)).tolist())
            known += tail
        m = 0
        for word in known[:words]:
            m = (m << 64) | word
        return m

    def ball(self, index: int, words: int) -> Ball:
        """The same interval as a ball, exact when the working precision exceeds 64·words bits."""
        # Midpoint m + 1/2 and radius 1/2 in units of the last bit, both doubled to be whole numbers.
        return arb(2 * self.prefix(index, words) + 1, 1) * arb(2) ** -(64 * words + 1)

    def floats(self, where: Indices | None = None) -> NDArray[np.float64]:
        """Approximations within 2^-53 of every real of the interval."""
        words = self.first if where is None else self.first[where]
        # The conversion errs by at most 2^-54, the bits not drawn by at most 2^-64; the product is exact.
        return words.astype(np.float64) * 2.0**-64


def fair_signs(randomness: Randomness, count: int) -> Mask:
    """Independent fair coins; one word serves sixty-four of them."""
    words: Words = randomness.words((count + 63) // 64)
    return np.unpackbits(words.view(np.uint8))[:count].astype(np.bool_)
