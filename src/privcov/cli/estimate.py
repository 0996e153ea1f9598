"""``privcov estimate``: a private covariance of data that has no bounds to declare."""

from __future__ import annotations

import click

from privcov.cli.delivery import Delivery, ledger_options, output_options
from privcov.cli.ledger import left_words
from privcov.cli.orders import as_data, spool_option
from privcov.cli.output import note, print_json, say


@click.command(name="estimate")
@click.argument("data")
@spool_option
@click.option(
    "--columns", required=True, help="The numeric columns to use, separated by commas; `a, b` is one name."
)
@click.option(
    "--rho", required=True, help="The rho of zero-concentrated privacy, above 0, under replace-one."
)
@click.option(
    "--largest-variance",
    required=True,
    help="Public: an upper bound on the variance in any direction, in squared original units.",
)
@click.option(
    "--method",
    default="coinpress",
    show_default=True,
    help="How rows are whitened: coinpress, truncated or preconditioned.",
)
@click.option("--rounds", default=5, show_default=True, type=int, help="How often coinpress whitens; public.")
@click.option(
    "--known-mean",
    help="Public: the mean in original units, one number for each column, separated by commas.  [default: unknown]",
)
@click.option(
    "--mean-radius",
    help="Public: an upper bound on the norm of the mean, in original units. The estimate then has a mean, for "
    "rho/10.  [default: no mean]",
)
@click.option(
    "--smallest-variance",
    default="1",
    show_default=True,
    help="Public: a lower bound on the variance in any direction, in squared original units; for preconditioned only.",
)
@click.option(
    "--tail",
    default="0.1",
    show_default=True,
    help="The share of rows, between 0 and 1, that clipping may touch.",
)
@click.option(
    "--as-published", is_flag=True, help="coinpress with the noise of its public code, not the tight one."
)
@ledger_options
@output_options("estimate")
def command(
    data: str,
    spool: str | None,
    columns: str,
    rho: str,
    largest_variance: str,
    method: str,
    rounds: int,
    known_mean: str | None,
    mean_radius: str | None,
    smallest_variance: str,
    tail: str,
    as_published: bool,
    ledger: str | None,
    request_id: str | None,
    key_path: str | None,
    passphrase_file: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Estimate a private covariance, and mean, of columns of DATA (CSV or Parquet) without bounds.

    For measurements that are roughly Gaussian. The promise is rho-zCDP under replace-one, for every table; the
    public numbers affect accuracy only. No message ever contains a value of the data. Once the ledger is paid,
    Ctrl-C and kill wait until the estimate is written.

    Example: privcov estimate people.csv --columns height,weight --rho 0.5 --largest-variance 9999 -o people.json
    """
    from privcov.privacy import ZCDP
    from privcov.schema.names import split_names
    from privcov.unbounded import estimate_gaussian
    from privcov.unbounded.page import as_text

    delivery = Delivery.of(
        output=output,
        force=force,
        key_path=key_path,
        passphrase_file=passphrase_file,
        ledger=ledger,
        request_id=request_id,
    )
    key, book = delivery.key, delivery.book

    made = estimate_gaussian(
        as_data(data, spool),
        columns=split_names(columns),
        loss=ZCDP(rho=rho, neighbours="replace-one"),
        largest_variance=largest_variance,
        method=method,
        rounds=rounds,
        known_mean=None if known_mean is None else known_mean.split(","),  # type: ignore[arg-type]  # checked there
        mean_radius=mean_radius,
        smallest_variance=smallest_variance,
        tail=tail,
        as_published=as_published,
        ledger=delivery.ready(),
        deliver=delivery.deliver,
    )
    if book is not None:
        note(left_words(book))
    if output is None:
        return
    if as_json:
        print_json(made.to_dict(key=key))
        return
    note(f"wrote {output}" + ("" if key is None else f", signed with the key {key.public.fingerprint}"))
    say(as_text(made))
