"""A plan: every mechanism, a verdict, units people feel, a figure; and never a data file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import privcov as pc
from privcov.errors import OutputError
from privcov.noise.randomness import rehearsal
from privcov.planning.candidates import candidates
from privcov.planning.display import curves, draw
from privcov.planning.framed import Framed
from privcov.planning.moments import PublicMoments
from privcov.planning.signal import SignalRange
from privcov.schema.grid import Grid

SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 100},
            "income": {"lower": 0, "upper": 200},
            "educ": {"lower": 0, "upper": 20},
        }
    }
)
PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


@pytest.fixture(scope="module")
def plan() -> pc.planning.plan.Plan:
    return pc.plan(schema=SCHEMA, rows=2000, loss=PURE)


def test_every_mechanism_is_in_the_plan_or_refused_with_a_reason(plan):
    from privcov.mechanisms import MECHANISMS

    planned = {made.mechanism.name for made in plan.forecasts}
    refused = {no.name: no.reason for no in plan.refusals}
    assert planned | set(refused) == set(MECHANISMS)
    assert not planned & set(refused)
    assert all(len(reason) > 10 for reason in refused.values())


def test_the_plan_is_ordered_by_error_and_marks_what_auto_takes(plan):
    errors = [made.frobenius.mean for made in plan.forecasts]
    assert errors == sorted(errors)
    text = str(plan)
    assert f"{plan.choice.mechanism.name} *" in text
    assert "auto chooses symmetric-wishart for covariance" in text
    assert (
        "symmetric-wishart is marginal: the smallest single correlation that can be told from zero is 0."
        in " ".join(text.split())
    )


def test_errors_of_columns_are_those_of_releases_in_original_units(plan):
    """200 releases: the 95 % value of 200 numbers lies between the true 91 % and 98 % values (two-sided, 1 %)."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(0, [100, 200, 20], (2000, 3))
    apart, truth = [], rows.mean(axis=0)
    for seed in range(200):
        made = pc.release(rows, schema=plan.schema, loss=PURE, randomness=rehearsal(seed))
        apart.append(np.abs(made.mean(repair="clip") - truth))
    for column, errors in zip(plan.columns(), np.array(apart).T, strict=True):
        inside = np.mean(errors <= column.mean)
        assert 0.90 <= inside <= 0.99, column


def test_the_json_of_a_plan_holds_every_number_of_its_text(plan):
    values = json.loads(json.dumps(plan.to_dict()))
    first = values["mechanisms"][0]
    assert first["mechanism"] == "symmetric-wishart"
    assert f"{first['error']['frobenius']['expected']:.3g}" in str(plan)
    assert first["columns"][0]["mean_95"] == plan.columns()[0].mean
    assert values["covariance_95"]["age"]["age"] == plan.columns()[0].variance
    assert values["covariance_95"]["age"]["income"] == values["covariance_95"]["income"]["age"] > 0
    assert {line["mechanism"] for line in values["refused"]} == {no.name for no in plan.refusals}


def test_the_verdict_is_on_correlations_from_the_best_case_to_a_cautious_one(plan):
    made, law = plan.outlook(), plan.choice.law
    sigma = 1.96 * law.offdiagonal_variance**0.5 / plan.rows
    assert made.low == pytest.approx(3 * sigma)  # spread evenly: a variance of 1/3
    # A fifth of the bounds, as far off their middle as that leaves room for: 1/25 of that, and two means of 0.8.
    assert made.high == pytest.approx(75 * sigma * (1 + 2 * 0.8**2) ** 0.5)
    assert made.verdict == plan.verdict(plan.choice) == plan.to_dict()["mechanisms"][0]["verdict"]
    assert plan.to_dict()["mechanisms"][0]["clear_from"] == [made.low, made.high]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_range_of_the_outlook_holds_whatever_a_column_fills_and_wherever(neighbours):
    """300 tables of two columns that fill a fifth to all of their bounds, anywhere within them; 400 draws of noise.

    What noise on the correlation stays below, 95 times in 100, is within the range but for the error of 400 draws (a
    tenth). At one end of the bounds it is 1.5 times, with a private count 1.8 times what it is in their middle.
    """
    schema = pc.Schema.from_dict({"columns": {name: {"lower": -1, "upper": 1} for name in "ab"}})
    loss = pc.PureDP(epsilon=1, neighbours=neighbours)
    plan = pc.plan(schema=schema, rows=10**6, loss=loss, mechanisms=["symmetric-wishart"])
    made, law, rng = plan.outlook(), plan.choice.law, np.random.default_rng(8)
    noise = law.simulations(rehearsal(8), 400) / 10**6
    if neighbours == "replace-one":
        noise[:, 0, 0] = 0.0
    found = []
    for _ in range(300):
        half = rng.uniform(0.2, 1.0, 2)
        a, b = rng.uniform(-1, 1, 2) * (1 - half)
        moved = noise[:, 1, 2] - a * noise[:, 0, 2] - b * noise[:, 0, 1] + a * b * noise[:, 0, 0]
        found.append(np.quantile(np.abs(moved) / half.prod() * 3, 0.95))
    assert made.low / 1.1 < min(found)
    assert max(found) < 1.1 * made.high
    worst = noise[:, 1, 2] - 0.8 * (noise[:, 0, 1] + noise[:, 0, 2]) + 0.64 * noise[:, 0, 0]
    assert np.quantile(np.abs(worst) * 75, 0.95) == pytest.approx(made.high, rel=0.1)


def test_a_plan_for_a_schema_that_empties_rows_counts_complete_ones():
    columns = {n: {"lower": 0, "upper": 100} for n in "ab"}
    told = "give the number of complete rows"
    for rule, says in (("zero-row", True), ("midpoint", False)):
        schema = pc.Schema.from_dict({"columns": columns, "missing": rule})
        assert (told in str(pc.plan(schema=schema, rows=2000, loss=PURE, mechanisms=["laplace"]))) == says


def test_guessed_moments_decide_the_verdict_in_place_of_a_range():
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 100} for n in "ab"}})
    guess = {"columns": {n: {"mean": 50, "std": 5} for n in "ab"}}
    moments = PublicMoments.guessed(schema, guess)
    plan = pc.plan(schema=schema, rows=2000, loss=PURE, mechanisms=["laplace"], moments=moments)
    made = plan.outlook(plan.forecasts[0])
    assert made.low == made.high
    law = plan.forecasts[0].law
    assert made.low == pytest.approx(1.96 * law.offdiagonal_variance**0.5 / 2000 / 0.1**2)
    assert "for a table with the moments you gave" in str(made)


def test_a_plan_for_a_single_column_speaks_of_its_mean():
    schema = pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 100}}})
    plan = pc.plan(schema=schema, rows=2000, loss=PURE, mechanisms=["laplace"])
    assert "the noise on the mean is" in str(plan.outlook())


@pytest.mark.parametrize("intercept", [False, True])
def test_no_table_leaves_the_upper_end_of_the_range(intercept):
    columns = {name: {"lower": -1, "upper": 1} for name in "abc"}
    schema = pc.Schema.from_dict({"intercept": intercept, "columns": columns})
    signal, rng = SignalRange.of(schema), np.random.default_rng(3)
    corners = [np.ones((9, 3)), np.sign(rng.normal(size=(9, 3))), rng.uniform(-1, 1, (9, 3))]
    for rows in corners:
        z = np.hstack([np.ones((9, 1)), rows]) if intercept else rows
        moment = z.T @ z / 9
        if intercept:
            moment[0, 0] = 0.0  # known
        assert np.linalg.norm(moment) <= signal.high + 1e-12
    assert signal.low <= signal.high


def test_a_surrogate_takes_the_place_of_the_worst_case():
    rows = np.random.default_rng(5).normal([50, 100, 10], [5, 10, 2], (500, 3))
    made = pc.plan(
        schema=SCHEMA,
        rows=2000,
        loss=PURE,
        mechanisms=["eigenvectors"],
        moments=pc.surrogate(rows, schema=SCHEMA),
    )
    by_name = {one.mechanism.name: one for one in made.forecasts}
    assert by_name["eigenvectors"].basis == "surrogate"
    assert by_name["symmetric-wishart"].basis == "law"


def test_progress_counts_every_step_of_a_simulation(plan):
    seen = []

    def progress(total):
        seen.append(total)
        return lambda: seen.append(1)

    pc.plan(schema=plan.schema, rows=2000, loss=PURE, progress=progress)
    total, *steps = seen
    assert len(steps) == total > len(plan.forecasts)


def test_wide_tables_are_planned_from_laws_alone():
    able, refused = candidates(loss=PURE, grid=Grid(dimension=101, exponent=15, squared_norm_bound=2**30))
    assert {one.mechanism.name for one in able} == {"symmetric-wishart", "frobenius", "laplace"}
    assert any("beyond 64 columns" in no.reason for no in refused)


@pytest.fixture(scope="module")
def few() -> pc.planning.plan.Plan:
    return pc.plan(schema=SCHEMA, rows=2000, loss=PURE, mechanisms=["laplace", "matrix-bingham"])


@pytest.mark.long
def test_curves_fall_with_the_budget(few):
    found = curves(few)
    assert set(found) == {"symmetric-wishart", "laplace", "matrix-bingham"}
    for name, line in found.items():
        errors = [error for _, error in line]
        assert errors[0] > errors[-1], name
    law = [error for _, error in found["symmetric-wishart"]]
    assert law == sorted(law, reverse=True)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_figure_is_written_whole_and_the_same_each_time(few, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="the extra report is not installed")
    path = tmp_path / f"plan.{ending}"
    draw(few, path)
    first = path.read_bytes()
    assert len(first) > 5000
    with pytest.raises(OutputError, match="E401"):
        draw(few, path)
    draw(few, path, force=True)
    if ending != "pdf":  # a PDF holds its fonts in an order that may vary
        assert path.read_bytes() == first


def test_a_figure_of_another_kind_is_refused(few, tmp_path):
    with pytest.raises(OutputError, match="E401"):
        draw(few, tmp_path / "plan.gif")


def test_planning_takes_no_data():
    for function in (pc.plan, pc.accuracy, pc.required_loss, pc.required_rows):
        assert "data" not in signature(function).parameters


_WATCH = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from privcov.cli import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0
    print("\\nOPENED", *[path for path in opened if path.endswith((".csv", ".parquet"))], file=sys.stderr)
"""


def test_planning_never_opens_a_data_file(people: Path, tmp_path: Path):
    """Every file the process opens is seen; the table lies beside the schema, under the name people would give it.

    With a surrogate, which the user declares public, the same watch does see a file: it can fail."""
    (tmp_path / "people.toml").write_text(
        '[columns.age]\nlower = 0\nupper = 100\n[columns.sex]\nlevels = ["F", "M"]\n'
        "[columns.income]\nlower = 0\nupper = 200\n"
    )
    common = ["plan", "--schema", "people.toml", "--rows", "300", "--epsilon", "1", "--mechanism", "laplace"]

    asked = [common, [*common, "--target", "frobenius=0.5"], [*common, "--surrogate", "people.csv"]]
    command = [sys.executable, "-c", _WATCH, json.dumps(asked)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain, aimed, surrogate = (
        line.split()[1:] for line in done.stderr.splitlines() if line.startswith("OPENED")
    )
    assert plain == aimed == []
    assert any(path.endswith("people.csv") for path in surrogate)


def test_a_plan_that_is_known_loads_none_of_scipys_parts():
    """They take longer to load than all the rest of such a plan; beyond 64 columns nothing but laws is planned."""
    program = (
        "import sys, privcov as pc\n"
        "columns = {f'c{i}': {'lower': 0, 'upper': 1} for i in range(65)}\n"
        "schema = pc.Schema.from_dict({'columns': columns})\n"
        "made = pc.plan(schema=schema, rows=9000, loss=pc.PureDP(epsilon=1, neighbours='replace-one'))\n"
        "assert 'auto chooses symmetric-wishart' in str(made)\n"
        "print([part for part in ('special', 'linalg', 'sparse', 'optimize') if f'scipy.{part}' in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


@pytest.mark.parametrize(("error", "hidden"), [(29.9, ()), (30.0, ("mean",))])
def test_a_mean_is_hidden_from_half_the_width_of_its_bounds_on(plan, monkeypatch, error, hidden):
    """What is within ±30 by its bounds is not told to be off by ±665; nor a variance, which is at most 900."""
    schema = pc.Schema.from_dict(
        {"columns": {"temp": {"lower": -30, "upper": 30}, "up": {"levels": ["a", "b"]}}}
    )
    made = pc.plan(schema=schema, rows=4000, loss=PURE, mechanisms=["laplace"])
    highs = np.full((4, 4), 0.01)
    highs[0, 1] = error / 30
    monkeypatch.setattr(type(made), "_highs", lambda self, of: highs)
    temp, *_levels = made.columns()
    assert temp.hidden == hidden
    assert temp.size("variance") == "9"
    assert temp.mean == pytest.approx(error)
    highs[1, 1], highs[0, 2], highs[2, 2] = 0.5, 0.49, 0.125
    temp, level, other = made.columns()
    assert temp.hidden == (*hidden, "variance")
    assert level.hidden == ("variance",)
    assert other.hidden == ()


def test_a_drowned_table_says_what_is_hidden_in_every_form():
    columns = {name: {"lower": -30, "upper": 30} for name in ("temp", "wind")}
    schema = pc.Schema.from_dict({"columns": columns})
    drowned, clear = (
        pc.plan(schema=schema, rows=rows, loss=PURE, mechanisms=["laplace"]) for rows in (3, 100_000)
    )
    assert re.search(r"temp +hidden +hidden\n", str(drowned))
    for text in (str(drowned), drowned._repr_html_()):
        assert "hidden: the noise is as wide as the bounds allow, or wider." in " ".join(text.split())
        assert f"{drowned.columns()[0].mean:.3g}" not in text
    line = drowned.to_dict()["mechanisms"][0]
    assert [one["hidden"] for one in line["columns"]] == [["mean", "variance"]] * 2
    assert "hidden" not in str(clear) + clear._repr_html_()
    assert clear.to_dict()["mechanisms"][0]["columns"][0]["hidden"] == []


def test_without_an_intercept_nothing_is_known_to_be_hidden():
    schema = pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}}, "intercept": False})
    (column,) = pc.plan(schema=schema, rows=2, loss=PURE, mechanisms=["laplace"]).columns()
    assert column.hidden == ()
    assert column.size("mean") == ""


def test_a_plan_of_a_worthless_release_says_how_many_rows_would_be_enough() -> None:
    def planned(rows: int) -> str:
        return " ".join(
            str(pc.plan(schema=SCHEMA, rows=rows, loss=PURE, mechanisms=["symmetric-wishart"])).split()
        )

    told = re.search(r"marginal from about ([\d,]+) rows on, and useful from about ([\d,]+)\.", planned(60))
    assert told is not None
    marginal, useful = (int(one.replace(",", "")) for one in told.groups())
    for rows, below, from_there in (
        (marginal, "worse than publishing zeros", "marginal"),
        (useful, "marginal", "useful"),
    ):
        assert f"symmetric-wishart is {below}:" in planned(int(0.97 * rows))
        assert f"symmetric-wishart is {from_there}:" in planned(rows)
    assert "rows on" not in planned(marginal)


def test_a_forecast_of_a_frame_that_is_as_bad_as_can_be_is_not_called_worse_in_some_tables() -> None:
    bad, fair = (
        str(Framed(private=off, even=0.9, narrow=1.3, mechanism="laplace", share=0.3)) for off in (1.2, 0.8)
    )
    assert "a correlation would be off by as much as it can be; as declared by ±0.9 where" in bad
    assert "by about ±0.8 (more where rows are few and bounds far too wide); as declared" in fair


def test_a_plan_of_one_column_without_an_intercept_has_a_verdict_for_every_mechanism():
    """The matrix is one number, and has no entry off the diagonal that a verdict could be about."""
    schema = pc.Schema.from_dict({"intercept": False, "columns": {"age": {"lower": -10, "upper": 100}}})
    loss = pc.ApproxDP(epsilon="0.01", delta="1e-6", neighbours="add-remove")
    made = pc.plan(schema=schema, rows=200, loss=loss).to_dict()
    assert {one["verdict"] for one in made["mechanisms"]} == {"worse than publishing zeros"}
    assert str(pc.plan(schema=schema, rows=200, loss=loss))


def test_a_plan_of_nothing_names_ways_out_and_each_is_one():
    """The page offered them, and the command line did not."""
    names = [f"c{i}" for i in range(30)]
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")

    def planned(schema=schema, loss=loss):
        return pc.plan(schema=schema, rows=6_000, loss=loss, mechanisms=["laplace"])

    poor = planned()
    assert [one.partition(":")[0] for one in poor.exits] == [
        "Fit a private frame first (frame",
        "Allow a δ of 0.000001",
        "Release fewer columns",
        "Spend more",
    ]
    assert all(" ".join(one.split()) in " ".join(str(poor).split()) for one in poor.exits)
    assert poor.to_dict()["exits"] == list(poor.exits)
    assert (
        planned(loss=pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")).outlook().verdict
        in poor.exits[1]
    )
    count = int(re.search(r"the first (\d+) of 30", poor.exits[2])[1])
    verdicts = [planned(schema.subset(names[:some])).outlook().verdict for some in (count, count + 1)]
    assert verdicts == ["marginal", "worse than publishing zeros"]
    enough = re.search(r"ε = ([\d.]+)", poor.exits[3])[1]
    better = planned(loss=pc.PureDP(epsilon=enough, neighbours="replace-one"))
    assert better.outlook().verdict in poor.exits[3]
    assert better.exits == ()


def test_where_nothing_else_would_do_a_plan_says_what_rows_depend_on():
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in "abc"}})
    loss = pc.PureDP(epsilon="0.001", neighbours="replace-one")
    made = pc.plan(schema=schema, rows=10, loss=loss, mechanisms=["laplace"])
    assert made.exits == ()
    assert "a larger loss, fewer rows are enough" in " ".join(str(made).split())
