"""What an account allows: exact sums, prices rounded toward privacy, one turn and no way back."""

from __future__ import annotations

from fractions import Fraction

import pytest

import privcov as pc
from privcov.accounting import gaussian_delta, gaussian_mu, pure_to_zcdp, zcdp_to_approx
from privcov.errors import BudgetError, PrivcovError
from privcov.ledger import Request
from privcov.ledger.rules import Account, short
from privcov.mechanisms import MECHANISMS, find
from privcov.mechanisms.sensitivity import sqrt_up

ONE, OUT = "replace-one", "add-remove"


def pure(epsilon, neighbours=ONE):
    return Request(loss=pc.PureDP(epsilon=epsilon, neighbours=neighbours), mechanism="laplace")


def approx(epsilon, delta, neighbours=ONE, rho=None):
    loss = pc.ApproxDP(epsilon=epsilon, delta=delta, neighbours=neighbours)
    return Request(loss=loss, mechanism="wishart", rho=rho)


def zcdp(rho, neighbours=ONE):
    return Request(loss=pc.ZCDP(rho=rho, neighbours=neighbours), mechanism="gaussian")


def account(neighbours=ONE, concentrated=False, **amounts):
    kind = pc.ZCDP if "rho" in amounts else pc.ApproxDP if "delta" in amounts else pc.PureDP
    return Account.opened(kind(**amounts, neighbours=neighbours), concentrated=concentrated)


def refused(account, request):
    """What the ledger says when it refuses."""
    try:
        ready = account.ready_for(request)
        price = ready.price(request)
    except BudgetError as error:
        return str(error)
    assert not ready.covers(price)
    return str(ready.refusal(request, price))


def test_ten_tenths_are_exactly_one_and_not_a_nano_more():
    book = account(epsilon=1)
    for _ in range(9):
        book = book.after(book.price(pure("0.1")))
    assert book.covers(book.price(pure("0.1")))
    assert not book.covers(book.price(pure("0.100000001")))
    book = book.after(book.price(pure("0.1")))
    assert book.left == {"epsilon": 0}
    assert refused(book, pure("1e-9")).startswith("E301 This release costs ε = 1e-9; only 0 of 1 is left. ")


def test_what_is_left_is_never_shown_as_more_than_it_is():
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(10**9 - 1, 10**9), Fraction(1, 10**20)):
        assert Fraction(short(value)) <= value


@pytest.mark.parametrize(
    "request_", [approx(1, "1e-6"), approx(1, "1e-6", rho=Fraction(1, 100)), zcdp("0.1")]
)
def test_a_pure_ledger_takes_pure_losses_alone(request_):
    said = refused(account(epsilon=3), request_)
    assert said.startswith("E304")
    assert "--epsilon alone" in said


def test_in_a_zcdp_ledger_a_pure_loss_costs_epsilon_tanh_half_epsilon():
    book = account(rho=1)
    price = book.price(pure(1))
    assert price == {"rho": pure_to_zcdp(pc.PureDP(epsilon=1, neighbours=ONE)).rho, "delta": 0}
    assert Fraction("0.4621171572600097") <= price["rho"] < Fraction("0.46211716")


def test_in_a_zcdp_ledger_an_approximate_loss_needs_a_rho_of_its_own():
    said = refused(account(rho=1), approx(1, "1e-6"))
    assert said.startswith("E304")
    assert "gaussian" in said
    assert account(rho=1).price(approx(1, "1e-6", rho=Fraction(1, 40))) == {
        "rho": Fraction(1, 40),
        "delta": 0,
    }


def test_in_an_approximate_ledger_pure_and_approximate_losses_add():
    book = account(epsilon=2, delta="1e-6")
    for request in (pure("0.5"), approx("0.5", "4e-7", rho=Fraction(1, 10)), approx(1, "6e-7")):
        book = book.after(book.price(request))
    assert book.left == {"epsilon": 0, "delta": 0}
    assert refused(account(epsilon=2, delta="1e-6"), approx(1, "2e-6")).startswith("E301")


def test_the_first_zcdp_loss_turns_what_is_left_and_keeps_half_of_delta():
    book = account(epsilon=3, delta="1e-6")
    book = book.after(book.price(approx(1, "2e-7")))
    turned = book.ready_for(zcdp("0.01"))
    assert (book.rule, turned.rule) == ("approximate", "zcdp")
    assert turned.total["delta"] == Fraction(4, 10**7)
    worth = zcdp_to_approx(pc.ZCDP(rho=turned.total["rho"], neighbours=ONE), delta=Fraction(4, 10**7))
    assert worth.epsilon <= 2
    more = zcdp_to_approx(
        pc.ZCDP(rho=turned.total["rho"] * Fraction(10001, 10000), neighbours=ONE), delta="4e-7"
    )
    assert more.epsilon > 2  # nothing is wasted
    assert turned.ready_for(zcdp("0.01")) is turned


def test_a_turned_account_full_of_gaussians_keeps_the_promise_by_their_exact_profile():
    """Independent of the zCDP conversion: the exact δ of one Gaussian of the whole ρ."""
    for epsilon, delta in ((1, "1e-6"), (3, "1e-5"), ("0.2", "1e-9")):
        turned = account(epsilon=epsilon, delta=delta, concentrated=True)
        mu = sqrt_up(2 * turned.total["rho"])
        assert gaussian_delta(mu=mu, epsilon=epsilon) + turned.total["delta"] <= Fraction(delta)


def test_in_a_turned_account_a_gaussian_needs_no_delta_and_others_pay_theirs():
    book = account(epsilon=3, delta="1e-6", concentrated=True)
    assert book.price(approx(1, "1e-7", rho=Fraction(1, 50))) == {"rho": Fraction(1, 50), "delta": 0}
    tanh = pure_to_zcdp(pc.PureDP(epsilon=1, neighbours=ONE)).rho
    assert book.price(approx(1, "1e-7")) == {"rho": tanh, "delta": Fraction(1, 10**7)}
    assert "costs δ =" in refused(account(epsilon=20, delta="1e-6", concentrated=True), approx("0.1", "6e-7"))


def test_how_many_releases_fit_by_each_rule():
    """The figures of the guide: Gaussian releases at (0.5, 1e-7) in a budget of (3, 2e-6)."""
    loss = pc.ApproxDP(epsilon="0.5", delta="1e-7", neighbours=ONE)
    request = Request(loss=loss, mechanism="gaussian", rho=find("gaussian", loss=loss).as_zcdp(loss))
    counts = []
    for concentrated in (False, True):
        book, count = account(epsilon=3, delta="2e-6", concentrated=concentrated), 0
        while book.covers(book.price(request)):
            book, count = book.after(book.price(request)), count + 1
        counts.append(count)
    assert counts == [6, 29]


def test_there_is_no_way_back_and_no_second_turn():
    turned = account(epsilon=3, delta="1e-6", concentrated=True)
    with pytest.raises(BudgetError):
        turned.turned()
    with pytest.raises(ValueError, match="not open"):
        turned.turned_as(turned.total)


def test_a_recorded_turn_to_more_than_was_left_is_not_believed():
    book = account(epsilon=3, delta="1e-6")
    fair = book.turned().total
    assert book.turned_as(fair).total == fair
    for word in fair:
        with pytest.raises(ValueError, match="turn"):
            book.turned_as({**fair, word: fair[word] * Fraction(1001, 1000)})


def test_a_turn_needs_epsilon_and_delta_to_be_left():
    book = account(epsilon=1, delta="1e-6")
    book = book.after(book.price(approx("0.5", "1e-6")))
    assert refused(book, zcdp("0.001")).startswith("E301")


@pytest.mark.parametrize(
    ("amounts", "request_", "price"),
    [
        ({"epsilon": 3}, pure(1, OUT), {"epsilon": 2}),
        ({"rho": 3}, zcdp("0.1", OUT), {"rho": Fraction(4, 10), "delta": 0}),
        ({"rho": 3}, approx(1, "1e-6", OUT, rho=Fraction(1, 10)), {"rho": Fraction(4, 10), "delta": 0}),
    ],
)
def test_an_add_remove_loss_costs_two_persons_in_a_replace_one_ledger(amounts, request_, price):
    assert account(**amounts).price(request_) == price


def test_group_privacy_of_delta_is_rounded_up():
    price = account(epsilon=3, delta="1e-3").price(approx(1, "1e-6", OUT))
    true = Fraction(1, 10**6) * (1 + Fraction("2.718281828459045235360287471352662497757"))
    assert price["epsilon"] == 2
    assert true <= price["delta"] <= true * (1 + Fraction(1, 10**15))


def test_a_replace_one_loss_never_enters_an_add_remove_ledger():
    assert refused(account(OUT, epsilon=3), pure(1)).startswith("E304")
    assert account(OUT, epsilon=3).price(pure(1, OUT)) == {"epsilon": 1}


def test_a_delta_that_two_persons_exhaust_is_refused_not_rounded_off():
    assert refused(account(epsilon=30, delta="0.5"), approx(10, "1e-4", OUT)).startswith("E304")


@pytest.mark.parametrize("amounts", [{"epsilon": 1}, {"rho": 1}])
def test_only_epsilon_and_delta_can_be_concentrated(amounts):
    with pytest.raises(PrivcovError, match="E204"):
        account(concentrated=True, **amounts)


@pytest.mark.parametrize("name", ["gaussian", "separate", "joint-gaussian"])
def test_a_gaussian_mechanism_knows_its_rho_and_it_is_half_mu_squared(name):
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=ONE)
    rho = find(name, loss=loss).as_zcdp(loss)
    mu = gaussian_mu(epsilon=1, delta="1e-6")
    assert mu**2 / 2 * (1 - Fraction(1, 10**15)) <= rho <= mu**2 / 2  # at most: the noise is rounded up
    exact = pc.ZCDP(rho="0.1", neighbours=ONE)
    assert rho_of(name, exact) <= Fraction(1, 10)
    assert rho_of(name, exact) >= Fraction(1, 10) * (1 - Fraction(1, 10**15))


def rho_of(name, loss):
    return find(name, loss=loss).as_zcdp(loss)


@pytest.mark.parametrize("options", [{"noise": "discrete"}, {"constants": "published"}])
def test_every_gaussian_knows_the_rho_of_the_noise_it_draws(options):
    from privcov.mechanisms.sensitivity import Sensitivity
    from privcov.schema.grid import Grid

    loss = pc.ApproxDP(epsilon="0.5", delta="1e-6", neighbours=ONE)
    grid = Grid(dimension=3, exponent=18, squared_norm_bound=2**38)
    mechanism = find("gaussian", loss=loss, **options)
    std = Fraction(mechanism.law(loss=loss, grid=grid).scale) / grid.unit
    moved = Sensitivity.of(grid, loss.neighbours).frobenius
    assert moved**2 / (2 * std**2) <= mechanism.as_zcdp(loss)
    assert mechanism.as_zcdp(loss) <= moved**2 / (2 * std**2) * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_priced(name):
    """A pure or zCDP loss has a ρ, never above ε²/2 or itself; of an (ε, δ) loss a mechanism may know no ρ."""
    kind = MECHANISMS[name]
    losses = {
        "pure": pc.PureDP(epsilon=1, neighbours=ONE),
        "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=ONE),
        "zcdp": pc.ZCDP(rho="0.1", neighbours=ONE),
    }
    for word in kind.kinds:
        rho = kind().as_zcdp(losses[word])
        if word != "approximate" or rho is not None:
            assert (
                0
                < rho
                <= {"pure": Fraction(1, 2), "approximate": Fraction(1, 2), "zcdp": Fraction(1, 10)}[word]
            )
