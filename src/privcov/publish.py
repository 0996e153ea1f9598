"""The only bridge from sensitive rows to a public release: check, draw, read, sum, certify.

Nothing else in privcov sees both the data and the outside. Everything that can be refused is refused from
public facts before the first value is read; after that there are no data-dependent errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from privcov import mechanisms
from privcov.certificate import Certificate
from privcov.errors import InputError, without_reasons
from privcov.grid import Grid
from privcov.mechanisms.base import Mechanism, Upper, answer
from privcov.norms import NormChoice, choose_row_norm
from privcov.privacy import Amount, Loss, Neighbours
from privcov.randomness import Randomness, kernel
from privcov.released import Release
from privcov.schema import Schema
from privcov.sketch import Sketch
from privcov.summing import sum_rows
from privcov.table import open_table


def release(
    data: Any,
    *,
    schema: Schema,
    loss: Loss,
    mechanism: str | Mechanism = "auto",
    as_published: bool = False,
    row_norm: Literal["declared", "private"] = "declared",
    row_norm_share: Amount = Fraction(1, 10),
    randomness: Randomness | None = None,
    threads: int = 1,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Release:
    """A differentially private second-moment matrix of a table, with its certificate.

    ``data`` is a NumPy array, a pandas, polars or Arrow table, or a path to CSV or Parquet. The guarantee is
    the given ``loss``, for every table the schema admits; ``options`` are the mechanism's own, such as
    ``arithmetic="idealized"``, and ``as_published`` takes its paper's constants. With
    ``row_norm="private"`` a share of the loss buys a row-norm bound that fits the data. A ``randomness`` other
    than the kernel's marks the release as a rehearsal.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> made = pc.release(np.array([[35.0], [61.0], [48.0]]), schema=schema, loss=loss)
    >>> made.columns
    ('(Intercept)', 'age')
    """
    if mechanism == "adaptive":  # after Dong, Liang and Yi 2022: a private radius, then Gaussian noise
        mechanism, row_norm = "gaussian", "private"
    chosen = mechanisms.find(mechanism, loss=loss, as_published=as_published, **options)
    source = kernel() if randomness is None else randomness
    table, rest, extra = open_table(data, schema), loss, {}
    if row_norm != "declared":
        choice = NormChoice.of(loss, share=row_norm_share, word=row_norm)
        schema = choose_row_norm(data, schema=schema, choice=choice, mechanism=chosen, randomness=source)
        table, rest, extra = open_table(data, schema), choice.rest, choice.options
    grid = Grid.of(schema)

    draw = chosen.draw(loss=rest, grid=grid, randomness=source)

    def read() -> tuple[int | None, tuple[Upper, Sketch | None]]:
        gram = sum_rows(table, schema, grid, threads=threads, progress=progress)
        return _public_rows(gram.rows, loss), answer(draw, gram)

    rows, (upper, sketch) = without_reasons(read)
    return Release(
        schema=replace(schema, ignore_extra=False),
        rows=rows,
        upper=tuple(int(value) for value in upper),
        sketch=sketch,
        certificate=Certificate(
            mechanism=chosen.name,
            options={**chosen.options, **extra},
            loss=loss,
            law=chosen.law(loss=rest, grid=grid),
            arithmetic=chosen.arithmetic,
            randomness=source.kind,
            proof=chosen.proof,
            timing=chosen.timing_note,
        ),
    )


def _public_rows(rows: int, loss: Loss) -> int | None:
    """The row count where it is public (replace-one), and nothing where it is not (add-remove)."""
    if loss.neighbours is Neighbours.ADD_REMOVE:
        return None
    if rows == 0:
        raise InputError("E108", "the table has no rows.", "Under add-remove an empty table can be released.")
    return rows
