"""``privcov serve``: the workbench, a page on this machine."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click

from privcov.cli.delivery import passphrase, passphrase_option
from privcov.cli.output import json_option, note, print_json, say
from privcov.errors import InputError, ParameterError

if TYPE_CHECKING:
    from privcov.web.places import Directory
    from privcov.web.server import Address


@click.command(name="serve")
@click.option("--data", help="The table to start with (CSV or Parquet).  [default: none]")
@click.option("--schema", help="The schema to start with (TOML).  [default: none]")
@click.option("--ledger", help="The budget to start with: a file, or postgresql://….  [default: none]")
@click.option(
    "--sign", "key_path", help="Sign releases with this private key: see privcov keygen.  [default: unsigned]"
)
@passphrase_option
@click.option("--directory", default=".", show_default=True, help="The page sees files below this one alone.")
@click.option(
    "--port", type=int, default=0, show_default=True, help="The port of the page; 0 takes a free one."
)
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@json_option
def command(
    data: str | None,
    schema: str | None,
    ledger: str | None,
    key_path: str | None,
    passphrase_file: str | None,
    directory: str,
    port: int,
    no_browser: bool,
    as_json: bool,
) -> None:
    """Open the workbench: draft a schema, see errors before spending, release, read.

    Ctrl-C ends it, once releases that are paid for are written.

    The page answers on this machine only, and only at the address that is printed. It shows column names and
    releases, nothing else of the data. Needs the extra web.

    Example: privcov serve --data people.csv --ledger people.ledger
    """
    from privcov.releases import keyfiles
    from privcov.web.asking import Given
    from privcov.web.places import Directory
    from privcov.web.workbench import Workbench

    try:
        from privcov.web.server import doorway, open_browser, serve
    except ImportError:
        raise ParameterError(
            "E291", "the workbench needs starlette and uvicorn.", "Install them: pip install 'privcov[web]'"
        ) from None

    place = Directory.of(directory)
    key = (
        None if key_path is None else keyfiles.read_private(key_path, passphrase=passphrase(passphrase_file))
    )
    given = Given(
        data=_named(data, place),
        schema=_named(schema, place),
        **_ledger(ledger, place),
    )

    with ExitStack() as stack:

        def ready(address: Address) -> None:
            if as_json:
                print_json({"url": address.url})
            else:
                say(address.url)
            sys.stdout.flush()
            note("Anyone with this address can spend the budget. Ctrl-C ends the workbench.")
            if not no_browser and not open_browser(stack.enter_context(doorway(address.url))):
                note("No browser could be opened: open the address yourself.")

        serve(Workbench(directory=place, key=key, given=given), port=port, ready=ready)


def _named(path: str | None, place: Directory) -> str:
    """The name of a file that is there, below the directory that is served."""
    if path is None:
        return ""
    name = place.name_of(path)
    place.existing(name)
    return name


def _ledger(where: str | None, place: Directory) -> dict[str, str]:
    """A ledger is opened before the page is: where it cannot be paid from, nothing starts."""
    from privcov.ledger import Ledger
    from privcov.ledger.addresses import server_words

    if where is None:
        return {}
    ledger = Ledger.open(where)
    name = ledger.name
    if server_words(where) is None:
        with suppress(InputError):  # a file elsewhere, which this command line may name and the page may not
            name = place.name_of(where)
    return {"ledger": name, "ledger_place": where}
