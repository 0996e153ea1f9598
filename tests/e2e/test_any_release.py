"""Whatever a schema declares: what ``check`` accepts is released, verified, shown, modelled and reported.

Schemas, tables and options are drawn together, so that features meet that no other test puts together: odd names, empty
tables, constant and missing columns, dates, levels, derived columns, persons, weights, strata, frames, every mechanism.
Nothing may end in an internal error or a traceback, and no text may print nan or inf. A refusal is a sentence, exit 2.

    pytest -m slow tests/e2e/test_any_release.py              300 draws; PRIVCOV_SAMPLE takes a share of them
"""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import InternalError, PrivcovError
from privcov.mechanisms import MECHANISMS

DRAWS = max(6, round(300 * float(os.environ.get("PRIVCOV_SAMPLE", "1"))))
NAMES = ("age", "my col", "a:b", "x~y", "é", "income (k)", "1st", "a[b]", "C", "I", "log", "1")
BOUNDS = ((0, 10), (-1e4, 1e5), (-10, -1), (0, 1e-3), (0, 1e12))
LEVELS = (["F", "M"], ["a", "b", "c"], ["x"], [str(i) for i in range(12)], ["1.0", "2"], ["yes", "no"])
OF_NUMBERS = ("{a}^2", "{a} * {b}", "poly({a}, 2)", "bs({a}, 4)", "cut({a}, 1, 5)", "{a} >= 2", "min({a}, 5)")
OF_DATES = ("year({a})", "weekday({a})", "{a} >= '2010-01-01'", "days({a} - {b})")


def quoted(name: str) -> str:
    return f"`{name}`"


@dataclass
class Drawn:
    """A declaration, a table that may or may not fit it, and what is asked for."""

    seed: int
    declared: dict[str, Any] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice, self.noise = random.Random(self.seed), np.random.default_rng(self.seed)
        self.rows = self.dice.choice([0, 1, 2, 3, 20, 200, 1_500])
        self.columns: dict[str, Any] = {}
        self.derived: dict[str, str] = {}
        for name in self.dice.sample(NAMES, self.dice.randint(1, 6)):
            self.dice.choice([self.number, self.number, self.number, self.levels, self.date])(name)
        numbers = [
            name for name, about in self.columns.items() if isinstance(about.get("lower"), int | float)
        ]
        if numbers and self.chance(0.4):
            a, b = (quoted(self.dice.choice(numbers)) for _ in range(2))
            self.derived["made"] = self.dice.choice(OF_NUMBERS).format(a=a, b=b)
        self.declared = {"columns": self.columns, "derived": self.derived}
        self.declared["missing"] = self.dice.choice(["midpoint", "zero-row", "none"])
        if self.chance(0.1):
            self.declared |= self.dice.choice([{"intercept": False}, {"row_norm_bound": 1.2}])
        self.rules_of_rows()
        self.ask(numbers)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def number(self, name: str) -> None:
        low, high = self.dice.choice(BOUNDS)
        self.columns[name] = {"lower": low, "upper": high}
        width = self.dice.choice([0, 0.01, 1, 3])
        cells = (low + high) / 2 + width * (high - low) / 2 * self.noise.uniform(-1, 1, self.rows)
        if self.chance(0.4):
            cells[self.noise.random(self.rows) < 0.2] = np.nan
        if self.rows and self.chance(0.1):
            cells[0] = np.inf
        self.table[name] = cells
        if self.chance(0.2):
            self.columns[name]["missing"] = self.dice.choice(["midpoint", "zero-row", "indicator"])
        elif self.chance(0.1):
            self.columns[name] |= {"missing": "fill", "fill": low}

    def levels(self, name: str) -> None:
        levels = self.dice.choice(LEVELS)
        self.columns[name] = {"levels": levels}
        if self.chance(0.5):
            self.columns[name] |= {"exhaustive": True, "otherwise": levels[0]}
        self.table[name] = self.noise.choice(levels + ["??"] * self.chance(0.3), self.rows).astype(object)

    def date(self, name: str) -> None:
        self.columns[name] = {"lower": "2000-01-01", "upper": "2020-12-31", "feature": False}
        days = self.noise.integers(0, 9_000, self.rows)
        self.table[name] = np.array([str(np.datetime64("2000-01-01") + day) for day in days], dtype=object)
        dates = [quoted(each) for each, about in self.columns.items() if isinstance(about.get("lower"), str)]
        self.derived[f"made of {name}"] = self.dice.choice(OF_DATES).format(a=dates[-1], b=dates[0])

    def rules_of_rows(self) -> None:
        if self.chance(0.2):
            each = self.dice.choice(
                [{"max_rows_per_person": 1}, {"max_rows_per_person": 3}, {"per_person": "mean"}]
            )
            self.declared |= {"person": "pid", **each}
            self.table["pid"] = self.noise.integers(0, max(1, self.rows // 2), self.rows)
        elif self.chance(0.2):
            self.declared["max_rows_per_person"] = 2
        if self.chance(0.2):
            self.declared |= {"weight": "w", "largest_weight": self.dice.choice([1, 5, 100])}
            self.declared |= {"weight_power": 0.5} if self.chance(0.4) else {}
            self.table["w"] = self.noise.uniform(0, 6, self.rows)

    def ask(self, numbers: list[str]) -> None:
        neighbours, size = (
            self.dice.choice(["replace-one", "add-remove"]),
            self.dice.choice(["0.01", "0.5", "4"]),
        )
        self.options["loss"] = self.dice.choice(
            [
                pc.PureDP(epsilon=size, neighbours=neighbours),
                pc.ApproxDP(epsilon=size, delta="1e-6", neighbours=neighbours),
                pc.ZCDP(rho=size, neighbours=neighbours),
            ]
        )
        if self.chance(0.5):
            self.options["frame"] = self.dice.choice(["auto", "scales", "shape"])
            self.options |= {"cut": "counted"} if self.chance(0.3) else {}
        elif self.chance(0.15):
            self.options["row_norm"] = "private"
        if numbers and self.chance(0.2):
            self.options["emphasis"] = [self.dice.choice(numbers)]
        if self.chance(0.3):
            self.options["purpose"] = self.dice.choice(["means", "regression", "pca:1"])
        if self.chance(0.15):
            self.options["mechanism"] = self.dice.choice(list(MECHANISMS))
        categories = [name for name, about in self.columns.items() if "levels" in about]
        if categories and self.chance(0.3):
            self.options["by"] = self.dice.sample(categories, min(len(categories), self.dice.randint(1, 2)))
            self.options |= {"other": "rest"} if self.chance(0.3) else {}
            self.options |= {"total_share": self.dice.choice(["0.2", "best"])} if self.chance(0.3) else {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(DRAWS))
def test_what_check_accepts_is_released_and_read_to_the_end(seed, tmp_path, capsys):
    drawn = Drawn(seed)
    table = pd.DataFrame(drawn.table)
    try:
        schema = pc.Schema.from_dict(drawn.declared)
        pc.check(table, schema=schema, **drawn.options)
    except InternalError:
        raise
    except PrivcovError:
        return
    try:
        made = pc.release(table, schema=schema, **drawn.options)
    except PrivcovError as refused:
        if refused.code != "E108":  # no row has a person's id: told after the payment, as check cannot know
            raise
        return
    path = tmp_path / "r.json"
    made.save(path)
    stratum, one = [], made
    if isinstance(made, pc.StratifiedRelease):
        assert said(capsys, "show", path)
        stratum, one = ["--stratum", drawn.dice.choice([*made.names, "total"])], made[made.names[0]]
    assert said(capsys, "verify", path)
    for matrix in ("correlation", "covariance", "mean", "raw"):
        said(capsys, "show", path, "--matrix", matrix, *stratum)
    json.loads(said(capsys, "show", path, "--json", *stratum))
    said(capsys, "pca", path, *stratum)
    said(capsys, "report", path, "-o", tmp_path / "whole.html", *stratum)
    assert repr(made)
    assert made._repr_html_()
    names = [column.name for column in one.schema.columns]
    if len(names) < 2:
        return
    target = drawn.dice.choice(names)
    model = f"{quoted(target)} ~ " + " + ".join(quoted(name) for name in names if name != target)
    said(capsys, "ols", path, model, *stratum)
    said(capsys, "ols", path, model, "--errors", "conservative", *stratum)
    said(capsys, "ridge", path, "--target", target, *stratum)
    said(capsys, "report", path, "-o", tmp_path / "model.html", "--model", model, *stratum)


def said(capsys, *words: object) -> str:
    """What a command prints: an answer, or a refusal of one line; and no number that is none."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert code in (0, 2), (words, err)
    assert "E900" not in err
    assert "Traceback" not in err
    if code == 2:
        assert not out
        assert re.search(r"^privcov: E\d{3} ", err, re.MULTILINE), err
    if "--json" not in words:
        assert not re.search(r"(?<![\w.])(nan|inf)(?!\w)", out), out
    return out
