"""A plan as a person reads it: a table of mechanisms, a verdict, and what it means for each column."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privcov.planning.forecast import Forecast
from privcov.planning.framed import framed
from privcov.privacy import display
from privcov.report.tables import table
from privcov.schema.names import listed
from privcov.text.aligning import cut, paragraph

if TYPE_CHECKING:
    from privcov.planning.plan import Plan
    from privcov.planning.splitting import Split
    from privcov.schema import Schema

MOST_COLUMNS = 12
_COMPLETE = "Rows with a missing cell count as nothing: give the number of complete rows."
HIDDEN = "hidden: the noise is as wide as the bounds allow, or wider. A release would say no more than the bounds do."
_BASIS = {"law": "", "surrogate": "~", "worst case": "≤"}


def as_text(plan: Plan) -> str:
    """The whole plan."""
    parts = [
        paragraph(f"{plan.rows:,} rows, {len(plan.schema.features)} columns in the matrix; {plan.loss}."),
        *counting_words(plan.schema),
        _mechanisms(plan),
        "\n".join(paragraph(line) for line in _notes(plan)),
        _columns(plan),
    ]
    return "\n\n".join(parts)


def counting_words(schema: Schema) -> list[str]:
    """What the rows of a plan are, where they are not all rows of the table with one each for a person."""
    told = [schema.person_words] if schema.enforced or schema.max_rows_per_person > 1 else []
    if schema.weight is not None:
        # Noise is small or large against the sum of what rows count as.
        words = (
            f"{schema.weight_words} Rows are counted here in units of the largest weight: give the sum of the weights, "
            f"such as the size of the population, divided by {schema.largest_weight:g}."
        )
        told.append(paragraph(words, hang=""))
    return [*told, _COMPLETE] if schema.empties_rows else told


def reason(plan: Plan) -> str:
    """Why auto takes what it takes."""
    choice = plan.choice
    why = f"auto chooses {choice.mechanism.name} for {plan.purpose}: the least noise of a known distribution"
    if choice.loss != plan.loss:
        why += f", and promises more than you asked for ({choice.loss.kind} instead of {plan.loss.kind})"
    others = [made for made in plan.forecasts if made.basis == "law" and made is not choice]
    if others:
        ratio = others[0].frobenius.mean / choice.frobenius.mean
        why += f"; the error of {others[0].mechanism.name} is {ratio:.2f} times as large"
    return why + "."


def split_text(split: Split) -> str:
    """The ways to divide a budget."""
    whole = split.joint.error
    lines = [
        [share.rule, _amounts(share.each), share.mechanism, _size(share.error), f"{share.error / whole:.2f}"]
        for share in (split.joint, *split.shares)
    ]
    told = (
        f"If the budget is divided over {split.releases} releases, each has {split.saving:.3g} times the error of one "
        "joint release. One release answers every model, correlation and component for free."
    )
    return (
        table(["budget", "each release", "mechanism", "error", "ratio"], lines, left=3)
        + "\n"
        + paragraph(told, hang="")
    )


def _mechanisms(plan: Plan) -> str:
    headings = ["mechanism", "promise", "Frobenius", "95 %", "spectral", "95 %", "entry", "95 %", "verdict"]
    lines = []
    for made in plan.forecasts:
        star = " *" if made is plan.choice else ""
        cells = [
            _size(value)
            for spread in (made.frobenius, made.spectral, made.entry)
            for value in (spread.mean, spread.high)
        ]
        cells[0] = _BASIS[made.basis] + cells[0]
        name = made.mechanism.name + ("" if made.mechanism.arithmetic == "exact" else " †")
        lines.append([name + star, _promise(made), *cells, plan.verdict(made)])
    return table(headings, lines, left=2)


def _notes(plan: Plan) -> list[str]:
    notes = [
        f"* {plan.reason}",
        f"{plan.choice.mechanism.name} is {plan.outlook()}{_remedy(plan)}",
        *([f"What would be better, each tried for {plan.rows:,} rows:"] if plan.exits else []),
        *(f"- {one}" for one in plan.exits),
        "Errors are expected values; under 95 %, the value that the error stays below 95 times in 100. They are for "
        "the matrix before repair, divided by the number of rows, in scaled units. Repair makes large errors smaller.",
    ]
    if (focus := plan.focus) is not None:
        names = listed([cut(name) for name in plan.emphasis])
        notes.append(
            f"Focus on {names}: the noise on products of their numbers is {focus[0]:.2g} times what it is without a "
            f"focus, and on products of two other numeric columns {focus[1]:.2g} times."
        )
    if (other := framed(plan)) is not None:
        notes.append(str(other))
    if any(made.basis == "worst case" for made in plan.forecasts):
        notes.append(
            "≤ The error depends on the table; this is the worst among tables with the longest rows allowed."
        )
    if any(made.basis == "surrogate" for made in plan.forecasts):
        notes.append(
            "~ The error depends on the table; this one is simulated from the public moments you gave."
        )
    if any(made.mechanism.arithmetic != "exact" for made in plan.forecasts):
        notes.append("† With this many columns, available in idealized (floating-point) arithmetic only.")
    refused = [no.name for no in plan.refusals]
    if refused:
        notes.append(
            f"Not available for this promise or schema: {', '.join(refused)} (--json gives the reasons)."
        )
    return notes


def _remedy(plan: Plan) -> str:
    """What would be enough, where a release would be worth nothing."""
    found = plan.outlook()
    if found.verdict != "worse than publishing zeros" or plan.choice.law is None:
        return ""
    needed = replace(found, low=plan.rows * found.low, high=plan.rows * found.high).rows_for
    return (
        f" It would be marginal from about {needed['marginal']:,} rows on, and useful from about {needed['useful']:,}."
        + " With fewer columns (--columns, --without) or a larger loss, fewer rows are enough."
        * (not plan.exits)
    )


def _columns(plan: Plan) -> str:
    shown = plan.columns()[:MOST_COLUMNS]
    headings = ["column", *(["mean ±"] if shown and shown[0].mean is not None else []), "variance ±"]
    lines = [
        [cut(c.column), *([] if c.mean is None else [c.size("mean")]), c.size("variance")] for c in shown
    ]
    title = f"Noise of {plan.choice.mechanism.name} in original units, 95 times in 100:"
    hidden = len(plan.columns()) - len(shown)
    more = f"\n… and {hidden} more columns (--json prints all)" if hidden else ""
    note = f"\n{paragraph(HIDDEN, hang='')}" if any(c.hidden for c in shown) else ""
    return f"{title}\n{table(headings, lines)}{more}{note}"


def _promise(made: Forecast) -> str:
    return {"pure": "pure", "approximate": "(ε, δ)", "zcdp": "zCDP"}[made.loss.kind]


def _amounts(loss: object) -> str:
    amounts = loss.amounts  # type: ignore[attr-defined]
    return ", ".join(f"{name} = {display(value)}" for name, value in amounts.items())


def _size(value: float) -> str:
    return f"{value:.3g}"
