"""The error of correlations in a private frame, before anything is spent, beside the one in the declared frame.

In a frame a column is measured in its own standard deviations, whatever they are, so the error hardly depends on how
wide the bounds are: it follows from the number of rows and columns and the loss. The radius is the one that the frame
would choose for normal columns: docs/explain/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import is_wide
from privcov.noise.laws import NoiseLaw, Normal
from privcov.planning.candidates import choose
from privcov.planning.purpose import Purpose
from privcov.privacy import ZCDP, Loss
from privcov.releases.certificate import RADII
from privcov.releases.rounds import Norms
from privcov.schema import Numeric, Schema
from privcov.schema.grid import framed_grid, framed_weight

if TYPE_CHECKING:
    from privcov.planning.plan import Plan

ROUNDS = 0.18
"""The share of the loss that rounds cost."""
FILLED = 0.2
"""The share of its bounds that a column fills in the second example: bounds five times too wide."""


@dataclass(frozen=True, kw_only=True)
class Framed:
    """How far the correlation of two numeric columns would be off, in root mean square."""

    private: float
    """In a private frame, for columns like normal ones: noise, and the bias of shortened rows."""
    even: float
    """In the declared frame, for columns that are spread evenly over their bounds."""
    narrow: float
    """In the declared frame, for columns spread evenly over a fifth of their bounds."""

    def __str__(self) -> str:
        return (
            "With --frame auto, which fits a private frame first, a correlation would be off by about "
            f"±{self.private:.2g} (more where rows are few and bounds far too wide); as declared by ±{self.even:.2g} "
            f"where columns fill their bounds, and by ±{self.narrow:.2g} where they fill a fifth of them."
        )


def framed(plan: Plan) -> Framed | None:
    """What a frame would do for a plan; None where there is none, or no pair of numeric columns."""
    return in_frame(plan.schema, law=plan.choice.law, rows=plan.rows, loss=plan.loss, purpose=plan.purpose)


def in_frame(
    schema: Schema, *, law: NoiseLaw | None, rows: int, loss: Loss, purpose: str | Purpose
) -> Framed | None:
    """The same for what a plan is made of; ``law`` is that of the declared frame."""
    numbers = [column for column in schema.columns if isinstance(column, Numeric)]
    own = any(column.centre is not None or column.scale is not None for column in numbers)
    if law is None or own or len(numbers) < 2 or schema.row_norm_bound is not None:
        return None
    if not schema.intercept or is_wide(schema.dimension):
        return None
    grid = framed_grid(schema)
    try:
        found = choose(loss=loss, grid=grid, purpose=purpose, as_asked=True)
    except ParameterError:
        return None
    inside = found.mechanism.law(loss=found.loss, grid=grid)
    assert inside is not None
    adds_squares = isinstance(found.loss, ZCDP) or isinstance(inside, Normal)
    left = math.sqrt(1 - ROUNDS) if adds_squares else 1 - ROUNDS
    norms = Norms(
        counts=_normal_norms(len(numbers)),
        noise_std=0.0,
        width=float(len(numbers)),
        weight=float(framed_weight(schema)),
        entry_std=math.sqrt(inside.offdiagonal_variance) / left,
        rows=float(rows),
    )
    even = math.sqrt(law.offdiagonal_variance) / rows * 3
    return Framed(
        private=norms.error(norms.radius),
        even=even,
        narrow=even / FILLED**2,
    )


def _normal_norms(columns: int) -> Floats:
    """The share of rows of independent normal columns in each cell of the histogram of norms (Wilson and Hilferty).

    >>> shares = _normal_norms(6)
    >>> round(float(shares.sum()), 6), round(float(shares[:7].sum()), 2)
    (1.0, 0.59)
    """
    mean, std = 1 - 2 / (9 * columns), math.sqrt(2 / (9 * columns))
    below = [(1 + math.erf((radius ** (2 / 3) - mean) / std / math.sqrt(2))) / 2 for radius in RADII]
    return np.diff([0.0, *below, 1.0])
