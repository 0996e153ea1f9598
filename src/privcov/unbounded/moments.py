"""One private round: the noisy second moment, or the noisy mean, of rows clipped to a ball.

Both sum integers exactly and add integer noise that is exactly distributed, so a round is ρ-zCDP as it runs;
all that follows is post-processing. Proof: docs/proofs/unbounded.md#round

The row-local map into a ball of integers: transform, clip, put on the grid, check the norm exactly.

The transform is public: it is computed from earlier releases, never from rows. Every step is one correctly
rounded operation on one element, so an integer row depends on its own row alone, wherever it stands and
whatever the library of matrix products does. Proof: docs/proofs/unbounded.md#rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import discrete_gaussian
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP
from privcov.schema.grid import BLOCK_ROWS, ROW_BITS, Grid
from privcov.summing.gram import Gram

EXPONENT = ROW_BITS // 2
_CELLS = 2**17


@dataclass(frozen=True, kw_only=True)
class Ball:
    """The ball of this radius, in whole numbers: the integer 2^20 stands for the radius.

    >>> Ball(dimension=2, radius=5.0).rows(np.array([[3.0, 0.0], [30.0, 40.0]])) // 2**18
    array([[2., 0.],
           [2., 3.]])
    """

    dimension: int
    radius: float

    @property
    def grid(self) -> Grid:
        """The public facts a mechanism calibrates to: squared integer norms are at most 2^40."""
        return Grid(dimension=self.dimension, exponent=EXPONENT, squared_norm_bound=4**EXPONENT)

    @property
    def unit(self) -> Fraction:
        """What one integer step is worth in the rows' own units."""
        return Fraction(self.radius) / 2**EXPONENT

    def rows(self, rows: Floats) -> Floats:
        """Whole-number rows of squared norm at most 2^40, exactly.

        Longer rows are shortened to the radius; a row with a number that is not finite becomes the zero row.
        """
        with np.errstate(all="ignore"):  # a warning would tell that a huge value is there
            # Rounding to the grid moves a row by at most √d/2; 2 more covers every float rounding.
            inner = 2**EXPONENT - (math.isqrt((self.dimension - 1) // 4) + 1) - 2
            placed = rows * (2**EXPONENT / self.radius)
            largest = np.abs(rows).max(axis=1)
            direction = rows / largest[:, None]
            length = np.sqrt(_squared_norms(direction))
            long = ~(length * (largest * (2**EXPONENT / self.radius)) <= inner)
            shortened = direction * (inner / length)[:, None]
            placed = np.where(long[:, None], shortened, placed)
            placed[~np.isfinite(placed).all(axis=1)] = 0.0
            np.rint(placed, out=placed)
            # Unreachable, and cheap to check on every row: the guarantee rests on these integers alone.
            placed[~_fits(placed)] = 0.0
        return placed


def transformed(rows: Floats, matrix: Floats) -> Floats:
    """``matrix`` times every row, one elementwise step after the other, so that no row can touch another."""
    result = np.zeros((len(rows), len(matrix)))
    with np.errstate(all="ignore"):
        for place in range(rows.shape[1]):
            result += np.multiply.outer(rows[:, place], matrix[:, place])
    return result


def integer_blocks(
    rows: Floats, matrix: Floats, ball: Ball, centre: Floats | None = None
) -> Iterator[Floats]:
    """The integer rows of ``matrix`` times every row, less ``centre``, in blocks that a Gram matrix adds exactly."""
    step = max(256, min(BLOCK_ROWS, _CELLS // len(matrix)))
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):
            white = transformed(rows[start : start + step], matrix)
            moved = white if centre is None else white - centre
        yield ball.rows(moved)


def _fits(placed: Floats) -> NDArray[np.bool_]:
    """Whether Σ q² ≤ 4^k: with every |q| ≤ 2^k and d ≤ 2^12 the sum is a whole number float64 holds."""
    small = (np.abs(placed) <= 2**EXPONENT).all(axis=1)
    return small & (_squared_norms(np.where(small[:, None], placed, 0.0)) <= 4**EXPONENT)


def _squared_norms(rows: Floats) -> Floats:
    total = np.zeros(len(rows))
    for place in range(rows.shape[1]):
        total += rows[:, place] * rows[:, place]
    return total


TIGHT = Gaussian()
"""The noise of a round, unless a paper's is asked for."""


@dataclass(frozen=True)
class Spent:
    """What one round was for, and its exact share of ρ."""

    step: str
    rho: Fraction


def noisy_second_moment(
    rows: Floats,
    matrix: Floats,
    ball: Ball,
    loss: ZCDP,
    randomness: Randomness,
    noise: Gaussian = TIGHT,
) -> Floats:
    """(1/n) Σ wwᵀ of the clipped rows w = clip(matrix · x) plus symmetric Gaussian noise: ρ-zCDP under replace-one.

    The noise is that of the ``gaussian`` mechanism: the orthogonal ensemble, Δ_F = √2 radius²/n, free trace; or
    independent entries of standard deviation Δ_F/√(2ρ), as papers draw it.
    """
    draw = noise.draw(loss=loss, grid=ball.grid, randomness=randomness)
    gram = Gram(ball.grid)
    for block in integer_blocks(rows, matrix, ball):
        gram.add(block)
    worth = ball.unit**2 / len(rows)
    upper = np.zeros((ball.dimension, ball.dimension))
    upper[np.triu_indices(ball.dimension)] = [float(int(value) * worth) for value in draw.answer(gram)]
    return upper + np.triu(upper, 1).T


def noisy_mean(
    rows: Floats, matrix: Floats, centre: Floats, ball: Ball, loss: ZCDP, randomness: Randomness
) -> Floats:
    """(1/n) Σ w of the clipped rows w = clip(matrix · x − centre) plus discrete Gaussian noise: ρ-zCDP."""
    noise = discrete_gaussian(randomness, variance=mean_variance(ball, loss), count=ball.dimension)
    total = np.zeros(
        ball.dimension, dtype=np.int64
    )  # each entry at most rows · 2^20: no overflow below 2^43 rows
    for block in integer_blocks(rows, matrix, ball, centre):
        total += block.astype(np.int64).sum(axis=0)
    worth = ball.unit / len(rows)
    return np.array([float((int(s) + int(z)) * worth) for s, z in zip(total, noise, strict=True)])


def mean_variance(ball: Ball, loss: ZCDP) -> Fraction:
    """Δ²/(2ρ) in squared integer steps."""
    return Sensitivity.of(ball.grid, loss.neighbours).row_sum_squared / (2 * loss.rho)


def projected(matrix: Floats, ball: Ball) -> Floats:
    """The nearest moment that rows of the ball can have: eigenvalues from 0 to radius², none turned positive."""
    values, vectors = np.linalg.eigh(matrix)
    return symmetric((vectors * np.clip(values, 0.0, ball.radius**2)) @ vectors.T)


def symmetric(matrix: Floats) -> Floats:
    """Remove what rounding leaves of asymmetry."""
    return (matrix + matrix.T) / 2
