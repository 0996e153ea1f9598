"""``privcov inspect``: how a file would be read, for the eyes of the data's keeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from privcov.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from privcov.steward.inspecting import Reading

schema_option = click.option(
    "--schema", "schema_path", required=True, help="The schema file (TOML): the public facts about the table."
)


@click.command(name="inspect")
@click.argument("file")
@schema_option
@json_option
def command(file: str, schema_path: str, as_json: bool) -> None:
    """Count how a release would read FILE: its records, and its unreadable cells, missing cells and undeclared levels.

    The report is SENSITIVE: it counts things in the data without any privacy budget. It is printed and stored nowhere.
    Do not publish it, and do not choose bounds from it.

    Example: privcov inspect people.csv --schema people.toml
    """
    from privcov.schema import Schema
    from privcov.steward.inspecting import inspect

    print_reading(inspect(file, schema=Schema.read(schema_path)), as_json)


def print_reading(report: Reading, as_json: bool) -> None:
    """The report on standard output, which is where the data's keeper sits."""
    if as_json:
        print_json(report.to_dict())
    else:
        say(report.render())
