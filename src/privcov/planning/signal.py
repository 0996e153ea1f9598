"""How large the matrix can be, from public facts.

Rows of squared norm at most R² have ‖Σ zzᵀ‖_F / n of at most R² (all rows along one line) and, if they use that
norm and spread evenly, of R²/√d. An intercept is known, so the range is that of what is not known: with S what
the other columns may contribute, from S/√p to √(S² + 2S).

What the bounds of a schema cost: how columns become a row norm, and what each width means in noise.

Public facts only: the noise of a release depends on the schema and the loss, never on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privcov.planning.candidates import choose
from privcov.privacy import Loss
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.schema.toml import toml_value
from privcov.text.aligning import cut


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
            return cls(low=squared / math.sqrt(schema.summed_dimension), high=squared)
        rest = squared - 1
        return cls(low=rest / math.sqrt(schema.summed_dimension - 1), high=math.sqrt(rest**2 + 2 * rest))


@dataclass(frozen=True, kw_only=True)
class ColumnCost:
    """One declared column: its share of the squared row norm, and what its bounds do to the noise."""

    name: str
    bounds: str
    squared_norm: float
    noise_without: float
    """What the noise on every entry would fall to without this column, through the row norm alone."""
    sum_noise: float | None
    """Standard deviation of the noise on the sum of the column in original units; None without a loss."""


def column_costs(schema: Schema, *, loss: Loss | None = None) -> list[ColumnCost]:
    """The price of every column, in schema order.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "kids": {"lower": 0, "upper": 10}}})
    >>> [(c.name, c.squared_norm, round(c.noise_without, 2)) for c in column_costs(schema)]
    [('age', 1, 0.67), ('kids', 1, 0.67)]
    """
    squared = float(schema.squared_norm_bound)
    entry = None if loss is None else _entry_noise(schema, loss)
    # With a declared row norm the columns share it, and leaving one out saves nothing by itself.
    shared = schema.row_norm_bound is not None
    return [
        ColumnCost(
            name=column.name,
            bounds=_bounds(column),
            squared_norm=(own := _squared_norm(column)),
            noise_without=1.0 if shared else (squared - own) / squared,
            sum_noise=None if entry is None else entry * _unit(column),
        )
        for column in schema.columns
    ]


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What exhaustive columns save against the same schema without them."""

    columns: int
    """How many columns fewer are summed."""
    squared_norm: float
    """What the squared norm of a row would be without."""
    noise: float
    """What the noise on every entry falls to, through the row norm alone: a share."""
    levels: float
    """What the noise on a product of two of their levels falls to, in the mean over columns: a share."""


def saving(schema: Schema) -> Saving | None:
    """What the exhaustive columns of a schema save; None where there are none.

    >>> sex = {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}
    >>> found = saving(Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "sex": sex}}))
    >>> found.columns, found.squared_norm, round(found.noise, 3), round(found.levels, 3)
    (1, 3.0, 0.833, 0.417)
    """
    if not schema.exhaustive:
        return None
    squared = schema.squared_norm_bound
    plain = squared
    if schema.row_norm_bound is None:
        plain += sum(1 - column.squared_norm for column in schema.exhaustive)
    noise = float(squared / plain)
    shares = [float(column.squared_norm) for column in schema.exhaustive]
    return Saving(
        columns=len(schema.exhaustive),
        squared_norm=float(plain),
        noise=noise,
        levels=noise * sum(shares) / len(shares),
    )


def saving_words(schema: Schema) -> list[str]:
    """What levels that add up to the intercept save, and what every cell counts as; no sentence without them.

    >>> sex = {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}
    >>> print(saving_words(Schema.from_dict({"columns": {"sex": sex}}))[-1])
    sex: a cell that is missing or has none of its levels counts as "M".
    """
    saved = saving(schema)
    if saved is None:
        return []
    which = "columns" if saved.columns > 1 else "column"
    lines = [
        f"Levels of {saved.columns} exhaustive {which} add up to the intercept: {schema.summed_dimension} columns are "
        f"summed for {schema.dimension} in the release, and the rest is recovered exactly.",
        f"Without that the squared norm would be {saved.squared_norm:.4g}. The noise is {100 * saved.noise:.0f} % of "
        f"what it would then be, and {100 * saved.levels:.0f} % between levels of these columns.",
    ]
    rules = {
        "indicator": "counts as missing, with an indicator",
        "zero-row": "makes its row count as zeros",
    }
    for column in schema.exhaustive:
        missing = rules.get(schema.rule(column)) or f"counts as {toml_value(schema.filled(column) or '')}"
        other = missing if column.otherwise is None else f"counts as {toml_value(column.otherwise)}"
        both = f"a cell that is missing or has none of its levels {missing}"
        parted = f"a cell that has none of its levels {other}, a missing one {missing}"
        lines.append(f"{cut(column.name)}: {both if other == missing else parted}.")
    return lines


def _bounds(column: Column) -> str:
    more = " or missing" if column.indicator else ""
    if isinstance(column, Numeric):
        return f"[{column.lower:g}, {column.upper:g}]{more}"
    return f"{len(column.levels)} level{'s' * (len(column.levels) > 1)}{more}" + (
        ", exhaustive" if column.exhaustive else ""
    )


def _squared_norm(column: Column) -> float:
    """What it may add to the squared norm of a row."""
    if isinstance(column, Categorical):
        return float(column.squared_norm) if column.exhaustive else 1
    return column.reach**2 if isinstance(column, Numeric) and column.reach != 1 else 1


def _unit(column: Column) -> float:
    """What one scaled unit is worth in the column's own; of exhaustive levels, that of their coordinates."""
    if isinstance(column, Numeric):
        return column.half_width / column.reach
    return math.sqrt(column.squared_norm)


def _entry_noise(schema: Schema, loss: Loss) -> float | None:
    """Standard deviation of the noise between the intercept and a column, in scaled units."""
    grid = Grid.of(schema)
    taken = choose(loss=loss, grid=grid)
    law = taken.mechanism.law(loss=taken.loss, grid=grid)
    return None if law is None else math.sqrt(law.offdiagonal_variance)
