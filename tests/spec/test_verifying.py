"""A file that was changed in any way is found out, as far as a signature, a key and public arithmetic reach."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import ReleaseError, VerificationError
from privcov.mechanisms import DEFAULTS, MECHANISMS
from privcov.noise.laws import LAWS
from privcov.noise.randomness import rehearsal
from privcov.privacy import ZCDP, ApproxDP, PureDP
from privcov.releases import codec
from privcov.releases.documents import to_text
from privcov.releases.release import assembled
from privcov.releases.signing import keygen
from privcov.unbounded import codec as estimates
from privcov.unbounded import load as load_estimate
from privcov.verification.consistency import disagreements

KEY, OTHER = keygen(), keygen()
LOSSES = {
    "pure": PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
    "zcdp": ZCDP(rho="0.1", neighbours="replace-one"),
}
TABLE = np.column_stack([np.linspace(20, 80, 40), np.zeros(40), np.linspace(0, 190, 40)])
NUMBERS = pc.Schema.from_dict({"columns": {name: {"lower": -100, "upper": 200} for name in ("a", "b", "c")}})


@pytest.fixture(scope="module")
def release():
    """With a letter beyond ASCII, which JSON can write in two ways."""
    schema = pc.Schema.from_dict(
        {
            "columns": {
                "age": {"lower": 0, "upper": 100},
                "b": {"lower": -1, "upper": 1},
                "c": {"levels": ["é", "M"]},
            }
        }
    )
    table = pa.table({"age": TABLE[:, 0], "b": TABLE[:, 1], "c": ["M"] * len(TABLE)})
    return pc.release(table, schema=schema, loss=LOSSES["pure"])


@pytest.fixture(scope="module")
def estimate():
    rows = np.random.default_rng(1).normal(size=(60, 2))
    return pc.estimate_gaussian(rows, loss=LOSSES["zcdp"], largest_variance=9, mean_radius=10, rounds=2)


def failing(verdict):
    return [check.name for check in verdict.checks if not check.holds]


def verified(path):
    """Whether a file can be read and holds."""
    try:
        return pc.verify(path).holds
    except ReleaseError:
        return False


def test_a_signed_release_loads_identical_and_knows_its_signer(release, tmp_path):
    release.save(tmp_path / "r.json", key=KEY)
    loaded = pc.load(tmp_path / "r.json")
    assert loaded == release
    assert loaded.signer == KEY.public
    assert loaded.to_json(key=KEY) == (tmp_path / "r.json").read_text()
    assert pc.load(tmp_path / "r.json", signed_by=KEY.public) == release
    with pytest.raises(VerificationError, match="E605"):
        pc.load(tmp_path / "r.json", signed_by=OTHER.public)


def test_the_signature_covers_the_canonical_bytes_of_everything_else(release):
    """Stated with nothing of privcov but the key: sorted keys, no spaces, ASCII, a newline at the end."""
    document = json.loads(release.to_json(key=KEY))
    seal = document.pop("signature")
    message = (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode("ascii")
    assert set(seal) == {"algorithm", "key", "value"}
    assert seal["algorithm"] == "ed25519"
    assert bytes.fromhex(seal["key"]) == KEY.public.raw
    assert KEY.public.verifies(message, bytes.fromhex(seal["value"]))


def test_a_copy_with_other_contents_has_no_signer(release, tmp_path):
    release.save(tmp_path / "r.json", key=KEY)
    changed = replace(pc.load(tmp_path / "r.json"), rows=41)
    assert changed.signer is None
    changed.save(tmp_path / "changed.json")
    assert pc.load(tmp_path / "changed.json").signer is None


def test_an_unsigned_file_is_never_taken_for_a_signed_one(release, tmp_path):
    release.save(tmp_path / "r.json")
    assert pc.load(tmp_path / "r.json").signer is None
    with pytest.raises(VerificationError, match="E605"):
        pc.load(tmp_path / "r.json", signed_by=KEY.public)
    alone, demanded = pc.verify(tmp_path / "r.json"), pc.verify(tmp_path / "r.json", key=KEY.public)
    assert alone.holds
    assert any("NOT SIGNED" in check.words for check in alone.checks)
    assert failing(demanded) == ["origin"]


def test_an_estimate_is_signed_and_verified_like_a_release(estimate, tmp_path):
    path = tmp_path / "e.json"
    estimate.save(path, key=KEY)
    assert load_estimate(path).signer == KEY.public
    assert pc.verify(path, key=KEY.public).holds
    assert failing(pc.verify(path, key=OTHER.public)) == ["origin"]
    path.write_text(path.read_text().replace('"rows":60', '"rows":61'))
    assert failing(pc.verify(path)) == ["seal"]
    with pytest.raises(VerificationError, match="E605"):
        load_estimate(path)


CHANGES = {
    "a matrix entry": lambda v: v["matrix"]["upper"].__setitem__(3, str(int(v["matrix"]["upper"][3]) + 1)),
    "epsilon": lambda v: v["certificate"]["guarantee"].update(epsilon="0.5"),
    "delta": lambda v: v["certificate"]["guarantee"].update(kind="approximate", delta="0.01"),
    "rho": lambda v: v["certificate"]["guarantee"].update(kind="zcdp", epsilon=None, rho="0.5"),
    "neighbours": lambda v: (
        v["certificate"].update(neighbours="add-remove"),
        v["rows"].update(kind="private", count=None),
    ),
    "a column name": lambda v: (
        v["columns"].__setitem__(2, "weight"),
        v["certificate"]["bounds"]["columns"][1].update(name="weight"),
    ),
    "bounds": lambda v: (
        v["certificate"]["bounds"]["columns"][1].update(lower="-3.0", upper="3.0"),
        v["scaling"][2].update(half_width="3.0"),
    ),
    "the row count": lambda v: v["rows"].update(count=41),
    "rows per person": lambda v: v["certificate"]["bounds"].update(max_rows_per_person=2),
    "the scale of the noise": lambda v: v["certificate"]["noise"].update(scale="1.0"),
    "the law of the noise": lambda v: v["certificate"]["noise"].update(law="laplace"),
    "the date": lambda v: v["certificate"].update(created="2020-01-01T00:00:00Z"),
    "the mechanism": lambda v: v["certificate"].update(mechanism="frobenius"),
    "an option": lambda v: v["certificate"]["options"].update(rank="2"),
    "the arithmetic": lambda v: v["certificate"].update(arithmetic="idealized"),
    "the proof": lambda v: v["certificate"].update(proof="docs/proofs/none.md"),
    "the timing": lambda v: v["certificate"].update(timing="constant"),
}
"""Each leaves a document that makes sense, so that a digest made afresh is accepted by the reader."""
FOUND_BY_ARITHMETIC = {
    "epsilon", "delta", "rho", "neighbours", "rows per person", "the scale of the noise", "the law of the noise",
    "the mechanism", "an option", "the proof", "the timing",
}  # fmt: skip


def changed(release, name):
    document = json.loads(release.to_json(key=KEY))
    CHANGES[name](document)
    return document


@pytest.mark.parametrize("name", CHANGES)
def test_a_signed_release_that_was_changed_is_refused(release, tmp_path, name):
    path = tmp_path / "r.json"
    path.write_text(to_text(changed(release, name)))
    with pytest.raises(VerificationError, match="E605"):
        pc.load(path)
    for key in (None, KEY.public):
        verdict = pc.verify(path, key=key)
        assert (failing(verdict), verdict.signer) == (["seal"], None)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_release_with_a_fresh_digest_is_reported_unsigned(release, tmp_path, name):
    """What anyone can do. The digest holds; only arithmetic is left, and it finds every lie about the noise."""
    body = {k: v for k, v in changed(release, name).items() if k not in ("format", "signature")}
    path = tmp_path / "r.json"
    path.write_text(to_text(codec.FORM.sealed(body)))
    verdict = pc.verify(path)
    assert verdict.signer is None
    assert failing(verdict) == (["certificate"] if name in FOUND_BY_ARITHMETIC else [])
    assert "origin" in failing(pc.verify(path, key=KEY.public))


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_release_signed_by_another_key_is_found_with_the_right_key(release, tmp_path, name):
    body = {k: v for k, v in changed(release, name).items() if k not in ("format", "signature")}
    path = tmp_path / "r.json"
    path.write_text(to_text(codec.FORM.sealed(body, OTHER)))
    verdict = pc.verify(path)
    assert verdict.signer == OTHER.public
    assert "origin" not in failing(verdict)
    assert "origin" in failing(pc.verify(path, key=KEY.public))


def test_a_key_put_in_place_of_another_does_not_make_its_signature_hold(release, tmp_path):
    document = json.loads(release.to_json(key=KEY))
    document["signature"]["key"] = OTHER.public.raw.hex()
    (tmp_path / "r.json").write_text(to_text(document))
    assert failing(pc.verify(tmp_path / "r.json")) == ["seal"]


def test_a_signature_of_another_release_does_not_hold(release, estimate, tmp_path):
    twin = replace(release, rows=41)
    for donor in (twin, estimate):
        document = json.loads(release.to_json(key=KEY))
        document["signature"] = json.loads(donor.to_json(key=KEY))["signature"]
        (tmp_path / "r.json").write_text(to_text(document))
        assert failing(pc.verify(tmp_path / "r.json", key=KEY.public)) == ["seal"]


def rewritings(text):
    """Files with the same contents in other bytes."""
    values = json.loads(text)
    yield "reordered", json.dumps(dict(reversed(values.items())), separators=(",", ":")) + "\n"
    yield "indented", json.dumps(values, indent=1, sort_keys=True) + "\n"
    yield "no newline", text.rstrip("\n")
    yield "a space at the end", text.rstrip("\n") + " "
    yield "two newlines", text + "\n"
    yield "other escapes", text.replace("\\u00e9", "\\u00E9")
    yield "needless escapes", text.replace('"columns"', '"\\u0063olumns"')


def test_a_signed_release_in_other_bytes_is_refused(release, tmp_path):
    text, path = release.to_json(key=KEY), tmp_path / "r.json"
    for name, rewritten in rewritings(text):
        assert rewritten != text
        path.write_text(rewritten)
        with pytest.raises(VerificationError, match="E606"):
            pc.load(path)
        assert failing(pc.verify(path)) == ["bytes"], name


def test_an_unsigned_release_in_other_bytes_loads_and_is_not_verified(release, tmp_path):
    text, path = release.to_json(), tmp_path / "r.json"
    for name, rewritten in rewritings(text):
        path.write_text(rewritten)
        assert pc.load(path) == release
        assert failing(pc.verify(path)) == ["bytes"], name


@pytest.mark.parametrize("key", [None, KEY], ids=["digest", "signature"])
def test_fields_too_many_too_few_or_twice_are_unreadable(release, tmp_path, key):
    text, path = release.to_json(key=key), tmp_path / "r.json"
    document = json.loads(text)
    texts = [
        to_text({**document, "note": "hello"}),
        to_text({**document, "certificate": {**document["certificate"], "clipped_rows": 3}}),
        to_text({**document, "signature": {**document["signature"], "note": "hello"}}),
        *(to_text({k: v for k, v in document.items() if k != word}) for word in document),
        text.replace('"rows":{', '"rows":{"count":40,', 1),
        *(text[:length] for length in range(0, len(text) - 2, 173)),
    ]
    for tampered in texts:
        assert tampered != text
        path.write_text(tampered)
        with pytest.raises(ReleaseError):
            pc.load(path)
        assert not verified(path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_byte_of_a_signed_release_can_be_changed(release, tmp_path, data):
    content, path = bytearray(release.to_json(key=KEY).encode()), tmp_path / "r.json"
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(ReleaseError):
        pc.load(path)
    assert not verified(path)


def test_a_rehearsal_is_never_verified_even_when_someone_wrote_and_signed_it(tmp_path):
    made = pc.release(TABLE, schema=NUMBERS, loss=LOSSES["pure"], randomness=rehearsal(1))
    (tmp_path / "r.json").write_text(to_text(made.to_dict(key=KEY)))
    assert failing(pc.verify(tmp_path / "r.json", key=KEY.public)) == ["randomness"]


EVERY = [
    (name, kind, relation, row_norm)
    for name, mechanism in MECHANISMS.items()
    for kind in mechanism.kinds
    for relation in mechanism.relations
    for row_norm in (["declared", "private"] if mechanism.row_norm is None else ["declared"])
]


@pytest.mark.parametrize(("name", "kind", "relation", "row_norm"), EVERY)
def test_the_certificate_of_every_mechanism_follows_from_itself(name, kind, relation, row_norm):
    loss = replace(LOSSES[kind], neighbours=relation)
    made = pc.release(
        TABLE, schema=NUMBERS, loss=loss, mechanism=name, row_norm=row_norm, row_norm_share="0.3"
    )
    assert disagreements(assembled(codec.decode(made.to_dict()))) == ()


@pytest.mark.parametrize("name", [name for name, kind in MECHANISMS.items() if kind.as_published])
def test_the_certificate_of_a_published_variant_follows_from_itself(name):
    relation = "replace-one" if name in ("separate", "adaptive") else "add-remove"
    loss = PureDP(epsilon=1, neighbours=relation)
    if "pure" not in MECHANISMS[name].kinds:
        loss = ApproxDP(epsilon="0.5", delta="1e-6", neighbours=relation)
    made = pc.release(
        TABLE, schema=NUMBERS, loss=loss, mechanism=name, as_published=True, arithmetic="idealized"
    )
    assert disagreements(made) == ()


@pytest.mark.parametrize("row_norm", ["declared", "private"])
@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_promise_a_millionth_better_than_the_noise_is_found(kind, row_norm):
    made = pc.release(TABLE, schema=NUMBERS, loss=LOSSES[kind], row_norm=row_norm)
    for word, amount in made.certificate.loss.amounts.items():
        for factor in (999_999, 1_000_001):
            claimed = replace(made.certificate.loss, **{word: amount * factor / 1_000_000})
            (said,) = disagreements(replace(made, certificate=replace(made.certificate, loss=claimed)))
            assert ("less" if factor < 1_000_000 else "more") in said


def test_a_row_norm_said_to_be_private_must_have_cost_its_share():
    made = pc.release(TABLE, schema=NUMBERS, loss=LOSSES["pure"], row_norm="private", row_norm_share="0.3")
    options = dict(made.certificate.options)
    for change in (
        {"row_norm_share": "0.2"},
        {"row_norm_share": "2"},
        {"row_norm_share": "0.30"},
        {"row_norm": "guessed"},
        {"row_norm": "declared"},
        {"row_norm": "sparse-vector"},
    ):
        forged = replace(made.certificate, options={**options, **change})
        assert disagreements(replace(made, certificate=forged))
    for word in ("row_norm", "row_norm_share"):
        forged = replace(made.certificate, options={k: v for k, v in options.items() if k != word})
        assert disagreements(replace(made, certificate=forged))


def test_a_sketch_must_have_the_rows_and_the_ridge_of_its_promise():
    made = pc.release(
        TABLE, schema=NUMBERS, loss=LOSSES["approximate"], mechanism="johnson-lindenstrauss", sketch_rows=8
    )
    assert disagreements(made) == ()
    better = replace(made.certificate, loss=ApproxDP(epsilon="0.9", delta="1e-6", neighbours="replace-one"))
    more = replace(made.certificate, options={**made.certificate.options, "sketch_rows": "9"})
    for forged in (
        replace(made, certificate=better),
        replace(made, certificate=more),
        replace(made, sketch=None),
    ):
        assert disagreements(forged)
    plain = pc.release(TABLE, schema=NUMBERS, loss=LOSSES["pure"])
    assert disagreements(replace(plain, sketch=made.sketch))


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "sn"},
        {"mechanism": "silence"},
        {"options": {"noise": "none"}},
        {"options": {"mechanism": "laplace"}},
        {"options": {"arithmetic": "exact"}},
        {"law": None},
        {"law": LAWS["gaussian"](dimension=4, scale=1.0)},
        {"law": LAWS["wishart-difference"](dimension=4, scale=1e300)},
        {"loss": PureDP(epsilon="1e-60", neighbours="replace-one")},
        {"created": "yesterday"},
        {"created": "2026-1-1T00:00:00Z"},
    ],
)
def test_a_certificate_that_contradicts_itself_is_found(change):
    made = pc.release(TABLE, schema=NUMBERS, loss=LOSSES["pure"])
    assert disagreements(made) == ()
    assert disagreements(replace(made, certificate=replace(made.certificate, **change)))


def test_a_contradiction_in_a_file_of_another_version_says_so():
    made = pc.release(TABLE, schema=NUMBERS, loss=LOSSES["pure"])
    older = replace(made.certificate, version="0.0.1")
    assert disagreements(replace(made, certificate=older)) == ()
    said = disagreements(replace(made, certificate=replace(older, timing="other words")))
    assert "0.0.1" in said[-1]


def test_forms_of_the_future_and_of_others_are_told_apart(tmp_path):
    for text, code in [
        ('{"format":"privcov/release/9"}', "E602"),
        ('{"format":"privcov/gaussian-estimate/9"}', "E602"),
        ('{"format":"something/else"}', "E601"),
        ("{}", "E601"),
        ("[]", "E601"),
        ('{"format":1}', "E601"),
    ]:
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(ReleaseError, match=code):
            pc.verify(tmp_path / "r.json")
    with pytest.raises(ReleaseError, match="E604"):
        pc.verify(tmp_path / "missing.json")


def test_the_two_forms_cannot_be_confused(release):
    document = release.to_dict()
    document["format"] = estimates.FORM.format
    with pytest.raises(ReleaseError):
        codec.decode(document)
