"""Rows of vectors that a block keeps, here or on a device, and the few products it takes with them.

Vectors come from this processor and go back to it: randomness is drawn here, decisions are taken here, and only the
rows, of which there are many, stay where the products are quick. NumPy arrays and PyTorch tensors both do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import Device, received, sent_like

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
        blas.dger(1.0, solution, column, a=rows.T, overwrite_a=1)  # in place: rows is contiguous
    else:
        rows.addr_(column, sent_like(solution, rows))
