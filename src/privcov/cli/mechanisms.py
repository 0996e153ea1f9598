"""``privcov mechanisms``: what there is, and what each is good for."""

from __future__ import annotations

from typing import Any

import click

from privcov.cli.output import json_option, print_json, say


@click.command(name="mechanisms")
@json_option
def command(as_json: bool) -> None:
    """List every mechanism: its guarantee, its proof page, what it is best at.

    Example: privcov mechanisms --json
    """
    from privcov.mechanisms import DEFAULTS, MECHANISMS, WITHDRAWN

    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "guarantee": list(kind.kinds),
            "default_for": [loss for loss, default in DEFAULTS.items() if default == name],
            "summary": kind.summary,
            "best_at": kind.best_at,
            "proof": kind.proof,
            "options": kind.choices(),
        }
        for name, kind in MECHANISMS.items()
    ]
    if as_json:
        print_json({"mechanisms": listed, "refused": WITHDRAWN})
        return
    for m in listed:
        default = f" (default for {', '.join(m['default_for'])})" if m["default_for"] else ""
        say(f"{m['name']}: {', '.join(m['guarantee'])}{default}")
        say(f"    {m['summary']}")
        say(f"    best at: {m['best_at']}")
        say(f"    proof:   {m['proof']}")
    say("\nAll can choose their row norm privately first (--row-norm private); adaptive always does.")
    for name, reason in WITHDRAWN.items():
        say(f"refused: {name}: {reason}")
