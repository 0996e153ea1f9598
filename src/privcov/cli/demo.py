"""``privcov demo``: the whole path on an invented table, no arguments, no network."""

from __future__ import annotations

from importlib.resources import as_file, files

import click

from privcov.cli.output import json_option, note, print_json, reading, say


@click.command(name="demo")
@click.option("-o", "--output", help="Keep the release in this file.  [default: keep nothing]")
@click.option("--force", is_flag=True, help="Replace an output that is already there.")
@json_option
def command(output: str | None, force: bool, as_json: bool) -> None:
    """Release an invented table of 4,000 people at epsilon = 1 and show the result.

    Nobody in the table exists, so the demonstration can show the true values beside the private ones. Never do that
    with real people.

    Example: privcov demo -o demo.release.json
    """
    import numpy as np

    from privcov.privacy import PureDP
    from privcov.publish.release import release
    from privcov.report.summary import as_json_values, as_text
    from privcov.report.tables import number, table
    from privcov.schema import Schema
    from privcov.text.files import check_writable

    if output is not None:
        check_writable(output, force=force)
    home = files("privcov") / "demo"
    loss = PureDP(epsilon=1, neighbours="replace-one")
    with as_file(home / "people.csv") as people, as_file(home / "people.toml") as facts:
        schema = Schema.read(facts)
        with reading() as progress:
            made = release(people, schema=schema, loss=loss, progress=progress)
        truth = np.genfromtxt(people, delimiter=",", names=True, usecols=(0, 2, 4))
    if output is not None:
        made.save(output, force=force)
        note(f"wrote {output}")
    if as_json:
        print_json(as_json_values(made))
        return
    say("privcov demo: 4,000 invented people, released once at ε = 1\n")
    say(as_text(made))
    mean, std = made.mean(), np.sqrt(np.diag(made.covariance()))
    rows = [
        [
            name,
            number(mean[made.columns.index(name) - 1]),
            number(float(truth[name].mean())),
            number(std[made.columns.index(name) - 1]),
            number(float(truth[name].std(ddof=1))),
        ]
        for name in ("age", "educ", "income")
    ]
    say("\nPrivate values beside the true ones (allowed only because these people are invented)\n")
    say(table(["column", "mean", "true mean", "std. dev.", "true std. dev."], rows))
