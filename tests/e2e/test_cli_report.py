"""``privcov report`` as a steward meets it: one file, the same each time, refused where verify refuses."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reading import read

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
RELEASE = [
    "release",
    "people.csv",
    "--schema",
    "people.toml",
    "--epsilon",
    "1",
    "--neighbours",
    "replace-one",
]


@pytest.fixture
def run(tmp_path, people, monkeypatch, capsys):
    """Exit code, stdout and stderr of one command, beside a signed release and an unsigned one."""
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    for name in ("steward", "mallory"):
        assert main(["keygen", name]) == 0
    assert main([*RELEASE, "--sign", "steward.key", "-o", "signed.release.json"]) == 0
    assert main([*RELEASE, "-o", "people.release.json"]) == 0
    capsys.readouterr()

    def run(*words):
        code = main(["report", *words])
        return code, *capsys.readouterr()

    return run


def test_a_page_takes_errors_of_any_variance(run):
    asked = ["people.release.json", "--model", "income ~ age", "--pca", "2", "-o"]
    assert run(*asked, "equal.html")[0] == 0
    assert run(*asked, "wide.html", "--errors", "conservative")[0] == 0
    equal, wide = (Path(name).read_text() for name in ("equal.html", "wide.html"))
    assert "Errors are taken to have one variance" in equal
    assert "Errors may have any variance that the bounds allow, for which sampling errors are" in wide
    assert "sampling error ×" in wide
    assert "with them intervals for the population are too narrow" in equal
    assert "They hold for tails of any weight within the bounds" in wide
    assert "conservative" in wide.split("pc.ols(release")[1].split("summary")[0]
    code, _, err = run(*asked, "x.html", "--errors", "none")
    assert code == 2
    assert "conservative" in err


def test_a_page_is_written_and_says_so_on_stderr(run):
    code, out, err = run(
        "people.release.json", "-o", "x.html", "--model", "income ~ age", "--model", "age ~ sex"
    )
    assert (code, out, err) == (0, "", "wrote x.html\n")
    document = read(Path("x.html").read_text(encoding="utf-8"))
    assert document.all("h1")[0].words == "people"
    assert {"income ~ age", "age ~ sex"} <= {heading.words for heading in document.all("h2")}
    assert "Not signed: anyone could have written this file." in document.words


def test_without_a_name_it_is_beside_the_release(run):
    assert run("people.release.json")[2] == "wrote people.html\n"


def test_a_page_that_is_there_is_not_replaced_unless_asked(run):
    Path("people.html").write_text("mine")
    code, _, err = run("people.release.json")
    assert code == 2
    assert "E401" in err
    assert Path("people.html").read_text() == "mine"
    assert run("people.release.json", "--force")[0] == 0


def test_a_page_that_could_not_be_written_is_refused_before_the_work(run):
    code, _, err = run("missing.release.json", "-o", "nowhere/x.html")
    assert code == 2
    assert "E401" in err


def test_the_page_names_the_digest_and_the_commands_that_check_it(run):
    assert run("signed.release.json", "--key", "steward.pub", "--title", "The <People>")[0] == 0
    document = read(Path("signed.html").read_text(encoding="utf-8"))
    digest = hashlib.sha256(Path("signed.release.json").read_bytes()).hexdigest()
    assert document.all("h1")[0].words == "The <People>"
    assert document.words.count(digest) >= 3
    assert "privcov verify signed.release.json --key steward.pub" in document.words
    assert "Signed with the key you gave" in document.words
    assert "pc.load('signed.release.json')" in document.words
    told = next(e.words for e in document.all("pre") if e.words.startswith("privcov verify"))
    assert main(told.splitlines()[0].split()[1:]) == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["signed.release.json", "--key", "mallory.pub"], "E609"),
        (["people.release.json", "--key", "steward.pub"], "E609"),
        (["forged.release.json"], "E609"),
    ],
    ids=["another key", "not signed", "one digit changed"],
)
def test_what_verify_refuses_gets_no_page(run, words, code):
    text = Path("people.release.json").read_text()
    Path("forged.release.json").write_text(text.replace('"created":"20', '"created":"21'))
    exit_code, _, err = run(*words, "-o", "x.html")
    assert exit_code == 4
    assert code in err
    assert not Path("x.html").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--model", "income ~ height"], "E2"),
        (["--model", "income"], "E2"),
        (["--pca", "9"], "E253"),
    ],
)
def test_a_question_that_cannot_be_answered_leaves_no_file(run, words, code):
    exit_code, _, err = run("people.release.json", "-o", "x.html", *words)
    assert exit_code == 2
    assert code in err
    assert not Path("x.html").exists()


def test_json_describes_what_was_written(run):
    code, out, err = run("people.release.json", "-o", "x.html", "--json")
    assert (code, err) == (0, "")
    told, whole = json.loads(out), Path("x.html").read_bytes()
    assert told["sha256"] == hashlib.sha256(whole).hexdigest()
    assert told["bytes"] == len(whole) < 300_000
    assert told["release_sha256"] == hashlib.sha256(Path("people.release.json").read_bytes()).hexdigest()
    assert told["signed_by"] is None


def test_the_same_release_gives_the_same_bytes_in_another_process(run):
    words = ["people.release.json", "--model", "income ~ .", "--pca", "2"]
    assert run(*words, "-o", "one.html")[0] == 0
    subprocess.run(
        [sys.executable, "-m", "privcov", "report", *words, "-o", "two.html"],
        env={**os.environ, "PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        check=True,
        capture_output=True,
    )
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()


def test_an_estimate_gets_a_page_and_no_models(run):
    words = ["estimate", "people.csv", "--columns", "age,income", "--rho", "1", "--largest-variance", "9999"]
    assert main([*words, "-o", "rough.json"]) == 0
    assert run("rough.json")[0] == 0
    assert "Mean and covariance of 2 columns" in read(Path("rough.html").read_text(encoding="utf-8")).words
    code, _, err = run("rough.json", "-o", "x.html", "--pca", "1")
    assert code == 2
    assert "E286" in err
