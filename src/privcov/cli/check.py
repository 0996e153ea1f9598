"""``privcov check``: whether a release would go through, without paying for it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import click

from privcov.cli.delivery import Delivery
from privcov.cli.orders import as_data, as_order, order_options
from privcov.cli.output import json_option, print_json, say_line, say_prose


@click.command(name="check")
@order_options
@click.option("-o", "--output", help="Also look whether this file could be written.  [default: none]")
@click.option("--force", is_flag=True, help="Let an output that is already there be replaced.")
@json_option
def command(
    ledger: str | None,
    request_id: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
    spool: str | None,
    **words: Any,
) -> None:
    """Check whether a release with the same options would be accepted and useful, and show its price.

    The checks and the messages are those that privcov release makes before it pays: does the schema fit the column
    names and types of DATA, can the mechanism keep the promise, does the engine answer, is there enough budget left?
    For correlations, the fewest rows of a useful release are named where a forecast is possible. No row is read, no
    noise is drawn and nothing is paid; what --spool has copied is deleted.

    Example: privcov check people.csv --schema people.toml --epsilon 1 --ledger people.ledger
    """
    from privcov.frame.terms import has_forecast
    from privcov.ledger.rules import amount_text, short
    from privcov.privacy import decimal_text
    from privcov.publish.check import check, frame_words
    from privcov.schema.names import listed

    order = as_order(words)
    delivery = Delivery.of(
        output=output, force=force, key_path=None, passphrase_file=None, ledger=ledger, request_id=request_id
    )
    order["data"] = as_data(order["data"], spool)
    found = check(**order, ledger=delivery.book)
    if as_json:
        print_json(
            {
                "mechanism": found.mechanism,
                "loss": {"kind": found.loss.kind, **_texts(found.loss.amounts)},
                "neighbours": found.loss.neighbours.value,
                "columns": found.columns,
                "dimension": found.dimension,
                "strata": found.strata,
                "total_share": decimal_text(found.total_share),
                "engine": found.engine,
                "price": None if found.price is None else _texts(found.price),
                "left": None if found.left is None else _texts(found.left),
                "frame": _texts(found.frame),
                "rows_for": dict(found.rows_for),
            }
        )
        return
    say_prose(
        f"The table has all {found.columns} columns of the schema; the released matrix would have {found.dimension}."
    )
    if left_out := order["schema"].left_out:
        say_prose(f"Left out, and not read: {listed(left_out)}.")
    if found.strata > 1:
        say_prose(f"There would be {found.strata:,} such matrices, one for each stratum, for one payment.")
    if found.total_share:
        say_prose(f"{float(100 * found.total_share):g} % of the loss would go to their total.")
    say_prose(f"Mechanism: {found.mechanism}. It can promise {found.loss}. Engine: {found.engine}.")
    if found.frame:
        say_prose(frame_words(found.frame))
    if found.rows_for:
        counted = "rows" if order["schema"].weight is None else "rows of the largest weight"
        what = "For correlations of a stratum" if found.strata > 1 else "For correlations"
        loose = has_forecast(order["schema"]) and order["schema"].row_norm_bound is None
        framed = ", and what a private frame (--frame auto) would do" if loose else ""
        say_prose(
            f"{what} this is useful from about {found.rows_for['useful']:,} {counted} on, and worse than "
            f"publishing zeros below {found.rows_for['marginal']:,}; privcov plan says why{framed}."
        )
    if found.price is not None and found.left is not None:
        cost, rest = (
            ", ".join(
                amount_text(word, short(amount))
                for word, amount in amounts.items()
                if amount or word != "delta"
            )
            for amounts in (found.price, found.left)
        )
        say_prose(f"This release would cost {cost}; the ledger would have {rest} left.")
    if output is not None:
        say_line(f"{output} can be written.")
    copied = "" if spool is None else " What was copied is deleted."
    say_prose(f"Nothing was paid, no noise was drawn and no row was read.{copied}")


def _texts(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    return {word: str(amount) for word, amount in amounts.items()}
