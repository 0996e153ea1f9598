"""Strata on the command line: plan, release, read, compare. What cannot be is one line and costs nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import privcov as pc
from privcov.cli import main
from privcov.releases.documents import to_text
from privcov.releases.strata import FORM

SCHEMA = """
ignore_extra = true
[columns.age]
lower = 0
upper = 100
[columns.pay]
lower = 0
upper = 200
[columns.area]
levels = ["south", "west"]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A messy table, its schema, and a release of it by area."""
    home = tmp_path_factory.mktemp("strata")
    rng = np.random.default_rng(5)
    area = rng.choice(["south", "west ", "", "east", "SOUTH"], 4000, p=[0.45, 0.45, 0.05, 0.03, 0.02])
    age = rng.uniform(20, 80, 4000)
    pay = 20 + np.where(area == "south", 1.5, 0.7) * age + rng.normal(0, 10, 4000)
    lines = [
        f"{a:.1f},{'n/a' if i % 97 == 0 else f'{p:.2f}'},{s},{i % 7}\n"
        for i, (a, p, s) in enumerate(zip(age, pay, area, strict=True))
    ]
    (home / "t.csv").write_text("age,pay,area,many\n" + "".join(lines))
    (home / "t.toml").write_text(SCHEMA)
    (home / "wide.toml").write_text(f"{SCHEMA}[columns.many]\nlevels = {list(range(3000))}\n")
    pc.Ledger.init(home / "l", pc.PureDP(epsilon=5, neighbours="replace-one"))
    asked = ["release", str(home / "t.csv"), "--schema", str(home / "t.toml"), "--epsilon", "3"]
    more = ["--by", "area", "--other", "rest", "--ledger", str(home / "l"), "-o", str(home / "r.json")]
    assert main([*asked, *more]) == 0
    return home


def said(capsys, *words):
    code = main([str(word) for word in words])
    heard = capsys.readouterr()
    return code, heard.out, heard.err


def test_a_stratum_that_is_called_total_does_not_hide_the_sum(tmp_path, capsys):
    schema = pc.Schema.from_dict(
        {"columns": {"age": {"lower": 0, "upper": 9}, "area": {"levels": ["total", "west"]}}}
    )
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0] * 50, "area": ["total", "west", "west"] * 50})
    strata = pc.release(table, schema=schema, loss=pc.ZCDP(rho=1, neighbours="add-remove"), by="area")
    strata.save(path := tmp_path / "s.release.json")
    for name, one in (("total", strata["total"]), ("(total)", strata.total())):
        found = json.loads(said(capsys, "show", path, "--stratum", name, "--json")[1])
        assert found["mean"] == pytest.approx(one.mean().tolist())
    code, _, heard = said(capsys, "ols", path, "age ~ 1", "--stratum", "(total)", "--against", "west")
    assert (code, "a total has the noise of both" in heard) == (2, True)


def test_a_share_for_the_total_is_planned_checked_released_shown_and_verified(home, tmp_path, capsys):
    table, schema = home / "t.csv", home / "t.toml"
    asked = ["--schema", schema, "--rho", "0.2", "--by", "area", "--total-share", "best"]
    code, out, _ = said(capsys, "plan", "--rows", "4000", *asked, "--json")
    plan = json.loads(out)
    assert (code, plan["total_share"], plan["total_share"]) == (0, "0.268", plan["best_share"])
    assert plan["noise"]["total"] < 0.9 < 1 < plan["noise"]["stratum"]
    assert "26.8 % of the loss would go to their total" in said(capsys, "check", table, *asked)[1]
    path = tmp_path / "total.json"
    assert said(capsys, "release", table, *asked, "-o", path)[0] == 0
    code, out, _ = said(capsys, "show", path)
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("(all strata)")]
    assert "±" in line  # without a stratum for all other rows their number is private
    assert "0.268 of the loss" in " ".join(said(capsys, "verify", path)[1].split())
    assert said(capsys, "ols", path, "pay ~ age", "--stratum", "total")[0] == 0
    assert said(capsys, "report", path, "--stratum", "total", "-o", tmp_path / "total.html")[0] == 0


def test_a_best_share_of_nothing_is_told(home, tmp_path, capsys):
    """Two strata under add-remove: what a total would gain, both strata would lose."""
    asked = ["--schema", home / "t.toml", "--epsilon", "1", "--neighbours", "add-remove", "--by", "area"]
    code, out, _ = said(capsys, "plan", "--rows", "4000", *asked, "--total-share", "best")
    assert code == 0
    assert "with the noise of all of them. No share is better for both together." in out
    code, _, err = said(
        capsys, "release", home / "t.csv", *asked, "--total-share", "best", "-o", tmp_path / "b.json"
    )
    assert code == 0
    assert "the best share for the total is 0" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--by", "area", "--total-share", "1"], "E225"),
        (["--by", "area", "--total-share", "half"], "E225"),
        (["--total-share", "0.5"], "E226"),
    ],
)
def test_a_share_that_is_none_is_one_line_and_nothing_is_paid(home, tmp_path, capsys, words, code):
    pc.Ledger.init(tmp_path / "l", pc.PureDP(epsilon=1, neighbours="replace-one"))
    asked = [
        "release",
        home / "t.csv",
        "--schema",
        home / "t.toml",
        "--epsilon",
        "1",
        "--ledger",
        tmp_path / "l",
    ]
    found = said(capsys, *asked, *words, "-o", tmp_path / "r.json")
    assert found[0] == 2
    assert code in found[2].splitlines()[-1]
    assert pc.Ledger.open(tmp_path / "l").spent == {"epsilon": 0}


def test_one_file_one_payment_and_a_line_for_each_stratum(home, capsys):
    assert pc.Ledger.open(home / "l").spent == {"epsilon": 3}
    code, out, _ = said(capsys, "show", home / "r.json")
    assert code == 0
    assert "3 strata by area; 4,000 rows in all, which is public" in out
    assert all(name in out for name in ("south", "west", "rest"))
    total = next(line for line in out.splitlines() if line.startswith("(all strata)"))
    assert total.split()[2] == "4,000", "what is public is printed without noise"
    assert not re.search(r"±0\.0+\b", out), "a ± of nothing beside four decimals"
    assert "number of rows of each stratum is private" in re.sub(r"\s+", " ", out)
    assert said(capsys, "verify", home / "r.json")[0] == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("show", "--stratum", "west"),
        ("show", "--stratum", "total", "--matrix", "mean"),
        ("show", "--stratum", "west", "--against", "south"),
        ("show", "--shrink"),
        ("ols", "pay ~ age"),
        ("ols", "pay ~ age", "--stratum", "west", "--latex"),
        ("ols", "pay ~ age", "--stratum", "south", "--against", "west"),
        ("pca", "--stratum", "west"),
        ("ridge", "--target", "pay", "--features", "age", "--stratum", "west"),
    ],
)
def test_what_reads_a_release_reads_a_stratum_or_all(home, capsys, words):
    command, *rest = words
    code, out, err = said(capsys, command, home / "r.json", *rest)
    assert (code, err) == (0, "")
    assert len(out) > 100


@pytest.mark.parametrize("what", ["mean", "correlation"])
def test_strata_drawn_towards_their_pool_say_that_they_have_no_intervals(home, capsys, what):
    code, out, _ = said(capsys, "show", home / "r.json", "--shrink", "--matrix", what)
    assert code == 0
    assert "No number here has a ±" in out
    assert "--against NAME" in out


def test_a_difference_shows_what_is_there(home, capsys):
    asked = ("ols", home / "r.json", "pay ~ age", "--stratum", "south", "--against", "west", "--json")
    code, out, _ = said(capsys, *asked)
    age = next(one for one in json.loads(out)["differences"] if one["name"] == "age")
    assert code == 0
    # The slopes differ by 0.8, some ten standard errors: no run of a million leaves zero inside.
    assert 0 < age["lower"] < age["difference"] < age["upper"]


def test_a_plan_of_strata_says_how_rows_are_counted(home, tmp_path, capsys):
    (tmp_path / "w.toml").write_text('weight = "many"\nlargest_weight = 6\nmissing = "zero-row"\n' + SCHEMA)
    asked = ["plan", "--schema", tmp_path / "w.toml", "--rows", "4000", "--epsilon", "1", "--by", "area"]
    code, out, _ = said(capsys, *asked)
    assert code == 0
    assert "in units of the largest weight" in " ".join(out.split())
    assert "give the number of complete rows" in out
    code, out, _ = said(capsys, *asked, "--json")
    assert json.loads(out)["mechanism"] == "symmetric-wishart"


def test_a_frame_that_auto_left_as_declared_is_told(home, tmp_path, capsys):
    asked = [
        "release",
        home / "t.csv",
        "--epsilon",
        "1",
        "--frame",
        "auto",
        "-o",
        tmp_path / "f.json",
        "--force",
    ]
    totalled = ["--schema", home / "t.toml", "--by", "area", "--total-share", "0.3"]
    code, _, err = said(capsys, *asked, *totalled)
    assert code == 0
    assert "auto kept the declared frame: there is no private one beside a total." in err
    code, _, err = said(capsys, *asked, "--schema", home / "t.toml", "--epsilon", "5")
    assert (code, "auto kept" in err) == (0, not pc.load(tmp_path / "f.json").certificate.rounds)


def test_columns_need_not_name_those_that_make_the_strata(home, tmp_path, capsys):
    table, schema = home / "t.csv", home / "t.toml"
    asked = ["--schema", schema, "--columns", "pay", "--epsilon", "1", "--by", "area"]
    assert said(capsys, "release", table, *asked, "-o", tmp_path / "p.json")[0] == 0
    made = pc.load_strata(tmp_path / "p.json")
    assert (made.names, [column.name for column in made.schema.columns]) == (("south", "west"), ["pay"])
    code, out, _ = said(capsys, "plan", "--rows", "4000", *asked)
    assert code == 0
    assert "south" in out


def test_columns_that_make_the_strata_may_be_left_out_of_them(home, tmp_path, capsys):
    table, schema = home / "t.csv", home / "t.toml"
    asked = [table, "--schema", schema, "--epsilon", "1", "--by", "area"]
    for place, words in enumerate((["--without", "area"], ["--without", "area,age"], [])):
        assert said(capsys, "release", *asked, *words, "-o", tmp_path / f"{place}.json")[0] == 0
    made = [pc.load_strata(tmp_path / f"{place}.json") for place in range(3)]
    assert made[0].schema == made[2].schema
    assert [column.name for column in made[1].schema.columns] == [
        column.name for column in made[2].schema.columns if column.name != "age"
    ]


@pytest.mark.long
def test_a_report_of_all_strata_is_a_page_for_each(home, capsys):
    assert said(capsys, "report", home / "r.json", "-o", home / "p.html")[0] == 0
    assert sorted(path.name for path in home.glob("p*.html")) == [
        "p-1-south.html",
        "p-2-west.html",
        "p-3-rest.html",
    ]


def test_by_with_a_typing_error_is_told_which_columns_have_levels(home, capsys):
    asked = ["check", home / "t.csv", "--schema", home / "t.toml", "--epsilon", "1", "--by", "aera"]
    code, _, err = said(capsys, *asked)
    assert code == 2
    assert "by names aera, which the schema does not declare. Columns with levels: area." in err


def test_a_stratum_of_nobody_keeps_no_other_from_its_report(tmp_path, capsys):
    """The page of the empty one says why it has no model; a formula with a fault is refused for all of them."""
    area = np.resize(["south", "west"], 400)
    age = np.random.default_rng(3).uniform(0, 100, 400)
    columns = {"age": {"lower": 0, "upper": 100}, "pay": {"lower": 0, "upper": 100}}
    schema = pc.Schema.from_dict({"columns": {**columns, "area": {"levels": ["nobody", "south", "west"]}}})
    frame = pd.DataFrame({"age": age, "pay": age, "area": area})
    loss = pc.ZCDP(rho=100, neighbours="add-remove")
    pc.release(frame, schema=schema, loss=loss, by="area").save(tmp_path / "r.json")
    asked = ["report", tmp_path / "r.json", "-o", tmp_path / "p.html", "--title", "Pay", "--model"]
    assert said(capsys, *asked, "pay ~ agee")[0] == 2
    assert not list(tmp_path.glob("p*.html"))
    assert said(capsys, *asked, "pay ~ age")[0] == 0
    empty, south, west = (path.read_text() for path in sorted(tmp_path.glob("p*.html")))
    assert "E236 about" in empty
    assert "of the stratum nobody are too few for 2 coefficients" in empty
    for name, page in {"south": south, "west": west}.items():
        assert "E236" not in page
        assert f"<title>Pay: {name}" in page
    assert said(capsys, *asked, "pay ~ age", "--stratum", "nobody")[0] == 2
    against = ["--stratum", "south", "--against", "nobody"]
    assert "of the stratum nobody" in said(capsys, "ols", tmp_path / "r.json", "pay ~ age", *against)[2]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--by", "county"], "E185"),
        (["--by", "area,area"], "E185"),
        (["--by", "age"], "E186"),
        (["--by", "area", "--other", "west"], "E188"),
        (["--by", "area", "--mechanism", "joint-gaussian", "--delta", "1e-6"], "E282"),
        (["--by", "area", "--frame", "scales", "--cut", "counted"], "E283"),
        (["--by", "area", "--frame", "scales", "--total-share", "0.3"], "E226"),
        (["--other", "rest"], "E283"),
        (["--by", "area,many", "--schema", "wide.toml"], "E187"),
    ],
)
def test_bad_orders_are_one_line_and_cost_nothing(home, capsys, monkeypatch, words, code):
    monkeypatch.chdir(home)
    before = (home / "l").read_bytes()
    asked = ["release", "t.csv", "--schema", "t.toml", "--epsilon", "1", "--ledger", "l", "-o", "none.json"]
    given, out, err = said(capsys, *asked, *words)
    assert (given, out) == (2, "")
    assert code in err.splitlines()[-1]
    assert (home / "l").read_bytes() == before
    assert not (home / "none.json").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ols", "pay ~ age", "--stratum", "Napa"), "E284"),
        (("ols", "pay ~ area", "--stratum", "west"), "E231"),
        (("show", "--stratum", "west", "--against", "west"), "E284"),
        (("show", "--against", "west"), "E200"),
        (("show", "--stratum", "west", "--against", "total"), "between two strata"),
        (("ols", "pay ~ age", "--stratum", "total", "--against", "west"), "between two strata"),
        (("show", "--shrink", "--matrix", "raw"), "E200"),
    ],
)
def test_bad_questions_are_one_line(home, capsys, words, code):
    command, *rest = words
    given, _, err = said(capsys, command, home / "r.json", *rest)
    assert given == 2
    assert code in err


def test_a_plan_says_which_strata_drown_and_opens_no_data(home, capsys):
    asked = ("plan", "--schema", home / "t.toml", "--rows", "20000", "--epsilon", "1", "--by", "area")
    code, out, _ = said(capsys, *asked, "--sizes", "west=50", "--json")
    assert code == 0
    assert json.loads(out)["drowned"] == ["west"]
    assert said(capsys, *asked, "--sizes", "Napa=50")[0] == 2
    assert said(capsys, *asked, "--sizes", "west")[0] == 2


# --- two columns of strata ----------------------------------------------------------------------------

PAIRS = ["North,F", "North,M", "East, lower,F", "East, lower,M", "rest"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A release of a table by county and sex, with a total, and with a level that has a comma; signed."""
    two = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(2)
    county = rng.choice(["North", '"East, lower"', "", "Elsewhere"], 5000, p=[0.5, 0.4, 0.05, 0.05])
    sex, age = rng.choice(["F", "M"], 5000), rng.uniform(20, 70, 5000)
    pay = 10 + np.where(sex == "F", 0.6, 1.2) * age + rng.normal(0, 8, 5000)
    lines = [f"{a:.1f},{p:.1f},{c},{s}\n" for a, p, c, s in zip(age, pay, county, sex, strict=True)]
    (two / "t.csv").write_text("age,pay,county,sex\n" + "".join(lines))
    levels = '[columns.county]\nlevels = ["North", "East, lower"]\n[columns.sex]\nlevels = ["F", "M"]\n'
    (two / "t.toml").write_text(SCHEMA.partition("[columns.area]")[0] + levels)
    assert main(["keygen", str(two / "steward")]) == 0
    asked = ["release", str(two / "t.csv"), "--schema", str(two / "t.toml"), "--epsilon", "8"]
    how = ["--by", "county", "--by", "sex", "--other", "rest", "--total-share", "0.2"]
    more = ["--sign", str(two / "steward.key"), "-o", str(two / "r.json")]
    assert main([*asked, "--neighbours", "replace-one", *how, *more]) == 0
    return two


def test_two_columns_of_strata_are_named_together_or_one_after_the_other(two, capsys):
    """Given twice, the option once kept the last column alone, and paid for the wrong strata."""
    assert list(pc.load_strata(two / "r.json")) == PAIRS
    asked = ("--schema", two / "t.toml", "--epsilon", "1", "--neighbours", "replace-one")
    for command in (("plan", "--rows", "900"), ("check", two / "t.csv")):
        told = [
            said(capsys, *command, *asked, *words)
            for words in (("--by", "county,sex"), ("--by", "county", "--by", "sex"))
        ]
        assert told[0] == told[1]
        assert told[0][0] == 0
    assert said(capsys, "plan", "--rows", "900", *asked, "--by", "sex", "--by", "sex")[0] == 2


def test_what_reads_a_release_reads_strata_of_two_columns(two, tmp_path, capsys):
    read = two / "r.json"
    code, out, _ = said(capsys, "show", read)
    assert (code, re.findall(r"^(.*\S)  +[\d,]+ ±", out, re.MULTILINE)) == (0, PAIRS)
    assert said(capsys, "show", read, "--stratum", "East, lower,M")[0] == 0
    code, out, _ = said(capsys, "show", read, "--stratum", "North,F", "--against", "East, lower,F")
    assert code == 0
    assert "North,F less East, lower,F" in out
    code, out, _ = said(
        capsys, "ols", read, "pay ~ age", "--stratum", "North,F", "--against", "North,M", "--json"
    )
    assert code == 0
    (slope,) = (one for one in json.loads(out)["differences"] if one["name"] == "age")
    assert slope["lower"] < -0.6 < slope["upper"] < 0
    for words in (("ols", read, "pay ~ age"), ("pca", read), ("show", read, "--shrink")):
        code, out, _ = said(capsys, *words)
        assert code == 0
        assert all(name in out for name in PAIRS)
    assert said(capsys, "report", read, "-o", tmp_path / "p.html")[0] == 0
    pages = ["p-1-North_F", "p-2-North_M", "p-3-East__lower_F", "p-4-East__lower_M", "p-5-rest"]
    assert sorted(path.stem for path in tmp_path.iterdir()) == pages
    made = pc.load_strata(read)
    assert made["East, lower,M"] == made[("East, lower", "M")] == pc.load(read, stratum="East, lower,M")
    code, out, _ = said(capsys, "verify", read, "--key", two / "steward.pub")
    assert code == 0
    assert "5 strata, by county,sex" in " ".join(out.split())


def other_number(body):
    body["matrices"]["uppers"][1][2] = str(int(body["matrices"]["uppers"][1][2]) + 1)


def one_less(body):
    del body["matrices"]["uppers"][1]


def one_column_less(body):
    del body["strata"]["by"][0]
    body["matrices"]["uppers"] = body["matrices"]["uppers"][2:]


def swapped(body):
    uppers = body["matrices"]["uppers"]
    uppers[0], uppers[3] = uppers[3], uppers[0]


def names_swapped(body):
    body["strata"]["by"][1]["levels"].reverse()


def other_share(body):
    body["total"]["share"] = "0.3"


def other_share_everywhere(body):
    other_share(body)
    body["certificate"]["options"]["total_share"] = "0.3"


CHANGES = [
    other_number,
    one_less,
    one_column_less,
    swapped,
    names_swapped,
    other_share,
    other_share_everywhere,
]


@pytest.mark.parametrize("change", CHANGES)
def test_strata_that_were_changed_by_hand_do_not_verify(two, tmp_path, capsys, change):
    """With the steward's key and without it, signed or with a digest alone."""
    signed = json.loads((two / "r.json").read_text())
    unsigned = pc.load_strata(two / "r.json").to_dict()
    path = tmp_path / "changed.json"
    for document in (signed, json.loads(json.dumps(unsigned))):
        change(document)
        path.write_text(to_text(document))
        for key in ((), ("--key", two / "steward.pub")):
            code, out, err = said(capsys, "verify", path, *key)
            assert code == 4
            assert "stratified release was changed after it was" in " ".join(out.split())
            assert "E609" in err


@pytest.mark.parametrize("change", CHANGES)
def test_strata_with_a_digest_made_anew_do_not_pass_for_the_steward_s(two, tmp_path, capsys, change):
    """Without the key only what contradicts itself is found, and the reader is told that anyone may have written it."""
    document = json.loads((two / "r.json").read_text())
    change(document)
    body = {word: value for word, value in document.items() if word not in ("format", "signature")}
    path = tmp_path / "changed.json"
    path.write_text(to_text(FORM.sealed(body)))
    code, out, _ = said(capsys, "verify", path, "--key", two / "steward.pub")
    assert code == 4
    assert "NOT SIGNED" in out
    code, out, err = said(capsys, "verify", path)
    if change in (one_less, one_column_less, other_share):
        assert code == 2
        assert "E601" in err
    elif change is other_share_everywhere:
        assert code == 4
        assert "contradicts itself" in out
    else:
        assert code == 0
        assert "NOT SIGNED" in out


def test_facts_of_strata_that_are_said_twice_must_agree_and_are_named(two, tmp_path, capsys):
    for change, told in (
        (other_share, "the certificate says 0.2 for the share of a total, and the rest of the file says 0.3"),
        (one_column_less, "the certificate says 5 for the number of strata, and the rest of the file says 3"),
    ):
        document = json.loads((two / "r.json").read_text())
        change(document)
        body = {word: value for word, value in document.items() if word not in ("format", "signature")}
        (tmp_path / "changed.json").write_text(to_text(FORM.sealed(body)))
        assert told in said(capsys, "verify", tmp_path / "changed.json")[2].replace("'", "")
