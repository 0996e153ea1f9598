"""Words and digits of tables that noise hides, or whose numbers are large."""

import re

import numpy as np

import privcov as pc
from privcov.cli import main
from privcov.models.ols import Fit
from privcov.models.strata import differences
from privcov.noise.randomness import rehearsal
from privcov.report.page import html

ROWS = 4_000
SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 100},
            "income": {"lower": 0, "upper": 200_000},
            "county": {"levels": [0, 1]},
        }
    }
)


def release(epsilon, **words):
    source = np.random.default_rng(1)
    age = source.uniform(20, 70, ROWS)
    table = np.column_stack([age, 900 * age + source.normal(0, 9_000, ROWS), source.integers(0, 2, ROWS)])
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    return pc.release(table, schema=SCHEMA, loss=loss, **{"randomness": rehearsal(1), **words})


def test_a_single_regressor_is_no_combination_of_others():
    text = pc.ols(release("0.01"), "income ~ age").summary()
    assert "age: noise hides how much it varies." in text
    assert "combination" not in text


def test_differences_between_strata_are_in_plain_digits():
    found = differences(release(4, by="county"), "0", "1")
    assert max(abs(one.first) for one in found.found) > 10_000
    assert "e+" not in found.summary()


def test_a_difference_of_which_nothing_is_known_has_one_digit():
    """-0.5591 stood beside "unbounded", where ols of that stratum alone prints -0.1."""
    found = differences(release("0.02", by="county"), "0", "1", formula="income ~ age")
    text = found.summary()
    assert "unbounded" in text
    assert "one digit is printed" in text
    for line in text.splitlines():
        if "unbounded" in line:
            cells = line.split("unbounded")[0].split()[-3:]
            assert all(len(re.sub(r"e.*|[^0-9]", "", cell).strip("0")) <= 1 for cell in cells), line


def test_a_naive_table_without_a_residual_variance_has_no_errors_either():
    """It said 0.0000, -inf, <0.0001 *** and an interval of no width, and F-statistic inf."""
    source, found = np.random.default_rng(1), 0
    for seed in range(12):
        columns = {name: {"lower": 0, "upper": 1} for name in ("x", "y")}
        schema = pc.Schema.from_dict({"columns": columns, "missing": "none"})
        rows = source.uniform(0.45, 0.55, (300, 2))
        loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        made = pc.release(rows, schema=schema, loss=loss, randomness=rehearsal(seed))
        fit = pc.ols(made, "y ~ x", naive=True)
        if not np.isnan(fit.residual_std_error):
            continue
        found += 1
        for text in (fit.summary(), fit.to_latex(), html(fit.release, models=[fit])):
            assert "***" not in text.replace("0 '***'", "")
            assert not re.search(r"\binf\b|\bnan\b", text)
        assert fit.to_dict()["f_test"] is None
        assert fit.to_dict()["coefficients"][0]["p_value"] is None
    assert found > 0


def test_a_residual_error_of_few_digits_is_within_its_own_interval():
    """A constant regressor is hidden by noise, and one digit is printed; the residual error is known to two."""
    columns = {"flat": {"lower": 0, "upper": 10}, "income": {"lower": 0, "upper": 200_000}}
    rows = np.column_stack([np.full(ROWS, 7.0), np.random.default_rng(1).normal(100_000, 25_000, ROWS)])
    loss = pc.PureDP(epsilon=3, neighbours="replace-one")
    made = pc.release(
        rows, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, randomness=rehearsal(0)
    )
    text = pc.ols(made, "income ~ flat").summary()
    assert "THE NOISE IS TOO LARGE" in text
    found = re.search(r"Residual standard error (\S+), 95 % interval \[(\S+), (\S+)\]", text)
    printed, low, high = map(float, found.groups())
    assert low <= printed == 25_000 <= high


def test_errors_that_are_all_as_much_larger_are_no_range(monkeypatch):
    fit = pc.ols(release("9"), "income ~ age")
    monkeypatch.setattr(Fit, "widening", property(lambda self: {"(Intercept)": 4.071, "age": 4.069}))
    assert "have sampling errors 4.07 times as large" in " ".join(fit.summary().split())


def test_groups_of_components_are_not_said_to_be_alike(tmp_path, capsys):
    """What cannot be told apart is within a group; two groups can be, or they would be one."""
    source = np.random.default_rng(3)
    columns = {f"x{place}": {"lower": -1, "upper": 1} for place in range(6)}
    rows = source.uniform(-1, 1, (50_000, 6)) * [1, 1, 1, 0.4, 0.4, 0.4]
    loss = pc.PureDP(epsilon=9, neighbours="replace-one")
    made = pc.release(rows, schema=pc.Schema.from_dict({"columns": columns}), loss=loss)
    made.save(tmp_path / "r.json")
    assert main(["pca", str(tmp_path / "r.json"), "--rank", "6"]) == 0
    assert "Components within PC1 to PC3 and PC4 to PC6 cannot be told apart" in capsys.readouterr().out
