"""Where a passphrase comes from: a file or the environment, never the command line, which others can see."""

from __future__ import annotations

import os

import click

from privcov.errors import ParameterError

VARIABLE = "PRIVCOV_KEY_PASSPHRASE"

passphrase_option = click.option(
    "--passphrase-file",
    help=f"The file with the passphrase of the private key.  [default: {VARIABLE}, else none]",
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
