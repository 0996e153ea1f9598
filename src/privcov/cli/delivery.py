"""Where a result goes, who pays for it and who signs it: shared by every command that makes something to keep.

A passphrase comes from a file or the environment, never the command line, which others can see.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from privcov.cli.output import all_of, force_option, json_option
from privcov.errors import ParameterError
from privcov.publish.ending import orderly, say, undisturbed
from privcov.text import files

if TYPE_CHECKING:
    from privcov.ledger import Ledger
    from privcov.releases.signing import PrivateKey


VARIABLE = "PRIVCOV_KEY_PASSPHRASE"

passphrase_option = click.option(
    "--passphrase-file",
    help=f"The file with the passphrase of the private key.  [default: {VARIABLE}, else none]",
)

ledger_options = all_of(
    click.option(
        "--ledger",
        help="Pay first from this budget, a file or postgresql://…, or be refused.  [default: no budget]",
    ),
    click.option(
        "--request-id",
        help="With --ledger: a name that can be paid for only once.  [default: a random one]",
    ),
)
"""``--ledger``, ``--request-id``: who pays."""


def output_options(what: str) -> Callable[..., Any]:
    """``--sign``, ``--passphrase-file``, ``--output``, ``--force``, ``--json``: who signs it, and where it goes."""
    return all_of(
        click.option(
            "--sign",
            "key_path",
            help=f"Sign the {what} with this private key: see privcov keygen.  [default: unsigned]",
        ),
        passphrase_option,
        click.option("-o", "--output", help=f"Write the {what} here.  [default: stdout]"),
        force_option,
        json_option,
    )


def passphrase(path: str | None) -> bytes | None:
    """The passphrase in the file, without its line end, else that of the environment, else none."""
    from privcov.releases.keyfiles import read_secret

    if path is not None:
        given = read_secret(path).rstrip(b"\r\n")
    elif VARIABLE in os.environ:
        given = os.environb[VARIABLE.encode()] if os.supports_bytes_environ else os.environ[VARIABLE].encode()
    else:
        return None
    if not given:
        raise ParameterError("E213", "the passphrase is empty.", "Give one, or leave it out altogether.")
    return given


PAID = "The release is paid for and will be finished first. (kill -9 would stop it now, and the payment would be lost.)"


class Deliverable(Protocol):
    """A release or an estimate."""

    def file_bytes(self, *, key: PrivateKey | None = None) -> Iterator[bytes | memoryview]: ...

    def save(self, path: str, *, key: PrivateKey | None = None, force: bool = False) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A key to sign with, a ledger to pay from, a file to write to: each of them may be missing."""

    key: PrivateKey | None
    book: Ledger | None
    output: str | None
    force: bool

    @classmethod
    def of(
        cls,
        *,
        output: str | None,
        force: bool,
        key_path: str | None,
        passphrase_file: str | None,
        ledger: str | None,
        request_id: str | None,
    ) -> Delivery:
        """What the options mean; everything is looked at before anything is paid or read."""
        from privcov.ledger import Ledger
        from privcov.releases import keyfiles

        key = None
        if key_path is not None:
            key = keyfiles.read_private(key_path, passphrase=passphrase(passphrase_file))
        if output is not None:
            files.check_writable(output, force=force)
        book = None if ledger is None else Ledger.open(ledger)
        if request_id is not None:
            if book is None:
                raise click.UsageError("--request-id needs --ledger.")
            book = book.once(request_id)
        return cls(key=key, book=book, output=output, force=force)

    def ready(self) -> Ledger | None:
        """The ledger to pay from; to the end of the command the output is reserved and, once paid, signals wait."""
        context = click.get_current_context()
        wait = context.with_resource(orderly(lambda: say(PAID)))
        if self.output is not None:
            with undisturbed():
                context.with_resource(files.reserved(self.output, force=self.force))
        return None if self.book is None else self.book.announcing(wait)

    def deliver(self, made: Deliverable) -> None:
        """Write the result, signed if there is a key, to its file or to stdout."""
        if self.output is None:
            for piece in made.file_bytes(key=self.key):
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
        else:
            made.save(self.output, key=self.key, force=self.force)
