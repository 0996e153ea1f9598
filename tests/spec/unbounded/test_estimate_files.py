"""The file of an estimate: what is written reads back, and nothing else is read."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import privcov as pc
from privcov.errors import OutputError, ReleaseError
from privcov.noise.randomness import rehearsal
from privcov.releases.documents import to_text
from privcov.unbounded import load

ROWS = np.random.default_rng(1).normal(size=(60, 2))
LOSS = pc.ZCDP(rho="1/3", neighbours="replace-one")


@pytest.fixture(scope="module")
def made():
    return pc.estimate_gaussian(ROWS, loss=LOSS, largest_variance=9, mean_radius=10, rounds=2)


def signed(document):
    body = {word: value for word, value in document.items() if word != "signature"}
    digest = hashlib.sha256(to_text(body).encode()).hexdigest()
    return {**body, "signature": {"algorithm": "sha256", "value": digest}}


def test_an_estimate_reads_back_bit_for_bit(made, tmp_path):
    made.save(tmp_path / "one.json")
    again = load(tmp_path / "one.json")
    assert (again.covariance == made.covariance).all()
    assert (again.mean == made.mean).all()
    assert again.certificate == made.certificate
    assert again.to_json() == made.to_json()
    with pytest.raises(OutputError, match="E401"):
        made.save(tmp_path / "one.json")


def test_an_estimate_without_a_mean_reads_back(tmp_path):
    pc.estimate_gaussian(ROWS, loss=LOSS, largest_variance=9).save(tmp_path / "two.json")
    assert load(tmp_path / "two.json").mean is None


def test_a_rehearsal_refuses_to_be_saved(tmp_path):
    rehearsed = pc.estimate_gaussian(ROWS, loss=LOSS, largest_variance=9, randomness=rehearsal(1))
    with pytest.raises(OutputError, match="E402"):
        rehearsed.save(tmp_path / "no.json")
    assert not list(tmp_path.iterdir())


def test_the_file_holds_the_listed_fields_and_no_float(made):
    document = json.loads(made.to_json(), parse_float=lambda text: pytest.fail(text))
    assert set(document) == {
        "format", "columns", "rows", "mean", "covariance", "certificate", "signature"
    }  # fmt: skip
    assert set(document["certificate"]) == {
        "mechanism", "options", "guarantee", "neighbours", "budget", "arithmetic", "randomness", "proof",
        "timing", "version", "created",
    }  # fmt: skip
    assert document["certificate"]["guarantee"] == {"kind": "zcdp", "rho": "1/3"}


def change(document, path, value):
    changed = json.loads(json.dumps(document))
    inner = changed
    for word in path[:-1]:
        inner = inner[word]
    inner[path[-1]] = value
    return changed


CHANGES = [
    (("format",), "privcov/gaussian-estimate/2"),
    (("rows",), 0),
    (("rows",), "60"),
    (("columns",), ["x1", "x1"]),
    (("columns",), []),
    (("mean",), ["1.0"]),
    (("mean", 0), "nan"),
    (("mean", 0), "1e0"),
    (("covariance", 0), "-5.0"),
    (("covariance", 0), 5),
    (("covariance",), ["1.0", "0.0"]),
    (("extra",), 1),
    (("certificate", "extra"), "1"),
    (("certificate", "mechanism"), "magic"),
    (("certificate", "randomness"), "rehearsal"),
    (("certificate", "arithmetic"), "idealized"),
    (("certificate", "neighbours"), "add-remove"),
    (("certificate", "guarantee", "rho"), "0.1"),
    (("certificate", "guarantee", "kind"), "pure"),
    (("certificate", "budget", 0, "rho"), "0.1"),
    (("certificate", "budget"), []),
    (("certificate", "options"), {"rounds": 2}),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda part: str(part))
def test_a_changed_file_is_refused_even_with_a_fresh_digest(made, path, value, tmp_path):
    file = tmp_path / "changed.json"
    for finish in (lambda document: document, signed):
        file.write_text(to_text(finish(change(made.to_dict(), path, value))))
        with pytest.raises(ReleaseError, match="E60"):
            load(file)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1.5}', '{"a": 1, "a": 2}', "é", "null"])
def test_what_is_no_estimate_is_refused(text, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ReleaseError, match="E60"):
        load(tmp_path / "bad.json")
    with pytest.raises(ReleaseError, match="E604"):
        load(tmp_path / "missing.json")


def test_the_digest_finds_an_edit(made, tmp_path):
    (tmp_path / "edited.json").write_text(made.to_json().replace('"rows":60', '"rows":61'))
    with pytest.raises(ReleaseError, match="E603"):
        load(tmp_path / "edited.json")


def test_an_estimate_cannot_be_changed(made):
    with pytest.raises(ValueError, match="read-only"):
        made.covariance[0, 0] = 1.0
    with pytest.raises(AttributeError):
        made.mean = None
    assert "60 rows" in repr(made)
