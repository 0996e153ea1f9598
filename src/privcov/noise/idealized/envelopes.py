"""A Gaussian on the complement of some constraints, given in coordinates where its precision is diagonal.

Letters as on ``docs/proofs/blocked-chain.md``: the constraints are solved, y_N = K·y_P, for the eliminated
coordinates N; Ω is positive in the free coordinates P and may be negative in N, but must be positive definite on
the complement. That is decided by a Cholesky factorisation before anything is drawn.

Rows of vectors that a block keeps, here or on a device, and the few products it takes with them.

Vectors come from this processor and go back to it: randomness is drawn here, decisions are taken here, and only the
rows, of which there are many, stay where the products are quick. NumPy arrays and PyTorch tensors both do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import Device, received, sent_like

_DETUNED = 0.6
"""A trace off by this many times the spread still fits: at most about a tenth of the proposals are lost."""
_DEPENDENT = 1e-10
_LOST = 1e5
"""A free coordinate whose own variance is this many times the trace is held by the constraints alone: what is left of
it is a difference of numbers so large that float64 does not carry it. Measured over 3,038 steps: right to 1e-8 below
1e3, wrong by up to a factor of 300 above 1e7, and nothing in between."""


class UnsafeError(ArithmeticError):
    """Float64 no longer carries the constraints: take a new eigendecomposition."""


@dataclass
class Envelope:
    """The law N(0, Ω⁻¹) on the complement; its direction is what a Bingham draw is proposed from."""

    concentration: float
    precision: Floats  # the diagonal of Ω
    inverse: Floats  # 1/Ω in P, 0 in N
    root: Floats
    trace: float  # of the covariance on the complement; 1 when best tuned
    spread: float  # about the root of the trace of the squared covariance
    eliminated: NDArray[np.intp]  # N
    solved: Rows  # K
    inverse_l: Floats  # L⁻¹, where LLᵀ = F = K Ω_P⁻¹ Kᵀ
    factor: Floats  # A with AAᵀ = (F⁻¹ + Ω_N)⁻¹, the covariance of y_N
    correction: Floats  # F⁻¹ − F⁻¹ A Aᵀ F⁻¹

    def fits(self, concentration: float) -> bool:
        """Whether it is still an efficient envelope at this concentration."""
        if concentration != self.concentration and (concentration == 0.0 or self.concentration == 0.0):
            return False
        return abs(self.trace - self.ratio(concentration)) <= _DETUNED * min(self.spread, self.trace)

    def ratio(self, concentration: float) -> float:
        """A concentration in units of the one this envelope was made for."""
        return 1.0 if concentration == self.concentration else concentration / self.concentration

    def draw(self, normals: Floats) -> Floats:
        """Rows of standard normals become rows of law N(0, Ω⁻¹) on the complement."""
        points = normals * self.root
        if self.eliminated.size:
            wanted = normals[:, self.eliminated] @ self.factor.T
            moved = (wanted - dot(points, self.solved)) @ self.inverse_l.T @ self.inverse_l
            points += mix(moved, self.solved) * self.inverse
            points[:, self.eliminated] = wanted
        return points

    def covariance_times(self, vector: Floats) -> Floats:
        """Ω⁻¹ on the complement, applied to a vector of the complement."""
        if not self.eliminated.size:
            return self.inverse * vector
        reduced = (vector + mix(vector[self.eliminated], self.solved)) * self.inverse
        reduced -= mix(self.correction @ dot(reduced, self.solved), self.solved) * self.inverse
        reduced[self.eliminated] = dot(reduced, self.solved)
        return reduced

    def forget(self, trace: float) -> None:
        """One direction, of this share of the trace, has left the complement."""
        self.trace -= trace
        self.spread = math.sqrt(max(self.spread**2 - trace**2, 0.0))


def make_envelope(
    concentration: float, precision: Floats, *, free: Floats, eliminated: NDArray[np.intp], solved: Rows
) -> Envelope | None:
    """The envelope of this precision; None where it is not positive definite on the complement, or float64 is lost."""
    inverse = free / precision
    root = np.sqrt(inverse)
    trace = float(inverse.sum())
    rows = eliminated.size
    if not rows:
        none = np.zeros((0, 0))
        return Envelope(
            concentration, precision, inverse, root, trace, 0.0, eliminated, solved, none, none, none
        )
    f, of_squares = products(solved, root)
    lower, failed = scipy.linalg.lapack.dpotrf(f, lower=1, clean=1)
    if failed or (np.diagonal(lower) ** 2 < _DEPENDENT * np.diagonal(f)).any():
        raise UnsafeError("the constraints are dependent in the free coordinates")
    inside = lower.T @ (precision[eliminated, None] * lower)
    inside.flat[:: rows + 1] += 1.0
    below, failed = scipy.linalg.lapack.dpotrf(inside, lower=1, clean=1)
    if failed:
        return None
    lower_inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
    below_inverse, _ = scipy.linalg.lapack.dtrtri(below, lower=1)
    factor = lower @ below_inverse.T
    middle = -(below_inverse.T @ below_inverse)
    middle.flat[:: rows + 1] += 1.0
    correction = lower_inverse.T @ middle @ lower_inverse
    trace += float(np.vdot(factor, factor)) - float(np.vdot(of_squares, correction))
    if not trace > 0.0:
        raise UnsafeError("the trace is lost in rounding")
    if float(inverse.max()) > _LOST * trace:
        return None
    return Envelope(
        concentration, precision, inverse, root, trace, 0.0, eliminated, solved,
        lower_inverse, factor, correction,
    )  # fmt: skip


Rows = Any
"""A NumPy array, or a PyTorch tensor on its device."""


def room(most: int, size: int, device: Device | None = None) -> Rows:
    """Space for so many rows: zeros, on this device or here."""
    if device is None:
        return np.zeros((most, size))
    torch = device.torch
    return torch.zeros((most, size), dtype=torch.float64, device=device.place)


def dot(vectors: Floats, rows: Rows) -> Floats:
    """The products of vectors with each of the rows.

    >>> dot(np.array([1.0, 2.0]), np.eye(2)).tolist()
    [1.0, 2.0]
    """
    if isinstance(rows, np.ndarray):
        return np.asarray(vectors @ rows.T)
    return received(sent_like(vectors, rows) @ rows.T)


def mix(weights: Floats, rows: Rows) -> Floats:
    """Sums of the rows with these weights."""
    if isinstance(rows, np.ndarray):
        return np.asarray(weights @ rows)
    return received(sent_like(weights, rows) @ rows)


def through(vectors: Floats, rows: Rows) -> tuple[Floats, Floats]:
    """The products of vectors with each of the rows, and the sums of rows with these weights: ``dot``, then ``mix``."""
    if isinstance(rows, np.ndarray):
        weights = np.asarray(vectors @ rows.T)
        return weights, np.asarray(weights @ rows)
    there = sent_like(vectors, rows) @ rows.T
    return received(there), received(there @ rows)


def products(rows: Rows, scale: Floats) -> tuple[Floats, Floats]:
    """KDKᵀ and KD²Kᵀ for the rows K and D = diag(scale²)."""
    if isinstance(rows, np.ndarray):
        once = rows * scale
        twice = once * scale
        return once @ once.T, twice @ twice.T
    there = sent_like(scale, rows)
    once = rows * there
    twice = once * there
    return received(once @ once.T), received(twice @ twice.T)


def taken(rows: Rows, place: Any) -> Floats:
    """One row, or with a pair of places a column of some of them, as a copy here."""
    return np.array(rows[place]) if isinstance(rows, np.ndarray) else received(rows[place])


def put(rows: Rows, place: int, vector: Floats) -> None:
    """Write a row."""
    rows[place] = vector if isinstance(rows, np.ndarray) else sent_like(vector, rows)


def substitute(rows: Rows, solution: Floats, pivot: int, row: int) -> None:
    """Replace coordinate ``pivot`` of every row by its ``solution`` in the others, which becomes ``row``."""
    here = isinstance(rows, np.ndarray)
    column = rows[:, pivot].copy() if here else rows[:, pivot].clone()
    rows[row] = 0.0
    column[row] = 1.0
    rows[:, pivot] = 0.0
    if here:
        scipy.linalg.blas.dger(1.0, solution, column, a=rows.T, overwrite_a=1)  # in place: rows is contiguous
    else:
        rows.addr_(column, sent_like(solution, rows))
