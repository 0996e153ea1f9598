"""Level 3, end to end: whether noise is new each time: in this process, in forked children, in fresh processes.

Two releases of one table are the same with probability far below 1e-9 where the noise is new. A seed, a copied
generator or a cached draw makes them the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np

from privcov.audit.replay import Pipeline
from privcov.audit.sampling import gather
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import Mechanism
from privcov.privacy import Loss
from privcov.releases.release import Release
from privcov.schema import Schema

GENEROUS = 100
"""The budget is this many times the claimed one, and the table has this many times a few rows, so that no value is
clipped at zero: two answers of nothing but zeros would look like a repetition."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How many releases were compared, and where two were the same."""

    where: str
    releases: int
    repeated: bool


def repeats(
    pipeline: Pipeline, mechanism: Mechanism, *, schema: Schema, loss: Loss, fresh: bool
) -> list[Repeats]:
    """Compare releases of one made-up table; ``fresh`` starts new interpreters too, for the registry's mechanisms."""
    table = _table(len(schema.read_columns))

    def once() -> Any:
        return _noisy(pipeline(table, schema=schema, loss=GENEROUS * loss, mechanism=mechanism))

    found = [_compare("one process", [once() for _ in range(4)])]

    def child(count: int) -> Any:
        made = np.empty(count, dtype=object)
        made[:] = [once() for _ in range(count)]
        return made

    # Four tasks of one run each, one child each: all inherit whatever this process has in memory.
    children = gather([(child, 1)] * 4, processes=4)
    found.append(_compare("forked children", [side[0] for side in children]))
    if fresh and type(mechanism) is MECHANISMS.get(mechanism.name):
        found.append(_compare("fresh processes", [_fresh(mechanism, loss, schema) for _ in range(2)]))
    return found


def _table(columns: int) -> Any:
    few = np.vstack([0.3 * np.eye(columns), np.full((2, columns), 0.1)])
    return np.tile(few, (GENEROUS, 1))


def _noisy(result: Any) -> Any:
    """What noise should have changed."""
    return (result.upper, result.sketch) if isinstance(result, Release) else result


def _compare(where: str, made: list[Any]) -> Repeats:
    return Repeats(where=where, releases=len(made), repeated=len({repr(one) for one in made}) < len(made))


def _fresh(mechanism: Mechanism, loss: Loss, schema: Schema) -> str:
    """One release by a new interpreter that imports privcov for the first time."""
    options = {**mechanism.options, "arithmetic": mechanism.arithmetic}
    amounts = {name: str(GENEROUS * amount) for name, amount in loss.amounts.items()}
    if "delta" in amounts:
        amounts["delta"] = str(loss.amounts["delta"])
    code = (
        "import sys, json, numpy as np, privcov as pc\n"
        "from fractions import Fraction\n"
        "kind, amounts, relation, schema, mechanism, options = json.loads(sys.argv[1])\n"
        "schema = pc.Schema.from_dict(schema)\n"
        "loss = getattr(pc, kind)(**{n: Fraction(a) for n, a in amounts.items()}, neighbours=relation)\n"
        "from privcov.audit.repeats import _table\n"
        "table = _table(len(schema.read_columns))\n"
        "print(pc.release(table, schema=schema, loss=loss, mechanism=mechanism, **options).upper)\n"
    )
    facts = [
        type(loss).__name__, amounts, str(loss.neighbours), tomllib.loads(schema.to_toml()), mechanism.name, options,
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(facts)], capture_output=True, text=True, check=True
    )
    return done.stdout
