"""Nobody waits: whole commands on a hundred columns keep to their limits in CPU time."""

from __future__ import annotations

import pytest

from privcov_lab.bench import speed as bench


def test_a_command_above_its_limit_is_said_to_be():
    line = {"command": "pca", "release": "clear", "limit": 2.0}
    made = {"columns": 100, "runs": 1, "lines": [{**line, "cpu_seconds": 1.9}, {**line, "cpu_seconds": 2.1}]}
    kept, missed = bench.render(made).splitlines()[-2:]
    assert not kept.endswith("above it")
    assert missed.endswith("above it")


@pytest.mark.slow
def test_a_hundred_columns_keep_nobody_waiting():
    """Twice each limit is allowed: on a machine that others use a CPU second does less.

    It was 14 s for a design between clear and drowned, 5 s for a drowned one, 4 s for components.
    """
    lines = bench.run()["lines"]
    assert len(lines) == bench.STEPS
    late = [line for line in lines if line["cpu_seconds"] > 2 * line["limit"]]
    assert not late, late
