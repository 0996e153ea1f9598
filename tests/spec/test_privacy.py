"""Losses are values: exact, comparable within a kind, and never converted silently."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from privcov.errors import ParameterError
from privcov.privacy import ZCDP, ApproxDP, Neighbours, PureDP, decimal_text, display, exact


def pure(epsilon, neighbours="replace-one"):
    return PureDP(epsilon=epsilon, neighbours=neighbours)


def test_ten_tenths_are_exactly_one():
    assert sum([pure(0.1)] * 9, pure(0.1)) == pure(1)
    assert 10 * pure("0.1") == pure(1)


@pytest.mark.parametrize("text", [1, 1.0, "1", "1.0", Decimal(1), Fraction(1), "3/3", "1e0"])
def test_an_amount_means_the_number_a_person_wrote(text):
    assert pure(text).epsilon == 1


@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), float("inf"), "1e400", "0.1.2", "", "x", True, None, "1/0"]
)
def test_an_epsilon_that_is_no_positive_number_is_refused(bad):
    with pytest.raises(ParameterError, match="E201"):
        pure(bad)


@pytest.mark.parametrize("bad", [0, 1, 2, -0.1, float("nan"), "nan", None])
def test_a_delta_outside_zero_and_one_is_refused(bad):
    with pytest.raises(ParameterError, match="E203"):
        ApproxDP(epsilon=1, delta=bad, neighbours="replace-one")


@pytest.mark.parametrize("bad", [None, "", "replace", "both"])
def test_the_neighbouring_relation_has_no_default(bad):
    with pytest.raises(ParameterError, match="E207"):
        pure(1, bad)


def test_losses_of_different_relations_do_not_add():
    with pytest.raises(ParameterError, match="E207"):
        pure(1, "add-remove") + pure(1, "replace-one")


def test_losses_of_different_kinds_do_not_add_and_the_error_names_the_conversion():
    with pytest.raises(ParameterError, match="pure_to_zcdp"):
        pure(1) + ZCDP(rho=1, neighbours="replace-one")


def test_losses_compare_in_every_amount():
    small = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    large = ApproxDP(epsilon=2, delta="1e-5", neighbours="replace-one")
    crossed = ApproxDP(epsilon=2, delta="1e-7", neighbours="replace-one")
    assert small <= large
    assert not crossed <= small
    assert not small <= crossed


@pytest.mark.parametrize(
    "value", [Fraction(1, 8), Fraction(1, 3), Fraction(5), Fraction(-7, 20), Fraction(1, 10**12)]
)
def test_exact_text_reads_back(value):
    assert exact(decimal_text(value)) == value


def test_a_displayed_amount_is_never_below_the_true_one():
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(10**9 + 1, 7)):
        assert Fraction(display(value)) >= value


def test_neighbours_print_as_they_are_written():
    assert str(Neighbours.REPLACE_ONE) == "replace-one"
    assert str(pure("1/3")) == "pure differential privacy, epsilon = 0.333334, replace-one"
