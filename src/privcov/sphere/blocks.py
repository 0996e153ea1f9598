"""Many Bingham draws from one eigendecomposition: the vectors drawn so far are linear constraints.

Letters as on ``docs/proofs/blocked-chain.md``, which derives every formula here. In the eigenbasis the precision
Ω of the envelope is diagonal for every envelope; the constraints are kept solved, y_N = K·y_P, for as many
coordinates N as there are constraints. Coordinates of Ω in N may be negative; on the complement Ω is positive
definite, and that is checked by a Cholesky factorisation before anything is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from privcov.randomness import Floats, Randomness
from privcov.sphere.bingham import log_acceptance, tuned_envelope

_DETUNED = 0.6
"""Re-tune when the trace is off by this many times its own scale: about 9 percent of the proposals lost."""
_CAUTION = 0.2
"""An envelope a little too wide costs a little; one that is too narrow is none at all."""
_ROUNDS = 30
_NOT_ORTHOGONAL = 1e-8
_HOPELESS = 100_000


@dataclass
class _Envelope:
    """A Gaussian N(0, Ω⁻¹) on the complement of the constraints that were solved when it was made."""

    concentration: float
    precision: Floats  # the diagonal of Ω
    inverse: Floats  # 1/Ω in the free coordinates, 0 in the eliminated ones
    root: Floats
    trace: float  # of the covariance, on the complement: 1 when best tuned
    spread: float  # about the square root of the trace of the squared covariance
    solved: Floats  # K
    eliminated: list[int]
    inverse_f: Floats  # F⁻¹ with F = K Ω_P⁻¹ Kᵀ
    factor: Floats  # A with AAᵀ = (F⁻¹ + Ω_N)⁻¹
    correction: Floats  # F⁻¹ − F⁻¹ A Aᵀ F⁻¹

    def fits(self, ratio: float) -> bool:
        """Whether it is still efficient at ``ratio`` times its own concentration."""
        return abs(self.trace - ratio) <= _DETUNED * min(self.spread, self.trace)

    def draw(self, normals: Floats) -> Floats:
        """Rows of standard normals become rows of law N(0, Ω⁻¹) on the complement."""
        points = normals * self.root
        if self.eliminated:
            wanted = normals[:, self.eliminated] @ self.factor.T
            moved = (wanted - points @ self.solved.T) @ self.inverse_f
            points += (moved @ self.solved) * self.inverse
            points[:, self.eliminated] = wanted
        return points

    def covariance_times(self, vector: Floats) -> Floats:
        """Ω⁻¹ on the complement, applied to a vector of it."""
        if not self.eliminated:
            return self.inverse * vector
        solved = self.solved
        reduced = (vector + vector[self.eliminated] @ solved) * self.inverse
        reduced -= ((self.correction @ (solved @ reduced)) @ solved) * self.inverse
        reduced[self.eliminated] = solved @ reduced
        return reduced


class Block:
    """Vectors drawn one by one from one eigendecomposition, each orthogonal to those before.

    ``draw`` returns None when float64 no longer carries the constraints safely: take a new decomposition.
    The first draw of a block never does.
    """

    def __init__(self, values: Floats, *, most: int, batch: float = 1.0) -> None:
        size = values.size
        self.batch = batch
        """Proposals the last vectors needed, on average; their root is a good number to draw at once."""
        self.vectors = np.zeros((most, size))
        self.count = 0
        self._gaps = values.max() - values
        self._free = np.ones(size)
        self._eliminated: list[int] = []
        self._solved = np.zeros((most, size))
        self._envelope: _Envelope | None = None
        self._best: float | None = None
        self._given = np.zeros(
            (most, size)
        )  # E: each vector drawn since the envelope was made, conditioned on
        self._pending = 0
        # Measured costs, in units of size³ of the decomposition: they choose the block's length and nothing else.
        self._spent = float(size) ** 3
        self._step = 0.0

    @property
    def pays(self) -> bool:
        """Whether the next vector is cheaper here than the average vector of this block has been so far."""
        return self.count < 2 or self._step * self.count < self._spent

    def draw(self, randomness: Randomness, concentration: float) -> tuple[Floats, int] | None:
        """A unit vector in the eigenbasis and the number of proposals, or None."""
        before = self._spent
        self._spent += 14.0 * self._gaps.size * self.count
        if not (self._still_tuned(concentration) or self._retune(concentration)):
            return None
        self._step += 0.1 * (self._spent - before - self._step)
        envelope = self._envelope
        assert envelope is not None
        size = self._gaps.size
        dimension = size - self.count
        ratio = 1.0 if concentration == envelope.concentration else concentration / envelope.concentration
        given = self._given[: self._pending]
        proposals = 0
        while proposals < _HOPELESS or not self.count:
            batch = max(1, min(math.ceil(math.sqrt(self.batch)), 2**16 // size))
            points = envelope.draw(randomness.normals(batch, size))
            if self._pending:
                points -= ((points * envelope.precision) @ given.T) @ given
            squares = points * points
            length = squares.sum(axis=1)
            forms = np.maximum(ratio * (squares @ envelope.precision) / length, 1e-300)
            logs = np.log(randomness.uniforms(batch))
            accepted = np.flatnonzero(logs < log_acceptance(forms, dimension))
            if accepted.size:
                first = int(accepted[0])
                proposals += first + 1
                self.batch = 0.8 * self.batch + 0.2 * proposals
                vector = self._made_orthogonal(points[first] / math.sqrt(length[first]))
                return None if vector is None else (vector, proposals)
            proposals += batch
        return None

    def _made_orthogonal(self, vector: Floats) -> Floats | None:
        if self.count:
            known = self.vectors[: self.count]
            along = known @ vector
            if not np.abs(along).max() < _NOT_ORTHOGONAL:
                return None
            vector -= along @ known
            vector /= math.sqrt(float(vector @ vector))
        return self._constrain(vector)

    def _constrain(self, vector: Floats) -> Floats:
        """From now on every draw is orthogonal to ``vector`` too."""
        envelope = self._envelope
        assert envelope is not None
        self.vectors[self.count] = vector
        self.count += 1
        given = self._given[: self._pending]
        image = envelope.covariance_times(vector)
        image -= (given @ vector) @ given
        height = float(image @ vector)
        if height > 0.0:
            self._given[self._pending] = image / math.sqrt(height)
            lost = float(image @ image) / height
            envelope.trace -= lost
            envelope.spread = math.sqrt(max(envelope.spread**2 - lost**2, 0.0))
        else:
            envelope.trace = math.nan  # never tuned: forces a new envelope
        self._pending += 1
        return vector

    def _still_tuned(self, concentration: float) -> bool:
        envelope = self._envelope
        if envelope is None:
            return False
        if concentration == envelope.concentration:
            return envelope.fits(1.0)
        if concentration == 0.0 or envelope.concentration == 0.0:
            return False
        return envelope.fits(concentration / envelope.concentration)

    def _retune(self, concentration: float) -> bool:
        """A new envelope for this concentration; False when there is none that float64 can carry."""
        for vector in self.vectors[self.count - self._pending : self.count]:
            self._solve_for(vector)
        self._pending = 0
        low, high = 0.0, math.inf
        proposed: float | None = None
        for _ in range(_ROUNDS):
            free = self._free > 0
            preference = 2.0 * concentration * (self._gaps - self._gaps[free].min())
            inside = preference[free]
            best = self._best = tuned_envelope(inside, self._best)
            b = self._guess(concentration, preference, free, best) if proposed is None else proposed
            if proposed is None and b <= 0.0 and self._exchange(b + preference):
                continue
            if not low < b < high:
                b = 0.5 * (low + high) if high < math.inf else low + best
            made = self._envelope_at(concentration, b + preference)
            if made is False:
                return False
            if made is None:
                low, proposed = b, b + best
                continue
            implied = _implied(inside, made.trace, best)
            made.spread = math.sqrt(float(np.sum((implied + inside) ** -2.0)))
            if made.fits(1.0) or not self._eliminated:
                self._envelope = made
                return True
            low, high = (b, high) if made.trace > 1.0 else (low, b)
            proposed = best - (implied - b)
        return False

    def _guess(self, concentration: float, preference: Floats, free: NDArray[np.bool_], best: float) -> float:
        """Where the tuned envelope should be, from the trace of the last one in the present complement.

        The model: the trace is that of the free coordinates alone, with a shift that makes it right at the last.
        """
        last = self._envelope
        if last is None or concentration == 0.0 or last.concentration == 0.0 or not last.trace > 0.0:
            return best
        ratio = concentration / last.concentration
        top = int(np.argmin(np.where(free, preference, np.inf)))
        at = ratio * float(last.precision[top])
        inside = preference[free]
        scale = float(np.sum((best + inside) ** -2.0)) ** -0.5
        return best - (_implied(inside, last.trace / ratio, best) - at) + _CAUTION * scale

    def _envelope_at(self, concentration: float, precision: Floats) -> _Envelope | bool | None:
        """The envelope of this precision; None if not positive definite, False if it cannot be computed."""
        eliminated = self._eliminated
        inverse = self._free / precision
        root = np.sqrt(inverse)
        trace = float(inverse.sum())
        solved = self._solved[: len(eliminated)]
        if not eliminated:
            none = np.zeros((0, 0))
            return _Envelope(
                concentration, precision, inverse, root, trace, 0.0, solved, [], none, none, none
            )
        rows = len(eliminated)
        self._spent += rows * rows * (precision.size + 4.0 * rows)
        scaled = solved * root
        f = scaled @ scaled.T
        lower, failed = lapack.dpotrf(f, lower=1, clean=1)
        if failed:
            return False
        inside = lower.T @ (precision[eliminated, None] * lower)
        inside.flat[:: len(eliminated) + 1] += 1.0
        below, failed = lapack.dpotrf(inside, lower=1, clean=1)
        if failed:
            return None
        lower_inverse, failed = lapack.dtrtri(lower, lower=1)
        below_inverse, failed_too = lapack.dtrtri(below, lower=1)
        if failed or failed_too:
            return False
        factor = lower @ below_inverse.T
        middle = -(below_inverse.T @ below_inverse)
        middle.flat[:: len(eliminated) + 1] += 1.0
        correction = lower_inverse.T @ middle @ lower_inverse
        rough = (scaled * root).astype(np.float32)  # enough for tuning, which cannot change the law
        trace += float(np.vdot(factor, factor)) - float(np.vdot(rough @ rough.T, correction))
        return _Envelope(
            concentration,
            precision,
            inverse,
            root,
            trace,
            0.0,
            solved.copy(),
            list(eliminated),
            lower_inverse.T @ lower_inverse,
            factor,
            correction,
        )

    def _solve_for(self, vector: Floats) -> None:
        """One more constraint, vectorᵀy = 0: solved for the coordinate where it says most."""
        rows = len(self._eliminated)
        constraint = self._free * (vector + vector[self._eliminated] @ self._solved[:rows])
        envelope = self._envelope
        assert envelope is not None
        weight = self._free / np.maximum(envelope.precision, 1e-300)
        pivot = int(np.argmax(constraint * constraint * weight))
        self._eliminate(constraint, pivot, rows)

    def _eliminate(self, constraint: Floats, pivot: int, row: int) -> None:
        """Solve constraintᵀy = 0 for y[pivot], put the solution in ``row`` and substitute it in the others."""
        solution = constraint / -constraint[pivot]
        solution[pivot] = 0.0
        others = self._solved[: len(self._eliminated)]
        column = others[:, pivot].copy()
        if row < len(self._eliminated):
            column[row] = 0.0
        if column.size:
            blas.dger(1.0, solution, column, a=others.T, overwrite_a=1)  # in place: others is contiguous
        others[:, pivot] = 0.0
        self._solved[row] = solution
        self._free[pivot] = 0.0
        if row < len(self._eliminated):
            self._eliminated[row] = pivot
        else:
            self._eliminated.append(pivot)

    def _exchange(self, precision: Floats) -> bool:
        """Eliminate the free coordinate that would be least, in place of one that need not be; False if none."""
        rows = len(self._eliminated)
        if not rows:
            return False
        entering = int(np.argmin(np.where(self._free > 0, precision, np.inf)))
        strength = self._solved[:rows, entering] ** 2 * np.maximum(precision[self._eliminated], 0.0)
        row = int(np.argmax(strength))
        if not strength[row] > 0.0:
            return False
        leaving = self._eliminated[row]
        constraint = self._solved[row].copy()
        constraint[leaving] = -1.0
        self._free[leaving] = 1.0
        self._eliminate(constraint, entering, row)
        return True


def _implied(preference: Floats, trace: float, guess: float) -> float:
    """The envelope that would have this trace, were the free coordinates unconstrained."""
    return tuned_envelope(trace * preference, trace * guess) / trace
