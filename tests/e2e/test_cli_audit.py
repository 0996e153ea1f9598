"""``privcov audit`` as a person meets it: a table, exit codes, JSON, a figure."""

from __future__ import annotations

import json

import pytest

from privcov import mechanisms
from privcov.cli import main
from privcov.mechanisms.laplace import Laplace


def run(capsys, *arguments):
    code = main(["audit", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.long
def test_a_sound_mechanism_passes_with_a_table_and_exit_code_0(capsys, tmp_path):
    figure = tmp_path / "found.svg"
    code, out, err = run(
        capsys, "laplace", "--epsilon", "1", "-d", "2", "--runs", "300", "--plot", str(figure)
    )
    assert code == 0
    assert "L2 tell apart" in out
    assert out.strip().splitlines()[-1].startswith("PASS")
    assert "replace-one (the default)" in err
    assert "<svg" in figure.read_text()


def test_a_failed_audit_is_exit_code_4(capsys, monkeypatch):
    """The registry is given a mechanism of a tenth of the noise for the length of this test."""

    class Quiet(Laplace):
        def _scale(self, loss, grid):
            return super()._scale(loss, grid) // 10

    monkeypatch.setitem(mechanisms.MECHANISMS, "laplace", Quiet)
    code, out, _ = run(capsys, "laplace", "--epsilon", "1", "-d", "2", "--runs", "600", "--quick", "--json")
    assert code == 4
    assert json.loads(out)["verdict"] == "FAIL"


def test_the_withdrawn_mechanism_is_refused_and_named(capsys):
    code, out, err = run(capsys, "sn", "--epsilon", "1")
    assert code == 2
    assert out == ""
    assert "E208" in err
    assert "withdrawn" in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("laplace", "--all"),
        ("laplace",),
        ("laplace", "--epsilon", "1", "--runs", "5"),
        ("laplace", "--epsilon", "1", "--plot", "found.doc"),
        ("laplace", "--epsilon", "1", "--delta", "1e-6"),
        ("--all", "--rho", "1"),
    ],
)
def test_bad_usage_is_exit_code_2_and_one_line(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.strip().splitlines()[-1].startswith("privcov: E")
