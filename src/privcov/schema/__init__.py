"""What a steward declares: columns and their bounds, how a file is written, and the grid that follows from them."""

from __future__ import annotations

from privcov.schema.schema import (
    MAX_DIMENSION,
    Categorical,
    Column,
    Feature,
    Level,
    MissingRule,
    Numeric,
    Schema,
)

__all__ = ["MAX_DIMENSION", "Categorical", "Column", "Feature", "Level", "MissingRule", "Numeric", "Schema"]
