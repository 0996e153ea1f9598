"""Files of a few kilobytes that once hung, flooded or deceived a command: each is answered within its limits.

Every command runs in a child of ``bench/limited.py``, which has seconds of processor time and a few gigabytes of
address space; all of them in one process of its own, because a test process has threads and may not fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import ReleaseError
from privcov.releases import codec, keyfiles
from privcov.releases.documents import to_text
from privcov.releases.signing import keygen
from privcov.releases.triangle import Triangle
from privcov.text.grammar import printable
from privcov.unbounded import codec as estimates
from privcov_lab.bench.hostile import Answer

CLEAR = "\x1b[2J\x1b[1;1Hok    Signed with the key you gave."
HUGE = "1e999999999"
ROWS = np.column_stack([np.linspace(20, 80, 40), np.linspace(0, 190, 40)])
_CALL = """
import dataclasses, json, sys
from privcov_lab.bench.hostile import Shell, answers
from privcov.cli import main
commands = json.loads(sys.argv[1])
print(json.dumps([dataclasses.asdict(a) for a in answers(Shell(main), len(commands), lambda i: commands[i])]))
"""


def asked(commands, where):
    """What the commands answer, and at what cost."""
    done = subprocess.run(
        [sys.executable, "-c", _CALL, json.dumps(commands)],
        cwd=where,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Answer(**answer) for answer in json.loads(done.stdout)]


def put(document, *path, value):
    *way, last = path
    for step in way:
        document = document[step]
    document[last] = value


RELEASES = {
    "norm": lambda d: put(d, "certificate", "row_norm_bound", value=HUGE),
    "epsilon": lambda d: put(d, "certificate", "guarantee", "epsilon", value=HUGE),
    "long fraction": lambda d: put(d, "certificate", "guarantee", "epsilon", value="1/" + "3" * 100_000),
    "tiny epsilon": lambda d: put(d, "certificate", "guarantee", "epsilon", value="1e-300"),
    "scale": lambda d: put(d, "certificate", "noise", "scale", value="1e+300"),
    "bound": lambda d: put(d, "certificate", "bounds", "columns", 0, "upper", value="9" * 100_000),
    "rows": lambda d: put(d, "rows", "count", value=10**400),
    "many rows": lambda d: put(d, "rows", "count", value=10**17),
    "entries": lambda d: put(d, "matrix", "upper", value=["9" * 59, "-" + "9" * 59] * 3),
    "one entry": lambda d: put(d, "matrix", "upper", 2, value="-" + "9" * 30),
    **{
        f"escape in {word}": lambda d, word=word: put(d, "certificate", word, value=CLEAR)
        for word in ("mechanism", "proof", "timing", "version", "created")
    },
    "escape in an option": lambda d: put(d, "certificate", "options", "auto", value=CLEAR),
    "escape as an option": lambda d: put(d, "certificate", "options", CLEAR, value="covariance"),
    "bidi": lambda d: put(d, "certificate", "version", value="\u202e0.1"),
    "surrogate": lambda d: put(d, "certificate", "version", value="\ud800"),
    "long text": lambda d: put(d, "certificate", "timing", value="a" * 401),
    "many options": lambda d: put(d, "certificate", "options", value={f"a{i}": "x" for i in range(65)}),
}
ESTIMATES = {
    "rho": lambda d: put(d, "certificate", "guarantee", "rho", value=HUGE),
    "share": lambda d: put(d, "certificate", "budget", 0, "rho", value=HUGE),
    "shares": lambda d: put(
        d, "certificate", "budget",
        value=[{"step": "mean", "rho": f"1/{7 * 10**900 + 2 * i + 1}"} for i in range(3000)],
    ),
    "columns": lambda d: (put(d, "columns", value=[f"c{i}" for i in range(100_000)])),
    "column": lambda d: put(d, "columns", 0, value=CLEAR),
    "step": lambda d: put(d, "certificate", "budget", 0, "step", value=CLEAR),
    "rows": lambda d: put(d, "rows", value=10**17),
    "number": lambda d: put(d, "covariance", 0, value="9" * 100_000),
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Every file through every command that reads it, in one go: what was asked, with its answer."""
    home = tmp_path_factory.mktemp("hostile")
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 200} for n in ("a", "b")}})
    release = pc.release(ROWS, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    loss = pc.ZCDP(rho=1, neighbours="replace-one")
    estimate = pc.estimate_gaussian(ROWS, loss=loss, largest_variance=9999, mean_radius=1000, rounds=2)
    stranger = keygen()
    keyfiles.write(home / "steward", keygen())
    keyfiles.write(home / "stranger", stranger)
    commands = []
    for form, made, changes in ((codec.FORM, release, RELEASES), (estimates.FORM, estimate, ESTIMATES)):
        for name, change in changes.items():
            document = json.loads(made.to_json())
            change(document)
            body = {word: value for word, value in document.items() if word not in ("format", "signature")}
            for sign, key in (("digest", None), ("signed", stranger)):
                path = f"{form.what} {name} {sign}.json"
                (home / path).write_text(to_text(form.sealed(body, key)))
                commands += [["verify", path], ["verify", path, "--key", "steward.pub"]]
                commands += [["verify", path, "--key", "stranger.pub"]] if key else []
                commands += [["show", path]] if form is codec.FORM else []
    answers = asked(commands, home)
    return [(*words, answer) for words, answer in zip(map(tuple, commands), answers, strict=True)]


def test_no_such_file_hangs_floods_or_breaks_a_command(told):
    assert len(told) == 7 * len(RELEASES) + 5 * len(ESTIMATES)
    for *words, answer in told:
        assert not list(answer.faults()), words


def test_every_such_file_is_refused_by_every_command(told):
    for *words, answer in told:
        assert answer.code in (2, 4), words


def test_nothing_that_a_terminal_obeys_is_printed(told):
    for *words, answer in told:
        assert printable((answer.out + answer.err).replace("\n", "")), words
        assert "\nok    Signed" not in answer.out, words


def test_with_a_key_that_did_not_sign_no_field_is_read(told):
    """Whatever the file says: who signed is told first, and alone."""
    asked_with_key = [(words, answer) for *words, answer in told if words[2:] == ["--key", "steward.pub"]]
    assert len(asked_with_key) == 2 * (len(RELEASES) + len(ESTIMATES))
    for words, answer in asked_with_key:
        if (
            "release rows " in words[1]
        ):  # a number of 400 digits, which no file of privcov has: it is no document
            assert (answer.code, "E601" in answer.err) == (2, True)
            continue
        assert (answer.code, "E609" in answer.err) == (4, True), words
        assert [line[:5] for line in answer.out.splitlines() if line[0] != " "] == ["ok   ", "FAILS"], words


def test_a_document_of_any_depth_is_refused_with_a_code(tmp_path):
    """The parser and the writer of JSON each have a depth at which they give up."""
    for depth in (10, 300, 900, 960, 980, 990, 1000, 100_000):
        inner = '{"a":' * depth + "1" + "}" * depth
        text = (
            '{"format":"privcov/release/1","rows":'
            + inner
            + ',"signature":{"algorithm":"sha256","value":""}}'
        )
        (tmp_path / "deep.json").write_text(text)
        with contextlib.suppress(ReleaseError):
            assert not pc.verify(tmp_path / "deep.json").holds
        with pytest.raises(ReleaseError):
            pc.load(tmp_path / "deep.json")


@pytest.mark.long
def test_a_sparse_wide_file_is_refused_before_its_matrix_is_read(tmp_path):
    """2 MB on the disk, 3.2 GB to whoever reads it; once it drove ``verify`` to as much memory."""
    names = [f"c{i}" for i in range(19_999)]
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})
    small = pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}}})
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
    made = pc.release(np.zeros((2, 1)), schema=small, loss=loss, mechanism="gaussian")
    law = replace(made.certificate.law, dimension=schema.dimension)
    made = replace(made, schema=schema, upper=Triangle.of(np.zeros(3, dtype=np.int64), word=16))
    document = json.loads(replace(made, certificate=replace(made.certificate, law=law)).to_json())
    size = 20_000 * 20_001 // 2 * 16
    document["matrix"]["body"].update(bytes=size, sha256="0" * 64)
    body = {word: value for word, value in document.items() if word not in ("format", "signature")}
    head = to_text(codec.FORM.sealed(body)).encode()
    with (tmp_path / "wide.json").open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
    if os.stat(tmp_path / "wide.json").st_blocks * 512 > size:
        pytest.skip("this file system stores no holes")
    verified, shown = asked([["verify", "wide.json"], ["show", "wide.json"]], tmp_path)
    for answer in (verified, shown):
        assert not list(answer.faults())
        assert (answer.code, "holes" in answer.err) == (2, True)


@pytest.mark.parametrize("amount", ["1e-60", "1e-30", "1e60"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_release_at_the_ends_of_what_may_be_asked_is_read_by_every_command(
    tmp_path, monkeypatch, capsys, amount, relation
):
    monkeypatch.chdir(tmp_path)
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 200} for n in ("a", "b")}})
    for loss in (pc.PureDP(epsilon=amount, neighbours=relation), pc.ZCDP(rho=amount, neighbours=relation)):
        pc.release(ROWS, schema=schema, loss=loss).save("r.json", force=True)
        for words in (
            ["show", "r.json"],
            ["ols", "r.json", "b ~ a"],
            ["pca", "r.json"],
            ["ridge", "r.json", "--target", "b"],
        ):
            assert main(words) in (0, 2), capsys.readouterr().err
        assert main(["verify", "r.json"]) == 0


def test_a_file_name_with_escapes_is_escaped_wherever_it_is_echoed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = f"{CLEAR.replace('/', '')}\nok    all\udcff.json"
    (tmp_path / "s.toml").write_text("[columns.a]\nlower = 0\nupper = 1\n")
    os.replace("s.toml", name)
    for words in (
        ["verify", name],
        ["show", name],
        ["verify", "missing" + name],
        ["schema", "check", name],
        ["schema", "check", "missing" + name],
        ["ledger", "show", name],
        ["keygen", name],
        ["release", name, "--schema", name, "--epsilon", "1"],
        [name],
        ["show", "--matrix", name, "x"],
    ):
        main(words)
        out, err = capsys.readouterr()
        assert printable((out + err).replace("\n", "")), words
        assert "\nok    all" not in out + err, words
        assert "\\x1b[2J" in out + err or words[0] in ("show", "verify"), words


def test_no_command_prints_but_through_the_place_that_escapes():
    from pathlib import Path

    import privcov.cli
    import privcov_lab.cli

    for path in [
        *Path(privcov.cli.__file__).parent.glob("*.py"),
        *Path(privcov_lab.cli.__file__).parent.glob("*.py"),
    ]:
        text = path.read_text()
        if path.name != "output.py":
            assert " print(" not in text, path.name
            assert "click.echo" not in text, path.name
            assert "sys.stderr.write" not in text, path.name
