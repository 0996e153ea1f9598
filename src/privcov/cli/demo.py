"""``privcov demo``: the whole path on an invented table, no arguments, no network."""

from __future__ import annotations

from importlib.resources import as_file, files
from itertools import combinations
from typing import TYPE_CHECKING

import click

from privcov.cli.output import force_option, json_option, note, print_json, reading, say

if TYPE_CHECKING:
    from privcov.releases.release import Release
    from privcov.schema import Schema

_FACTOR = 10
"""How many times as wide as in its schema file the bounds are in the last table."""
_FRAMES = ("declared", "auto")
"""The frames of the two releases from these bounds."""


@click.command(name="demo")
@click.option("-o", "--output", help="Keep the release in this file.  [default: keep nothing]")
@force_option
@json_option
def command(output: str | None, force: bool, as_json: bool) -> None:
    """Release an invented table of 4,000 people at epsilon = 1 and show the result.

    Nobody in the table exists, so the demonstration can show the true values beside the private ones. Never do that
    with real people. The last table has the same correlations from bounds ten times as wide, with and without a
    private frame.

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
        wide = _widened(schema)
        guessed = [] if as_json else [release(people, schema=wide, loss=loss, frame=f) for f in _FRAMES]
        truth = np.genfromtxt(people, delimiter=",", names=True, usecols=(0, 2, 4))
    if output is not None:
        made.save(output, force=force)
        note(f"wrote {output}")
    if as_json:
        print_json(as_json_values(made))
        return
    say("privcov demo: 4,000 invented people, released once at ε = 1\n")
    say(as_text(made))
    names = ("age", "educ", "income")
    mean, std = made.mean(), np.sqrt(np.diag(made.covariance()))
    rows = [
        [
            name,
            number(mean[made.columns.index(name) - 1]),
            number(float(truth[name].mean())),
            number(std[made.columns.index(name) - 1]),
            number(float(truth[name].std(ddof=1))),
        ]
        for name in names
    ]
    say("\nPrivate values beside the true ones (allowed only because these people are invented)\n")
    say(table(["column", "mean", "true mean", "std. dev.", "true std. dev."], rows))
    pairs = list(combinations(names, 2))
    true = [number(float(np.corrcoef(truth[a], truth[b])[0, 1])) for a, b in pairs]
    told = [[_correlation(one, pair) for pair in pairs] for one in (made, *guessed)]
    heads = ["correlation", "true", "these bounds", f"{_FACTOR} × as wide", "and --frame auto"]
    say(
        f"\nHonest bounds are often loose: the same ε with bounds {_FACTOR} times as wide, and with a private frame\n"
    )
    say(table(heads, [list(row) for row in zip([f"{a}, {b}" for a, b in pairs], true, *told, strict=True)]))
    say("In brackets: cannot be told from zero.")


def _widened(schema: Schema) -> Schema:
    """The same columns with bounds so many times as far from their middle."""
    from dataclasses import replace

    from privcov.schema import Numeric

    def wider(column: Numeric) -> Numeric:
        middle, half = (column.lower + column.upper) / 2, _FACTOR * (column.upper - column.lower) / 2
        return replace(column, lower=middle - half, upper=middle + half)

    return replace(
        schema, columns=tuple(wider(one) if isinstance(one, Numeric) else one for one in schema.columns)
    )


def _correlation(made: Release, pair: tuple[str, str]) -> str:
    """A private correlation, in brackets where it cannot be told from zero."""
    from privcov.report.tables import number
    from privcov.report.view import View

    first, second = (made.columns.index(name) - 1 for name in pair)
    text = number(float(made.correlation()[first, second]))
    return text if View.of(made).clear[first, second] else f"({text})"
