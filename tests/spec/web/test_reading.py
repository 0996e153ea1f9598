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
