"""Files that are misread, from the command to every place that shows a release: each says so.

Noise is the kernel's here. The tables are so far from every threshold that a wrong answer has odds below 1e-5.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from patience import until

import privcov as pc
from privcov.cli import main
from privcov.report.page import html
from privcov.web.asking import Given
from privcov.web.places import Directory
from privcov.web.workbench import Workbench

SCHEMA = """ignore_extra = true
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.income]
lower = 0
upper = 200
"""
RATE = "A table that was read correctly gives such a warning in at most 1 % of releases."


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(form, *, rows=5_000):
    """people.csv of so many people, each on the line that ``form`` makes of an age, a sex and an income."""
    draw = np.random.default_rng(3)
    ages = np.clip(draw.normal(53.6, 20.8, rows), 0, 100).round()
    incomes = draw.lognormal(3.6, 0.5, rows)
    sexes = draw.choice(["F", "M", ""], rows, p=[0.49, 0.49, 0.02])
    lines = [form(age, sex, income) for age, sex, income in zip(ages, sexes, incomes, strict=True)]
    with open("people.csv", "w", encoding="utf-8") as file:
        file.write("age,sex,income,note\n" + "".join(lines))


def run(capsys, *words):
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), " ".join(err.split())


def release(capsys, *words):
    order = ["people.csv", "--schema", "people.toml", "--epsilon", "1", "--neighbours", "replace-one"]
    return run(capsys, "release", *order, "-o", "people.release.json", *words)


def plain(age, sex, income):
    return f"{age:.0f},{sex},{income:.1f},\n"


def lower_case(age, sex, income):
    return plain(age, sex.lower(), income)


def decimal_comma(age, sex, income):
    return f'{age:.0f},{sex},"{income:.1f}",\n'.replace(".", ",")


def whole_units(age, sex, income):
    return plain(age, sex, 1000 * income)


def broken_lines(age, sex, income):
    return f'{age:.0f},{sex},{income:.1f},"called twice,\nno answer"\n'


MISREAD = {
    lower_case: (5_000, "The levels of sex cover", "spells them differently"),
    decimal_comma: (20_000, "income is at the middle of its bounds", "decimal comma"),
    whole_units: (5_000, "income is at its upper bound", "another unit"),
}


@pytest.mark.parametrize("form", MISREAD, ids=lambda form: form.__name__)
def test_release_and_show_warn_of_a_file_that_was_misread(home, capsys, form):
    rows, sentence, cause = MISREAD[form]
    write(form, rows=rows)
    code, out, err = release(capsys)
    assert code == 0
    assert "WARNING" not in out
    assert err.count("WARNING") == 1
    for words in (f"WARNING: {sentence}", cause, RATE, "docs/explain/misread.md"):
        assert words in err
    code, out, err = run(capsys, "show", "people.release.json")
    assert (code, err) == (0, "")
    for words in (f"WARNING: {sentence}", cause, RATE):
        assert words in out


def test_line_breaks_in_quoted_cells_are_read_right_refused_or_warned_of(home, capsys):
    """Read line by line, 5,000 people with a note each are 10,000 records without one cell that counts."""
    write(broken_lines)
    code, _, err = release(capsys)
    if code == 0 and pc.load("people.release.json").rows != 5_000:
        assert "WARNING: The 2 numeric columns lie at the middle of their bounds" in err
        assert re.search(r"WARNING: The levels of sex cover -?[01]\.\d+ %", err)
        assert "line breaks in quoted cells" in err
    else:
        assert code == 2 or "WARNING" not in err


def test_a_file_that_was_read_as_meant_is_shown_without_a_word(home, capsys):
    write(plain)
    _, out, err = release(capsys)
    assert "WARNING" not in out + err
    assert "WARNING" not in run(capsys, "show", "people.release.json")[1]
    assert json.loads(run(capsys, "show", "people.release.json", "--json")[1])["doubts"] == []
    assert 'class="warning"' not in html(pc.load("people.release.json"))


def test_a_release_piped_on_is_the_file_alone_and_the_warning_goes_beside_it(home, capsys):
    write(lower_case)
    code, out, err = release(capsys, "--json")
    assert code == 0
    assert json.loads(out) == json.loads((home / "people.release.json").read_text())
    assert "WARNING: The levels of sex cover" in err
    main(
        ["release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--neighbours", "replace-one"]
    )
    out, err = capsys.readouterr()
    (home / "piped.json").write_text(out)
    assert pc.load("piped.json").rows == 5_000
    assert "WARNING: The levels of sex cover" in " ".join(err.split())


def test_programs_get_doubts_as_values_and_null_where_there_can_be_none(home, capsys):
    write(lower_case)
    release(capsys)
    (doubt,) = json.loads(run(capsys, "show", "people.release.json", "--json")[1])["doubts"]
    assert (doubt["kind"], doubt["columns"]) == ("levels uncovered", ["sex"])
    assert abs(doubt["figure"]) < 0.1
    assert 0 < doubt["std_error"] < 0.01
    (same,) = pc.doubts(pc.load("people.release.json"))
    assert same.to_dict() == doubt
    release(capsys, "--mechanism", "eigenvectors", "--force")
    assert json.loads(run(capsys, "show", "people.release.json", "--json")[1])["doubts"] is None


def test_many_warnings_are_told_a_few_at_a_time(home, capsys):
    columns = {f"c{i}": {"levels": ["a", "b"]} for i in range(9)}
    schema = pc.Schema.from_dict({"columns": columns})
    (home / "people.toml").write_text(schema.to_toml())
    (home / "people.csv").write_text(
        ",".join(columns) + "\n" + (",".join("A" for _ in columns) + "\n") * 20_000
    )
    _, _, err = release(capsys)
    assert err.count("WARNING") == 6
    assert "… and 3 more warnings (privcov show --json prints all)." in err
    page = html(pc.load("people.release.json"))
    assert (
        page.count('class="warning"') == 8
    )  # six doubts, how many more, and that no correlation can be told
    assert "… and 3 more." in page


def test_the_report_and_a_notebook_warn_and_no_level_can_break_into_them(home, capsys):
    schema = pc.Schema.from_dict({"columns": {"sex": {"levels": ["<b onclick=x>", "M"]}}})
    (home / "people.toml").write_text(schema.to_toml())
    (home / "people.csv").write_text("sex\n" + "<b onclick=x>\n" * 50_000)
    release(capsys)
    made = pc.load("people.release.json")
    for markup in (html(made), made._repr_html_()):
        assert "The level &lt;b onclick=x&gt; of sex has " in markup
        assert "filled in with one value" in markup
        assert "at most 1 % of releases" in markup
        assert "<b " not in markup


def test_the_workbench_warns_after_a_release_and_on_the_page_that_reads_it(home):
    write(lower_case)
    pc.Ledger.init("people.ledger", pc.PureDP(epsilon=3, neighbours="replace-one"))
    workbench = Workbench(directory=Directory(root=home), given=Given())
    ask, name = workbench.questions, "1" * 32
    draft = ask["schema/open"]({"schema": "people.toml"})["draft"]
    order = {
        "loss": {"kind": "pure", "epsilon": "1", "neighbours": "replace-one"},
        "draft": draft,
        "request": name,
    }
    ask["release"](
        {**order, "data": "people.csv", "ledger": "people.ledger", "output": "people.release.json"}
    )
    until(lambda: ask["job"]({"request": name})["state"] in ("done", "failed"))
    job = ask["job"]({"request": name})
    workbench.close()
    assert job["state"] == "done"
    (doubt,) = job["doubts"]
    assert re.match(
        r"The levels of sex cover -?[01]\.\d+ % ± 0\.\d+ % of the rows\. Likely: the file spells", doubt
    )
    sections = {
        one["name"]: one["body"] for one in ask["result"]({"release": "people.release.json"})["sections"]
    }
    assert doubt.partition(" Likely")[0] in sections["overview"]
