"""``privcov schema``: the public facts about a table."""

from __future__ import annotations

import sys

import click

from privcov.cli.output import json_option, note, print_json


@click.group(name="schema")
def command() -> None:
    """Draft and check the public facts about a table.

    Example: privcov schema init people.csv -o people.toml
    """


@command.command(name="init")
@click.argument("data")
@click.option("-o", "--output", help="Write the template here; without it, to stdout.")
@click.option("--force", is_flag=True, help="Replace an output that is already there.")
@json_option
def init(data: str, output: str | None, force: bool, as_json: bool) -> None:
    """Write a schema TEMPLATE for DATA: column names and types only, every bound left blank.

    Bounds read off the data are not private, so none is offered: fill them from public knowledge.

    Example: privcov schema init people.csv -o people.toml
    """
    from privcov import files
    from privcov.table import column_types
    from privcov.template import template

    if output is not None:
        files.check_writable(output, force=force)
    types = column_types(data)
    if as_json:
        print_json({"columns": types})
        return
    text = template(types)
    if output is None:
        sys.stdout.write(text)
        return
    files.write(output, text, force=force)
    note(f"wrote {output}: fill in every blank bound from public knowledge, never from the data.")


@command.command(name="check")
@click.argument("path")
@json_option
def check(path: str, as_json: bool) -> None:
    """Check a schema file and say what it amounts to; reads no data.

    Example: privcov schema check people.toml
    """
    from privcov.grid import Grid
    from privcov.schema import Schema

    schema = Schema.read(path)
    grid = Grid.of(schema)
    norm = float(schema.squared_norm_bound) ** 0.5
    if as_json:
        print_json(
            {"columns": [f.name for f in schema.features], "row_norm_bound": norm, "grid": grid.exponent}
        )
        return
    print(f"{path}: {len(schema.columns)} columns, {schema.dimension} after one-hot coding.")
    print(f"Row norm at most {norm:.4g} in scaled units; rows on a grid of 2^-{grid.exponent}.")
    print(f"Missing cells: {schema.missing}. Rows per person: at most {schema.max_rows_per_person}.")
