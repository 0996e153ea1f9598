"""The command line as a person meets it: results, notes, exit codes, and one clear line when it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import cpu_of_children

import privcov as pc
from privcov.cli import COMMANDS, LABORATORY, main

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
    """A working directory with people.csv and people.toml."""
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    """Exit code, stdout and stderr of one command."""
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def release(capsys, *words):
    return run(capsys, "release", "people.csv", "--schema", "people.toml", *words)


@pytest.mark.parametrize(
    ("was", "then", "code"),
    [
        ("lower = 0\nupper = 100", "lower = 0\nupper = 100\nfill = 101", "E144"),
        ("lower = 0\nupper = 100", 'lower = 0\nupper = 100\nfill = 10\nmissing = "indicator"', "E145"),
        ('["F", "M"]', '["F", "M"]\nmissing_values = ["M"]', "E142"),
        ('["F", "M"]', '["F", "missing"]\nmissing = "indicator"', "E146"),
        ("[columns.age]", "missing_values = 9\n[columns.age]", "E141"),
        (
            "[columns.age]",
            'missing_values = ["1.5"]\n[file]\nseparator = ";"\ndecimal = ","\n[columns.age]',
            "E143",
        ),
    ],
)
def test_rules_that_contradict_each_other_are_refused_in_a_line_and_nothing_is_paid(
    home, capsys, was, then, code
):
    (home / "people.toml").write_text(SCHEMA.replace(was, then, 1))
    assert run(capsys, "ledger", "init", "l.db", "--epsilon", "1", "--neighbours", "replace-one")[0] == 0
    exit_code, out, err = release(capsys, "--epsilon", "1", "--neighbours", "replace-one", "--ledger", "l.db")
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1
    assert json.loads(run(capsys, "ledger", "show", "l.db", "--json")[1])["spent"]["epsilon"] == "0"


def test_release_then_show(home, capsys):
    code, out, err = release(capsys, "--epsilon", "1", "--neighbours", "replace-one", "-o", "p.release.json")
    assert code == 0
    assert "The promise: replacing one person's row by any other" in out
    assert "wrote p.release.json" in err
    code, out, err = run(capsys, "show", "p.release.json")
    assert (code, err) == (0, "")
    for word in ("Correlation", "age", "income", "sex[F]", "symmetric-wishart", "public", "The noise is"):
        assert word in out


@pytest.mark.parametrize("matrix", ["correlation", "covariance", "mean", "moment", "raw"])
def test_show_prints_every_matrix(home, capsys, matrix):
    release(capsys, "--epsilon", "1", "-o", "r.json")
    code, out, _ = run(capsys, "show", "r.json", "--matrix", matrix)
    assert code == 0
    assert "age" in out
    code, scaled, _ = run(capsys, "show", "r.json", "--matrix", matrix, "--scaled")
    assert code == 0
    assert (scaled == out) == (matrix == "correlation")


@pytest.mark.parametrize("method", ["none", "clip", "trace", "shrink", "auto"])
def test_show_takes_every_repair(home, capsys, method):
    release(capsys, "--epsilon", "1", "-o", "r.json")
    assert run(capsys, "show", "r.json", "--repair", method)[0] == 0


def test_an_unknown_repair_is_refused_with_the_known_ones(home, capsys):
    release(capsys, "--epsilon", "1", "-o", "r.json")
    code, _, err = run(capsys, "show", "r.json", "--repair", "polish")
    assert code == 2
    assert "auto" in err


def test_without_an_output_the_release_itself_goes_to_stdout(home, capsys):
    code, out, err = release(capsys, "--epsilon", "1", "--neighbours", "add-remove")
    assert (code, err) == (0, "")
    (home / "piped.json").write_text(out)
    assert pc.load(home / "piped.json").rows is None


def test_json_and_the_release_file_share_one_format(home, capsys):
    code, out, _ = release(capsys, "--epsilon", "1", "-o", "r.json", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((home / "r.json").read_text())


def test_the_default_relation_is_announced(home, capsys):
    assert "neighbours: replace-one (the default)" in release(capsys, "--epsilon", "1", "-o", "r.json")[2]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--epsilon", "0.5"], "pure"),
        (["--epsilon", "0.5", "--delta", "1e-6", "--mechanism", "gaussian"], "approximate"),
        (
            ["--epsilon", "0.5", "--delta", "1e-6"],
            "pure",
        ),  # auto: less noise with four columns, and promises more
        (["--rho", "0.1"], "zcdp"),
        (["--epsilon", "1/3", "--mechanism", "laplace"], "pure"),
        (["--epsilon", "1", "--mechanism", "frobenius", "--arithmetic", "idealized"], "pure"),
        (["--rho", "0.1", "--mechanism", "gaussian", "--option", "noise=discrete"], "zcdp"),
    ],
)
def test_every_kind_of_loss_can_be_asked_for(home, capsys, words, kind):
    code, _, err = release(capsys, *words, "-o", "r.json")
    assert code == 0, err
    made = pc.load(home / "r.json")
    assert made.certificate.loss.kind == kind
    assert made.certificate.arithmetic == ("idealized" if "idealized" in words else "exact")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--epsilon", "0"], "E201"),
        (["--epsilon", "-1"], "E201"),
        (["--epsilon", "nan"], "E201"),
        (["--epsilon", "inf"], "E201"),
        (["--epsilon", "1e400"], "E201"),
        (["--epsilon", "0.1.2"], "E201"),
        (["--epsilon", ""], "E201"),
        ([], "E201"),
        (["--epsilon", "11"], "E202"),
        (["--epsilon", "1", "--delta", "2"], "E203"),
        (["--epsilon", "1", "--delta", "0"], "E203"),
        (["--epsilon", "1", "--delta", "nan"], "E203"),
        (["--epsilon", "1", "--mechanism", "gaussian"], "E203"),
        (["--epsilon", "1", "--delta", "1e-6", "--mechanism", "symmetric-wishart"], "E203"),
        (["--rho", "1", "--mechanism", "laplace"], "E204"),
        (["--epsilon", "1", "--rho", "1"], "E204"),
        (["--epsilon", "1", "--neighbours", "twins"], "E207"),
        (["--epsilon", "1", "--mechanism", "sn"], "E208"),
        (["--epsilon", "1", "--mechanism", "magic"], "E209"),
        (["--epsilon", "1", "--option", "colour=red"], "E209"),
        (["--epsilon", "1", "--option", "colour"], "E200"),
        (["--epsilon", "1", "--arithmetic", "lucky"], "E209"),
        (["--epsilon", "1", "--frobnicate"], "E200"),
        (["--epsilon", "1", "-o", "missing/r.json"], "E401"),
        (["--epsilon", "1", "-o", "people.csv"], "E401"),
        (["--epsilon", "1", "-o", "."], "E401"),
        (["--epsilon", "1", "--schema", "none.toml"], "E119"),
    ],
)
def test_bad_parameters_give_one_clear_line_and_leave_nothing_behind(home, capsys, words, code):
    before = sorted(home.iterdir())
    words = words if "-o" in words else [*words, "-o", "r.json"]
    exit_code, out, err = release(capsys, "--neighbours", "replace-one", *words)
    assert exit_code == 2
    assert out == ""
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1
    assert sorted(home.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "E119"),
        (b"", "E101"),
        (b"age,sex,income\n", "E108"),
        (b"age,sex\n1,F\n", "E102"),
        (b"age,sex,income,age\n1,F,2,3\n", "E103"),
        (b"age,sex,income,name\n1,F,2,Ann\n", "E104"),
        (("c" + ",c".join(map(str, range(10**6))) + "\n").encode(), "E113"),
        (b"\x1f\x8b\x08\x00" + b"\0" * 100, "E117"),
        ("age,sex,incöme\n".encode("latin-1"), "E105"),
    ],
)
def test_a_bad_data_file_gives_one_clear_line_and_leaves_nothing_behind(home, capsys, content, code):
    path = home / "people.csv"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    exit_code, out, err = release(capsys, "--epsilon", "1", "--neighbours", "replace-one", "-o", "r.json")
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1
    assert len(err) < 2000
    assert not (home / "r.json").exists()


def test_under_add_remove_no_rows_are_a_valid_release(home, capsys):
    (home / "people.csv").write_text("age,sex,income\n")
    assert release(capsys, "--epsilon", "1", "--neighbours", "add-remove", "-o", "r.json")[0] == 0


CELLS = [
    "x",
    "",
    "NaN",
    "inf",
    "-Infinity",
    "1e999",
    "0x10",
    "1_000",
    "NA",
    "null",
    "9" * 400,
    "-0",
    "5e-324",
    '"1,000"',
    "١",
    "true",
]


def test_no_cell_changes_what_is_said(home, capsys, monkeypatch):
    """Replace one person's cells by anything: same exit code, same words, same shape of the release.

    Doubts are words about the noisy matrix, and wrong once in a hundred releases: here they are not asked.
    """
    monkeypatch.setattr("privcov.report.doubts.ODDS", 1e-30)
    said = []
    for cell in ["41", *CELLS]:
        (home / "people.csv").write_text(f"age,sex,income\n30,F,10\n{cell},{cell},{cell}\n", encoding="utf-8")
        code, out, err = release(
            capsys, "--epsilon", "1", "--neighbours", "replace-one", "-o", "r.json", "--force"
        )
        document = json.loads((home / "r.json").read_text())
        document["certificate"].pop("created")
        document["matrix"]["upper"] = len(document["matrix"]["upper"])
        document.pop("signature")
        said.append((code, out, err, json.dumps(document)))
    assert said.count(said[0]) == len(said)
    assert said[0][0] == 0


def test_an_existing_output_needs_force(home, capsys):
    assert release(capsys, "--epsilon", "1", "-o", "r.json")[0] == 0
    first = (home / "r.json").read_text()
    code, _, err = release(capsys, "--epsilon", "1", "-o", "r.json")
    assert code == 2
    assert "--force" in err
    assert (home / "r.json").read_text() == first
    assert release(capsys, "--epsilon", "1", "-o", "r.json", "--force")[0] == 0
    assert (home / "r.json").read_text() != first


def test_a_large_epsilon_needs_to_be_understood(home, capsys):
    assert release(capsys, "--epsilon", "20", "--i-understand", "-o", "r.json")[0] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_refused(home, capsys):
    (home / "locked").mkdir(mode=0o500)
    assert "E401" in release(capsys, "--epsilon", "1", "-o", "locked/r.json")[2]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "E604"),
        (b"", "E601"),
        (b"{}", "E601"),
        (b"\xff\xff", "E601"),
        (b'{"format": "privcov/release/9"}', "E602"),
    ],
)
def test_show_refuses_what_is_no_release(home, capsys, content, code):
    if content is not None:
        (home / "r.json").write_bytes(content)
    exit_code, out, err = run(capsys, "show", "r.json")
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"privcov: {code} ")


def test_a_release_of_several_parquet_files_by_glob_and_by_list(home, capsys):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in range(3):
        table = pa.table({"age": [20.0 + part], "sex": ["F"], "income": [50.0]})
        pq.write_table(table, home / f"part{part}.parquet")
    for data in (["part*.parquet"], ["part0.parquet", "part1.parquet", "part2.parquet"]):
        code = main(
            ["release", *data, "--schema", "people.toml", "--epsilon", "1", "-o", "r.json", "--force"]
        )
        capsys.readouterr()
        assert code == 0
        assert pc.load(home / "r.json").rows == 3


def test_demo_shows_the_truth_beside_the_release(capsys, tmp_path):
    code, out, _ = run(capsys, "demo", "-o", str(tmp_path / "d.json"))
    assert code == 0
    assert "true mean" in out
    made = pc.load(tmp_path / "d.json")
    assert made.rows == 4000
    women, men = (made.columns.index(name) - 1 for name in ("sex[F]", "sex[M]"))
    np.testing.assert_allclose(made.correlation()[women], -made.correlation()[men], atol=1e-9)
    code, out, _ = run(capsys, "demo", "--json")
    assert json.loads(out)["rows"]["count"] == 4000


def test_demo_shows_that_a_private_frame_does_not_mind_loose_bounds(capsys):
    out = run(capsys, "demo")[1]
    (row,) = (line for line in out.splitlines() if line.startswith("educ, income"))
    true, framed = float(row.split()[2]), float(row.split()[-1])
    # Over 30 releases the error was 0.02 on average and 0.05 at most; without a frame it was 0.49 on average.
    assert abs(framed - true) < 0.15


def test_mechanisms_lists_every_mechanism_and_the_refused_one(capsys):
    from privcov.mechanisms import MECHANISMS

    code, out, _ = run(capsys, "mechanisms")
    assert code == 0
    for name, kind in MECHANISMS.items():
        assert name in out
        assert f"(privcov proof {Path(kind.proof).stem})" in out
    assert "refused: sn" in out
    listed = json.loads(run(capsys, "mechanisms", "--json")[1])["mechanisms"]
    assert [m["name"] for m in listed] == list(MECHANISMS)


def test_schema_init_writes_names_and_types_and_no_bound(home, capsys):
    code, out, err = run(capsys, "schema", "init", "people.csv", "-o", "draft.toml")
    assert (code, out) == (0, "")
    text = (home / "draft.toml").read_text()
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[columns.age]",
        "[columns.sex]",
        "[columns.income]",
    ]
    assert "never from the data" in err
    blanks = [
        line.split("#")[0].strip()
        for line in text.splitlines()
        if line.startswith(("lower", "upper", "levels"))
    ]
    assert blanks == ["lower =", "upper =", "levels =", "lower =", "upper ="]
    code, _, err = run(capsys, "release", "people.csv", "--schema", "draft.toml", "--epsilon", "1")
    assert code == 2
    assert "still blank" in err


def test_schema_check_says_what_a_schema_amounts_to(home, capsys):
    code, out, _ = run(capsys, "schema", "check", "people.toml")
    assert code == 0
    assert "3 columns in the table, 5 in the released matrix" in out
    assert json.loads(run(capsys, "schema", "check", "people.toml", "--json")[1])[
        "row_norm_bound"
    ] == pytest.approx(2)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"Example: privcov {command}" in out


@pytest.mark.parametrize("words", [(), ("schema",), ("ledger",)], ids=" ".join)
def test_a_command_that_needs_another_lists_them_in_lines_when_it_stands_alone(capsys, words):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err == run(capsys, *words, "--help")[1]
    assert "\nCommands:\n" in err


@pytest.mark.parametrize(
    "command", [("show",), ("pca",), ("report",), ("ols", "income ~ age")], ids=lambda words: words[0]
)
def test_a_file_that_is_no_release_is_named(home, capsys, command):
    code, _, err = run(capsys, command[0], "people.csv", *command[1:])
    assert code == 2
    assert err.startswith("privcov: E601 people.csv is not a valid release file: ")
    assert err.endswith("Give a file that privcov wrote, or ask for the original.\n")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("relase", "No such command 'relase'. Did you mean 'release'?"),
        ("benhc", "No such command 'benhc'. Did you mean 'bench'?"),
        ("census", "No such command 'census'."),
        (
            "release://steward:secret@db",
            "No such command (…). It may hold a password, so it is not repeated.",
        ),
    ],
)
def test_a_command_with_a_slip_in_it_is_proposed(capsys, word, said):
    assert run(capsys, word) == (2, "", f"privcov: E200 {said} See privcov --help.\n")


def test_an_internal_fault_says_nothing_about_its_cause(home, capsys, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a secret value: 123-45-6789")

    monkeypatch.setattr("privcov.publish.release.sum_rows", fail)
    code, out, err = release(capsys, "--epsilon", "1", "--neighbours", "replace-one", "-o", "r.json")
    assert code == 70
    assert out == ""
    assert err == "privcov: E900 internal error; the budget stays charged and nothing was released.\n"


def test_the_console_script_works_in_a_pipe(home):
    script = Path(sys.executable).with_name("privcov")
    done = subprocess.run(
        f"{script} release people.csv --schema people.toml --epsilon 1 | head -c 40",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_help_does_not_load_numpy_and_answers_quickly():
    program = "import sys; from privcov.cli import main; main(['--help']); assert 'numpy' not in sys.modules"
    before = cpu_of_children()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert cpu_of_children() - before < 2  # the promise is 0.4 s on a machine that does nothing else


def test_schema_explain_shows_how_bounds_become_noise(home, capsys):
    code, out, err = run(capsys, "schema", "explain", "people.toml")
    assert (code, err) == (0, "")
    assert "at most 1 for each of 3 columns plus 1 for the intercept" in " ".join(out.split())
    assert "So the row norm is at most 2" in out
    assert "75 %" in out
    code, out, _ = run(
        capsys, "schema", "explain", "people.toml", "--epsilon", "1", "--rows", "300", "--json"
    )
    costs = {c["name"]: c["sum_noise"] for c in json.loads(out)["columns"]}
    assert code == 0
    assert costs["income"] == pytest.approx(2 * costs["age"])  # bounds twice as wide


def test_schema_explain_buys_a_private_row_norm_and_says_what_it_cost(home, capsys):
    words = ["--epsilon", "1", "--neighbours", "replace-one", "--row-norm-share", "0.25"]
    code, out, _ = run(capsys, "schema", "explain", "people.toml", "--data", "people.csv", *words)
    assert code == 0
    assert "The choice cost pure differential privacy, epsilon = 0.25" in out
    assert "epsilon = 0.75" in out
    code, _, err = run(capsys, "schema", "explain", "people.toml", "--data", "people.csv")
    assert code == 2
    assert "give --epsilon or --rho" in err


def test_a_table_without_a_header_gives_no_template_and_no_value(home, capsys):
    (home / "bare.csv").write_text("73.91,F,91357\n50,M,2\n")
    code, out, err = run(capsys, "schema", "init", "bare.csv")
    assert (code, "E101" in err) == (2, True)
    assert "73.91" not in out + err


@pytest.mark.parametrize("command", LABORATORY)
def test_without_the_laboratory_its_commands_say_how_to_get_it(monkeypatch, capsys, command):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    assert main([command, "--help"]) == 2
    said = f"privcov: E217 privcov {command} is a command of the package privcov-lab. "
    assert capsys.readouterr().err == said + "Install it: pip install privcov-lab.\n"
    assert main(["--help"]) == 0
    assert "Laboratory (pip install privcov-lab)" in capsys.readouterr().out


@pytest.mark.parametrize("command", LABORATORY)
def test_the_laboratory_adds_its_commands(capsys, command):
    assert main([command, "--help"]) == 0
    assert f"privcov {command}" in capsys.readouterr().out
