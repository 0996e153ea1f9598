"""Freivalds' check that a sum Σ qqᵀ is the sum of the rows that went into it, whatever multiplied them.

An engine may compute in less than float64 without saying so: a BLAS that emulates it, a GPU in a fast mode. For
a vector v of random bits, G·v must equal Σ q(q·v), which needs no matrix product; both sides are taken modulo
2^32, in integers. A wrong G passes with probability at most 2^-(32 - t), where 2^t is the largest power of two
that divides every entry of its error. Proof: docs/proofs/exact-gram.md.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import kernel
from privcov.schema.grid import BLOCK_ROWS, ROW_BITS, Grid
from privcov.summing.gram import Gram


class Check:
    """Sees the rows that a sum is made of; ``Gram.agrees_with`` then tells whether the sum is theirs.

    >>> gram, check = Gram(Grid(dimension=2, exponent=20, squared_norm_bound=2**40)), Check(2)
    >>> rows = np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> gram.add(rows)
    >>> check.saw(rows)
    >>> gram.agrees_with(check.weights, check.expected)
    True
    """

    def __init__(self, dimension: int) -> None:
        self.weights: NDArray[np.int32] = kernel().words((dimension + 1) // 2).view(np.int32)[:dimension]
        self.expected: NDArray[np.int32] = np.zeros(dimension, dtype=np.int32)
        """Σ q(q·v) of the rows seen so far, with the weights as v: what the sum times the weights must be."""
        self._room: NDArray[np.int32] = np.empty(0, dtype=np.int32)

    def saw(self, rows: Floats) -> None:
        """Count the rows of a block in."""
        if self._room.size < rows.size:
            self._room = np.empty(rows.size, dtype=np.int32)
        whole = self._room[: rows.size].reshape(rows.T.shape)
        np.copyto(
            whole, rows.T, casting="unsafe"
        )  # |q| ≤ 2^20; sums and products wrap around, which is meant
        self.expected += np.einsum("ij,j->i", whole, np.einsum("ij,i->j", whole, self.weights))

    def expect(self, expected: NDArray[np.int64]) -> None:
        """Take what another device saw: Σ q(q·v), of which the lower 32 bits count."""
        self.expected = expected.astype(np.uint32).view(np.int32)


@cache
def check_arithmetic() -> bool:
    """Once in every process: a product at the bound of exactness, compared with integers; no rows are needed."""
    rows, expected = exactness_probe()
    grid = Grid(dimension=rows.shape[1], exponent=20, squared_norm_bound=2**ROW_BITS)
    gram, check = Gram(grid), Check(grid.dimension)
    gram.add(rows)
    check.saw(rows)
    if list(gram.reveal_to_mechanism()) != expected or not gram.agrees_with(check.weights, check.expected):
        raise InternalError()
    return True


def exactness_probe() -> tuple[Floats, list[int]]:
    """Invented rows and the upper triangle of their product, in integers.

    Every sum in it is an odd number just below 2^53, so that a single bit lost anywhere shows.
    """
    dimension = 8
    most = int((2**ROW_BITS // dimension) ** 0.5) | 1
    signs = np.where(np.arange(dimension) % 3 == 1, -1.0, 1.0)
    rows = np.repeat([(most - 2.0) * signs], BLOCK_ROWS, axis=0)
    rows[0] -= signs
    whole = [[int(q) for q in row] for row in rows[:2]]
    expected = [
        whole[0][i] * whole[0][j] + (BLOCK_ROWS - 1) * whole[1][i] * whole[1][j]
        for i in range(dimension)
        for j in range(i, dimension)
    ]
    return rows, expected
