"""The page and ``privcov report`` make the same page of a file, or refuse it in the same words."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.privacy import ZCDP, PureDP
from privcov.releases.documents import to_text
from privcov.releases.signing import keygen

KEY = keygen()


def _text(release):
    return release.to_json()


def _half_epsilon(release):
    loss = PureDP(epsilon="0.5", neighbours="replace-one")
    return replace(release, certificate=replace(release.certificate, loss=loss)).to_json()


def _flipped(text):
    document = json.loads(text)
    document["matrix"]["upper"][0] = str(int(document["matrix"]["upper"][0]) + 1)
    return to_text(document)


def _estimate(_):
    rows = np.random.default_rng(1).normal(size=(60, 2))
    loss = ZCDP(rho="0.1", neighbours="replace-one")
    return pc.estimate_gaussian(rows, loss=loss, largest_variance=9, rounds=2).to_json()


GOOD = {
    "unsigned": _text,
    "signed": lambda release: release.to_json(key=KEY),
    "an estimate": _estimate,
}
BAD = {
    "half of it": lambda release: _text(release)[: len(_text(release)) // 2],
    "nothing": lambda release: "",
    "a table": lambda release: "age,sex\n31,F\n",
    "another document": lambda release: json.dumps({"format": "something/1"}),
    "another version": lambda release: _text(release).replace("/1", "/99", 1),
    "one digit": lambda release: _flipped(_text(release)),
    "one digit, signed": lambda release: _flipped(release.to_json(key=KEY)),
    "half the epsilon beside the same noise": _half_epsilon,
    "rewritten": lambda release: json.dumps(json.loads(_text(release)), indent=1),
    "a field too many": lambda release: to_text({**json.loads(_text(release)), "note": "hello"}),
}


def both(served, capsys, made):
    """What the page answers and what the command says, of one file."""
    path = served.folder / "some.release.json"
    path.write_text(made)
    page = served.ask("download", release=path.name, what="report")
    capsys.readouterr()
    code = main(["report", str(path), "-o", str(served.folder / "some.html")])
    return page, code, capsys.readouterr().err


@pytest.mark.parametrize("kind", GOOD)
def test_of_a_good_file_both_make_the_same_bytes(served, capsys, made, kind):
    page, code, _ = both(served, capsys, GOOD[kind](made))
    assert (page.status, code) == (200, 0)
    assert page.body == (served.folder / "some.html").read_bytes()
    assert page.headers["content-disposition"] == 'attachment; filename="some.html"'


def refused(served, page, code, said):
    assert (page.status, code > 0) == (422, True)
    (error,) = page.json["errors"]
    assert error["field"] == "release"
    assert said == f"privcov: {error['code']} {error['text']}\n"
    for what in ("result", "fit"):
        assert served.ask(what, release="some.release.json", formula="income ~ age").json == page.json


@pytest.mark.parametrize("kind", BAD)
def test_what_the_command_refuses_the_page_refuses_in_the_same_words(served, capsys, made, kind):
    refused(served, *both(served, capsys, BAD[kind](made)))


def test_a_rehearsal_in_a_file_is_refused_by_both(served, capsys, rehearsed):
    refused(served, *both(served, capsys, to_text(rehearsed.to_dict())))


@pytest.fixture
def parted(served, order):
    """A release of two strata, made on the page."""
    asked = {**order, "by": "sex", "rows": "300"}
    quoted = served.ask("quote", **asked).json
    assert (quoted["strata"], quoted["price"]) == (2, "epsilon 1")
    assert quoted["verdict"]
    del asked["rows"]
    served.ask("release", request="5" * 32, **asked)
    job = served.finished("5" * 32)
    assert (job["state"], job["receipt"]["strata"], served.spent) == ("done", 2, "1")
    return "people.release.json"


def test_strata_are_paid_for_once_and_read_one_by_one(served, parted):
    made = pc.load_strata(served.folder / parted)
    assert served.ask("strata", release=parted).json == {"names": ["F", "M"], "total": "total"}
    for name, release in made.items():
        found = served.ask("result", release=parted, stratum=name)
        assert found.json["columns"] == ["age", "income"]
        fit = served.ask("fit", release=parted, stratum=name, formula="income ~ age").json
        assert fit["summary"] == pc.ols(release, "income ~ age").summary()
    page = served.ask("download", release=parted, stratum="M", what="report", formula="income ~ age")
    assert (page.status, b"people: M" in page.body) == (200, True)
    assert served.ask("download", release=parted).body == (served.folder / parted).read_bytes()


def test_errors_of_any_variance_can_be_asked_for(served, made):
    (served.folder / "some.release.json").write_text(made.to_json())
    asked = {"release": "some.release.json", "formula": "income ~ age"}
    release = pc.load(served.folder / "some.release.json")
    wide = served.ask("fit", **asked, conservative=True).json
    assert wide["summary"] == pc.ols(release, "income ~ age", errors="conservative").summary()
    assert "sampling error ×" in wide["section"]["body"]
    assert "sampling error ×" not in served.ask("fit", **asked).json["section"]["body"]
    page = served.ask("download", **asked, what="report", conservative=True)
    assert "sampling error ×".encode() in page.body
    assert served.ask("fit", **asked, conservative="yes").codes == ["E291"]


def test_a_total_is_read_beside_its_strata_and_two_strata_are_compared(served, order):
    asked = {**order, "by": "sex", "rest": "unknown", "share": "0.25"}
    assert served.ask("quote", **asked).json["strata"] == 3
    served.ask("release", request="6" * 32, **asked)
    assert served.finished("6" * 32)["state"] == "done"
    name = "people.release.json"
    made = pc.load_strata(served.folder / name)
    assert (str(made.pooled.share), made.names) == ("1/4", ("F", "M", "unknown"))
    assert served.ask("strata", release=name).json == {"names": ["F", "M", "unknown"], "total": "total"}
    fit = served.ask("fit", release=name, stratum="total", formula="income ~ age").json
    assert fit["summary"] == pc.ols(made.total(), "income ~ age").summary()
    found = served.ask("differences", release=name, stratum="F", against="M").json
    assert [line[0] for line in found["lines"]][:2] == ["mean of age", "mean of income"]
    told = pc.differences(made, "F", "M", formula="income ~ age").lines
    compared = served.ask("differences", release=name, stratum="F", against="M", formula="income ~ age").json
    assert compared["lines"] == [list(line) for line in told[1]]
    for words in ({"against": "F"}, {"against": "X"}, {"against": "M", "formula": "town ~ age"}):
        reply = served.ask("differences", release=name, **{"stratum": "F", **words})
        assert (reply.status, [*reply.errors]) == (422, ["against"])


def test_a_file_of_strata_without_one_says_how_to_read_it(served, parted):
    reply = served.ask("result", release=parted)
    assert (reply.codes, [*reply.errors]) == (["E613"], ["release"])
    assert served.ask("result", release=parted, stratum="X").codes == ["E284"]
    (served.folder / "plain.release.json").write_text(
        pc.release(
            np.full((9, 1), 5.0),
            schema=pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 9}}}),
            loss=PureDP(epsilon=1, neighbours="replace-one"),
        ).to_json()
    )
    assert served.ask("strata", release="plain.release.json").json == {"names": []}
    assert served.ask("result", release="plain.release.json", stratum="F").codes == ["E615"]


@pytest.mark.parametrize(
    ("words", "field", "code"),
    [
        ({"by": "town"}, "by", "E185"),
        ({"by": "age"}, "by", "E186"),
        ({"by": "sex", "share": "2"}, "share", "E225"),
        ({"by": "sex", "rest": "M"}, "rest", "E188"),
        ({"by": "sex", "frame": "scales", "cut": "counted"}, "by", "E283"),
        ({"by": "sex", "mechanism": "eigenvectors"}, "by", "E282"),
        ({"by": "sex", "data": ""}, "data", "E119"),
        ({"by": "sex", "data": "other.csv"}, "data", "E102"),
    ],
)
def test_strata_that_cannot_be_are_refused_beside_their_field_with_nothing_paid(
    served, order, words, field, code
):
    (served.folder / "other.csv").write_text("age,sex\n31,F\n")
    reply = served.ask("quote", **{**order, **words})
    assert (reply.status, [*reply.errors], reply.codes) == (422, [field], [code])
    assert served.spent == "0"
