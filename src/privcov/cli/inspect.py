"""``privcov inspect`` and ``privcov convert``: how a file would be read, and a file of lines as Parquet.

Both are for the eyes of the data's keeper alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from privcov.cli.output import json_option, note, print_json, say

if TYPE_CHECKING:
    from privcov.steward import Reading

schema_option = click.option(
    "--schema", "schema_path", required=True, help="The schema file (TOML): the public facts about the table."
)


@click.command(name="inspect")
@click.argument("file")
@schema_option
@json_option
def inspect(file: str, schema_path: str, as_json: bool) -> None:
    """Count how a release would read FILE: its records, and its unreadable cells, missing cells and undeclared levels.

    The report is SENSITIVE: it counts things in the data without any privacy budget. It is printed and stored nowhere.
    Do not publish it, and do not choose bounds from it.

    Example: privcov inspect people.csv --schema people.toml
    """
    from privcov import steward
    from privcov.schema import Schema

    print_reading(steward.inspect(file, schema=Schema.read(schema_path)), as_json)


@click.command(name="convert")
@click.argument("file")
@click.argument("output")
@schema_option
@click.option("--force", is_flag=True, help="Replace an existing output.")
@json_option
def convert(file: str, output: str, schema_path: str, force: bool, as_json: bool) -> None:
    """Turn FILE (CSV or TSV, also with line breaks inside quoted cells) into a Parquet file that a release can read.

    FILE must follow RFC 4180 strictly, with the separator and quotes that the schema declares; otherwise it is refused.
    OUTPUT holds the declared columns and is as sensitive as FILE. The printed report is SENSITIVE too: see privcov
    inspect.

    Example: privcov convert people.csv people.parquet --schema people.toml
    """
    from privcov import steward
    from privcov.schema import Schema

    print_reading(steward.convert(file, output, schema=Schema.read(schema_path), force=force), as_json)
    note(f"wrote {output}: it is as sensitive as {file}.")


def print_reading(report: Reading, as_json: bool) -> None:
    """The report on standard output, which is where the data's keeper sits."""
    if as_json:
        print_json(report.to_dict())
    else:
        say(report.render())
