"""Texts from outside: what is printable, what is a number, and what a message makes of the rest."""

from __future__ import annotations

import math
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import InputError, ParameterError
from privcov.privacy import exact
from privcov.text.grammar import brief, double, escaped, printable

UNSEEN = [
    "\x00", "\x07", "\x1b[2J", "\r", "\n", "\t", "\x7f", "\x85", "\x9b31m", "\xad",
    "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2028", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
    "\u2060", "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff", "\ud800", "\udcff", "\ue000", "\U000f0000",
    "\U000e0041", "\u0378", "\u115f", "\u3164", "\ufe0f", "\u2800", "\xa0",
]  # fmt: skip
HUGE = [
    "1e999999999",
    "1E+99999",
    "-1e-999999999",
    "9" * 5000,
    "1/" + "3" * 5000,
    "0." + "0" * 5000 + "1",
    "1e301",
    "1e-301",
]


@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
def test_what_cannot_be_seen_is_not_printable(text):
    assert not printable(text)
    assert not printable(f"age{text}")


@pytest.mark.parametrize(
    "text",
    ["age", "größe (cm), 2°", "収入 [円]", "возраст", "גיל", "عمر", "naïve café", "a\u0301", "💶", "", " "],
)
def test_letters_and_signs_of_every_script_are_printable(text):
    assert printable(text)
    assert escaped(text) == text


@given(st.text(st.characters(codec=None), max_size=20))
def test_whatever_the_text_nothing_but_lines_and_printable_characters_reaches_a_terminal(text):
    shown = escaped(text)
    assert printable(shown.replace("\n", ""))
    assert shown.count("\n") == text.count("\n")
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in shown if sign != "\n")
    shown.encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [*HUGE, "1_000", "٣", "1e", "e5", "", ".", "0x10", "nan", "inf", "1/0", "1/-3", "1.5/2", "1 000"],
    ids=brief,
)
def test_a_text_that_is_no_number_of_reasonable_size_is_never_computed(text):
    with pytest.raises(ValueError, match="number"):
        exact(text)


@pytest.mark.parametrize("value", [10**400, -(10**5000), 1e301, 1e-301, math.nan, math.inf], ids=brief)
def test_a_number_of_unreasonable_size_is_no_amount_either(value):
    with pytest.raises(ValueError, match="number"):
        exact(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_read_from_its_own_text_and_no_other(value):
    assert math.copysign(1, double(repr(value))) == math.copysign(1, value)
    assert double(repr(value)) == value
    for other in (f"+{value!r}", f" {value!r}", f"{value!r} ", f"0{value!r}"):
        with pytest.raises(ValueError, match="double"):
            double(other)


@pytest.mark.parametrize("text", ["nan", "inf", "1e400", "1" * 30, "1_0.0", "٣.0", 1.0, None])
def test_what_repr_does_not_write_is_no_double(text):
    with pytest.raises(ValueError, match="double"):
        double(text)


@pytest.mark.parametrize("value", ["9" * 10_000, 10**5000, "x" * 100], ids=brief)
def test_a_message_echoes_the_beginning_of_what_is_long(value):
    assert len(brief(value)) < 60


@pytest.mark.parametrize("text", [*HUGE, "1e-61", "1e61", "1e-300"], ids=brief)
def test_an_epsilon_or_rho_beyond_any_use_is_refused_with_a_short_message(text):
    for make in (pc.PureDP, pc.ZCDP):
        word = "epsilon" if make is pc.PureDP else "rho"
        with pytest.raises(ParameterError, match="E201") as caught:
            make(**{word: text}, neighbours="replace-one")
        assert len(str(caught.value)) < 200


def test_a_fraction_beyond_any_use_is_refused_before_anything_is_paid_or_read(schema, people):
    loss = pc.PureDP(epsilon=Fraction(1, 10**61), neighbours="replace-one")
    for mechanism in ("auto", "laplace"):
        with pytest.raises(ParameterError, match="E201"):
            pc.release(people, schema=schema, loss=loss, mechanism=mechanism)


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 6000, "9" * 4000, "1e999999999", "1" * 9000 + ".5", "-1e400"], ids=brief
)
@pytest.mark.parametrize(
    "place",
    ["row_norm_bound = {}\n[columns.a]\nlower = 0\nupper = 1\n", "[columns.a]\nlower = 0\nupper = {}\n",
     "[columns.a]\nlevels = [1, {}]\n", "max_rows_per_person = {}\n[columns.a]\nlower = 0\nupper = 1\n"],
    ids=["norm", "bound", "level", "rows"],
)  # fmt: skip
def test_a_number_of_unreasonable_size_in_a_schema_is_refused_with_a_short_message(tmp_path, place, number):
    (tmp_path / "s.toml").write_text(place.format(number))
    with pytest.raises((InputError, ParameterError)) as caught:
        pc.Schema.read(tmp_path / "s.toml")
    assert len(str(caught.value)) < 400


def test_a_schema_may_write_numbers_as_toml_does(tmp_path):
    (tmp_path / "s.toml").write_text("[columns.a]\nlower = -1_000.5\nupper = 1e3\n")
    (column,) = pc.Schema.read(tmp_path / "s.toml").columns
    assert (column.lower, column.upper) == (-1000.5, 1000.0)


@pytest.mark.parametrize("level", ["a\u202eb", "a\u200b", "a\u3164", "\ue000"])
def test_a_level_that_cannot_be_seen_is_refused(level):
    with pytest.raises(InputError, match="E121"):
        pc.Schema.from_dict({"columns": {"c": {"levels": [level, "b"]}}})
