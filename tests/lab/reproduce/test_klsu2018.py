"""The lecture's rates: a smoke run of everything, and verdicts that follow from the numbers and from nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privcov.noise.randomness import rehearsal
from privcov_lab.reproduce import running
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.papers.klsu2018 import STUDY, conditioning, errors
from privcov_lab.reproduce.papers.klsu2018.claims import claims
from privcov_lab.reproduce.papers.klsu2018.measuring import cells, rounds
from privcov_lab.reproduce.papers.klsu2018.reading import rows_needed
from privcov_lab.reproduce.study import Effort, Results


def test_a_smoke_run_measures_every_cell_and_finds_every_figure_table_and_claim(tmp_path):
    effort = Effort(quick=True)
    measured = running.run(STUDY, data=Datasets(tmp_path), directory=tmp_path, effort=effort, workers=1)
    found = STUDY.find(measured)  # figures are drawn by tests/e2e/test_cli_reproduce.py
    assert {line["function"] for line in measured.lines} == {"errors", "conditioning"}
    assert len(found.claims) == 10
    assert len(found.figures) == 5
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.headings)}


def model(*, sampling=-0.5, noise=-1.0, condition=1.0, columns=2.0, rho=-0.5, rounds_power=0.5, start=1.5):
    """Results that follow power laws exactly, at the cells of the full study."""
    lines = []
    for cell in cells(Effort()):
        known = dict(cell.arguments)
        n, k, d = known["rows"], known["condition"], known["dimension"]
        if cell.function == "conditioning":
            enough = 900 * (d / 5) ** start * max(1.0, rounds(k) / rounds(10**4)) ** rounds_power
            good = n >= enough or k == 1111
            lines.append(
                {"function": cell.function, **known, "smallest": [1.1 if good else 0.1], "largest": [400.0]}
            )
            continue
        none = d * n**sampling
        raw = 2 * d**columns * n**noise * float(known["rho"]) ** rho
        added = {"truncated": raw * k**condition, "coinpress": raw}
        added["preconditioned"] = raw * k**condition if k <= 1000 else 1.4 * raw
        found = {"none": none} | {m: math.hypot(none, added[m]) for m in known["methods"]}
        lines.append(
            {
                "function": cell.function,
                **known,
                "errors": {m: [value] for m, value in found.items()},
                "added": {m: [added[m]] for m in known["methods"]},
            }
        )
    return Results(tuple(lines))


def verdicts(results):
    return {claim.where: claim.verdict for claim in claims(results)}


def test_results_that_follow_the_rates_agree_with_every_claim_but_the_noise():
    found = verdicts(model())
    assert found.pop("Section 2.1, before Lemma 2.2") == "refuted"
    assert set(found.values()) == {"agrees"}


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        ({"sampling": -0.3}, "Fact 2.1"),
        ({"noise": -0.5}, "Lemma 2.2, well-conditioned"),
        ({"columns": 3.0}, "Lemma 2.2, well-conditioned"),
        ({"rho": -1.0}, "Lemma 2.2, well-conditioned"),
        ({"condition": 0.2}, "Section 2.2, first paragraph"),
        ({"condition": 2.0}, "Section 2.2, first paragraph"),
        ({"noise": -0.5}, "Section 2.1, last paragraph"),
        ({"rounds_power": 2.5}, "Equation (1) and Corollary 2.6, first half"),
        ({"start": 2.4}, "Corollary 2.6, first half"),
    ],
    ids=lambda value: str(value),
)
def test_a_rate_that_is_not_there_costs_its_claim_the_verdict(broken, where):
    assert verdicts(model(**broken))[where] != "agrees"


def test_the_error_of_a_recursion_that_grows_with_the_condition_number_is_not_called_weak():
    lines = []
    for line in model().lines:
        if line["function"] == "errors" and "preconditioned" in line["methods"]:
            line = {**line, "errors": {**line["errors"], "preconditioned": line["errors"]["truncated"]}}
        lines.append(line)
    assert verdicts(Results(tuple(lines)))["Corollary 2.6, second half"] == "not reproduced"


def test_rows_needed_lie_on_the_power_law_between_grid_points():
    rows = [100, 1000, 10_000]
    made = [n**-0.5 for n in rows]
    assert rows_needed(rows, made, 0.05) == pytest.approx(400)
    assert rows_needed(rows, made, 0.001) is None
    assert rows_needed(rows, made, 0.5) == 100


def test_rows_are_not_called_enough_where_a_larger_table_fails():
    assert rows_needed([100, 1000, 10_000], [0.1, 5.0, 0.01], 0.2) > 1000


def test_what_privacy_adds_vanishes_with_the_noise_and_grows_without_it():
    """At ρ = 10⁶ the noise is below 10⁻⁴ of any entry; τ = 0.1 a table leaves one row in ten tables clipped."""
    facts = {"dimension": 3, "rows": 2000, "condition": 4, "methods": ["truncated"], "runs": 2}
    little = errors(None, rehearsal(3), rho="1000000", **facts)
    much = errors(None, rehearsal(3), rho="0.001", **facts)
    assert max(little["added"]["truncated"]) < 0.01
    assert np.allclose(little["errors"]["none"], little["errors"]["truncated"], atol=0.01)
    assert min(much["added"]["truncated"]) > 0.2


def test_the_rounds_precondition_with_many_rows_and_fail_with_few():
    facts = {"dimension": 3, "condition": 2000, "runs": 2}
    many, few = (conditioning(None, rehearsal(4), rows=n, **facts) for n in (30_000, 50))
    assert min(many["smallest"]) >= 1
    assert max(many["largest"]) <= 1000
    assert min(few["smallest"]) < 1
