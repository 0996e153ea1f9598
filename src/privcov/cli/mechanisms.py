"""``privcov mechanisms``: what there is, and what each is good for."""

from __future__ import annotations

import click

from privcov.cli.output import json_option, print_json


@click.command(name="mechanisms")
@json_option
def command(as_json: bool) -> None:
    """List every mechanism: its guarantee, its proof page, what it is best at.

    Example: privcov mechanisms --json
    """
    from privcov.mechanisms import DEFAULTS, MECHANISMS, WITHDRAWN
    from privcov.report.tables import table

    listed = [
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
    rows = [[str(m["name"]), ", ".join(m["guarantee"]), str(m["best_at"]), str(m["proof"])] for m in listed]
    print(table(["name", "guarantee", "best at", "proof"], rows, left=4))
    for name, reason in WITHDRAWN.items():
        print(f"\nrefused: {name}: {reason}")
