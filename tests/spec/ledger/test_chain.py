"""``verify`` finds what was changed, removed, added or moved; and no payment enters a ledger that was touched."""

from __future__ import annotations

import os
import shutil

import pytest

import privcov as pc
from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request

ONE = "replace-one"


def pure(epsilon="0.1"):
    return Request(loss=pc.PureDP(epsilon=epsilon, neighbours=ONE), mechanism="laplace")


@pytest.fixture
def paid(where):
    """A ledger of six entries: opened, paid, done, paid, done, paid."""
    ledger = Ledger.init(where, pc.PureDP(epsilon=1, neighbours=ONE))
    for number in range(3):
        receipt = ledger.pay(pure())
        if number < 2:
            ledger.done(receipt, digest="a" * 64, fingerprint="b" * 64)
    assert ledger.verify() == ()
    return ledger


CHANGES = {
    "a budget raised": ["UPDATE privcov_entries SET body = replace(body, '\"epsilon\":\"1\"', '\"epsilon\":\"9\"')"],
    "a price lowered": ["UPDATE privcov_entries SET body = replace(body, '0.1', '0.0') WHERE number = 4"],
    "a done invented": ["UPDATE privcov_entries SET body = replace(body, 'aaa', 'bbb') WHERE number = 5"],
    "the first entry removed": ["DELETE FROM privcov_entries WHERE number = 1"],
    "an entry removed": ["DELETE FROM privcov_entries WHERE number = 4"],
    "the last entry removed": ["DELETE FROM privcov_entries WHERE number = 6"],
    "the last entry removed, and the count lowered": [
        "DELETE FROM privcov_entries WHERE number = 6",
        "UPDATE privcov_facts SET value = '5' WHERE name = 'count'",
        "UPDATE privcov_facts SET value = (SELECT link FROM privcov_entries WHERE number = 5) WHERE name = 'head'",
    ],
    "an entry removed and the rest moved up": [
        "DELETE FROM privcov_entries WHERE number = 4",
        "UPDATE privcov_entries SET number = 4 WHERE number = 5",
        "UPDATE privcov_entries SET number = 5 WHERE number = 6",
    ],
    "two entries exchanged": [
        "UPDATE privcov_entries SET number = 99 WHERE number = 2",
        "UPDATE privcov_entries SET number = 2 WHERE number = 4",
        "UPDATE privcov_entries SET number = 4 WHERE number = 99",
    ],
    "an entry doubled": [
        "INSERT INTO privcov_entries SELECT 7, body, link || '0' FROM privcov_entries WHERE number = 6"
    ],
    "every entry removed": ["DELETE FROM privcov_entries"],
    "a link changed": ["UPDATE privcov_entries SET link = replace(link, 'a', 'b') WHERE number = 3"],
    "the seal removed": ["DELETE FROM privcov_facts WHERE name = 'seal'"],
    "the secret exchanged": ["UPDATE privcov_facts SET value = replace(value, '1', '2') WHERE name = 'secret'"],
    "the end removed": ["DELETE FROM privcov_facts WHERE name IN ('count', 'head', 'seal')"],
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_found_and_stops_payments(paid, where, sql, change):
    link = sql(where, "SELECT link FROM privcov_entries WHERE number = 3")[0][0]
    if change == "a link changed" and "a" not in link:
        sql(where, "UPDATE privcov_entries SET link = ? WHERE number = 3", "a" * 64)
    secret = sql(where, "SELECT value FROM privcov_facts WHERE name = 'secret'")[0][0]
    if change == "the secret exchanged" and "1" not in secret:
        sql(where, "UPDATE privcov_facts SET value = ? WHERE name = 'secret'", "1" * 64)
    for statement in CHANGES[change]:
        sql(where, statement)
    assert Ledger.verify(paid)
    with pytest.raises(BudgetError, match="E305"):
        Ledger.open(where).pay(pure("0.001"))


def test_the_entry_that_was_changed_is_named(paid, where, sql):
    sql(where, CHANGES["a price lowered"][0])
    assert paid.verify() == ("entry 4 was altered, or does not follow entry 3",)


def test_a_running_process_notices_a_change_of_the_end_before_it_pays(paid, where, sql):
    sql(where, "DELETE FROM privcov_entries WHERE number = 6")
    with pytest.raises(BudgetError, match="E305"):
        paid.pay(pure("0.001"))


def test_the_database_itself_refuses_changes_as_a_courtesy(paid, where):
    statements = ["UPDATE privcov_entries SET body = '{}'", "DELETE FROM privcov_entries"]
    if where.startswith("postgresql"):
        import psycopg

        for statement in [*statements, "TRUNCATE privcov_entries"]:
            with psycopg.connect(where) as connection, pytest.raises(psycopg.Error, match="only grows"):
                connection.execute(statement)
        return
    import sqlite3
    from contextlib import closing

    for statement in statements:
        with closing(sqlite3.connect(where)) as connection, pytest.raises(sqlite3.Error, match="only grows"):
            connection.execute(statement)


def test_an_old_copy_put_back_is_found_by_whoever_kept_an_end(tmp_path):
    path = tmp_path / "l.ledger"
    ledger = Ledger.init(path, pc.PureDP(epsilon=1, neighbours=ONE))
    ledger.pay(pure())
    shutil.copy(path, tmp_path / "old")
    kept = ledger.balance().head
    ledger.pay(pure())
    later = ledger.balance().head
    assert ledger.verify(head=kept) == ledger.verify(head=later) == ()
    shutil.copy(tmp_path / "old", path)
    assert Ledger.open(path).verify() == ()  # the chain of the old copy is whole: this is its limit
    assert Ledger.open(path).verify(head=kept) == ()
    assert "it is an older copy, or another ledger" in Ledger.open(path).verify(head=later)[0]
    with pytest.raises(BudgetError, match="E305"):
        ledger.pay(pure())  # a process that had seen more knows it, too


def test_an_underpaid_entry_is_found_although_its_links_hold(tmp_path, monkeypatch):
    """The past is priced again: a ledger written by an accountant that asked too little is found out."""
    from fractions import Fraction

    from privcov.ledger.rules import Account

    ledger = Ledger.init(tmp_path / "l.ledger", pc.ZCDP(rho=1, neighbours=ONE))
    with monkeypatch.context() as patched:
        patched.setattr(Account, "price", lambda *_: {"rho": Fraction(1, 100), "delta": Fraction(0)})
        ledger.pay(pure("1"))
    ledger.pay(pure("1"))
    assert ledger.verify() == ("entry 2 paid less than today's rules charge",)


def test_a_hand_made_overdraft_with_good_links_is_not_believed(tmp_path, monkeypatch):
    """Whoever holds the file holds the key and can write links; a sum above the budget is still refused."""
    from privcov.ledger.rules import Account

    path = tmp_path / "l.ledger"
    ledger = Ledger.init(path, pc.PureDP(epsilon=1, neighbours=ONE))
    with monkeypatch.context() as patched:
        patched.setattr(Account, "covers", lambda *_: True)
        ledger.pay(pure("1.5"))
    assert Ledger.verify(ledger) == ("entry 2 could not have been written by this ledger",)
    with pytest.raises(BudgetError, match="E305"):
        Ledger.open(path)


def _flips(tmp_path, step):
    """Every ``step``-th byte of a small ledger file flipped: found, refused, or nothing the ledger says differs."""
    path, spoilt = tmp_path / "l.ledger", tmp_path / "spoilt.ledger"
    ledger = Ledger.init(path, pc.PureDP(epsilon=1, neighbours=ONE))
    ledger.done(ledger.pay(pure()), digest="a" * 64, fingerprint="b" * 64)
    said = ledger.log(), ledger.balance()
    content = path.read_bytes()
    counts = {"found": 0, "harmless": 0}
    for place in range(0, len(content), step):
        changed = bytearray(content)
        changed[place] ^= 0x01 + place % 255
        spoilt.write_bytes(bytes(changed))
        try:
            again = Ledger.open(spoilt)
            found = bool(again.verify())
            if not found:
                assert (again.log(), again.balance()) == said, place
        except BudgetError:
            found = True
        counts["found" if found else "harmless"] += 1
    return counts


def test_a_flipped_byte_is_found_or_changes_nothing(tmp_path):
    counts = _flips(tmp_path, step=61)
    assert counts["found"] > 20  # the file is mostly empty pages; the bytes that say something are found


@pytest.mark.slow
def test_every_flipped_byte_is_found_or_changes_nothing(tmp_path):
    step = round(1 / float(os.environ.get("PRIVCOV_SAMPLE", "1")))
    assert _flips(tmp_path, step=step)["found"] > 1000 // step
