"""The error of every mechanism before anything is spent: at once where a law of noise is known, later where not.

The plan is that of ``privcov.planning.known``. What no law tells is asked of the ``Simulator``, and the page asks
again until nothing is pending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privcov.planning.candidates import Refusal
from privcov.planning.forecast import Forecast
from privcov.planning.framed import in_frame
from privcov.planning.known import known_forecast, plan_so_far, taken_by_auto
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.planning.plan import Plan
from privcov.planning.targets import Target
from privcov.privacy import Loss
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.web.drafting import Draft
from privcov.web.simulating import Simulator, Task

_PROMISE = {"pure": "pure", "approximate": "(ε, δ)", "zcdp": "zCDP"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a plan is wanted for: the schema and guesses, the rows, the loss, and what it is used for."""

    draft: Draft
    rows: int
    loss: Loss
    declared: Schema
    """The schema without the focus, which a private frame sets out from."""
    purpose: str = "covariance"
    frame: str = "declared"
    cut: str = "told"
    moments: PublicMoments | None = None
    """What was guessed: errors that depend on the table, and verdicts, are for these."""

    @property
    def schema(self) -> Schema:
        return self.draft.schema

    def task(self, name: str, loss: Loss) -> Task:
        spectrum = None if self.moments is None else tuple(self.moments.spectrum.tolist())
        return Task(mechanism=name, loss=loss, grid=Grid.of(self.schema), rows=self.rows, spectrum=spectrum)


@dataclass(frozen=True, kw_only=True)
class Partial:
    """A plan of the mechanisms whose error is known by now, and the names of those still being simulated."""

    plan: Plan | None
    pending: tuple[Task, ...]


def planned(asked: Asked, simulator: Simulator) -> Partial:
    """What ``privcov.plan`` would say, as far as it is known; what is missing is pending, the choice first."""
    plan, missing = plan_so_far(
        schema=asked.schema,
        rows=asked.rows,
        loss=asked.loss,
        purpose=asked.purpose,
        simulated=lambda name: simulator.found(asked.task(name, asked.loss)),
        moments=asked.moments,
    )
    return Partial(plan=plan, pending=tuple(asked.task(name, asked.loss) for name in missing))


def chosen(asked: Asked, simulator: Simulator) -> Forecast | None:
    """The forecast of what ``auto`` takes; None while it is being simulated."""
    taken = taken_by_auto(asked.loss, Grid.of(asked.schema), asked.purpose).mechanism.name
    found = forecast_or_task(asked, taken, asked.loss, simulator)
    return found if isinstance(found, Forecast) else None


def told(asked: Asked, target: Target, known: Partial) -> dict[str, Any]:
    """The plan as the page shows it: one line a mechanism, in the unit asked for."""
    waiting = [task.mechanism for task in known.pending]
    if known.plan is None:
        return {"ready": False, "pending": waiting, "mechanisms": [], "words": "Simulating the noise …"}
    plan = known.plan
    size = target.error(plan.choice, asked.schema, plan.moments)
    error = "hidden" if target.is_hidden(size, asked.schema) else _size(size)
    private = in_frame(
        asked.declared,
        law=plan.choice.law,
        rows=asked.rows,
        loss=asked.loss,
        purpose=asked.purpose,
        word="auto" if asked.frame == "declared" else asked.frame,
        cut=asked.cut,
    )
    framed = asked.frame != "declared" and private is not None
    outlook = Outlook.framed(private.private) if framed and private is not None else plan.outlook()
    return {
        "ready": True,
        "pending": waiting,
        "choice": plan.choice.mechanism.name,
        "words": plan.reason[:1].upper() + plan.reason[1:],
        "verdict": outlook.verdict,
        "verdicts": sentence(outlook),
        "frames": "" if private is None else str(private),
        "error": error,
        "headline": error if target.norm or error == "hidden" else f"± {error}",
        "mechanisms": [_line(plan, made, target) for made in plan.forecasts],
        "notes": " ".join(_notes(plan)),
        "refused": [{"mechanism": no.name, "reason": no.reason} for no in plan.refusals],
        "columns": [
            {
                "column": c.column,
                "mean": c.size("mean"),
                "variance": c.size("variance"),
            }
            for c in plan.columns()
        ],
    }


def sentence(outlook: Outlook) -> str:
    """The verdict as a sentence."""
    return f"{str(outlook)[:1].upper()}{str(outlook)[1:]}"


def forecast_or_task(asked: Asked, name: str, loss: Loss, simulator: Simulator) -> Forecast | Refusal | Task:
    """What is known of one mechanism: its forecast, why it cannot be had, or the task that would tell."""
    task = asked.task(name, loss)
    known = known_forecast(name, loss=loss, grid=task.grid, rows=asked.rows)
    return known or simulator.found(task) or task


def _line(plan: Plan, made: Forecast, target: Target) -> dict[str, Any]:
    marks = {"law": "", "surrogate": "~", "worst case": "≤"}
    return {
        "mechanism": made.mechanism.name,
        "chosen": made is plan.choice,
        "promise": _PROMISE[made.loss.kind],
        "exact": made.mechanism.arithmetic == "exact",
        "error": marks[made.basis] + _size(target.error(made, plan.schema, plan.moments)),
        "frobenius": marks[made.basis] + _size(made.frobenius.mean),
        "verdict": plan.verdict(made),
    }


def _notes(plan: Plan) -> list[str]:
    """What the marks of the table mean, those that are in it."""
    bases = {made.basis for made in plan.forecasts}
    notes = ["Matrix: expected error per row, Frobenius norm, scaled units."]
    if "worst case" in bases:
        notes.append(
            "≤ The error depends on the table; this is the worst among tables with the longest rows allowed."
        )
    if "surrogate" in bases:
        notes.append("~ The error depends on the table; this one is simulated from your guesses.")
    if any(made.mechanism.arithmetic != "exact" for made in plan.forecasts):
        notes.append("† With this many columns, available in idealized (floating-point) arithmetic only.")
    return notes


def _size(value: float) -> str:
    return f"{value:.3g}"
