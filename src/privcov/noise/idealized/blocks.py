"""Many Bingham draws from one eigendecomposition: the vectors drawn so far become linear constraints.

In the eigenbasis the precision Ω of every envelope is diagonal, so a new envelope costs no decomposition. Each
vector drawn is first conditioned on (cheap, for the envelope in force) and, when the envelope must be tuned
again, eliminated: solved for one coordinate and substituted in the others. Letters and proof:
``docs/proofs/blocked-chain.md``.
"""

from __future__ import annotations

import math

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import Device
from privcov.noise.idealized.bingham import log_acceptance, tuned_envelope
from privcov.noise.idealized.envelopes import (
    Envelope,
    UnsafeError,
    make_envelope,
    mix,
    put,
    room,
    substitute,
    taken,
    through,
)
from privcov.noise.randomness import Randomness

_CAUTION = 0.15
"""An envelope a little too wide costs a little; one that is too narrow is none at all."""
_ROUNDS = 30
_NOT_ORTHOGONAL = 1e-8
_HOPELESS = 2000
"""Proposals after which an envelope is given up: its trace must have been lost in rounding."""


class Block:
    """Unit vectors drawn one by one, in the eigenbasis, each orthogonal to those before.

    ``draw`` raises ``UnsafeError`` when float64 no longer carries the constraints; the first draw never does.
    """

    def __init__(
        self, values: Floats, *, most: int, batch: float = 1.0, device: Device | None = None
    ) -> None:
        size = values.size
        self.vectors = room(most, size, device)
        self.count = 0
        self.batch = batch  # proposals per vector lately; its root is a good number to draw at once
        self._gaps = values.max() - values
        self._free = np.ones(size)  # 1 in P, 0 in N
        self._eliminated: list[int] = []  # N
        self._solved = room(most, size, device)  # K
        self._envelope: Envelope | None = None
        self._pending = 0  # how many of the last vectors are conditioned on but not eliminated
        self._given = room(most, size, device)  # E: one row for each of them
        self._best: float | None = None
        # Costs in units of a decomposition's size³, as measured; they decide the block's length and nothing else.
        self._spent = float(size) ** 3
        self._step = 0.0

    @property
    def pays(self) -> bool:
        """Whether the next vector is cheaper here than the average vector of this block has been so far."""
        return self.count < 2 or self._step * self.count < self._spent

    def draw(self, randomness: Randomness, concentration: float) -> int:
        """Append a vector of density ∝ exp(concentration · uᵀMu); the number of proposals it took."""
        before = self._spent
        self._spent += 14.0 * self._gaps.size * self.count
        envelope = self._envelope
        if envelope is None or not envelope.fits(concentration):
            envelope = self._envelope = self._tuned(concentration)
        self._step += 0.1 * (self._spent - before - self._step)
        vector, proposals = self._accepted(randomness, envelope, concentration)
        self.batch += 0.2 * (proposals - self.batch)
        self._constrain(envelope, vector)
        return proposals

    def _accepted(
        self, randomness: Randomness, envelope: Envelope, concentration: float
    ) -> tuple[Floats, int]:
        size, ratio = self._gaps.size, envelope.ratio(concentration)
        given = self._given[: self._pending]
        proposals = 0
        while proposals < _HOPELESS or not self.count:
            batch = max(1, min(math.ceil(math.sqrt(self.batch)), 2**16 // size))
            points = envelope.draw(randomness.normals(batch, size))
            if self._pending:
                points -= through(points * envelope.precision, given)[1]
            squares = points * points
            lengths = squares.sum(axis=1)
            forms = np.maximum(ratio * (squares @ envelope.precision) / lengths, 1e-300)
            logs = np.log(randomness.uniforms(batch))
            accepted = np.flatnonzero(logs < log_acceptance(forms, size - self.count))
            if accepted.size:
                first = int(accepted[0])
                return points[first] / math.sqrt(lengths[first]), proposals + first + 1
            proposals += batch
        raise UnsafeError("no proposal is accepted")

    def _constrain(self, envelope: Envelope, vector: Floats) -> None:
        """From now on every draw is orthogonal to ``vector`` too."""
        known = self.vectors[: self.count]
        along, within = through(vector, known)
        if self.count and not np.abs(along).max() < _NOT_ORTHOGONAL:
            raise UnsafeError("the vector is not orthogonal to those before")
        vector = vector - within
        vector /= math.sqrt(float(vector @ vector))
        put(self.vectors, self.count, vector)
        self.count += 1
        given = self._given[: self._pending]
        image = envelope.covariance_times(vector)
        image -= through(vector, given)[1]
        height = float(image @ vector)
        if height > 0.0:
            put(self._given, self._pending, image / math.sqrt(height))
            envelope.forget(float(image @ image) / height)
        else:
            envelope.trace = math.nan  # fits nothing, so the next draw makes a new one
        self._pending += 1

    def _tuned(self, concentration: float) -> Envelope:
        """A new envelope whose trace is near 1: Newton on a model of the trace, kept inside a bracket."""
        for place in range(self.count - self._pending, self.count):
            self._solve_for(taken(self.vectors, place))
        self._pending = 0
        low, high, proposed, stride = 0.0, math.inf, math.nan, 1.0
        for _ in range(_ROUNDS):
            free = self._free > 0
            preference = 2.0 * concentration * (self._gaps - self._gaps[free].min())
            inside = preference[free]
            best = self._best = tuned_envelope(inside, self._best)
            if math.isnan(proposed):
                b = self._guess(concentration, preference, inside, best)
                if b <= 0.0 and self._exchange(b + preference):
                    continue
            else:
                b = proposed
            if not low < b < high:
                b = 0.5 * (low + high) if high < math.inf else low + best
            made = self._envelope_at(concentration, b + preference)
            if made is None:
                low, proposed, stride = b, b + stride * best, 2.0 * stride
                continue
            implied = _implied(inside, made.trace, best)
            made.spread = _spread(inside, implied)
            if made.fits(concentration) or not self._eliminated:
                return made
            low, high = (b, high) if made.trace > 1.0 else (low, b)
            proposed = best - (implied - b)
        raise UnsafeError("no envelope is found")

    def _guess(self, concentration: float, preference: Floats, inside: Floats, best: float) -> float:
        """Where the tuned envelope should be, from the trace the last one has in the present complement.

        The model: the trace is that of the free coordinates alone, with a shift that makes it right at the last.
        """
        last = self._envelope
        if last is None or concentration == 0.0 or last.concentration == 0.0 or not last.trace > 0.0:
            return best
        ratio = last.ratio(concentration)
        at = ratio * float(last.precision[np.argmin(np.where(self._free > 0, preference, np.inf))])
        return best - (_implied(inside, last.trace / ratio, best) - at) + _CAUTION / _spread(inside, best)

    def _envelope_at(self, concentration: float, precision: Floats) -> Envelope | None:
        rows = len(self._eliminated)
        self._spent += rows * rows * (precision.size + 4.0 * rows)
        return make_envelope(
            concentration,
            precision,
            free=self._free,
            eliminated=np.array(self._eliminated, dtype=np.intp),
            solved=self._solved[:rows],
        )

    def _solve_for(self, vector: Floats) -> None:
        """One more constraint, vectorᵀy = 0, solved for the coordinate in which it says most."""
        assert self._envelope is not None
        rows = len(self._eliminated)
        constraint = self._free * (vector + mix(vector[self._eliminated], self._solved[:rows]))
        says = constraint * constraint / np.maximum(self._envelope.precision, 1e-300)
        self._eliminated.append(-1)
        self._eliminate(constraint, int(np.argmax(says)), rows)

    def _exchange(self, precision: Floats) -> bool:
        """Eliminate the free coordinate of least precision in place of one that need not be; False if none."""
        rows = len(self._eliminated)
        if not rows:
            return False
        entering = int(np.argmin(np.where(self._free > 0, precision, np.inf)))
        says = taken(self._solved, (slice(rows), entering)) ** 2 * np.maximum(
            precision[self._eliminated], 0.0
        )
        row = int(np.argmax(says))
        if not says[row] > 0.0:
            return False
        constraint = taken(self._solved, row)
        constraint[self._eliminated[row]] = -1.0
        self._free[self._eliminated[row]] = 1.0
        self._eliminate(constraint, entering, row)
        return True

    def _eliminate(self, constraint: Floats, pivot: int, row: int) -> None:
        """Solve constraintᵀy = 0 for y[pivot]: the solution is the new ``row``, and substituted in the others."""
        solution = constraint / -constraint[pivot]
        solution[pivot] = 0.0
        substitute(self._solved[: len(self._eliminated)], solution, pivot, row)
        self._free[pivot] = 0.0
        self._eliminated[row] = pivot


def _implied(preference: Floats, trace: float, guess: float) -> float:
    """The envelope that would have this trace, were the free coordinates unconstrained."""
    return tuned_envelope(trace * preference, trace * guess) / trace


def _spread(preference: Floats, envelope: float) -> float:
    """The root of the trace of the squared covariance, were the free coordinates unconstrained."""
    inverse = 1.0 / (envelope + preference)
    return math.sqrt(float(inverse @ inverse))
