"""A plan as far as it is known at once: where a law of noise is known, and not where it takes a simulation.

The error of noise of a known law is proportional to 1 / rows, so that one forecast per mechanism and loss serves
every number of rows: quick enough for a slider. Whoever asks simulates the rest, and asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS, find
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.laws import NoiseLaw
from privcov.planning.candidates import MOST_REHEARSED, Candidate, Refusal, candidate, choose
from privcov.planning.forecast import Forecast, forecast, is_known
from privcov.planning.moments import PublicMoments
from privcov.planning.plan import Plan, plan_of
from privcov.privacy import Loss
from privcov.schema import Schema
from privcov.schema.grid import Grid

_ROWS = 10**6


def plan_so_far(
    *,
    schema: Schema,
    rows: int,
    loss: Loss,
    purpose: str,
    simulated: Callable[[str], Forecast | Refusal | None],
    moments: PublicMoments | None = None,
) -> tuple[Plan | None, tuple[str, ...]]:
    """What ``plan`` would say of the mechanisms that are known, and the names of the others, the choice first.

    ``simulated`` is asked for what no law tells, by name: a forecast, a refusal, or None where it is not known yet.
    There is no plan while the choice of ``auto`` itself is not known.
    """
    grid = Grid.of(schema)
    taken = taken_by_auto(loss, grid, purpose).mechanism.name
    made: dict[str, Forecast] = {}
    refused: list[Refusal] = []
    pending: list[str] = []
    for name in dict.fromkeys([taken, *MECHANISMS]):
        found = known_forecast(name, loss=loss, grid=grid, rows=rows) or simulated(name)
        if isinstance(found, Forecast):
            made[name] = found
        elif found is not None:
            refused.append(found)
        else:
            pending.append(name)
    # A law is simulated once for a dimension and then serves every budget, so it comes before what is not a law.
    pending.sort(key=lambda name: not has_law(name))
    if taken not in made:
        return None, tuple(pending)
    plan = plan_of(schema, made, taken, refused, rows=rows, loss=loss, purpose=purpose, moments=moments)
    return plan, tuple(pending)


@lru_cache(maxsize=2_000)
def taken_by_auto(loss: Loss, grid: Grid, purpose: str) -> Candidate:
    """What ``auto`` takes; the same question is asked at every step of a slider."""
    return choose(loss=loss, grid=grid, purpose=purpose)


def known_forecast(name: str, *, loss: Loss, grid: Grid, rows: int) -> Forecast | Refusal | None:
    """The forecast where its law is known, or why there is none; None where it takes a simulation to tell."""
    if not has_law(name):
        return _lawless(name, loss, grid)
    able = _able(name, loss, grid)
    if isinstance(able, Refusal):
        return able
    return for_rows(_by_law(name, loss, grid), rows) if is_known(able[1]) else None


def has_law(name: str) -> bool:
    """Whether a mechanism adds noise of a law."""
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
