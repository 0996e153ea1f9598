"""The only bridge from sensitive rows to a public release: check, pay, draw, read, sum, certify.

Nothing else in privcov sees both the data and the outside. Everything that can be refused is refused from
public facts before the first value is read; after that there are no data-dependent errors. Noise and rows are known
to ``read`` alone, and an exception that leaves it takes none of its variables along.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from privcov.errors import InputError, without_reasons
from privcov.ledger import Ledger
from privcov.linalg.devices import using
from privcov.mechanisms.base import Draw, Mechanism, Upper, answer
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import Amount, Loss
from privcov.publish.check import prepare
from privcov.publish.paying import pay
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.releases.sketch import Sketch
from privcov.releases.triangle import kept
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Engine, Progress
from privcov.summing.sum import sum_rows
from privcov.table import open_table


def release(
    data: Any,
    *,
    schema: Schema,
    loss: Loss,
    mechanism: str | Mechanism = "auto",
    purpose: str = "covariance",
    as_published: bool = False,
    row_norm: Literal["declared", "private"] = "declared",
    row_norm_share: Amount = Fraction(1, 10),
    ledger: str | Path | Ledger | None = None,
    deliver: Callable[[Release], object] | None = None,
    randomness: Randomness | None = None,
    engine: str | Engine = "local",
    expect_rows: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release:
    """A differentially private second-moment matrix of a table, with its certificate.

    ``data`` is a NumPy array, a pandas, polars, Arrow, DuckDB, Spark or Dask table, or a path to CSV or Parquet,
    read by an ``engine`` (local, spark, dask, or one of ``privcov.summing.engines``). The guarantee is
    the given ``loss``, for every table the schema admits; ``options`` are the mechanism's own, such as
    ``arithmetic="idealized"``, and ``as_published`` takes its paper's constants. ``auto`` takes the mechanism with the
    least noise for the ``purpose`` (covariance, regression, pca:K), and may promise more than asked. With
    ``row_norm="private"`` a share of the loss buys a row-norm bound that fits the data. A ``ledger`` is paid
    before anything random is drawn or any row is read, and may refuse; it records the release after ``deliver``
    has taken it. Where the number of rows is public, a table that has not ``expect_rows`` of them is refused before
    that. A ``randomness`` other than the kernel's marks the release as a rehearsal.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> made = pc.release(np.array([[35.0], [61.0], [48.0]]), schema=schema, loss=loss)
    >>> made.columns
    ('(Intercept)', 'age')
    """
    ready = prepare(
        data,
        schema=schema,
        loss=loss,
        mechanism=mechanism,
        purpose=purpose,
        row_norm=row_norm,
        row_norm_share=row_norm_share,
        ledger=ledger,
        engine=engine,
        expect_rows=expect_rows,
        options={**options, "as_published": as_published},
    )
    decided, table, runner, choice = ready.decided, ready.table, ready.engine, ready.choice
    chosen, loss, rest, extra = decided.mechanism, decided.loss, decided.loss, {}
    source = kernel() if randomness is None else randomness

    bill = pay(ledger, ready.order, randomness=source)

    if choice is not None:
        schema, chosen = choice.choose(
            data, schema=schema, mechanism=chosen, randomness=source, engine=runner
        )
        table, rest, extra = open_table(data, schema), choice.rest, choice.options
    grid = Grid.of(schema)

    def read(draw: Draw) -> tuple[int | None, tuple[Upper, Sketch | None]]:
        gram = sum_rows(table, schema, grid, engine=runner, progress=progress)
        bill.saw(lambda key: gram.fingerprint(key, schema.published().to_toml()))
        with using(runner.device):
            return _public_rows(gram.rows, loss, schema), answer(draw, gram)

    rows, (upper, sketch) = without_reasons(read, chosen.draw(loss=rest, grid=grid, randomness=source))
    law = chosen.law(loss=rest, grid=grid)
    made = Release(
        schema=schema.published(),
        rows=rows,
        upper=kept(upper, grid=grid, rows=rows, law=law),
        sketch=sketch,
        certificate=Certificate(
            mechanism=chosen.name,
            options={**chosen.options, **decided.options, **extra},
            loss=loss,
            law=law,
            arithmetic=chosen.arithmetic,
            randomness=source.kind,
            proof=chosen.proof,
            timing=chosen.timing_note,
            created=bill.created,
        ),
    )
    if deliver is not None:
        deliver(made)
    bill.delivered(made.to_dict)
    return made


def _public_rows(rows: int, loss: Loss, schema: Schema) -> int | None:
    """The row count where it is public (replace-one with one row a person), and nothing where it is not."""
    if not loss.neighbours.count_is_public(schema.max_rows_per_person):
        return None
    if rows == 0:
        raise InputError("E108", "the table has no rows.", "Under add-remove an empty table can be released.")
    return rows
