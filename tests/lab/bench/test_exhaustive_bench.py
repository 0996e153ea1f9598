"""The bench of exhaustive levels measures what it says: errors against the truth, widths of the same model."""

from __future__ import annotations

import numpy as np
import pytest

from privcov.privacy import ZCDP
from privcov_lab.bench import exhaustive as bench


def invented(rows: int = 3_000):
    rng = np.random.default_rng(4)
    numbers = np.column_stack([rng.uniform(low, high, rows) for low, high in bench.BOUNDS.values()])
    groups = {
        name: np.eye(3)[rng.choice(3, rows, p=[0.2, 0.5, 0.3])] for name in ("sex", "race", "workclass")
    }
    return bench.prepared(numbers, groups)


def test_without_noise_there_is_no_error_and_all_schemas_fit_one_model(monkeypatch):
    """A figure that is taken from the wrong column, pair or level would be far from 0, and widths far from equal."""
    monkeypatch.setitem(bench.LOSSES, "clear", ZCDP(rho=10**9, neighbours="replace-one"))
    lines = {line["figure"]: line for line in bench.compared(*invented(), runs=2, losses=["clear"])}
    assert set(lines) == set(bench.FIGURES)
    for figure in set(bench.FIGURES) - {"widths"}:
        assert lines[figure]["exhaustive"] < 1e-3
        assert lines[figure]["other"] < 1e-3
    assert lines["widths"]["against"] == "dropped"
    assert lines["widths"]["ratio"] == pytest.approx(1, abs=0.01)
    assert lines["widths"]["standard_error"] < 0.01


def test_frequent_levels_come_first_and_the_truth_is_the_table_s():
    cells, levels, (correlations, means, _, names) = invented()
    assert levels == {"sex": 3, "race": 3, "workclass": 3}
    shares = [means[names.index(f"race[{level}]")] for level in range(3)]
    assert shares == sorted(shares, reverse=True)
    race = cells[:, len(bench.BOUNDS) + 1]
    assert shares[0] == np.mean(race == 0)
    true = np.corrcoef(cells[:, 0], race == 2)[0, 1]
    assert correlations[0, names.index("race[2]")] == pytest.approx(true)


@pytest.mark.long
def test_exhaustive_levels_err_less_between_levels():
    """Four releases of each, seeded. The ratio is about 0.5, of which a standard error is a tenth: without any gain it
    would be below 0.8 once in forty runs, and with this one it is above that once in 10⁸.
    """
    lines = bench.compared(*invented(), runs=4, losses=["approximate, add-remove"])
    ratios = {(line["figure"], line["against"]): line["ratio"] for line in lines}
    assert ratios["levels", "unshrunk"] < 0.8
    assert "levels" in bench.render({"results": lines})


def test_what_cannot_be_compared_is_said_in_words():
    line = {
        "loss": "pure",
        "figure": "widths",
        "against": "dropped",
        "target": None,
        "reached": None,
        "runs": 2,
    }
    numbers = dict.fromkeys(("exhaustive", "other", "ratio", "standard_error"), np.nan)
    text = bench.render({"results": [line | numbers]})
    assert "nan" not in text
    assert "no interval has two ends" in text
    assert "no interval" not in bench.render({"results": [line | dict.fromkeys(numbers, 1.0)]})
