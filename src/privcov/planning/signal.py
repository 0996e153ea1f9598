"""How large the matrix can be, from public facts, and what an error means beside it.

Rows of squared norm at most R² have ‖Σ zzᵀ‖_F / n of at most R² (all rows along one line) and, if they use that
norm and spread evenly, of R²/√d. An intercept is known, so the range is that of what is not known: with S what
the other columns may contribute, from S/√p to √(S² + 2S).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from privcov.schema import Schema

Verdict = Literal["useful", "marginal", "worse than publishing zeros"]


@dataclass(frozen=True, kw_only=True)
class SignalRange:
    """The public range of the Frobenius norm of the unknown part of the matrix, per row, in scaled units."""

    low: float
    high: float

    @classmethod
    def of(cls, schema: Schema) -> SignalRange:
        """The range of a schema.

        >>> SignalRange.of(Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}}))
        SignalRange(low=1.0, high=1.7320508075688772)
        """
        squared = float(schema.squared_norm_bound)
        if not schema.intercept or not squared > 1:
            return cls(low=squared / math.sqrt(schema.dimension), high=squared)
        rest = squared - 1
        return cls(low=rest / math.sqrt(schema.dimension - 1), high=math.sqrt(rest**2 + 2 * rest))

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high)

    def verdict(self, error: float) -> Verdict:
        """Useful below half the lower end; worse than zeros above the (geometric) middle of the range.

        The error is that of the unrepaired matrix. Repair helps most where the verdict is marginal.
        """
        if error <= self.low / 2:
            return "useful"
        return "marginal" if error < self.middle else "worse than publishing zeros"
