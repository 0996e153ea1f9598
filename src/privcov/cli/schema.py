"""``privcov schema``: the public facts about a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.losses import as_loss, loss_options
from privcov.cli.orders import as_part, part_options
from privcov.cli.output import force_option, json_option, note, print_json, say, say_line, say_prose

if TYPE_CHECKING:
    from privcov.privacy import Loss
    from privcov.schema import Schema

_QUOTES = {"single": "'", "double": '"', "none": ""}


@click.group(name="schema")
def command() -> None:
    """Draft and check the public facts about a table.

    Example: privcov schema init people.csv -o people.toml
    """


@command.command(name="init")
@click.argument("data")
@click.option("-o", "--output", help="Write the template here.  [default: stdout]")
@force_option
@click.option(
    "--separator", help="What stands between cells: comma, semicolon, tab or bar.  [default: proposed]"
)
@click.option("--decimal", help="What stands before the fraction of a number: . or ,  [default: .]")
@click.option("--thousands", help="What sets apart groups of three digits.  [default: nothing]")
@click.option("--quote", help="What surrounds cells: single, double or none.  [default: proposed]")
@click.option("--encoding", help="utf-8, latin-1 or utf-16.  [default: proposed]")
@json_option
def init(data: str, output: str | None, force: bool, as_json: bool, **file: str | None) -> None:
    """Write a schema TEMPLATE for DATA: column names and types only, every bound left blank.

    Bounds read off the data are not private, so none is offered: fill them from public knowledge. How the file is
    written (separator, quotes, encoding) is proposed from its header line alone, under [file], for you to confirm;
    a header that could be read in two ways is refused until an option says which.

    Example: privcov schema init people.csv -o people.toml
    """
    from privcov.schema.dialect import SEPARATORS
    from privcov.schema.template import template
    from privcov.table import glance
    from privcov.text import files

    if output is not None:
        files.check_writable(output, force=force)
    words = {name: mark for mark, name in SEPARATORS.items()} | _QUOTES
    seen = glance(data, {word: words.get(mark, mark) for word, mark in file.items() if mark is not None})
    text = template(seen.columns, seen.file)
    if as_json:
        print_json({"columns": seen.columns, "file": seen.file.words()})
        return
    if output is None:
        say(text.removesuffix("\n"))
        return
    files.write(output, text.encode("utf-8"), force=force)
    note(f"wrote {output}: now fill in every blank bound from public knowledge, never from the data.")


@command.command(name="check")
@click.argument("path")
@json_option
def check(path: str, as_json: bool) -> None:
    """Check a schema file and summarise it; reads no data.

    PATH is the schema file (TOML).

    Example: privcov schema check people.toml
    """
    from privcov.schema import Schema
    from privcov.schema.grid import Grid

    schema = Schema.read(path)
    grid = Grid.of(schema)
    norm = float(schema.squared_norm_bound) ** 0.5
    if as_json:
        print_json(
            {
                "columns": [f.name for f in schema.features],
                "row_norm_bound": norm,
                "grid": grid.exponent,
                "persons": "enforced" if schema.enforced else "declared, not enforced",
                "file": schema.file.words(),
                "weight": schema.weight,
                **({"derived": _derived(schema)} if schema.sources else {}),
            }
        )
        return
    say_line(
        f"{path}: {len(schema.read_columns)} columns in the table, {schema.dimension} in the released matrix."
    )
    if schema.exhaustive:
        say_prose(f"{schema.summed_dimension} columns are summed: exhaustive levels add up to the intercept.")
    say_prose(
        f"Row norm at most {norm:.4g} in scaled units; values are rounded to multiples of 2^-{grid.exponent}."
    )
    say_prose(f"Missing cells: {schema.missing_words}. {schema.person_words}")
    if schema.missing_advice:
        say_prose(schema.missing_advice)
    if schema.weight is not None:
        say_prose(schema.weight_words)
    if schema.sources:
        say_prose(schema.derived_words)
    if schema.file.words():
        say_prose(f"File format: {schema.file.sentence()}.")


@command.command(name="explain")
@click.argument("path")
@loss_options
@click.option(
    "--rows",
    type=click.IntRange(1),
    help="How many rows the table has, where that is public.  [default: unknown]",
)
@click.option(
    "--data", help="Also choose a row-norm bound privately from this table: this spends.  [default: no table]"
)
@click.option(
    "--row-norm-share",
    default="0.1",
    show_default=True,
    help="The share of the loss, between 0 and 1, for that choice.",
)
@click.option("--ledger", help="With --data: pay from this budget first.  [default: no budget]")
@json_option
def explain(
    path: str,
    rows: int | None,
    data: str | None,
    row_norm_share: str,
    ledger: str | None,
    as_json: bool,
    **loss_words: Any,
) -> None:
    """Show how the bounds give the row norm, and how much noise each column costs.

    PATH is the schema file (TOML). Without --epsilon or --rho the costs are relative; with them, in original
    units. Only with --data is a table read, and a share of the loss spent on it.

    Example: privcov schema explain people.toml --epsilon 1 --rows 4000
    """
    from privcov.planning.signal import column_costs, saving, saving_words
    from privcov.report.tables import number, table
    from privcov.schema import Numeric, Schema
    from privcov.text.aligning import cut

    schema = Schema.read(path)
    given = loss_words["epsilon"] is not None or loss_words["rho"] is not None
    loss = as_loss(**loss_words, rows_per_person=schema.max_rows_per_person) if given else None
    costs = column_costs(schema, loss=loss)
    chosen = _private_norm(data, schema, loss, row_norm_share, ledger) if data is not None else None
    norm = float(schema.squared_norm_bound) ** 0.5
    if as_json:
        print_json(
            {
                "row_norm_bound": norm,
                "columns": [asdict(cost) for cost in costs],
                "saved": None if (saved := saving(schema)) is None else asdict(saved),
                "chosen": chosen,
                **({"derived": _derived(schema)} if schema.sources else {}),
            }
        )
        return
    declared = [cost for cost in costs if cost.name != schema.weight]
    plain = all(cost.squared_norm == 1 for cost in declared)
    unscaled = all(c.reach == 1 for c in schema.columns if isinstance(c, Numeric))
    parts = [
        f"1 for each of {len(declared)} columns"
        if plain
        else f"{sum(cost.squared_norm for cost in declared):g} for {len(declared)} columns",
        *(["1/4 for the weight"] if schema.weight is not None else []),
        *(["1 for the intercept"] if schema.intercept else []),
    ]
    limit = (
        ""
        if schema.row_norm_bound is None
        else f". You declared a row norm of at most {norm:.4g}: longer rows are clipped"
    )
    units = "[-1, 1]" if unscaled else "their reach"
    say_prose(
        f"With columns scaled to {units}, the squared norm of a row is at most {' plus '.join(parts)}{limit}."
    )
    say_prose(f"So the row norm is at most {norm:.4g}. The noise grows with its square, {norm**2:.4g}.")
    grows = " The noise grows with it too." if schema.max_rows_per_person > 1 else ""
    say_prose(f"{schema.person_words}{grows}\n" if grows or schema.enforced else "")
    if schema.exhaustive:
        say_prose("\n".join([*saving_words(schema), ""]))
    if schema.weight is not None:
        say_prose(f"{schema.weight_words}\n{_weight_saving(schema)}\n")
    per = "mean" if rows else "sum"
    headings = ["column", "bounds", "noise without it"] + ([f"noise on its {per}"] if loss else [])
    lines = [
        [cut(c.name), c.bounds, f"{100 * c.noise_without:.0f} %"]
        + ([] if c.sum_noise is None else [number(c.sum_noise / (rows or 1), 4)])
        for c in costs
    ]
    say(table(headings, lines, left=2))
    if derived := _derived(schema):
        told = [[cut(c.name), c.bounds, derived[c.name]] for c in costs if c.name in derived]
        say_prose("\nDerived columns, whose bounds follow from those of the columns in them:\n")
        say(table(["column", "bounds", "is"], told, left=3))
        for name, same in _repeated(schema):
            say_prose(
                f"\n{name} is {same} on another scale, so one of the two costs noise and says nothing new: write "
                f"feature = false for {same}, and poly in formulas."
            )
    say_prose(
        "\nNoise in original units is proportional to the width of the bounds: half the width, half the noise."
    )
    say_prose(
        "But values outside the bounds are clipped; that biases the release, and no interval accounts for it."
    )
    if schema.missing_advice:
        say_prose(schema.missing_advice)
    if chosen is None:
        if schema.weight is not None:
            return
        say_prose(
            "For a share of the loss, privcov can fit the row norm to the data: --data FILE, or release --row-norm "
            "private.\n"
            "It can fit centres and scales too, so that wide bounds cost little: release --frame auto."
        )
        return
    say_prose(
        f"\nPrivately chosen row_norm_bound = {chosen['row_norm_bound']:.4g}; it multiplies the noise by "
        f"{chosen['noise']:.3g}."
    )
    say_prose(f"The choice cost {chosen['price']}. The rest of the loss is {chosen['rest']}.")


_output = click.option("-o", "--output", help="Write it here.  [default: stdout]")


@command.command(name="subset")
@click.argument("path")
@part_options
@_output
@force_option
def subset(path: str, kept: str | None, dropped: str | None, output: str | None, force: bool) -> None:
    """Write a schema with some of the columns of another schema.

    PATH is the schema file (TOML). A table may have the columns that are left out: they are not read. The tables
    under [planning] are not copied.

    Example: privcov schema subset people.toml --columns age,income -o small.toml
    """
    from privcov.schema import Schema

    if kept is None and dropped is None:
        raise click.UsageError("say which columns stay: --columns NAMES, or --without NAMES.")
    _write(as_part(Schema.read(path), kept, dropped).to_toml(), output, force=force)


@command.command(name="merge")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@_output
@force_option
def merge(paths: tuple[str, ...], output: str | None, force: bool) -> None:
    """Write the schema of a table that has the columns of several schemas.

    PATHS are two or more schema files (TOML). They must agree on every setting of the whole table, and on every column
    that more than one of them declares. The tables under [planning] are not copied.

    Example: privcov schema merge people.toml visits.toml -o both.toml
    """
    from privcov.errors import InputError
    from privcov.schema import Schema

    if len(paths) < 2:
        raise click.UsageError("merging takes two schema files or more.")
    merged = Schema.read(paths[0])
    for path in paths[1:]:
        try:
            merged = merged.merged(Schema.read(path))
        except InputError as error:
            where = f"{path}: " if error.code == "E193" else ""
            raise InputError(error.code, where + error.sentence, error.remedy) from None
    _write(merged.to_toml(), output, force=force)


@command.command(name="from-codebook")
@click.argument("path")
@_output
@force_option
def from_codebook(path: str, output: str | None, force: bool) -> None:
    """Write a schema from a codebook.

    PATH is a file of lines with the cells name, lower, upper, levels, label and unit: docs/reference/schema-file.md.
    Bounds in it must come from public knowledge, as those of any schema.

    Example: privcov schema from-codebook codebook.csv -o people.toml
    """
    from privcov.schema.codebook import read_codebook

    _write(read_codebook(path).to_toml(), output, force=force)


@command.command(name="codebook")
@click.argument("path")
@_output
@force_option
def codebook(path: str, output: str | None, force: bool) -> None:
    """Write the columns of a schema as a codebook: a line for each, for a spreadsheet.

    PATH is the schema file (TOML). A codebook has no place for settings of the whole table:
    a note lists those that are left out.

    Example: privcov schema codebook people.toml -o codebook.csv
    """
    from privcov.schema import Schema
    from privcov.schema.codebook import codebook_of, table_words

    schema = Schema.read(path)
    _write(codebook_of(schema), output, force=force)
    if lost := table_words(schema):
        note(f"a codebook has no place for {', '.join(lost)}: keep the schema file too.")


def _write(text: str, output: str | None, *, force: bool) -> None:
    """Text as it is, to a file or to stdout."""
    from privcov.text import files

    if output is None:
        say(text.removesuffix("\n"))
        return
    files.write(output, text.encode("utf-8"), force=force)
    note(f"wrote {output}.")


def _weight_saving(schema: Schema) -> str:
    """What a power does to what a row counts as, and so to the noise on whatever is divided by the sum of weights."""
    tenth = float(schema.largest_weight or 0) / 10
    counts = f"A row of weight {tenth:g} counts as {0.1 ** float(schema.weight_power):.2g} of one of the largest weight"
    if schema.weight_power < 1:
        return f"{counts}, instead of 0.1. Means have less noise, but they are means under these evened out weights."
    return (
        f"{counts}. With weight_power = 0.5 it would count as 0.32: means would have less noise, but would be means "
        "under other weights."
    )


def _repeated(schema: Schema) -> list[tuple[str, str]]:
    """First polynomials of columns that are released too, each with that column: straight lines of it."""
    from privcov.schema.expressions import parse

    released = {column.name for column in schema.columns}
    nodes = {
        column.name: parse(column.expression) for column in schema.columns if column.expression is not None
    }
    return [
        (name, str(node.parts[0].value))
        for name, node in nodes.items()
        if node.op == "poly" and node.parts[0].op == "column" and node.parts[2].value == 1
        if node.parts[0].value in released
    ]


def _derived(schema: Schema) -> dict[str, str]:
    """The expressions of derived columns, by name."""
    return {column.name: column.expression for column in schema.columns if column.expression is not None}


def _private_norm(
    data: str, schema: Schema, loss: Loss | None, share: str, ledger: str | None
) -> dict[str, Any]:
    from privcov.publish.row_norm import private_row_norm

    if loss is None:
        raise click.UsageError("--data spends a share of the loss: give --epsilon or --rho.")
    chosen = private_row_norm(data, schema=schema, loss=loss, share=share, ledger=ledger)
    squared = chosen.schema.squared_norm_bound
    return {
        "row_norm_bound": float(squared) ** 0.5,
        "noise": float(squared / schema.squared_norm_bound),
        "price": str(chosen.price),
        "rest": str(chosen.rest),
    }
