"""A release: check, then the guarded sequence of pay, draw, read, sum, certify, deliver (``sequence.py``).

Everything that can be refused is refused from public facts before the first value is read; after that there are no
data-dependent errors. For a first reading: ``release`` below its docstring; then ``check.py`` for the refusals,
``sequence.py`` for the order of payment and noise, ``summing/sum.py`` for the way of a row, and one mechanism, such as
``mechanisms/gaussian.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, overload

from privcov.errors import InputError
from privcov.frame.framing import Fitted
from privcov.ledger import Ledger
from privcov.linalg.devices import using
from privcov.mechanisms.base import Draw, Mechanism, Upper, answer
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import Amount, Loss
from privcov.publish.check import Ready, prepare
from privcov.publish.paying import Bill
from privcov.publish.sequence import guarded
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.releases.sketch import Sketch
from privcov.releases.strata import Pooled, StratifiedRelease
from privcov.releases.triangle import kept
from privcov.schema import Schema
from privcov.summing.engines import Engine, Progress
from privcov.summing.gram import Gram, fingerprint
from privcov.summing.sum import pooled_sum, sum_rows, sum_strata
from privcov.table import Table


@overload
def release(data: Any, *, schema: Schema, loss: Loss, by: None = None, **order: Any) -> Release: ...
@overload
def release(
    data: Any, *, schema: Schema, loss: Loss, by: str | Sequence[str], **order: Any
) -> StratifiedRelease: ...
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
    frame: Literal["declared", "scales", "shape", "auto"] = "declared",
    cut: Literal["told", "counted"] = "told",
    emphasis: str | Sequence[str] | None = None,
    ledger: str | Path | Ledger | None = None,
    deliver: Callable[[Any], object] | None = None,
    randomness: Randomness | None = None,
    engine: str | Engine = "local",
    expect_rows: int | None = None,
    progress: Progress | None = None,
    by: str | Sequence[str] | None = None,
    other: str | None = None,
    total_share: Amount = 0,
    **options: Any,
) -> Release | StratifiedRelease:
    """Release a differentially private second-moment matrix of a table, with its certificate.

    The guarantee is the given ``loss``, for every table that the schema admits. The order of the steps is:
    check public facts, pay the ledger, draw the noise, read the rows, sum them, certify. Whatever fails after
    the payment stays paid for.

    Parameters
    ----------
    data : array, frame, table, path, or list of paths
        The rows, one per record, in original units. A NumPy array; a pandas, polars, Arrow, DuckDB, Spark or Dask
        table; or the path of a CSV or Parquet file, a glob, or a list of such paths.
    schema : Schema
        The columns with their public bounds (original units) and the rules for a row.
    loss : PureDP, ApproxDP or ZCDP
        What the release may cost, and which tables count as neighbours.
    mechanism : str or Mechanism, default "auto"
        The mechanism that adds the noise: a name that ``privcov mechanisms`` lists, or an object. "auto" takes
        the one with the least noise for the ``purpose``. It may promise more than asked, never less.
    purpose : str, default "covariance"
        What matters most: "covariance", "means", "regression", "regression:FORMULA", or "pca:K" for K principal
        components. The mechanism "auto" chooses by it; a private frame spends half of the loss or more on "means",
        and a formula names the columns of the ``emphasis``, unless that is given.
    as_published : bool, default False
        Whether to take the constants of the mechanism's paper in place of the tight ones.
    row_norm : {"declared", "private"}, default "declared"
        Where the bound on the norm of a scaled row comes from: "declared" takes the schema's; "private" spends
        ``row_norm_share`` of the loss to choose one that fits the rows.
    row_norm_share : Fraction, float or str, default 1/10
        The share of the loss, between 0 and 1, that a private row norm costs. Read only with
        ``row_norm="private"``.
    frame : {"declared", "scales", "shape", "auto"}, default "declared"
        What rows are measured from and in. "declared" takes the middles and half widths of the declared bounds, and
        releases unbiased sums. "scales" spends part of the loss on histograms of the columns and of the norms of
        rows, and releases the matrix about the centres and in the units found, with long rows shortened: far less
        noise where bounds are wider than the data. The table is read two to five times more. "shape" also spends on
        one coarse matrix of the numeric columns, and mixes them so that noise follows their correlations: regressions
        gain most. It reads the table once more, and takes 2 to 64 numeric columns. "auto" takes what pays,
        judged by public facts: a shape, or scales, or the declared frame.
    cut : {"told", "counted"}, default "told"
        What becomes of the length that a private frame cuts off long rows. "told": the report estimates it, and no
        interval counts it. "counted" spends another twentieth of the loss on squared distances and one more reading;
        variances that were clearly cut are put right, and intervals count the doubt about the rest.
        They are wider, also where little was cut. Refused with the declared frame, which cuts nothing.
    emphasis : str or sequence of str, optional
        The columns that matter most: names, a text of names with commas between them, or a formula such as
        "income ~ age + educ". Other numeric columns weigh half as much in the norm of a row, which leaves less
        noise on these and more on the others.
    ledger : str, Path or Ledger, optional
        The budget to pay from: a path, a ``postgresql://`` address, or an open ledger. It is paid before anything
        random is drawn or any row is read. Without one nothing is accounted for.
    deliver : callable, optional
        Called with the release before the ledger records it as delivered. Use it to save the release: if it
        raises, the payment stays and no delivery is recorded.
    randomness : Randomness, optional
        Where random bits come from. By default the kernel of the operating system. Any other source, such as
        ``privcov.noise.randomness.rehearsal(seed)``, makes a rehearsal: it protects nobody, cannot be saved,
        and pays no ledger.
    engine : str or Engine, default "local"
        Where rows are read and summed: "local", "spark", "dask", or an object of ``privcov.engines``. The sum
        is the same in each, to the last bit.
    expect_rows : int, optional
        The number of records that the table must have. Any other number is refused before the payment. Allowed
        where the number of rows is public: under "replace-one" with one row per person.
    progress : callable, optional
        Called as ``progress(rows_done, bytes_done, bytes_in_all)``; the last two are None where the table is
        not made of files.
    by : str or sequence of str, optional
        Columns with levels, by name, or a text of names with commas between them: one matrix for each level, or
        combination of levels, in one pass and for one payment. Each stratum has the whole loss. The columns are
        constant within a stratum, and no features there. A private frame is one for all of them. Rows whose cell is
        missing or none of the levels are in no stratum. How many rows a stratum has is private, also under
        "replace-one": a person may move.
    other : str, optional
        With ``by``: the name of a stratum for all rows that are in none of the others.
    total_share : Fraction, float or str, default 0
        With ``by``: the share of the loss, from 0 to 0.999, that is spent on a total beside the strata; "best" takes
        the one with the least sum of relative variances (``privcov plan --by``). Strata and total are then combined,
        so that they add up. With 0 a stratum has all of the loss, and the total is their sum, with its noise.
    **options : Any
        Options of the mechanism itself, by name, such as ``arithmetic="idealized"``.

    Returns
    -------
    Release, or StratifiedRelease with ``by``
        The noisy matrix, the schema it belongs to, and the certificate of what was promised; or one for each stratum.

    Raises
    ------
    InputError
        The table or the schema cannot be used (E1xx). With a public number of rows, also an empty table.
    ParameterError
        A parameter is out of range, or the mechanism cannot promise this loss (E2xx).
    BudgetError
        The ledger refuses the payment (E3xx). Nothing was drawn and nothing was read.
    InternalError
        Something failed after rows were read (E900). Its text is fixed, so that it tells nothing about a person.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> made = pc.release(np.array([[35.0], [61.0], [48.0]]), schema=schema, loss=loss)
    >>> made.columns
    ('(Intercept)', 'age')
    >>> made.certificate.mechanism
    'frobenius'

    One matrix for each area:

    >>> columns = {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}
    >>> table = np.array([[35.0, 1], [61.0, 2], [48.0, 2]])
    >>> strata = pc.release(table, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, by="area")
    >>> strata.names, strata["1"].columns, strata.rows, strata["1"].rows
    (('1', '2'), ('(Intercept)', 'age'), 3, None)
    """
    ready = prepare(
        data,
        schema=schema,
        loss=loss,
        mechanism=mechanism,
        purpose=purpose,
        row_norm=row_norm,
        row_norm_share=row_norm_share,
        frame=frame,
        cut=cut,
        emphasis=emphasis,
        ledger=ledger,
        engine=engine,
        expect_rows=expect_rows,
        by=by,
        other=other,
        total_share=total_share,
        options={**options, "as_published": as_published},
    )
    runner, loss = ready.engine, ready.decided.loss
    source = kernel() if randomness is None else randomness

    def drawn(engine: Engine) -> tuple[tuple[Draw, ...], Fitted]:
        fitted = ready.fit(data, randomness=source, engine=engine)
        return ready.draw(fitted, randomness=source), fitted

    def read(
        bill: Bill, noise: tuple[Draw, ...], fitted: Fitted, engine: Engine
    ) -> tuple[Fitted, int | None, list[tuple[Upper, Sketch | None]]]:
        grams = _sums(ready.opened(data, fitted), fitted, ready, engine, progress)
        bill.saw(lambda key: fingerprint(grams, key, fitted.schema.published().to_toml()))
        rows = _public_rows(sum(gram.rows for gram in grams), loss, schema)
        with using(runner.device):
            asked = _asked_for(grams, ready)
            return fitted, rows, [answer(one, gram) for one, gram in zip(noise, asked, strict=True)]

    def certify(
        found: tuple[Fitted, int | None, list[tuple[Upper, Sketch | None]]], created: str
    ) -> Release | StratifiedRelease:
        fitted, rows, answers = found
        used, grid = fitted.mechanism, ready.grid(fitted)
        law = used.law(loss=fitted.rest, grid=grid)
        certificate = Certificate(
            mechanism=used.name,
            options={**used.options, **ready.options},
            loss=loss,
            law=law,
            arithmetic=used.arithmetic,
            randomness=source.kind,
            proof=used.proof,
            timing=used.timing_note,
            created=created,
            rounds=fitted.rounds,
        )
        facts: dict[str, Any] = {
            "schema": fitted.schema.published(),
            "rows": rows,
            "certificate": certificate,
        }
        if ready.split is not None:
            strata, pooled = ready.split.strata.published(), ready.pooled_law(fitted)
            uppers = [tuple(map(int, upper)) for upper, _ in answers]
            if pooled is not None:
                total = Pooled(share=ready.total_share, law=pooled, upper=uppers.pop())
                return StratifiedRelease(strata=strata, uppers=tuple(uppers), pooled=total, **facts)
            return StratifiedRelease(strata=strata, uppers=tuple(uppers), **facts)
        ((upper, sketch),) = answers
        return Release(upper=kept(upper, grid=grid, rows=rows, law=law), sketch=sketch, **facts)

    def draw() -> tuple[Any, ...]:
        if ready.choice is None:
            return drawn(runner)
        if ledger is None:
            # Asked for its refusals alone, which may still give their reasons here. A ledger asks before it pays.
            ready.order()
        return ()

    def carry_out(bill: Bill, *known: Any) -> Release | StratifiedRelease:
        # Rounds read rows, which may be kept: so what is fitted to rows is fitted where nothing gets out.
        engine = ready.reading()
        noise, fitted = known or drawn(engine)
        return certify(read(bill, noise, fitted, engine), bill.created)

    return guarded(
        ready.order,
        ledger=ledger,
        randomness=source,
        draw=draw,
        read=carry_out,
        document=lambda made: made.to_dict(),
        deliver=deliver,
    )


def _sums(
    table: Table, fitted: Fitted, ready: Ready, engine: Engine, progress: Progress | None
) -> tuple[Gram, ...]:
    """The exact sum of the rows, or one for each stratum, and perhaps a last one of rows that are in none."""
    facts: Any = {"engine": engine, "progress": progress}
    if ready.split is None:
        return (sum_rows(table, fitted.schema, ready.grid(fitted), **facts),)
    return sum_strata(table, fitted.schema, ready.grid(fitted), split=ready.split, **facts)


def _asked_for(grams: tuple[Gram, ...], ready: Ready) -> tuple[Gram, ...]:
    """The sums that are released: of each stratum, and of all of them; never of rows that are in none."""
    if ready.split is None:
        return grams
    strata = grams[: len(ready.split.strata.names)]
    return (*strata, pooled_sum(strata)) if ready.total_share else strata


def _public_rows(rows: int, loss: Loss, schema: Schema) -> int | None:
    """The row count where it is public (replace-one with one row a person), and nothing where it is not."""
    if not loss.neighbours.count_is_public(schema.max_rows_per_person):
        return None
    if rows == 0:
        none = "no row with a person's id" if schema.enforced else "no rows"
        raise InputError(
            "E108",
            f"the table has {none}.",
            "This is found only when the table is read, so the payment stands. Under add-remove it can be released.",
        )
    return rows
