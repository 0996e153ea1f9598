"""``privcov keygen``: a steward's key pair."""

from __future__ import annotations

import click

from privcov.cli.delivery import passphrase, passphrase_option
from privcov.cli.output import json_option, note, print_json, say


@click.command(name="keygen")
@click.argument("name")
@passphrase_option
@json_option
def command(name: str, passphrase_file: str | None, as_json: bool) -> None:
    """Make a key to sign releases with: NAME.key, which stays with you, and NAME.pub, which you hand out.

    Neither file is ever overwritten. The fingerprint printed is eight words for people to compare.

    Example: privcov keygen steward
    """
    from privcov.releases import keyfiles
    from privcov.releases.signing import keygen

    secret = passphrase(passphrase_file)
    key = keygen()
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
