"""The withdrawn 2016 Wishart mechanism: refused by name, and seen to fail at the predicted rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.mechanisms import find
from privcov.noise.randomness import rehearsal

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


def test_sn_is_refused_with_the_reason_and_the_repair():
    with pytest.raises(pc.PrivcovError) as refusal:
        find("sn", loss=PURE)
    text = str(refusal.value)
    assert text.startswith("E208")
    assert "withdrawn" in text
    assert "symmetric-wishart" in text


def test_sn_is_refused_on_the_command_line_before_anything_is_read(people, tmp_path, capsys):
    (tmp_path / "s.toml").write_text("[columns.age]\nlower = 0\nupper = 1\n")
    code = main(
        ["release", str(people), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--mechanism", "sn"]
    )
    assert code == 2
    assert "E208" in capsys.readouterr().err


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_one_sided_wishart_noise_betrays_an_absent_row_at_the_predicted_rate(epsilon):
    """P(output − C′ not PSD) = 1 − e^−ε; 4 000 draws, two-sided at 5 standard errors (6e-7)."""
    d, draws = 4, 4000
    factors = rehearsal(1).normals(draws, d, d + 1) / math.sqrt(2 * epsilon)
    noise = factors @ factors.transpose(0, 2, 1)
    noise[:, 0, 0] -= 1  # subtract the row e1 that is not there
    betrayed = (np.linalg.eigvalsh(noise)[:, 0] < 0).mean()
    expected = 1 - math.exp(-epsilon)
    assert abs(betrayed - expected) < 5 * math.sqrt(expected * (1 - expected) / draws)
