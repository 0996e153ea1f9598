"""A ledger under any sequence of payments, records, restarts and refusals never spends more than its budget."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import privcov as pc
from privcov.accounting import zcdp_to_approx
from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request

RELATIONS = st.sampled_from(["replace-one", "add-remove"])
EPSILONS = st.sampled_from(["0.1", "0.3", "1/3", "1", "2.5"])
DELTAS = st.sampled_from(["1e-7", "4e-7", "1e-6"])
RHOS = st.sampled_from(["0.001", "0.02", "0.1", "1"])


def losses(relations=RELATIONS):
    return st.one_of(
        st.builds(lambda e, n: pc.PureDP(epsilon=e, neighbours=n), EPSILONS, relations),
        st.builds(lambda e, d, n: pc.ApproxDP(epsilon=e, delta=d, neighbours=n), EPSILONS, DELTAS, relations),
        st.builds(lambda r, n: pc.ZCDP(rho=r, neighbours=n), RHOS, relations),
    )


class Book(RuleBasedStateMachine):
    """The ledger beside a plain model of it: what was paid, and for what."""

    @initialize(budget=losses(), concentrated=st.booleans())
    def start(self, budget, concentrated):
        self.home = tempfile.TemporaryDirectory()
        self.path = Path(self.home.name) / "l.ledger"
        turned = concentrated and budget.kind == "approximate"
        self.ledger = Ledger.init(self.path, budget, concentrated=turned)
        self.budget, self.waiting, self.done = budget, [], 0
        self.spent_before_turn = dict.fromkeys(budget.amounts, Fraction(0))
        self.prices = []

    @rule(loss=losses(), own=st.sampled_from([None, "0.001", "0.05"]))
    def pay(self, loss, own):
        known = None if own is None or loss.kind != "approximate" else Fraction(own)
        before = self.ledger.balance()
        receipt, code = None, None
        try:
            receipt = self.ledger.pay(Request(loss=loss, mechanism="any", rho=known))
        except BudgetError as refusal:
            code = refusal.code
        if receipt is None:
            assert code in ("E301", "E304")
            assert self.ledger.balance() == before  # a refusal changes nothing
            return
        assert loss.neighbours == self.budget.neighbours or self.budget.neighbours == "replace-one"
        after = self.ledger.balance()
        if before.turned_at is None and after.turned_at is not None:
            self.spent_before_turn, self.prices = dict(before.account.spent), []
        self.prices.append(self.ledger.log()[-1].facts["price"])
        self.waiting.append(receipt)

    @rule()
    def record(self):
        if self.waiting:
            self.ledger.done(self.waiting.pop(), digest="a" * 64, fingerprint="b" * 64)
            self.done += 1

    @rule()
    def start_again(self):
        """A new process: everything is read from the disk."""
        self.ledger = Ledger.open(self.path)

    @rule()
    def burn(self):
        """The process that was to deliver a release is gone."""
        self.waiting = self.waiting[:-1]

    @invariant()
    def never_more_than_the_budget(self):
        if not hasattr(self, "ledger"):
            return
        balance = self.ledger.balance()
        account = balance.account
        assert all(0 <= account.spent[word] <= account.total[word] for word in account.total)
        for word in account.total:  # exactly what the entries say, no cent lost
            assert account.spent[word] == sum((Fraction(price[word]) for price in self.prices), Fraction(0))
        assert balance.releases == self.done
        assert balance.burned >= len(self.waiting)
        self.the_whole_promise(account)

    def the_whole_promise(self, account):
        """By another way than the filter's: what is spent in all, as a loss of the budget's own kind."""
        if self.budget.kind != "approximate" or account.rule == "approximate" or not account.spent["rho"]:
            return
        spent = pc.ZCDP(rho=account.spent["rho"], neighbours=self.budget.neighbours)
        worth = zcdp_to_approx(spent, delta=account.total["delta"])
        before = self.spent_before_turn
        assert before["epsilon"] + worth.epsilon <= self.budget.epsilon
        assert before["delta"] + account.total["delta"] + account.spent["delta"] <= self.budget.delta

    def teardown(self):
        if hasattr(self, "ledger"):
            assert self.ledger.verify() == ()
            self.home.cleanup()


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=25, stateful_step_count=14, deadline=None)
