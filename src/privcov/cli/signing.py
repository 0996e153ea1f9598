"""``privcov keygen`` and ``privcov verify``: a steward's key pair, and whether a file is what it says."""

from __future__ import annotations

import click

from privcov.cli.delivery import passphrase, passphrase_option
from privcov.cli.output import json_option, note, print_json, say
from privcov.text.aligning import paragraph


@click.command(name="keygen")
@click.argument("name")
@passphrase_option
@json_option
def keygen(name: str, passphrase_file: str | None, as_json: bool) -> None:
    """Make a key to sign releases with: NAME.key, which stays with you, and NAME.pub, which you hand out.

    Neither file is ever overwritten. The fingerprint printed is eight words for people to compare.

    Example: privcov keygen steward
    """
    from privcov.releases import keyfiles, signing

    secret = passphrase(passphrase_file)
    key = signing.keygen()
    private, public = keyfiles.write(name, key, passphrase=secret)
    if as_json:
        print_json(
            {
                "private_key": str(private),
                "public_key": str(public),
                "passphrase": secret is not None,
                "key": key.public.raw.hex(),
                "fingerprint": key.public.fingerprint,
            }
        )
        return
    say(f"fingerprint: {key.public.fingerprint}")
    alone = "it" if secret is None else "it and its passphrase"
    note(f"wrote {private}: keep it. Whoever has {alone} can sign as you.")
    note(f"wrote {public}: hand it out, and publish the fingerprint where people already trust you.")
    note(f"Sign with it: privcov release … --sign {private}")


@click.command(name="verify")
@click.argument("path")
@click.option(
    "--key",
    "key_path",
    help="The steward's public key: then the file must be signed with it.  [default: any key, or none]",
)
@json_option
def verify(path: str, key_path: str | None, as_json: bool) -> None:
    """Check a release or an estimate: its form, its digest or signature, and that its certificate is consistent.

    PATH is the file of a release or of an estimate.
    Exit code 0: every check passed. 4: a check failed. 2: the file cannot be read as a release or an estimate.
    Without --key, a valid signature proves only that the owner of some key signed: compare its fingerprint with the
    steward's. With --key, a file that was not signed with this key fails, and no other field of it is read.

    Example: privcov verify people.release.json --key steward.pub
    """
    from privcov.releases.keyfiles import read_public
    from privcov.verification import verify as verification

    verdict = verification.verify(path, key=None if key_path is None else read_public(key_path))
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
            say(paragraph(check.words, first=mark, hang=" " * len(mark)))
    verdict.insist(path)
