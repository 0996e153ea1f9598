"""``privcov proof``: the pages that certificates name can be read where privcov is installed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.mechanisms import MECHANISMS
from privcov.releases.certificate import proof_address
from privcov.version import __version__

PAGES = {
    page.stem: page.read_text(encoding="utf-8")
    for page in (Path(__file__).parents[2] / "docs" / "proofs").glob("*.md")
    if page.stem != "README"
}


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    return code, *capsys.readouterr()


def test_every_proof_page_is_listed_with_its_title(capsys):
    code, out, _ = run(capsys, "proof")
    assert code == 0
    for name, text in PAGES.items():
        assert re.search(rf"^{name} +{re.escape(text.splitlines()[0][2:])}$", out, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_printed_as_it_is_written(name, capsys):
    assert run(capsys, "proof", name) == (0, PAGES[name], f"proofs/{name}@{__version__}\n")


def test_every_mechanism_has_a_page_that_can_be_printed():
    assert {Path(made.proof).stem for made in MECHANISMS.values()} <= set(PAGES)


@pytest.mark.parametrize(
    "form", ["proofs/gaussian", f"proofs/gaussian@{__version__}", "docs/proofs/gaussian.md"]
)
def test_a_page_can_be_asked_for_by_its_address(form, capsys):
    assert run(capsys, "proof", form)[1] == PAGES["gaussian"]


def test_a_page_of_another_version_is_not_passed_off_as_that_one(capsys):
    code, out, err = run(capsys, "proof", "proofs/gaussian@0.0.1")
    assert (code, out) == (0, PAGES["gaussian"])
    assert err == f"proofs/gaussian@{__version__}; this is privcov {__version__}, and not 0.0.1\n"


@pytest.mark.parametrize("name", ["nothing", "../secret", "README", "gaussian.md/..", ""])
def test_a_name_that_is_no_page_is_refused_with_those_that_are(name, capsys):
    code, out, err = run(capsys, "proof", name)
    assert (code, out) == (2, "")
    assert "gaussian" in err
    assert len(err.splitlines()) == 1


def test_json_gives_the_same(capsys):
    listed = json.loads(run(capsys, "proof", "--json")[1])
    assert {each["name"] for each in listed["proofs"]} == set(PAGES)
    one = json.loads(run(capsys, "proof", "laplace", "--json")[1])
    assert one == {
        "name": "laplace",
        "address": f"proofs/laplace@{__version__}",
        "title": "Laplace noise on the upper triangle",
        "text": PAGES["laplace"],
    }


def test_what_show_prints_of_a_release_leads_to_its_proof_and_the_file_is_as_before(tmp_path, capsys):
    release = pc.release(
        np.array([[20.0], [40.0]]),
        schema=pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}}),
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
        mechanism="laplace",
    )
    release.save(tmp_path / "people.release.json")
    said = " ".join(run(capsys, "show", str(tmp_path / "people.release.json"))[1].split())
    command = re.search(
        rf"Proof: proofs/laplace@{re.escape(__version__)} \((privcov proof laplace)\)\.", said
    )
    assert command is not None, said
    assert run(capsys, *shlex.split(command[1])[1:])[1] == PAGES["laplace"]
    stored = json.loads((tmp_path / "people.release.json").read_text())
    assert stored["certificate"]["proof"] == "docs/proofs/laplace.md"


@pytest.mark.parametrize(
    "stated",
    ["docs/proofs/../x.md", "docs/proofs/a b.md", "https://example.org/x.md", "docs/proofs/x.md; rm y"],
)
def test_a_text_that_is_no_page_never_becomes_a_command(stated):
    assert proof_address(stated, "1") == stated
