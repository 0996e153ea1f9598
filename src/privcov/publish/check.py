"""Everything about a release that public facts decide, before anything is paid, drawn or read.

``release`` begins here; ``check`` ends here. A table is opened, which looks at names, types and sizes, and no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from privcov.errors import InputError, ParameterError
from privcov.frame.choice import NormChoice, check_unweighted
from privcov.frame.emphasis import emphasis_of, emphasised
from privcov.frame.framing import Fitted, Framing
from privcov.frame.spending import shared_with_total
from privcov.frame.terms import check_cut
from privcov.ledger import Ledger, Request
from privcov.mechanisms.base import Draw, Mechanism
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import Randomness
from privcov.planning.candidates import Candidate, decide
from privcov.planning.forecast import count_is_public
from privcov.planning.framed import framed_terms
from privcov.planning.outlook import Outlook
from privcov.planning.purpose import Purpose
from privcov.planning.strata import noise_on_stratum, share_of
from privcov.privacy import Amount, Loss, decimal_text
from privcov.publish.paying import counts_rho, order_for
from privcov.schema import Schema
from privcov.schema.derived import of_other_bounds
from privcov.schema.grid import Grid
from privcov.schema.names import quoted
from privcov.schema.strata import Strata
from privcov.summing.engines import Engine, engine_for, keeping
from privcov.summing.sum import Split
from privcov.table import Table, open_table

_ASKED = (
    ("scales", "looks at the columns"),
    ("shape", "a look at their products"),
    ("radius", "a look at the norms of rows"),
    ("means", "sums of columns"),
    ("squares", "sums of squared distances"),
)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A release that nothing public stands in the way of, once ``order`` has been made."""

    schema: Schema
    decided: Candidate
    table: Table
    engine: Engine
    choice: NormChoice | Framing | None
    order: Callable[[], Request]
    split: Split | None = None
    """How rows fall into strata, where there is a matrix for each."""
    total_share: Fraction = Fraction(0)
    """The share of the loss for a total beside the strata."""

    @property
    def options(self) -> dict[str, str]:
        """What the certificate says beside the options of the mechanism."""
        strata = {} if self.split is None else {"strata": str(len(self.split.strata.names))}
        if self.total_share:
            strata["total_share"] = decimal_text(self.total_share)
        return self.decided.options | strata | ({} if self.choice is None else self.choice.options)

    @property
    def losses(self) -> tuple[Loss | None, Loss]:
        """What a total costs, where one is drawn; and the matrix, or the strata together."""
        mechanism, loss = self.decided.mechanism, self.decided.loss
        return shared_with_total(loss, mechanism, self.total_share) if self.total_share else (None, loss)

    def grid(self, fitted: Fitted) -> Grid:
        """What noise is scaled to."""
        return Grid.of(fitted.schema, strata=self.split is not None)

    def pooled_law(self, fitted: Fitted) -> NoiseLaw | None:
        """The law of the noise on a total beside the strata, where one is drawn."""
        loss, _ = self.losses
        grid = Grid.of(fitted.schema, pooled=True)
        return None if loss is None else fitted.mechanism.law(loss=loss, grid=grid)

    def draw(self, fitted: Fitted, *, randomness: Randomness) -> tuple[Draw, ...]:
        """Noise for the matrix, or for the matrix of each stratum, and then for a total beside them."""
        matrices = 1 if self.split is None else len(self.split.strata.names)
        orders = [(fitted.rest, self.grid(fitted))] * matrices
        if (loss := self.losses[0]) is not None:
            orders.append((loss, Grid.of(fitted.schema, pooled=True)))
        draw = partial(fitted.mechanism.draw, randomness=randomness)
        return tuple(draw(loss=loss, grid=grid) for loss, grid in orders)

    def reading(self) -> Engine:
        """What reads the rows: it may keep them in between where they are read more than once, in whole rows."""
        in_parts = self.split is not None or (
            isinstance(self.choice, Framing) and self.schema.weight is not None
        )
        return self.engine if self.choice is None or in_parts else keeping(self.engine)

    def fit(self, data: Any, *, randomness: Randomness, engine: Engine) -> Fitted:
        """What the release is made under: as declared, or as rounds choose that read the table and are paid for."""
        if self.choice is None:
            return Fitted(schema=self.schema, mechanism=self.decided.mechanism, rest=self.losses[1])
        facts: Any = {
            "mechanism": self.decided.mechanism,
            "randomness": randomness,
            "engine": engine,
        }
        unread = () if self.split is None else tuple(column.name for column in self.split.strata.by)
        if isinstance(self.choice, Framing) and self.schema.weight is not None:
            unread = (*unread, self.schema.weight)
        if not unread:
            return self.choice.fit(data, schema=self.schema, **facts)
        rest, schema = _without(
            data, unread, self.schema if self.split is None else self.split.whole, self.schema
        )
        fitted = self.choice.fit(rest, schema=schema, **facts)
        return replace(fitted, schema=replace(fitted.schema, left_out=self.schema.left_out))

    def opened(self, data: Any, fitted: Fitted) -> Table:
        """The table that is summed: opened again, where it was read before."""
        if self.choice is None:
            return self.table
        return open_table(data, fitted.schema if self.split is None else self.split.whole)


def _without(data: Any, unread: tuple[str, ...], whole: Schema, schema: Schema) -> tuple[Any, Schema]:
    """The same rows without the columns that make strata, or a weight, for what reads all rows alike.

    A column that makes strata stays where a derived column is made of it.
    """
    if isinstance(data, np.ndarray):
        needed = {column.name for column in schema.read_columns} - {schema.weight}.intersection(unread)
        return data[:, [column.name in needed for column in whole.read_columns]], schema
    others = [name for name in unread if name != schema.weight]  # rounds leave a weight out themselves
    return data, replace(schema, left_out=(*schema.left_out, *others))


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """What a release would be and cost. Nothing was paid, drawn or read for it.

    Attributes
    ----------
    mechanism : str
        The name of the mechanism that would be used.
    loss : PureDP, ApproxDP or ZCDP
        What it would promise: the loss asked for, or a stronger one.
    columns : int
        The number of columns of the table, as declared.
    dimension : int
        The number of rows and columns of the matrix: with the intercept, and one for each level.
    engine : str
        The name of the engine that would read the rows.
    price : mapping of str to Fraction, or None
        What the ledger would charge, by its own rule: "epsilon", "delta" or "rho". None without a ledger.
    left : mapping of str to Fraction, or None
        What would be left in the ledger afterwards. None without a ledger.
    frame : mapping of str to Fraction
        The most that a private frame would take of the loss, as shares: "scales" for looks at the columns, "shape" for
        one at their products, where that is asked for, "radius" for one at the norms of rows, "means" and "squares" for
        sums of columns and of squares. What it leaves goes to the matrix. Empty for the declared frame.
    rows_for : mapping of str to int
        The fewest rows for the verdicts of a plan: "useful", and "marginal", below which a release is worse than
        publishing zeros. Empty where the noise has no law or a frame is fitted first. Of one stratum, where there are
        several.
    strata : int
        The number of matrices, one for each stratum; 1 without strata.
    total_share : Fraction
        The share of the loss for a total beside the strata.

    Examples
    --------
    >>> import privcov as pc, pyarrow
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}})
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> table = pyarrow.table({"age": [35.0], "sex": ["F"]})
    >>> prospect = pc.check(table, schema=schema, loss=loss, mechanism="gaussian")
    >>> prospect.mechanism, prospect.columns, prospect.dimension, prospect.engine, prospect.price, prospect.frame
    ('gaussian', 2, 4, 'local', None, {})
    """

    mechanism: str
    loss: Loss
    columns: int
    dimension: int
    engine: str
    price: Mapping[str, Fraction] | None
    left: Mapping[str, Fraction] | None
    frame: Mapping[str, Fraction] = field(default_factory=dict)
    rows_for: Mapping[str, int] = field(default_factory=dict)
    strata: int = 1
    total_share: Fraction = Fraction(0)


def prepare(
    data: Any,
    *,
    schema: Schema,
    loss: Loss,
    mechanism: str | Mechanism,
    purpose: str,
    row_norm: Literal["declared", "private"],
    row_norm_share: Amount,
    frame: str,
    cut: str,
    emphasis: str | Sequence[str] | None,
    ledger: str | Path | Ledger | None,
    engine: str | Engine,
    expect_rows: int | None,
    by: str | Sequence[str] | None,
    other: str | None,
    total_share: Amount,
    options: Mapping[str, Any],
) -> Ready:
    """Refuse what public facts refuse, and return what is left to do. See ``privcov.release`` for the arguments."""
    _check_derived(schema)
    options = {**options, "as_asked": counts_rho(ledger)}
    wanted, split = Purpose.parse(purpose), None
    if by is not None or other is not None:
        split, schema = _split(schema, by, other, cut=cut)
    elif total_share not in (0, "0"):
        raise ParameterError(
            "E226", "a share of the loss for a total needs strata.", "Name the columns that make them: by."
        )
    first, declared = emphasis_of(wanted.formula if emphasis is None else emphasis, schema), schema
    schema = emphasised(schema, first)
    whole, grid = (schema, None) if split is None else (split.whole, Grid.of(schema, strata=True))
    law_of = None if split is None else noise_on_stratum(total_share, schema, len(split.strata.names))
    facts = {"loss": loss, "schema": schema, "purpose": purpose, "grid": grid, "law_of": law_of}
    asked = partial(decide, mechanism, **{**facts, **options})
    decided, table = asked(), open_table(data, whole)
    public = loss.neighbours.count_is_public(schema.max_rows_per_person)
    if public and table.known_rows == 0:
        raise InputError("E108", "the table has no rows.", "Under add-remove it can be released.")
    if expect_rows is not None:
        _check_rows(table, expect_rows, loss=loss, schema=schema)
    runner = engine_for(engine, table)
    choice: NormChoice | Framing | None
    choice = NormChoice.before(decided.mechanism, decided.loss, word=row_norm, share=row_norm_share)
    check_cut(cut, frame if choice is None else "declared")
    if choice is not None and split is not None:
        choice = replace(choice, strata=len(split.strata.names))
    if choice is not None and choice.trace is not None:
        check_unweighted(schema)
    if choice is not None and frame in ("scales", "shape"):
        raise ParameterError("E218", "a private frame chooses the row norm itself.", "Leave row_norm out.")
    strata, count = (None, None) if split is None else (split.strata, len(split.strata.names))
    share = Fraction(0) if count is None else share_of(total_share, decided, schema, count)
    if share and (choice is not None or frame in ("scales", "shape")):
        raise ParameterError(
            "E226",
            "a total beside strata cannot be released with a private row norm or a private frame.",
            "Leave one of them out: without a share the total is the sum of the strata.",
        )
    if choice is None and frame != "declared" and not share:
        rows = table.count() if public else None
        told: Any = {"word": frame, "schema": declared, "cut": cut, "strata": count}
        fit = partial(framed_terms, Framing, asked, **told, stronger=not options["as_asked"])
        if found := fit(rows=rows, purpose=wanted, emphasis=first):
            (decided, choice), schema = found, declared
    order = partial(
        order_for,
        decided.mechanism,
        loss=decided.loss,
        schema=schema,
        choice=choice,
        strata=strata,
        total_share=share,
    )
    return Ready(
        schema=schema,
        decided=decided,
        table=table,
        engine=runner,
        choice=choice,
        order=order,
        split=split,
        total_share=share,
    )


def _check_derived(schema: Schema) -> None:
    """Refuse bounds of derived columns that no reader of the release could find again."""
    for column, found in of_other_bounds(schema.columns, schema.recipe):
        raise InputError(
            "E151",
            f"the derived column {quoted(column.name)} has the bounds [{column.lower:g}, {column.upper:g}], and its "
            f"expression gives [{found.lower:g}, {found.upper:g}].",
            "Leave them to the expression: min(…, 60) and max(…, 0) make them narrower.",
        )


def _split(
    schema: Schema, by: str | Sequence[str] | None, other: str | None, *, cut: str
) -> tuple[Split, Schema]:
    """How rows fall into strata, and the schema of what is released of each; refuses what has no strata."""
    if by is None:
        raise ParameterError(
            "E283", "a stratum for all other rows needs strata.", "Name the columns that make them: by."
        )
    strata, rest = Strata.of(schema, by=by, other=other)
    if cut == "counted":  # it takes means of all rows, which are not those of a stratum
        raise _unstratified('cut="counted"', "Leave cut out")
    if schema.file.constant:  # how long a stratum takes depends on its rows
        raise _unstratified("constant timing", "Leave timing out")
    return Split(strata=strata, whole=schema), rest


def _unstratified(what: str, instead: str) -> ParameterError:
    return ParameterError("E283", f"strata cannot be released with {what}.", f"{instead}, or leave by out.")


def _check_rows(table: Table, expected: int, *, loss: Loss, schema: Schema) -> None:
    """Refuse a table that has not the number of records it should, where that number is public."""
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 1:
        raise ParameterError("E216", f"expect_rows must be a whole number from 1, got {expected!r}.")
    if schema.enforced or not loss.neighbours.count_is_public(schema.max_rows_per_person):
        raise ParameterError(
            "E216",
            "the number of rows is private here, so it cannot be compared with the number you expect.",
            "Leave it out, or use replace-one with one row per person, without person in the schema.",
        )
    found = table.count()
    if found is None:
        raise InputError(
            "E135",
            "the records of this table cannot be counted before payment.",
            "Give it as a file or as a frame in memory, or leave the expected number out.",
        )
    if found != expected:
        raise InputError(
            "E135",
            f"the table has {found:,} records, but you expected {expected:,}.",
            "Every line counts as a record, also blank lines and line breaks inside cells. See privcov inspect and "
            "convert.",
        )


def check(
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
    engine: str | Engine = "local",
    expect_rows: int | None = None,
    by: str | Sequence[str] | None = None,
    other: str | None = None,
    total_share: Amount = 0,
    **options: Any,
) -> Prospect:
    """Say whether ``release`` with the same arguments would go through, and what it would cost.

    Nothing is paid, drawn or read. The table is opened, which looks at names, types and sizes only.

    Parameters
    ----------
    data : array, frame, table, path, or list of paths
        The rows, in original units. See ``release``.
    schema : Schema
        The columns with their public bounds (original units) and the rules for a row.
    loss : PureDP, ApproxDP or ZCDP
        What the release may cost, and which tables count as neighbours.
    mechanism : str or Mechanism, default "auto"
        The mechanism, by name or as an object. "auto" takes the one with the least noise for the ``purpose``.
    purpose : str, default "covariance"
        What "auto" chooses for: "covariance", "regression", or "pca:K".
    as_published : bool, default False
        Whether to take the constants of the mechanism's paper in place of the tight ones.
    row_norm : {"declared", "private"}, default "declared"
        Where the bound on the norm of a scaled row comes from: the schema, or a private choice.
    row_norm_share : Fraction, float or str, default 1/10
        The share of the loss, between 0 and 1, that a private row norm costs.
    frame : {"declared", "scales", "shape", "auto"}, default "declared"
        What rows are measured from and in: as declared, or fitted to them by paid rounds. See ``release``.
    cut : {"told", "counted"}, default "told"
        Whether intervals are to count what a private frame cuts off long rows. See ``release``.
    emphasis : str or sequence of str, optional
        The columns that matter most: names, a text of names with commas between them, or a formula such as
        "income ~ age + educ". Other numeric columns weigh half as much in the norm of a row, which leaves less
        noise on these and more on the others.
    ledger : str, Path or Ledger, optional
        The budget that would pay. Without one there is no price.
    engine : str or Engine, default "local"
        Where rows would be read and summed: "local", "spark", "dask", or an object of ``privcov.engines``.
    expect_rows : int, optional
        The number of records that the table must have, where that number is public.
    by : str or sequence of str, optional
        Columns with levels: one matrix for each of their combinations. See ``release``.
    other : str, optional
        With ``by``: the name of a stratum for all rows that are in none of the others.
    total_share : Fraction, float or str, default 0
        With ``by``: the share of the loss for a total beside the strata, or "best". See ``release``.
    **options : Any
        Options of the mechanism itself, by name.

    Returns
    -------
    Prospect
        The mechanism, the loss, the size of the matrix, and the price.

    Raises
    ------
    InputError
        The table or the schema cannot be used (E1xx).
    ParameterError
        A parameter is out of range, or the mechanism cannot promise this loss (E2xx).
    BudgetError
        The ledger would refuse the payment (E3xx).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> pc.check(np.array([[35.0]]), schema=schema, loss=loss).dimension
    2
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
    request, price, left = ready.order(), None, None
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        price, left = book.quote(request)
    return Prospect(
        mechanism=ready.decided.mechanism.name,
        loss=ready.decided.loss,
        columns=len(schema.read_columns),
        dimension=ready.schema.dimension,
        engine=ready.engine.name,
        price=price,
        left=left,
        frame=ready.choice.shares if isinstance(ready.choice, Framing) else {},
        rows_for={} if ready.choice is not None else _rows_for(ready),
        strata=1 if ready.split is None else len(ready.split.strata.names),
        total_share=ready.total_share,
    )


def frame_words(shares: Mapping[str, Fraction]) -> str:
    """What a private frame would take of the loss, as a sentence; empty for the declared frame."""
    if not shares:
        return ""
    first, *others = [(f"{float(100 * shares[name]):g} %", what) for name, what in _ASKED if name in shares]
    asked = [f"{first[0]} of the loss for {first[1]}", *(f"{share} for {what}" for share, what in others)]
    return f"A private frame would be fitted first: at most {', '.join(asked[:-1])} and {asked[-1]}."


def _rows_for(ready: Ready) -> dict[str, int]:
    """The fewest rows for each verdict: the noise per row falls as their number grows."""
    grid = Grid.of(ready.schema, strata=ready.split is not None)
    law = ready.decided.mechanism.law(loss=ready.losses[1], grid=grid)
    counted = ready.split is None and count_is_public(ready.schema, ready.decided.loss)
    return {} if law is None else Outlook.by_law(ready.schema, law, rows=1, counted=counted).rows_for
