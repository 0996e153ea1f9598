"""The options of a release, shared by ``release`` and ``check``, and the arguments of the library that they mean.

Among them the options for the place where the table is read and summed, and the engine they mean.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.delivery import ledger_options
from privcov.cli.losses import as_loss, loss_options
from privcov.cli.output import all_of, note
from privcov.errors import InputError

if TYPE_CHECKING:
    from privcov.schema import Schema
    from privcov.summing.engines import Engine


def together(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """The names of an option that may be repeated, with commas between them, as if it had been given once."""
    return ",".join(given) if given else None


engine_options = all_of(
    click.option(
        "--engine",
        default="local",
        show_default=True,
        help="Where rows are read and summed: local, spark or dask. See docs/explain/cluster.md.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 256),
        help="Threads or processes on this machine.  [default: one per core]",
    ),
    click.option(
        "--master",
        help="With --engine spark: its address, such as spark://host:7077.  [default: started here]",
    ),
    click.option(
        "--scheduler",
        help="With --engine dask: its address, such as tcp://host:8786.  [default: started here]",
    ),
    click.option(
        "--verify",
        type=click.FloatRange(0, 1),
        default=0.0,
        show_default=True,
        help="With spark or dask: the share of the fragments, from 0 to 1, that this process reads and sums again, "
        "to compare the sums.",
    ),
    click.option(
        "--device",
        default="cpu",
        show_default=True,
        help="The device that multiplies rows: cpu, or cuda for wide tables on a GPU. "
        "Both give the same bits.",
    ),
)
"""``--engine``, ``--workers``, ``--master``, ``--scheduler``, ``--verify``, ``--device``."""


def as_engine(words: dict[str, Any]) -> Engine:
    """The engine that the options mean; takes them out of ``words``."""
    from privcov.linalg.devices import Device
    from privcov.summing.engines import engine_named

    return engine_named(
        words.pop("engine"),
        workers=words.pop("workers"),
        master=words.pop("master"),
        scheduler=words.pop("scheduler"),
        verify=words.pop("verify"),
        device=Device.named(words.pop("device"), tell=note),
    )


spool_option = click.option(
    "--spool",
    metavar="SIZE",
    help="Copy what can be read once, a pipe or standard input (DATA is -), to temporary files, which are deleted "
    "at the end. At most this much, such as 2GB; where: TMPDIR.  [default: it is refused]",
)
"""``--spool``: how much of what can be read once may be copied."""


def as_data(given: str | list[str], spool: str | None) -> Any:
    """The table that DATA and ``--spool`` mean; copies are there to the end of the command."""
    from privcov.publish.ending import orderly, undisturbed
    from privcov.table import spool as copies

    names = [given] if isinstance(given, str) else given
    if spool is None:
        if "-" in names:
            what = "standard input can be read only once, and a release reads its table several times."
            raise InputError("E119", what, "Let privcov copy it to a temporary file: --spool 2GB.")
        return given
    most, context = copies.bytes_of(spool), click.get_current_context()
    if names.count("-") > 1 or ("-" in names and sys.stdin.isatty()):
        raise InputError("E152", "there is nothing to copy on standard input.", "Pipe one table in.")
    context.with_resource(orderly(lambda: None))  # a signal ends the command in order, and copies go
    with undisturbed():
        place = context.with_resource(copies.folder())
    tables = copies.copied([sys.stdin.buffer if one == "-" else one for one in names], place, most=most)
    return tables[0] if isinstance(given, str) else tables


part_options = all_of(
    click.option(
        "--columns",
        "kept",
        metavar="NAMES",
        help="Release these columns of the schema alone, separated by commas; a name with a comma goes between "
        "backticks.  [default: all]",
    ),
    click.option(
        "--without",
        "dropped",
        metavar="NAMES",
        help="Release all columns of the schema but these.  [default: none]",
    ),
)
"""``--columns`` and ``--without``: the part of a schema that is released."""


def as_part(schema: Schema, kept: str | None, dropped: str | None, by: str | None = None) -> Schema:
    """The schema of the columns that ``--columns`` and ``--without`` leave, and of those that make strata, in order.

    Those are no columns of the release in any case, so they need not be named to stay, and may be named to go.
    """
    from privcov.schema.names import split_names

    strata = [] if by is None else split_names(by)
    if kept is not None:
        names = split_names(kept)
        schema = schema.subset([*names, *(name for name in strata if name not in names)])
    gone = [] if dropped is None else [name for name in split_names(dropped) if name not in strata]
    return schema.without(gone) if gone else schema


order_options = all_of(
    click.argument("data", nargs=-1, required=True),
    click.option(
        "--schema",
        "schema_path",
        required=True,
        help="The schema file (TOML): the public facts about the table.",
    ),
    spool_option,
    part_options,
    loss_options,
    click.option(
        "--mechanism",
        default="auto",
        show_default=True,
        help="The mechanism that adds noise, by name: see privcov mechanisms.",
    ),
    click.option(
        "--for",
        "purpose",
        default="covariance",
        show_default=True,
        help="What matters most: covariance, means, regression, regression:FORMULA or pca:K.",
    ),
    click.option(
        "--arithmetic",
        default="exact",
        show_default=True,
        help="How noise is drawn: exact, or idealized (plain float64).",
    ),
    click.option(
        "--option",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the mechanism; may be repeated.  [default: its own]",
    ),
    click.option(
        "--as-published", is_flag=True, help="The constants of the mechanism's paper, not the tight ones."
    ),
    click.option(
        "--row-norm",
        default="declared",
        show_default=True,
        help="The bound on a scaled row: declared in the schema, or private, chosen for a share of the loss.",
    ),
    click.option(
        "--row-norm-share",
        default="0.1",
        show_default=True,
        help="The share of the loss, between 0 and 1, for a private row norm.",
    ),
    click.option(
        "--frame",
        type=click.Choice(["declared", "scales", "shape", "auto"]),
        default="declared",
        show_default=True,
        help="The centres and the units of columns. declared: from the bounds. scales: fitted privately, for a "
        "share of the loss. shape: fitted to the correlations too. auto: chosen from public facts.",
    ),
    click.option(
        "--cut",
        type=click.Choice(["told", "counted"]),
        default="told",
        show_default=True,
        help="A private frame cuts off a part of long rows. told: the report estimates that part. counted: "
        "intervals count it too, for another twentieth of the loss.",
    ),
    click.option(
        "--focus",
        "emphasis",
        metavar="NAMES",
        help="The columns that matter most, as names or as a formula; the others weigh half as much.  "
        "[default: all alike]",
    ),
    click.option(
        "--by",
        metavar="NAMES",
        multiple=True,
        callback=together,
        help="Make strata: one matrix for each level of this column, or for each combination of levels of several "
        "columns, separated by commas, for one payment; may be repeated.  [default: one matrix]",
    ),
    click.option(
        "--other",
        metavar="NAME",
        help="With --by: a stratum of this name for rows that are in no other.  [default: they count nowhere]",
    ),
    click.option(
        "--total-share",
        default="0",
        show_default=True,
        help="With --by: the share of the loss, from 0 to 0.999, for a total beside the strata; best takes the "
        "share that privcov plan names.",
    ),
    click.option(
        "--rows",
        "expect_rows",
        type=click.IntRange(1),
        help="How many records DATA has: any other number is refused before anything is paid.  [default: any]",
    ),
    click.option(
        "--timing",
        type=click.Choice(["quick", "constant"]),
        default=None,
        help="How lines of a file are read. quick: most lines in a fast way. constant: every line in the careful "
        "way, so that the run time reveals less about odd lines.  [default: as the schema says]",
    ),
    ledger_options,
    engine_options,
)
"""The data, its schema, the loss, the mechanism and its options, the row norm, and the engine."""


def as_order(words: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``privcov.release`` that the options mean, but for the ledger; takes them out of ``words``."""
    from privcov.schema import Schema

    engine = as_engine(words)
    whole = Schema.read(words.pop("schema_path"))
    schema = as_part(whole, words.pop("kept"), words.pop("dropped"), words.get("by"))
    loss = as_loss(
        **{name: words.pop(name) for name in ("epsilon", "delta", "rho", "neighbours", "understood")},
        rows_per_person=schema.max_rows_per_person,
    )
    data, options = words.pop("data"), words.pop("options")
    timing = words.pop("timing")
    if timing is not None:
        schema = replace(schema, file=replace(schema.file, timing=timing))
    order = {
        "data": data[0] if len(data) == 1 else list(data),
        "schema": schema,
        "loss": loss,
        "engine": engine,
        **{
            name: words.pop(name)
            for name in (
                "mechanism",
                "purpose",
                "arithmetic",
                "as_published",
                "row_norm",
                "row_norm_share",
                "frame",
                "cut",
                "emphasis",
                "expect_rows",
                "by",
                "other",
                "total_share",
            )
        },
    }
    named = named_options(options)
    for name in named:
        if name in {*order, "ledger", "deliver", "progress", "randomness"}:
            raise click.UsageError(f"{name} is not an option of a mechanism.")
    return order | named


def named_options(given: tuple[str, ...]) -> dict[str, Any]:
    """``NAME=VALUE`` texts as a mapping."""
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.UsageError("--option takes NAME=VALUE.")
    return {name: value for name, _, value in pairs}
