"""A release: check, then the guarded sequence of pay, draw, read, sum, certify, deliver (``sequence.py``).

Everything that can be refused is refused from public facts before the first value is read; after that there are no
data-dependent errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from privcov.errors import InputError
from privcov.ledger import Ledger
from privcov.linalg.devices import using
from privcov.mechanisms.base import Draw, Mechanism, Upper, answer
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import Amount, Loss
from privcov.publish.check import prepare
from privcov.publish.paying import Bill
from privcov.publish.sequence import guarded
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.releases.sketch import Sketch
from privcov.releases.triangle import kept
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Engine, Progress
from privcov.summing.sum import sum_rows
from privcov.table import Table, open_table


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
    decided, runner, choice = ready.decided, ready.engine, ready.choice
    source = kernel() if randomness is None else randomness
    loss, rest, extra = decided.loss, decided.loss, {}
    if choice is not None:
        rest, extra = choice.rest, choice.options

    def draw() -> tuple[Draw, Frame]:
        frame = Frame(schema=schema, mechanism=decided.mechanism, table=ready.table)
        if choice is not None:
            under, chosen = choice.choose(
                data, schema=schema, mechanism=frame.mechanism, randomness=source, engine=runner
            )
            frame = Frame(schema=under, mechanism=chosen, table=open_table(data, under))
        return frame.mechanism.draw(loss=rest, grid=frame.grid, randomness=source), frame

    def read(bill: Bill, noise: Draw, frame: Frame) -> tuple[Frame, int | None, tuple[Upper, Sketch | None]]:
        gram = sum_rows(frame.table, frame.schema, frame.grid, engine=runner, progress=progress)
        bill.saw(lambda key: gram.fingerprint(key, frame.schema.published().to_toml()))
        with using(runner.device):
            return frame, _public_rows(gram.rows, loss, frame.schema), answer(noise, gram)

    def certify(found: tuple[Frame, int | None, tuple[Upper, Sketch | None]], created: str) -> Release:
        frame, rows, (upper, sketch) = found
        law = frame.mechanism.law(loss=rest, grid=frame.grid)
        return Release(
            schema=frame.schema.published(),
            rows=rows,
            upper=kept(upper, grid=frame.grid, rows=rows, law=law),
            sketch=sketch,
            certificate=Certificate(
                mechanism=frame.mechanism.name,
                options={**frame.mechanism.options, **decided.options, **extra},
                loss=loss,
                law=law,
                arithmetic=frame.mechanism.arithmetic,
                randomness=source.kind,
                proof=frame.mechanism.proof,
                timing=frame.mechanism.timing_note,
                created=created,
            ),
        )

    return guarded(
        ready.order,
        ledger=ledger,
        randomness=source,
        draw=draw,
        read=read,
        certify=certify,
        document=Release.to_dict,
        deliver=deliver,
    )


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a release is made under: as declared, or with a bound and a mechanism that were chosen privately."""

    schema: Schema
    mechanism: Mechanism
    table: Table

    @cached_property
    def grid(self) -> Grid:
        return Grid.of(self.schema)


def _public_rows(rows: int, loss: Loss, schema: Schema) -> int | None:
    """The row count where it is public (replace-one with one row a person), and nothing where it is not."""
    if not loss.neighbours.count_is_public(schema.max_rows_per_person):
        return None
    if rows == 0:
        raise InputError("E108", "the table has no rows.", "Under add-remove an empty table can be released.")
    return rows
