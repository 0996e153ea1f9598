"""What was published before loads, verifies and says the same; a rehearsal draws the same bits.

The files of ``kept/`` were written by ``keep.py`` before the packages took their present places, and are not written
again.
"""

from __future__ import annotations

import json

import pytest
from keep import KEPT, answers, bits, corners, digest

import privcov as pc
from privcov import unbounded
from privcov.releases.signing import PublicKey

SAID = json.loads((KEPT / "said.json").read_text())
KEY = PublicKey(bytes.fromhex((KEPT / "key.public.hex").read_text()))


@pytest.mark.parametrize("name", SAID["files"])
def test_a_release_of_before_loads_verifies_and_says_the_same(name):
    release = pc.load(KEPT / name, signed_by=KEY)
    verdict = pc.verify(KEPT / name, key=KEY)
    assert verdict.holds, verdict
    assert digest(release) == SAID["files"][name]["says"]
    assert float(release.second_moment(raw=True)[0, 0]) == SAID["files"][name]["corner"]
    assert release.columns == ("(Intercept)", "age", "größe (cm)", "sex[F]", "sex[M]")


@pytest.mark.parametrize("name", SAID["strata"])
def test_strata_of_before_load_verify_and_say_the_same(name):
    key = PublicKey(bytes.fromhex((KEPT / "strata-key.public.hex").read_text()))
    strata = pc.load_strata(KEPT / name, signed_by=key)
    verdict = pc.verify(KEPT / name, key=key)
    assert verdict.holds, verdict
    assert digest(strata) == SAID["strata"][name]["says"]
    assert corners(strata) == SAID["strata"][name]["corners"]
    assert strata.names[:2] == ("F", "M")


@pytest.mark.parametrize("name", SAID["framed"])
def test_a_release_in_a_private_frame_of_before_loads_verifies_and_says_the_same(name):
    """Its frame is found again from the answers of its rounds, by formulas that must not change."""
    key, said = PublicKey(bytes.fromhex((KEPT / "framed-key.public.hex").read_text())), SAID["framed"][name]
    release = pc.load(KEPT / name, signed_by=key)
    verdict = pc.verify(KEPT / name, key=key)
    assert verdict.holds, verdict
    assert digest(release) == said["says"]
    assert [one.name for one in release.certificate.rounds] == said["rounds"]
    assert float(release.second_moment(raw=True)[0, 0]) == said["corner"]
    assert release.mean() == pytest.approx(said["means"], rel=1e-9)
    assert ("shape" in said["rounds"]) == (release.schema.shape is not None)


@pytest.mark.parametrize("name", SAID["declared"])
def test_a_release_of_all_that_a_schema_may_declare_loads_verifies_and_says_the_same(name):
    """Weights, persons, derived columns, levels that add up, missing cells, scales, strata of strata and in frames."""
    key, said = (
        PublicKey(bytes.fromhex((KEPT / "declared-key.public.hex").read_text())),
        SAID["declared"][name],
    )
    path = KEPT / f"declared-{name}.release.json"
    load = pc.load_strata if name.startswith("strata") else pc.load
    release, verdict = load(path, signed_by=key), pc.verify(path, key=key)
    assert verdict.holds, verdict
    assert digest(release) == said["says"]
    assert answers(release) == {part: _nearly(told) for part, told in said["answers"].items()}


def _nearly(told):
    """Numbers as they are but for rounding; words and counts exactly."""
    return {**told, "squares": pytest.approx(told["squares"], rel=1e-9)}


def test_an_estimate_of_before_loads_and_verifies():
    path = KEPT / "gaussian.estimate.json"
    assert unbounded.load(path, signed_by=KEY).covariance.shape == (2, 2)
    assert pc.verify(path, key=KEY).holds


def test_a_changed_entry_of_a_file_of_before_is_found(tmp_path):
    name = "gaussian-zcdp.release.json"
    document = json.loads((KEPT / name).read_text())
    document["matrix"]["upper"][-1] += "0"
    (tmp_path / name).write_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
    assert not pc.verify(tmp_path / name, key=KEY).holds


def test_a_rehearsal_draws_the_bits_it_drew_before():
    assert bits() == SAID["bits"]
