"""``privcov plan``: how accurate a release would be, or what an accuracy would cost; nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from privcov.cli.losses import as_loss, default_neighbours, loss_options
from privcov.cli.orders import as_part, part_options, together
from privcov.cli.output import counting, json_option, note, print_json, say

if TYPE_CHECKING:
    from privcov.planning.invert import Answer, Kind
    from privcov.planning.moments import PublicMoments
    from privcov.planning.targets import Target
    from privcov.schema import Schema


@click.command(name="plan")
@click.option(
    "--schema", "schema_path", required=True, help="The schema file (TOML): the public facts about the table."
)
@click.option(
    "--rows",
    required=True,
    help="The number of rows, public or guessed; with --target, ? asks for the fewest.",
)
@part_options
@loss_options
@click.option(
    "--for",
    "purpose",
    default="covariance",
    show_default=True,
    help="What matters most: covariance, means, regression, regression:FORMULA or pca:K.",
)
@click.option(
    "--target",
    help="The accuracy wanted: frobenius=0.02 (per row, scaled units); correlation(a, b)=0.05; in original "
    'units mean(age)=0.5 or "se(y ~ x: x)=50".  [default: compare mechanisms]',
)
@click.option(
    "--kind",
    type=click.Choice(["pure", "approximate", "zcdp"]),
    help="With --target and without a loss: the kind of budget asked for.  [default: pure]",
)
@click.option(
    "--mechanism", "mechanisms", multiple=True, help="Only this one; may be repeated.  [default: all]"
)
@click.option(
    "--surrogate",
    "surrogate_path",
    help="A PUBLIC table to stand in for the one to be released.  [default: none]",
)
@click.option(
    "--cut",
    type=click.Choice(["told", "counted"]),
    default="told",
    show_default=True,
    help="For the forecast of a private frame. counted: intervals count the part that the frame cuts off long rows, "
    "and the forecast counts the price of that.",
)
@click.option(
    "--focus",
    "emphasis",
    metavar="NAMES",
    help="The columns that matter most, as names or as a formula, as for release: shows the noise on them and on the "
    "others.  [default: those of a formula in --for, else all alike]",
)
@click.option(
    "--by",
    metavar="NAMES",
    multiple=True,
    callback=together,
    help="Columns whose levels make strata: shows which strata would drown in noise. May be repeated.  "
    "[default: one matrix]",
)
@click.option("--other", metavar="NAME", help="With --by: a stratum for rows in no other.  [default: none]")
@click.option(
    "--sizes",
    metavar="NAME=ROWS",
    multiple=True,
    help="With --by: the rows of a stratum, public or guessed; may be repeated.  [default: equal parts of --rows]",
)
@click.option(
    "--total-share",
    default="0",
    show_default=True,
    help="With --by: the share of the loss, from 0 to 0.999, for a total beside the strata, or best.",
)
@click.option(
    "--releases",
    type=int,
    help="Also show the error of each release if this number of releases share the budget.  [default: one]",
)
@click.option("--plot", help="Draw error against budget to this .svg, .pdf or .png.  [default: no figure]")
@click.option("--force", is_flag=True, help="Replace a plot that is already there.")
@json_option
def command(
    schema_path: str,
    kept: str | None,
    dropped: str | None,
    rows: str,
    purpose: str,
    target: str | None,
    kind: str | None,
    mechanisms: tuple[str, ...],
    surrogate_path: str | None,
    cut: Literal["told", "counted"],
    emphasis: str | None,
    by: str | None,
    other: str | None,
    sizes: tuple[str, ...],
    total_share: str,
    releases: int | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    **loss_words: Any,
) -> None:
    """Show the error of every mechanism before you spend anything, or the budget that an accuracy needs.

    No data is opened: the errors follow from the schema, the number of rows and the loss. Where an error depends on
    the table, it is simulated for the worst table, for the moments under [planning] in the schema, or for a public
    --surrogate.

    Example: privcov plan --schema people.toml --rows 4000 --epsilon 1
    """
    from privcov.planning.plan import plan
    from privcov.planning.splitting import split
    from privcov.planning.words import split_text
    from privcov.schema import Schema
    from privcov.schema.grid import Grid

    whole = Schema.read(schema_path)
    schema = as_part(whole, kept, dropped, by)
    if by is not None or other is not None or sizes or total_share != "0":
        others = target or kind or releases or plot or surrogate_path or emphasis
        if others or len(mechanisms) > 1 or cut != "told":
            raise click.UsageError(
                "--by takes one mechanism, and no --target, --kind, --releases, --plot, --surrogate, --focus or "
                "--cut counted."
            )
        _plan_strata(schema, rows, by, other, sizes, total_share, mechanisms, purpose, as_json, loss_words)
        return
    moments = _moments(whole, schema, schema_path, surrogate_path)
    if target is not None:
        if releases is not None or plot is not None or emphasis is not None or cut != "told":
            raise click.UsageError(
                "--target cannot be combined with --releases, --plot, --focus or --cut counted."
            )
        _invert(schema, rows, target, kind, mechanisms, moments, as_json, loss_words)
        return
    if rows == "?" or kind is not None:
        raise click.UsageError("--rows ? and --kind need a --target.")
    loss, count = as_loss(**loss_words, rows_per_person=schema.max_rows_per_person), _rows(rows)
    divided = (
        None if releases is None else split(loss=loss, grid=Grid.of(schema), rows=count, releases=releases)
    )
    if plot is not None:
        from privcov.report import figures

        figures.check(plot, force=force)
    with ExitStack() as stack:
        made = plan(
            schema=schema,
            rows=count,
            loss=loss,
            purpose=purpose,
            mechanisms=list(mechanisms) or None,
            moments=moments,
            cut=cut,
            emphasis=emphasis,
            progress=_progress(stack, "simulating"),
        )
    if plot is not None:
        from privcov.planning.display import draw

        with ExitStack() as stack:
            draw(made, plot, force=force, progress=_progress(stack, "drawing"))
        note(f"wrote {plot}")
    if as_json:
        extra = {} if divided is None else {"split": divided.to_dict()}
        print_json({**made.to_dict(), **extra})
        return
    say(str(made))
    if divided is not None:
        say("\n" + split_text(divided))


def _plan_strata(
    schema: Schema,
    rows: str,
    by: str | None,
    other: str | None,
    sizes: tuple[str, ...],
    total_share: str,
    mechanisms: tuple[str, ...],
    purpose: str,
    as_json: bool,
    loss_words: dict[str, Any],
) -> None:
    from privcov.planning.strata import plan_strata
    from privcov.planning.words import counting_words

    if by is None:
        raise click.UsageError("--other, --sizes and --total-share need --by.")
    pairs = [text.rpartition("=") for text in sizes]
    if not all(name and size.strip().isdecimal() for name, _, size in pairs):
        raise click.UsageError("--sizes takes NAME=ROWS.")
    made = plan_strata(
        schema=schema,
        by=by,
        other=other,
        rows=_rows(rows),
        loss=as_loss(**loss_words, rows_per_person=schema.max_rows_per_person),
        sizes={name: int(size) for name, _, size in pairs},
        purpose=purpose,
        mechanism=mechanisms[0] if mechanisms else "auto",
        total_share=total_share,
    )
    print_json(made.to_dict()) if as_json else say("\n\n".join([str(made), *counting_words(schema)]))


def _invert(
    schema: Schema,
    rows: str,
    target: str,
    kind: str | None,
    mechanisms: tuple[str, ...],
    moments: PublicMoments | None,
    as_json: bool,
    loss_words: dict[str, Any],
) -> None:
    from privcov.planning.invert import answer, answer_loss, answer_rows
    from privcov.planning.targets import Target

    if len(mechanisms) > 1:
        raise click.UsageError("--target asks about one mechanism.")
    wanted = Target.parse(target, schema)
    given = loss_words["epsilon"] is not None or loss_words["rho"] is not None
    common: dict[str, Any] = {
        "schema": schema,
        "target": wanted,
        "mechanism": mechanisms[0] if mechanisms else "auto",
        "moments": moments,
    }
    if given and kind is not None:
        raise click.UsageError("--kind asks for a budget; leave --epsilon and --rho out.")
    if rows == "?":
        found = answer_rows(loss=as_loss(**loss_words, rows_per_person=schema.max_rows_per_person), **common)
    elif given:
        found = answer(
            loss=as_loss(**loss_words, rows_per_person=schema.max_rows_per_person), rows=_rows(rows), **common
        )
    else:
        neighbours = loss_words["neighbours"]
        if neighbours is None:
            neighbours = default_neighbours(schema.max_rows_per_person)
        delta = loss_words["delta"]
        sort = cast("Kind", kind or ("pure" if delta is None else "approximate"))
        found = answer_loss(rows=_rows(rows), kind=sort, neighbours=neighbours, delta=delta, **common)
    if as_json:
        print_json(found.to_dict())
        return
    told = [_sentence(found, wanted, asked_rows=rows == "?", given=given), wanted.supposed(schema, moments)]
    say("\n".join(filter(None, told)))


def _sentence(found: Answer, wanted: Target, *, asked_rows: bool, given: bool) -> str:
    means = f"{found.mechanism}, {found.loss}, {found.rows:,} rows: {wanted.name} "
    if not math.isfinite(found.error):
        means += "is hidden: the noise is as wide as the bounds allow, or wider"
    else:
        means += f"= {found.error:.4g}"
        means += " (hidden: the noise is as wide as the bounds allow, or wider)" if found.hidden else ""
    if asked_rows:
        return f"At least {found.rows:,} rows are needed for {wanted.text}.\n{means}."
    if not given:
        return f"The smallest budget for {wanted.text} is {found.loss}.\n{means}."
    reached = "reached" if found.error <= wanted.bound else "NOT reached"
    return f"{means}; {wanted.text} is {reached}."


def _moments(
    whole: Schema, schema: Schema, schema_path: str, surrogate_path: str | None
) -> PublicMoments | None:
    if surrogate_path is None:
        from privcov.planning.moments import PublicMoments

        guessed = PublicMoments.read(whole, schema_path)
        return None if guessed is None else guessed.part(schema)
    from privcov.publish.surrogate import surrogate

    note(f"treating {surrogate_path} as a public table: the answer reveals its moments.")
    return surrogate(surrogate_path, schema=schema)


def _rows(text: str) -> int:
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise click.UsageError(f"--rows must be a whole number, got {text!r}.") from None


def _progress(stack: ExitStack, what: str) -> Callable[[int], Callable[[], None]]:
    return lambda total: stack.enter_context(counting(total, what))
