"""``privcov convert``: a file of lines as Parquet, on the steward's side."""

from __future__ import annotations

import click

from privcov.cli.inspect import print_reading, schema_option
from privcov.cli.output import json_option, note


@click.command(name="convert")
@click.argument("file")
@click.argument("output")
@schema_option
@click.option("--force", is_flag=True, help="Replace an existing output.")
@json_option
def command(file: str, output: str, schema_path: str, force: bool, as_json: bool) -> None:
    """Turn FILE (CSV or TSV, also with line breaks inside quoted cells) into a Parquet file that a release can read.

    FILE must follow RFC 4180 strictly, with the separator and quotes that the schema declares; otherwise it is refused.
    OUTPUT holds the declared columns and is as sensitive as FILE. The printed report is SENSITIVE too: see privcov
    inspect.

    Example: privcov convert people.csv people.parquet --schema people.toml
    """
    from privcov.schema import Schema
    from privcov.steward.inspecting import convert

    print_reading(convert(file, output, schema=Schema.read(schema_path), force=force), as_json)
    note(f"wrote {output}: it is as sensitive as {file}.")
