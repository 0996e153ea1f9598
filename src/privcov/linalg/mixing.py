"""A public linear map that mixes few of many columns: a selection, but for some blocks.

A matrix is summed in columns of its own choice, and told in those of its reader. Between them is a map T: most columns
are carried over, some are combinations of a few (levels that add up to the intercept, numeric columns that the shape of
a frame mixed). Sums of products then go through T M Tᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privcov.linalg.arrays import Floats, Matrix

Block = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[float, ...], ...]]
"""The rows of T that it fills, the columns that they are made of, and the numbers."""


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """The map T with ``len(carried)`` rows and ``width`` columns.

    Two blocks have at most one column in common, which a row outside of the blocks may carry over too.

    Parameters
    ----------
    carried : tuple of int
        For each row of T the column that it carries over; -1 for a row of a block.
    width : int
        The number of columns.
    blocks : tuple of Block
        The other rows.

    Examples
    --------
    >>> halves = ((1, 2), (0, 1), ((0.5, 1.0), (0.5, -1.0)))
    >>> mixing = Mixing(carried=(0, -1, -1, 2), width=3, blocks=(halves,))
    >>> mixing.rows(np.array([10.0, 2.0, 7.0])[:, None]).ravel().tolist()
    [10.0, 7.0, 3.0, 7.0]
    >>> mixing.seen(np.eye(3)).shape, mixing.behind([1])
    ((4, 4), ([0, 1], array([[0.5, 1. ]])))
    """

    carried: tuple[int, ...]
    width: int
    blocks: tuple[Block, ...]

    def rows(self, matrix: Floats) -> Floats:
        """T M; of each, where there are several on the first axes."""
        return self._rows(matrix, self._numbers)

    def seen(self, matrix: Matrix) -> Matrix:
        """T M Tᵀ of a symmetric matrix, exactly symmetric; of each, where there are several on the first axes."""
        made = self.rows(np.swapaxes(self.rows(matrix), -1, -2))
        return np.asarray((made + np.swapaxes(made, -1, -2)) / 2)

    def behind(self, places: Sequence[int]) -> tuple[list[int], Matrix]:
        """The columns that some rows are made of, in order, and T at these rows and columns."""
        whole = self.matrix[list(places)]
        there = [int(column) for column in np.flatnonzero(whole.any(axis=0))]
        return there, whole[:, there]

    @cached_property
    def matrix(self) -> Matrix:
        """T itself."""
        return self.rows(np.eye(self.width))

    def entry_variances(self, variances: Matrix, shared: float) -> Matrix:
        """The variances of T N Tᵀ, for entries of N that are uncorrelated but for the diagonal, with ``shared`` there.

        For rows a and b of T, with p their product place by place: Σ a_i² b_j² v_ij + Σ p_i p_j (v_ij + shared), the
        second over i ≠ j. It needs two places in common, which only rows of one block have.
        """
        squares = [block**2 for block in self._numbers]
        made = self._rows(self._rows(variances, squares).T, squares)
        for (rows, columns, _), block in zip(self.blocks, self._numbers, strict=True):
            inside = variances[np.ix_(columns, columns)] + shared
            np.fill_diagonal(inside, 0.0)
            for row, own in zip(rows, block, strict=True):
                products = own * block
                made[row, list(rows)] += ((products @ inside) * products).sum(axis=1)
        return made

    @cached_property
    def _numbers(self) -> list[Matrix]:
        return [np.array(block) for *_, block in self.blocks]

    @cached_property
    def _order(self) -> list[int]:
        return list(self.carried)

    def _rows(self, matrix: Floats, blocks: Sequence[Floats]) -> Floats:
        made = np.asarray(matrix[..., self._order, :], dtype=np.float64)
        for (rows, columns, _), block in zip(self.blocks, blocks, strict=True):
            made[..., list(rows), :] = block @ matrix[..., list(columns), :]
        return made
