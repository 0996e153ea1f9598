"""``privcov verify``: whether a file is what it says."""

from __future__ import annotations

from textwrap import fill

import click

from privcov.cli.output import json_option, print_json, say


@click.command(name="verify")
@click.argument("path")
@click.option(
    "--key",
    "key_path",
    help="The steward's public key: then the file must be signed with it.  [default: any key, or none]",
)
@json_option
def command(path: str, key_path: str | None, as_json: bool) -> None:
    """Check a release or an estimate: its form, its digest or signature, and that its certificate is consistent.

    PATH is the file of a release or of an estimate.
    Exit code 0: everything that was checked holds. 4: something does not. 2: the file cannot be read as one.
    Without --key a valid signature proves only that some key signed; whose it is, you must compare. With it,
    nothing in a file that this key did not sign is read.

    Example: privcov verify people.release.json --key steward.pub
    """
    from privcov.releases.keyfiles import read_public
    from privcov.verification.verify import verify

    verdict = verify(path, key=None if key_path is None else read_public(key_path))
    if as_json:
        signer = verdict.signer
        print_json(
            {
                "path": path,
                "what": verdict.what,
                "holds": verdict.holds,
                "signed": signer is not None,
                "key": None if signer is None else signer.raw.hex(),
                "fingerprint": None if signer is None else signer.fingerprint,
                "key_was_given": key_path is not None,
                "checks": [vars(check) for check in verdict.checks],
            }
        )
    else:
        for check in verdict.checks:
            mark = "ok    " if check.holds else "FAILS "
            say(fill(check.words, width=100, initial_indent=mark, subsequent_indent=" " * len(mark)))
    verdict.insist(path)
