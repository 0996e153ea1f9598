"""``privcov release``: from a file to a certified release."""

from __future__ import annotations

import sys
from typing import Any

import click

from privcov.cli.delivery import Delivery, output_options
from privcov.cli.ledger import left_words
from privcov.cli.orders import as_data, as_order, order_options
from privcov.cli.output import note, print_json, reading, say, warn


@click.command(name="release")
@order_options
@output_options("release")
def command(
    ledger: str | None,
    request_id: str | None,
    key_path: str | None,
    passphrase_file: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
    spool: str | None,
    **words: Any,
) -> None:
    """Release a differentially private second-moment matrix of DATA (CSV, Parquet, or a glob of either).

    Every parameter is checked before any data is read, and no message ever contains a value of the data. Once the
    ledger is paid, Ctrl-C and kill wait until the release is written.

    Example: privcov release people.csv --schema people.toml --epsilon 1 -o people.release.json
    """
    from privcov.linalg.triangle import is_wide
    from privcov.publish.release import release
    from privcov.releases.strata import StratifiedRelease
    from privcov.report.words import misread, promise

    order = as_order(words)
    loss, dimension = order["loss"], order["schema"].dimension
    if output is None and is_wide(dimension) and sys.stdout.isatty():
        raise click.UsageError(f"a release of {dimension:,} columns is not text: name a file with -o.")
    delivery = Delivery.of(
        output=output,
        force=force,
        key_path=key_path,
        passphrase_file=passphrase_file,
        ledger=ledger,
        request_id=request_id,
    )
    key, book = delivery.key, delivery.book
    order["data"] = as_data(order["data"], spool)

    public = loss.neighbours.count_is_public(order["schema"].max_rows_per_person)
    with reading(count=public) as progress:
        made = release(**order, ledger=delivery.ready(), deliver=delivery.deliver, progress=progress)
    if made.certificate.loss.kind != loss.kind:
        note(
            f"auto chose {made.certificate.mechanism}: it has less noise here and promises more than you asked for."
        )
    if order.get("total_share") == "best" and isinstance(made, StratifiedRelease) and made.pooled is None:
        note(
            "the best share for the total is 0: the total is the sum of the strata, which have all of the loss."
        )
    if order["frame"] == "auto" and not made.certificate.rounds:
        totalled = isinstance(made, StratifiedRelease) and made.pooled is not None
        note(f"auto kept the declared frame{': there is no private one beside a total' if totalled else ''}.")
    if book is not None:
        note(left_words(book))
    whole = made.total() if isinstance(made, StratifiedRelease) else made
    if warned := misread(whole):  # from the finished release alone, so it tells no more than that does
        warn(warned)
    if output is None:
        return
    if loss.kind == "approximate" and made.rows is not None and loss.amounts["delta"] * made.rows > 1:
        note(
            "note: delta is above 1 / rows, so the promise can fail for someone in the table. Choose a smaller delta."
        )
    if as_json:
        print_json(made.to_dict(key=key))
        return
    note(f"wrote {output}" + ("" if key is None else f", signed with the key {key.public.fingerprint}"))
    say(promise(made[made.names[0]] if isinstance(made, StratifiedRelease) else made))
    note(f"Read it: privcov show {output}")
