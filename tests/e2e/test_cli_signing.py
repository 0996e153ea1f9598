"""Signing on the command line: the steward's side, the analyst's side, and what each exit code means."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.noise.randomness import rehearsal
from privcov.releases.documents import to_text
from privcov.releases.keyfiles import read_private

ROOT = Path(__file__).parents[2]
SCHEMA = """
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.income]
lower = 0
upper = 200
"""
RELEASE = (
    "release",
    "people.csv",
    "--schema",
    "people.toml",
    "--epsilon",
    "1",
    "--neighbours",
    "replace-one",
)


@pytest.fixture
def home(tmp_path, people, monkeypatch):
    """A working directory with a table, a schema, and the keys of a steward and of somebody else."""
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVCOV_KEY_PASSPHRASE", raising=False)
    assert main(["keygen", "steward"]) == main(["keygen", "mallory"]) == 0
    return tmp_path


@pytest.fixture
def run(home, capsys):
    """Exit code, stdout and stderr of one command."""
    capsys.readouterr()

    def run(*words):
        code = main(list(words))
        return code, *capsys.readouterr()

    return run


def test_the_steward_signs_and_the_analyst_verifies(home, run):
    code, _, err = run(*RELEASE, "--sign", "steward.key", "-o", "r.json")
    assert code == 0
    fingerprint = re.search(r"signed with the key (\S+)", err)[1]
    code, out, err = run("verify", "r.json", "--key", "steward.pub")
    assert (code, err) == (0, "")
    assert f"Signed with the key you gave: {fingerprint}." in " ".join(out.split())
    assert "FAILS" not in out
    code, out, _ = run("verify", "r.json")
    assert code == 0
    assert "compare these words with those that the steward published" in " ".join(out.split())
    assert fingerprint in run("show", "r.json")[1]
    assert json.loads(run("show", "r.json", "--json")[1])["signed_by"] == fingerprint


def test_an_unsigned_release_says_so_everywhere(home, run):
    assert run(*RELEASE, "-o", "r.json")[0] == 0
    assert "Not signed" in run("show", "r.json")[1]
    assert json.loads(run("show", "r.json", "--json")[1])["signed_by"] is None
    code, out, _ = run("verify", "r.json")
    assert code == 0
    assert "NOT SIGNED" in out
    assert run("verify", "r.json", "--key", "steward.pub")[0] == 4


def test_a_signed_release_goes_through_a_pipe_and_json_alike(home, run):
    code, out, _ = run(*RELEASE, "--sign", "steward.key")
    assert code == 0
    (home / "piped.json").write_text(out)
    assert run("verify", "piped.json", "--key", "steward.pub")[0] == 0
    code, out, _ = run(*RELEASE, "--sign", "steward.key", "-o", "r.json", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((home / "r.json").read_text())


def tampered(text):
    return text.replace('"epsilon":"1"', '"epsilon":"0.5"')


@pytest.mark.parametrize(
    ("words", "change", "failed"),
    [
        (["--sign", "steward.key"], tampered, "seal"),
        ([], tampered, "seal"),
        (["--sign", "mallory.key"], str, "origin"),
        ([], str, "origin"),
        (["--sign", "steward.key"], lambda text: json.dumps(json.loads(text)), "bytes"),
    ],
    ids=["signature", "digest", "other key", "unsigned", "rewritten"],
)
def test_what_is_not_verified_exits_with_4_and_says_what(home, run, words, change, failed):
    run(*RELEASE, *words, "-o", "r.json")
    (home / "r.json").write_text(change((home / "r.json").read_text()))
    code, out, err = run("verify", "r.json", "--key", "steward.pub")
    assert code == 4
    assert "FAILS" in out
    assert (
        err == f"privcov: E609 r.json did not pass verification: {failed}. Do not use it; ask its steward.\n"
    )
    code, out, _ = run("verify", "r.json", "--key", "steward.pub", "--json")
    said = json.loads(out)
    assert (code, said["holds"]) == (4, False)
    assert [check["name"] for check in said["checks"] if not check["holds"]] == [failed]


def test_a_rehearsal_exits_with_4_even_when_signed(home, run):
    made = pc.release(
        np.ones((9, 1)),
        schema=pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 2}}}),
        loss=pc.PureDP(epsilon=1, neighbours="add-remove"),
        randomness=rehearsal(1),
    )
    (home / "r.json").write_text(to_text(made.to_dict(key=read_private("steward.key"))))
    code, out, _ = run("verify", "r.json", "--key", "steward.pub")
    assert code == 4
    assert "REHEARSAL" in out


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xff", b'{"format": "privcov/release/9"}'])
def test_what_cannot_be_read_exits_with_2(home, run, content):
    if content is not None:
        (home / "r.json").write_bytes(content)
    code, out, err = run("verify", "r.json")
    assert (code, out) == (2, "")
    assert re.match(r"privcov: E60[124] ", err)


def test_a_key_that_cannot_be_read_exits_with_2(home, run):
    run(*RELEASE, "-o", "r.json")
    assert run("verify", "r.json", "--key", "missing.pub")[0] == 2
    assert run("verify", "r.json", "--key", "people.csv")[0] == 2
    assert "E608" in run("verify", "r.json", "--key", "steward.key")[2]


def test_other_commands_refuse_a_changed_signed_release(home, run):
    run(*RELEASE, "--sign", "steward.key", "-o", "r.json")
    (home / "r.json").write_text(tampered((home / "r.json").read_text()))
    code, out, err = run("show", "r.json")
    assert (code, out) == (4, "")
    assert "E605" in err


def test_a_key_that_cannot_sign_is_found_before_the_table_is_opened(home, run):
    (home / "people.csv").unlink()
    (home / "steward.key").chmod(0o640)
    for key in ("steward.key", "steward.pub", "missing.key"):
        code, _, err = run(*RELEASE, "--sign", key, "-o", "r.json")
        assert code == 2
        assert re.search(r"E60[48]", err)
    assert not (home / "r.json").exists()


def test_keygen_writes_a_private_and_a_public_half_and_never_twice(home, run):
    assert stat.S_IMODE((home / "steward.key").stat().st_mode) == 0o600
    before = (home / "steward.key").read_bytes()
    code, out, err = run("keygen", "steward")
    assert (code, out) == (2, "")
    assert "never overwritten" in err
    assert (home / "steward.key").read_bytes() == before
    code, out, err = run("keygen", "second", "--json")
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert len(said["fingerprint"].split("-")) == 8
    secret = read_private("second.key").reveal_to_key_file().hex()
    assert secret not in out


@pytest.mark.parametrize("how", ["file", "environment"])
def test_a_passphrase_comes_from_a_file_or_the_environment(home, run, monkeypatch, how):
    words = []
    if how == "file":
        (home / "secret").write_text("correct horse\n")
        (home / "secret").chmod(0o600)
        words = ["--passphrase-file", "secret"]
    else:
        monkeypatch.setenv("PRIVCOV_KEY_PASSPHRASE", "correct horse")
    assert run("keygen", "locked", *words)[0] == 0
    assert "ENCRYPTED" in (home / "locked.key").read_text()
    assert run(*RELEASE, "--sign", "locked.key", *words, "-o", "r.json")[0] == 0
    assert run("verify", "r.json", "--key", "locked.pub")[0] == 0
    monkeypatch.delenv("PRIVCOV_KEY_PASSPHRASE", raising=False)
    code, _, err = run(*RELEASE, "--sign", "locked.key", "-o", "s.json")
    assert code == 2
    assert "passphrase" in err


def test_a_passphrase_that_is_empty_or_open_to_others_is_refused(home, run, monkeypatch):
    (home / "secret").write_text("correct horse\n")
    (home / "secret").chmod(0o644)
    assert "E608" in run("keygen", "a", "--passphrase-file", "secret")[2]
    (home / "secret").write_text("\n")
    (home / "secret").chmod(0o600)
    assert "E213" in run("keygen", "a", "--passphrase-file", "secret")[2]
    monkeypatch.setenv("PRIVCOV_KEY_PASSPHRASE", "")
    assert "E213" in run("keygen", "a")[2]
    assert not os.path.lexists("a.key")


def test_an_estimate_is_verified_by_the_same_command(home, run):
    made = pc.estimate_gaussian(
        np.random.default_rng(1).normal(size=(60, 2)),
        loss=pc.ZCDP(rho="0.5", neighbours="replace-one"),
        largest_variance=9,
    )
    made.save("e.json", key=read_private("steward.key"))
    code, out, _ = run("verify", "e.json", "--key", "steward.pub")
    assert code == 0
    assert "add up to exactly rho = 0.5" in out
    assert run("verify", "e.json", "--key", "mallory.pub")[0] == 4
