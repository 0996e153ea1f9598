"""The public names and signatures are those that are listed; a change says what it takes."""

from __future__ import annotations

import difflib

import public_api
import pytest

import privcov


def test_the_public_api_is_the_one_that_is_listed() -> None:
    listed, found = public_api.LISTED.read_text(), public_api.text()
    difference = difflib.unified_diff(
        listed.splitlines(), found.splitlines(), "listed", "found", lineterm="", n=0
    )
    assert listed == found, public_api.REMEDY.format(difference="\n".join(difference))


def test_every_public_name_is_listed_and_none_shows_a_module_or_an_address() -> None:
    text = public_api.text()
    for name in privcov.__dir__():
        assert f"\n{name}" in text or f"\nclass {name}" in text
    assert " at 0x" not in text
    assert "privcov." not in "".join(text.splitlines(keepends=True)[2:])


def test_a_changed_signature_is_seen_and_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: str, *, signed_by: str = "nobody") -> int:
        return 0

    monkeypatch.setattr(privcov, "load", load, raising=False)
    with pytest.raises(AssertionError, match=r"\+load\(path: str(.|\n)*public_api\.py --write"):
        test_the_public_api_is_the_one_that_is_listed()


def test_a_name_that_is_gone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(privcov._HOMES, "ridge_path")
    with pytest.raises(AssertionError, match=r"-ridge_path\("):
        test_the_public_api_is_the_one_that_is_listed()
