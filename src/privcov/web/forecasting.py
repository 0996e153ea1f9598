"""The error of every mechanism before anything is spent: at once where a law of noise is known, later where not.

The forecasts are those of ``privcov.planning``. What makes them quick enough for a slider is that the error of
noise of a known law is proportional to 1 / rows, so that one forecast per mechanism and loss serves every number
of rows. Everything else is asked of the ``Simulator``, and the page asks again until nothing is pending.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS, find
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.laws import NoiseLaw
from privcov.planning.candidates import MOST_REHEARSED, Candidate, Refusal, candidate, choose
from privcov.planning.forecast import Forecast, forecast, is_known
from privcov.planning.plan import Plan
from privcov.planning.purpose import Purpose
from privcov.planning.signal import SignalRange
from privcov.planning.targets import Target
from privcov.privacy import Loss
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.web.drafting import Draft
from privcov.web.simulating import Simulator, Task

_ROWS = 10**6
_PROMISE = {"pure": "pure", "approximate": "(ε, δ)", "zcdp": "zCDP"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a plan is wanted for: the schema and guesses, the rows, the loss, and what it is used for."""

    draft: Draft
    rows: int
    loss: Loss
    purpose: str = "covariance"
    spectrum: tuple[float, ...] | None = None
    """Eigenvalues of the guessed moments, for mechanisms whose error depends on the table."""

    @property
    def schema(self) -> Schema:
        return self.draft.schema

    def task(self, name: str, loss: Loss) -> Task:
        return Task(
            mechanism=name, loss=loss, grid=Grid.of(self.schema), rows=self.rows, spectrum=self.spectrum
        )


@dataclass(frozen=True, kw_only=True)
class Partial:
    """A plan of the mechanisms whose error is known by now, and the names of those still being simulated."""

    plan: Plan | None
    pending: tuple[Task, ...]


def planned(asked: Asked, simulator: Simulator) -> Partial:
    """What ``privcov.plan`` would say, as far as it is known; what is missing is pending, the choice first."""
    grid = Grid.of(asked.schema)
    taken = taken_by_auto(asked.loss, grid, asked.purpose)
    made: dict[str, Forecast] = {}
    pending: list[Task] = []
    refused: list[Refusal] = []
    for name in dict.fromkeys([taken.mechanism.name, *MECHANISMS]):
        found = known_forecast(asked, name, asked.loss, grid, simulator)
        if isinstance(found, Forecast):
            made[name] = found
        elif isinstance(found, Refusal):
            refused.append(found)
        else:
            pending.append(found)
    # A law is simulated once for a dimension and then serves every budget, so it comes before what is not a law.
    pending.sort(key=lambda task: not has_law(task.mechanism))
    choice = made.get(taken.mechanism.name)
    if choice is None:
        return Partial(plan=None, pending=tuple(pending))
    plan = Plan(
        schema=asked.schema,
        rows=asked.rows,
        loss=asked.loss,
        purpose=Purpose.parse(asked.purpose),
        forecasts=tuple(sorted(made.values(), key=lambda one: one.frobenius.mean)),
        refusals=tuple(refused),
        choice=choice,
        signal=SignalRange.of(asked.schema),
    )
    return Partial(plan=plan, pending=tuple(pending))


def chosen(asked: Asked, simulator: Simulator) -> Forecast | None:
    """The forecast of what ``auto`` takes; None while it is being simulated."""
    grid = Grid.of(asked.schema)
    found = known_forecast(
        asked, taken_by_auto(asked.loss, grid, asked.purpose).mechanism.name, asked.loss, grid, simulator
    )
    return found if isinstance(found, Forecast) else None


def told(asked: Asked, target: Target, known: Partial) -> dict[str, Any]:
    """The plan as the page shows it: one line a mechanism, in the unit asked for."""
    waiting = [task.mechanism for task in known.pending]
    if known.plan is None:
        return {"ready": False, "pending": waiting, "mechanisms": [], "words": "Simulating the noise …"}
    plan = known.plan
    error = _size(target.error(plan.choice, asked.schema, None))
    return {
        "ready": True,
        "pending": waiting,
        "choice": plan.choice.mechanism.name,
        "words": plan.reason[:1].upper() + plan.reason[1:],
        "verdict": plan.verdict(plan.choice),
        "verdicts": _VERDICTS[plan.verdict(plan.choice)],
        "error": error,
        "headline": error if target.norm else f"± {error}",
        "mechanisms": [_line(plan, made, target) for made in plan.forecasts],
        "notes": " ".join(_notes(plan)),
        "refused": [{"mechanism": no.name, "reason": no.reason} for no in plan.refusals],
        "columns": [
            {
                "column": c.column,
                "mean": "" if c.mean is None else _size(c.mean),
                "variance": _size(c.variance),
            }
            for c in plan.columns()
        ],
    }


_VERDICTS = {
    "useful": "The noise is small compared with the signal: a release at this budget is useful.",
    "marginal": "The noise may be as large as the signal: how useful a release is depends on the table and on repair.",
    "worse than publishing zeros": "The noise is larger than the signal: a release at this budget is useless.",
}


def known_forecast(
    asked: Asked, name: str, loss: Loss, grid: Grid, simulator: Simulator
) -> Forecast | Refusal | Task:
    """What is known of one mechanism: its forecast, why it cannot be had, or the task that would tell."""
    found = _law(name, loss, grid)
    if isinstance(found, Forecast):
        return for_rows(found, asked.rows)
    if isinstance(found, Refusal):
        return found
    task = asked.task(name, loss)
    return simulator.found(task) or task


def _law(name: str, loss: Loss, grid: Grid) -> Forecast | Refusal | None:
    """The forecast where its law is known, or why there is none; None where it takes a simulation to tell."""
    if not has_law(name):
        return _lawless(name, loss, grid)
    able = _able(name, loss, grid)
    if isinstance(able, Refusal):
        return able
    return _by_law(name, loss, grid) if is_known(able[1]) else None


def has_law(name: str) -> bool:
    return issubclass(MECHANISMS[name], AdditiveMechanism)


def _lawless(name: str, loss: Loss, grid: Grid) -> Refusal | None:
    """What can be refused at once; the rest is left to the simulation, which draws and so takes longer to refuse."""
    kinds = MECHANISMS[name].kinds
    if loss.kind not in kinds and not (loss.kind == "approximate" and kinds == ("pure",)):
        try:
            find(name, loss=loss)
        except ParameterError as error:
            return Refusal(name=name, reason=error.sentence)
    if grid.dimension > MOST_REHEARSED:
        return Refusal(
            name=name,
            reason=f"its error has to be simulated, which is done for at most {MOST_REHEARSED} columns.",
        )
    return None


@lru_cache(maxsize=20_000)
def _able(name: str, loss: Loss, grid: Grid) -> tuple[Candidate, NoiseLaw] | Refusal:
    try:
        able = candidate(name, loss=loss, grid=grid)
        law = able.mechanism.law(loss=able.loss, grid=grid)
    except ParameterError as error:
        return Refusal(name=name, reason=error.sentence)
    assert law is not None
    return able, law


@lru_cache(maxsize=20_000)
def _by_law(name: str, loss: Loss, grid: Grid) -> Forecast:
    able = _able(name, loss, grid)
    assert not isinstance(able, Refusal)
    return forecast(able[0].mechanism, loss=able[0].loss, grid=grid, rows=_ROWS)


def for_rows(made: Forecast, rows: int) -> Forecast:
    """A forecast by a law for another number of rows: the noise is the same, and is divided by more or fewer."""
    spreads = {name: spread * (made.rows / rows) for name, spread in made.errors.items()}
    return replace(made, rows=rows, **spreads)  # type: ignore[arg-type]


@lru_cache(maxsize=2_000)
def taken_by_auto(loss: Loss, grid: Grid, purpose: str) -> Candidate:
    return choose(loss=loss, grid=grid, purpose=purpose)


def _line(plan: Plan, made: Forecast, target: Target) -> dict[str, Any]:
    marks = {"law": "", "surrogate": "~", "worst case": "≤"}
    return {
        "mechanism": made.mechanism.name,
        "chosen": made is plan.choice,
        "promise": _PROMISE[made.loss.kind],
        "exact": made.mechanism.arithmetic == "exact",
        "error": marks[made.basis] + _size(target.error(made, plan.schema, None)),
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
