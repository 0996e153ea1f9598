"""``privcov ledger`` and ``release --ledger`` as a person meets them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

import privcov as pc
from privcov.cli import main

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


@pytest.fixture
def home(tmp_path, people, monkeypatch):
    """A working directory with people.csv, people.toml and a ledger of epsilon 3."""
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "init", "census.ledger", "--epsilon", "3", "--neighbours", "replace-one"]) == 0
    return tmp_path


def run(capsys, *words):
    """Exit code, stdout and stderr of one command."""
    capsys.readouterr()
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def release(capsys, *words, ledger="census.ledger"):
    default = ["--neighbours", "replace-one", "--ledger", ledger]
    return run(capsys, "release", "people.csv", "--schema", "people.toml", *default, *words)


def balance(capsys, where="census.ledger"):
    code, out, _ = run(capsys, "ledger", "show", where, "--json")
    assert code == 0
    return json.loads(out)


def test_init_spend_show(home, capsys):
    code, out, err = release(capsys, "--epsilon", "1.2", "-o", "a.json")
    assert code == 0
    assert "Budget left in the ledger: ε = 1.8 of 3" in err
    code, out, err = run(capsys, "ledger", "show", "census.ledger")
    assert (code, err) == (0, "")
    assert "████████████░░░░░░░░░░░░░░░░░░  1.2 of 3 spent, 1.8 left" in out
    assert "1 release recorded." in out
    assert pc.load("a.json").rows == 300


def test_a_refused_budget_is_exit_code_3_and_one_line_with_what_was_asked_and_what_is_left(home, capsys):
    assert release(capsys, "--epsilon", "2.6", "-o", "a.json")[0] == 0
    before = sorted(home.iterdir()), balance(capsys)
    code, out, err = release(capsys, "--epsilon", "1", "-o", "b.json")
    assert (code, out) == (3, "")
    assert err.startswith("privcov: E301 This release costs ε = 1; only 0.4 of 3 is left. ")
    assert err.count("\n") == 1
    assert (sorted(home.iterdir()), balance(capsys)) == before


def test_without_an_output_the_release_goes_to_stdout_and_is_recorded(home, capsys):
    code, out, err = release(capsys, "--epsilon", "1")
    assert code == 0
    assert json.loads(out)["format"] == "privcov/release/1"
    assert "Budget left in the ledger: ε = 2 of 3" in err
    assert (balance(capsys)["releases"], balance(capsys)["burned"]) == (1, 0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--epsilon", "1", "-o", "people.csv"], "E401"),
        (["--epsilon", "1", "-o", "nowhere/r.json"], "E401"),
        (["--epsilon", "1", "--mechanism", "power-method", "--option", "rank=99"], "E209"),
        (["--epsilon", "1", "--delta", "1e-6", "--mechanism", "gaussian"], "E304"),
        (["--rho", "0.1", "--mechanism", "gaussian"], "E304"),
        (["--epsilon", "1", "--schema", "none.toml"], "E119"),
    ],
)
def test_whatever_is_refused_costs_nothing(home, capsys, words, code):
    exit_code, _, err = release(capsys, *words)
    assert exit_code == (3 if code == "E304" else 2)
    assert err.startswith(f"privcov: {code} ")
    assert balance(capsys)["spent"] == {"epsilon": "0"}


def test_a_release_that_cannot_be_written_stays_paid(home, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.link", full)
    code, _, err = release(capsys, "--epsilon", "1", "-o", "r.json")
    assert code == 2
    assert "No space left on device" in err
    assert not (home / "r.json").exists()
    assert (balance(capsys)["burned"], balance(capsys)["left"]) == (1, {"epsilon": "2"})
    assert "1 payment without a recorded release" in run(capsys, "ledger", "show", "census.ledger")[1]
    assert "none recorded" in run(capsys, "ledger", "log", "census.ledger")[1]


def test_the_log_says_what_was_run_and_which_releases_read_the_same_table(home, capsys):
    for name in ("a", "b"):
        release(capsys, "--epsilon", "1", "--mechanism", "laplace", "-o", f"{name}.json")
    code, out, err = run(capsys, "ledger", "log", "census.ledger")
    assert (code, err) == (0, "")
    assert "opened: pure differential privacy, epsilon = 3, replace-one" in out
    assert out.count("laplace") == 2
    assert "same table as entry 2" in out
    entries = json.loads(run(capsys, "ledger", "log", "census.ledger", "--json")[1])
    assert [entry["kind"] for entry in entries] == ["opened", "paid", "done", "paid", "done"]
    assert entries[4]["same_table_as"] == 2
    assert "fingerprint" not in json.dumps(entries)


def test_verify_finds_a_change_with_exit_code_4(home, capsys):
    release(capsys, "--epsilon", "1", "-o", "a.json")
    code, out, _ = run(capsys, "ledger", "verify", "census.ledger")
    assert (code, out) == (0, "census.ledger is intact: no entry was altered, removed or added.\n")
    with closing(sqlite3.connect("census.ledger", isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER privcov_no_update")
        connection.execute(
            "UPDATE privcov_entries SET body = replace(body, '\"1\"', '\"0\"') WHERE number = 2"
        )
    code, out, err = run(capsys, "ledger", "verify", "census.ledger")
    assert code == 4
    assert "entry 2 was altered" in out
    assert err.startswith("privcov: E610 census.ledger did not pass verification.")
    assert json.loads(run(capsys, "ledger", "verify", "census.ledger", "--json")[1])["whole"] is False
    code, _, err = release(capsys, "--epsilon", "0.1", "-o", "b.json")
    assert code == 3
    assert err.startswith("privcov: E305 ")
    assert not (home / "b.json").exists()


def test_verify_takes_a_damaged_file_for_what_it_is(home, capsys):
    content = bytearray((home / "census.ledger").read_bytes())
    content[:16] = b"\0" * 16
    (home / "census.ledger").write_bytes(content)
    code, out, err = run(capsys, "ledger", "verify", "census.ledger")
    assert code == 4
    assert "is not a ledger, or is damaged" in out
    assert err.startswith("privcov: E610 ")


def test_verify_with_a_kept_end(home, capsys):
    head = balance(capsys)["head"]
    release(capsys, "--epsilon", "1", "-o", "a.json")
    assert run(capsys, "ledger", "verify", "census.ledger", "--head", head)[0] == 0
    assert run(capsys, "ledger", "verify", "census.ledger", "--head", "9-beef")[0] == 4


def test_a_request_id_is_paid_for_once(home, capsys):
    words = ["--epsilon", "1", "--request-id", "order-17"]
    assert release(capsys, *words, "-o", "a.json")[0] == 0
    code, _, err = release(capsys, *words, "-o", "b.json")
    assert code == 3
    assert err.startswith("privcov: E303 the request order-17 was already paid for, as entry 2.")
    code, _, err = run(
        capsys, "release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--request-id", "x"
    )
    assert code == 2
    assert "--request-id needs --ledger" in err


def test_a_ledger_of_epsilon_and_delta_turns_at_the_first_rho(home, capsys):
    words = ["--epsilon", "3", "--delta", "1e-6", "--neighbours", "replace-one"]
    assert run(capsys, "ledger", "init", "team.ledger", *words)[0] == 0
    gaussian = ["--mechanism", "gaussian", "--force", "-o", "a.json"]
    assert release(capsys, "--epsilon", "1", "--delta", "1e-7", *gaussian, ledger="team.ledger")[0] == 0
    assert release(capsys, "--rho", "0.01", *gaussian, ledger="team.ledger")[0] == 0
    out = run(capsys, "ledger", "show", "team.ledger")[1]
    assert "Since entry 4 the rest of the budget is counted as zCDP" in out
    assert "1 of 3 spent, 2 left (before)" in out
    assert "turned into zCDP" in run(capsys, "ledger", "log", "team.ledger")[1]
    assert balance(capsys, "team.ledger")["rule"] == "zcdp"


def test_more_releases_fit_into_a_concentrated_ledger(home, capsys):
    """Twelve Gaussian releases at (0.5, 1e-7) are (6, 1.2e-6) by addition and fit into (3, 2e-6) as zCDP."""
    words = ["--epsilon", "3", "--delta", "2e-6", "--neighbours", "replace-one"]
    run(capsys, "ledger", "init", "plain.ledger", *words)
    run(capsys, "ledger", "init", "dense.ledger", *words, "--concentrated")
    asked = ["--epsilon", "0.5", "--delta", "1e-7", "--mechanism", "gaussian", "--force", "-o", "a.json"]
    codes = {
        name: [release(capsys, *asked, ledger=f"{name}.ledger")[0] for _ in range(12)]
        for name in ("plain", "dense")
    }
    assert codes["plain"].count(0) == 6
    assert codes["dense"].count(0) == 12


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["init", "census.ledger", "--epsilon", "1"], "E401", 2),
        (["init", "new.ledger"], "E201", 2),
        (["init", "new.ledger", "--epsilon", "nan"], "E201", 2),
        (["init", "new.ledger", "--epsilon", "11"], "E202", 2),
        (["init", "new.ledger", "--epsilon", "1", "--concentrated"], "E204", 2),
        (["init", "no/such/place", "--epsilon", "1"], "E401", 2),
        (["show", "none.ledger"], "E302", 3),
        (["log", "people.csv"], "E305", 3),
        (["verify", "none.ledger"], "E302", 3),
    ],
)
def test_bad_usage_gives_one_clear_line(home, capsys, words, code, exit_code):
    if words[0] == "init" and "--neighbours" not in words:
        words = [*words, "--neighbours", "replace-one"]
    got, out, err = run(capsys, "ledger", *words)
    assert (got, out) == (exit_code, "")
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1
    assert not (home / "new.ledger").exists()


@pytest.mark.parametrize("word", ["init", "show", "log", "verify"])
def test_every_part_has_help_with_an_example(capsys, word):
    code, out, _ = run(capsys, "ledger", word, "--help")
    assert code == 0
    assert f"Example: privcov ledger {word} " in out


def test_schema_explain_pays_for_a_private_row_norm(home, capsys):
    words = [
        "--data",
        "people.csv",
        "--epsilon",
        "1",
        "--neighbours",
        "replace-one",
        "--row-norm-share",
        "0.25",
    ]
    code, _, err = run(capsys, "schema", "explain", "people.toml", *words, "--ledger", "census.ledger")
    assert code == 0, err
    assert balance(capsys)["spent"] == {"epsilon": "0.25"}
    assert balance(capsys)["releases"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["ledger", "show", "host=db", "password=hush-1"],
        ["ledger", "show", "host=db", "password=hush-1", "hush-2"],
        ["ledger", "verify", "a.ledger", "postgresql://ann:hush-1@db/x"],
        ["ledger", "show", "postgresql://db/x?password=my", "hush-1"],
        ["ledger", "show", "password", "=", "'hush-1'"],
        ["ledger", "postgresql://ann:hush-1@db/x"],
        ["ledger", "ann:hush-1@db"],
        ["ledger", "password='hush-1'"],
        ["password=hush-1", "ledger"],
        ["bench", "reliability", "--seed", "password=hush-1 hush-2"],
        ["bench", "reliability", "--seed=password=hush-1"],
    ],
    ids=" ".join,
)
def test_a_stray_word_that_may_hold_a_password_is_not_repeated(words, capsys):
    assert main(words) == 2
    told = capsys.readouterr()
    assert "E200" in told.err
    assert "hush" not in told.err + told.out


def test_other_stray_words_are_repeated(capsys):
    assert main(["ledger", "show", "a.ledger", "b.ledger"]) == 2
    assert "(b.ledger)" in capsys.readouterr().err
