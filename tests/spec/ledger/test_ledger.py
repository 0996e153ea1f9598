"""A ledger on a real database: what it takes, what it refuses, what it remembers."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import stat
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import privcov as pc
from privcov.errors import BudgetError, PrivcovError
from privcov.ledger import Ledger, Request
from privcov.ledger.holding import NETWORK, filesystem
from privcov.ledger.store import SQLite

ONE = "replace-one"
BUDGET = pc.PureDP(epsilon=1, neighbours=ONE)


def pure(epsilon="0.1"):
    return Request(loss=pc.PureDP(epsilon=epsilon, neighbours=ONE), mechanism="laplace")


def test_ten_tenths_fit_and_an_eleventh_does_not(where):
    ledger = Ledger.init(where, BUDGET)
    for _ in range(10):
        ledger.pay(pure())
    with pytest.raises(
        BudgetError, match=r"E301 This release costs ε = 0.1; only 0 of 1 is left\."
    ) as caught:
        ledger.pay(pure())
    assert caught.value.exit_code == 3
    assert ledger.left == {"epsilon": 0}
    assert Ledger.open(where).spent == {"epsilon": 1}
    assert ledger.verify() == ()


def test_a_nano_too_much_is_refused(where):
    ledger = Ledger.init(where, BUDGET)
    with pytest.raises(BudgetError, match="E301"):
        ledger.pay(pure("1.000000001"))
    ledger.pay(pure("1"))


def test_a_refusal_writes_nothing(where, sql):
    ledger = Ledger.init(where, pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=ONE))
    before = sql(where, "SELECT * FROM privcov_entries"), sql(where, "SELECT * FROM privcov_facts")
    for loss in (pc.ZCDP(rho=5, neighbours=ONE), pc.PureDP(epsilon=2, neighbours=ONE)):
        with pytest.raises(BudgetError, match="E301"):
            ledger.pay(Request(loss=loss, mechanism="gaussian"))
    assert (sql(where, "SELECT * FROM privcov_entries"), sql(where, "SELECT * FROM privcov_facts")) == before


def test_a_zcdp_loss_turns_an_approximate_ledger_once_and_says_so(where):
    ledger = Ledger.init(where, pc.ApproxDP(epsilon=3, delta="1e-6", neighbours=ONE))
    ledger.pay(pure("1"))
    for _ in range(2):
        ledger.pay(Request(loss=pc.ZCDP(rho="0.01", neighbours=ONE), mechanism="gaussian"))
    assert [entry.kind for entry in ledger.log()] == ["opened", "paid", "turned", "paid", "paid"]
    balance = Ledger.open(where).balance()
    assert (balance.turned_at, balance.account.rule) == (3, "zcdp")
    assert balance.account.spent == {"rho": Fraction(1, 50), "delta": 0}
    assert ledger.verify() == ()


def test_a_concentrated_ledger_is_turned_from_the_start(where):
    ledger = Ledger.init(where, pc.ApproxDP(epsilon=3, delta="1e-6", neighbours=ONE), concentrated=True)
    assert [entry.kind for entry in ledger.log()] == ["opened", "turned"]
    assert ledger.balance().account.rule == "zcdp"
    assert ledger.verify() == ()


def test_a_payment_waits_for_its_release_and_takes_one(where):
    ledger = Ledger.init(where, BUDGET)
    first, second = ledger.pay(pure()), ledger.pay(pure())
    assert (ledger.balance().releases, ledger.balance().burned) == (0, 2)
    ledger.done(first, digest="a" * 64, fingerprint="b" * 64)
    assert (ledger.balance().releases, ledger.balance().burned) == (1, 1)
    with pytest.raises(BudgetError, match="E303"):
        ledger.done(first, digest="a" * 64, fingerprint="b" * 64)
    ledger.done(second, digest="c" * 64, fingerprint="b" * 64)
    assert [entry.same_table_as for entry in ledger.log()] == [None, None, None, None, 2]


def test_a_request_by_name_is_paid_once(where):
    ledger = Ledger.init(where, BUDGET)
    ledger.once("order-17").pay(pure())
    for amount in ("0.1", "0.2"):
        with pytest.raises(BudgetError, match="E303 the request order-17 was already paid for, as entry 2"):
            Ledger.open(where).once("order-17").pay(pure(amount))
    assert ledger.spent == {"epsilon": Fraction(1, 10)}
    with pytest.raises(PrivcovError, match="E212"):
        ledger.once("")


def test_what_was_run_can_be_read_back_and_no_secret_with_it(where, sql):
    ledger = Ledger.init(where, BUDGET)
    asked = Request(
        loss=pc.PureDP(epsilon="1/3", neighbours=ONE),
        mechanism="frobenius",
        options={"constants": "tight"},
        grid={"dimension": 4, "squared_norm_bound": 2**40, "max_rows_per_person": 2},
        noise={"law": "frobenius", "scale": "3.5"},
    )
    receipt = ledger.pay(asked)
    ledger.done(receipt, digest="a" * 64, fingerprint="f" * 64)
    paid, done = ledger.log()[1:]
    assert paid.facts["loss"] == {"epsilon": "1/3", "kind": "pure", "neighbours": ONE}
    assert paid.facts["grid"]["max_rows_per_person"] == 2
    secret = dict(sql(where, "SELECT name, value FROM privcov_facts"))["secret"]
    said = f"{ledger!r} {receipt!r} {ledger.log()} {ledger.balance()} {done}"
    assert secret not in said
    assert "f" * 64 not in said
    assert receipt.key.hex() not in said
    assert repr(receipt.key) not in said


def test_a_place_that_holds_a_ledger_is_never_opened_anew(where):
    Ledger.init(where, BUDGET).pay(pure())
    with pytest.raises(PrivcovError, match="E401"):
        Ledger.init(where, BUDGET)
    assert Ledger.open(where).spent == {"epsilon": Fraction(1, 10)}


def test_a_missing_ledger_is_refused_and_not_made(where, tmp_path):
    with pytest.raises(BudgetError, match="E302 there is no ledger"):
        Ledger.open(where)
    assert not (tmp_path / "census.ledger").exists()


def test_another_version_is_refused(where, sql):
    Ledger.init(where, BUDGET)
    sql(where, "UPDATE privcov_facts SET value = 'privcov/ledger/2' WHERE name = 'format'")
    with pytest.raises(BudgetError, match=r"E305 .* has the format privcov/ledger/2"):
        Ledger.open(where)


def test_copies_and_pickles_are_the_same_ledger(where):
    ledger = Ledger.init(where, BUDGET)
    for again in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        again.pay(pure())
    assert ledger.spent == {"epsilon": Fraction(3, 10)}


def test_threads_of_one_process_cannot_overspend(where):
    ledger, paid = Ledger.init(where, BUDGET), []

    def spend():
        try:
            while True:
                paid.append(ledger.pay(pure()).number)
        except BudgetError:
            pass

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paid)) == len(paid) == 10


def test_a_busy_ledger_is_waited_for_and_then_refused(tmp_path):
    path = tmp_path / "l.ledger"
    Ledger.init(path, BUDGET)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match=r"E306 .* in use by another process for 0.2 seconds"):
            Ledger(SQLite(path, patience=0.2)).pay(pure())
        other.execute("ROLLBACK")
    assert Ledger.open(path).spent == {"epsilon": 0}


def test_a_busy_server_is_waited_for_and_then_refused(on_postgres):
    import psycopg

    from privcov.ledger.addresses import server_words
    from privcov.ledger.postgres import Postgres

    Ledger.init(on_postgres, BUDGET)
    with psycopg.connect(on_postgres) as other:
        other.execute("LOCK TABLE privcov_facts IN EXCLUSIVE MODE")
        with pytest.raises(BudgetError, match="E306"):
            Ledger(Postgres(server_words(on_postgres), patience=0.2)).pay(pure())
        assert Ledger.open(on_postgres).spent == {"epsilon": 0}  # looking is always possible


def test_the_file_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "l.ledger"
    Ledger.init(path, BUDGET).pay(pure())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_symbolic_link_is_not_followed_when_a_ledger_is_made(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PrivcovError, match="E401"):
        Ledger.init(tmp_path / "link", BUDGET)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path, content):
    path = tmp_path / "l.ledger"
    path.write_bytes(content)
    with pytest.raises(BudgetError, match="E305"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_directory_is_no_ledger(tmp_path):
    with pytest.raises(BudgetError, match="E302"):
        Ledger.open(tmp_path)


MOUNTS = "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n//box/x /mnt/my\\040disk cifs rw 0 0\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/srv/x", "ext4"), ("/home/ann", "nfs4"), ("/homes", "ext4"), ("/mnt/my disk/deep/er", "cifs")],
)
def test_the_filesystem_of_a_path_is_that_of_its_nearest_mount(path, kind):
    assert filesystem(Path(path), MOUNTS) == kind


def test_a_network_filesystem_is_refused(tmp_path, monkeypatch):
    Ledger.init(tmp_path / "l.ledger", BUDGET)
    monkeypatch.setattr("privcov.ledger.holding.filesystem", lambda *_: "nfs4")
    assert "nfs4" in NETWORK
    for act in (lambda: Ledger.open(tmp_path / "l.ledger"), lambda: Ledger.init(tmp_path / "new", BUDGET)):
        with pytest.raises(BudgetError, match=r"E306 .* network filesystem"):
            act()
    assert not (tmp_path / "new").exists()


def test_a_server_that_could_forget_is_refused(on_postgres, monkeypatch):
    """``full_page_writes`` can be switched off on a running server, which risks torn pages after a power loss."""
    import psycopg

    Ledger.init(on_postgres, BUDGET)
    with psycopg.connect(on_postgres, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(200):
                with psycopg.connect(on_postgres) as other:
                    if other.execute("SHOW full_page_writes").fetchone()[0] == "off":
                        break
            with pytest.raises(BudgetError, match=r"E306 .* full_page_writes off"):
                Ledger.open(on_postgres).pay(pure())
        finally:
            connection.execute("ALTER SYSTEM RESET full_page_writes")
            connection.execute("SELECT pg_reload_conf()")
            for _ in range(200):
                with psycopg.connect(on_postgres) as other:
                    if other.execute("SHOW full_page_writes").fetchone()[0] == "on":
                        break


def test_an_unreachable_server_is_refused_and_no_password_is_said(monkeypatch):
    pytest.importorskip("psycopg")
    with pytest.raises(BudgetError) as caught:
        Ledger.open("postgresql://ann:hunter2@127.0.0.1:1/none")
    assert str(caught.value).startswith("E302 postgresql://127.0.0.1 cannot be used")
    assert "hunter2" not in str(caught.value)


def test_the_command_line_takes_an_address(on_postgres, people, schema, capsys, monkeypatch):
    from privcov.cli import main

    monkeypatch.chdir(people.parent)
    Path("people.toml").write_text(schema.to_toml())
    loss = ["--epsilon", "1", "--neighbours", ONE]
    assert main(["ledger", "init", on_postgres, *loss]) == 0
    words = ["release", "people.csv", "--schema", "people.toml", "--ledger", on_postgres, *loss]
    assert [main([*words, "-o", name]) for name in ("a.json", "b.json")] == [0, 3]
    assert main(["ledger", "verify", on_postgres]) == 0
    assert "host=" not in capsys.readouterr().out  # the address is shown without its options


def test_without_psycopg_the_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(BudgetError, match=r"pip install 'privcov\[postgres\]'"):
        Ledger.open("postgresql:///none")


@pytest.mark.slow
def test_a_hundred_thousand_entries_are_checked_in_seconds(tmp_path):
    """Written in one transaction, by the ledger's own functions; opened by the front door. ``-s`` prints the time."""
    import time

    from privcov.ledger import _chained
    from privcov.ledger.entries import entry_text, key_for, texts

    path = tmp_path / "l.ledger"
    ledger = Ledger.init(path, pc.ZCDP(rho=10**6, neighbours=ONE))
    asked = pure("0.37")
    with ledger._store.session(exclusive=True) as session:
        history, secret = ledger._read(session)
        price, bodies = texts(history.account.price(asked)), []
        for place in range(50_000):
            bodies.append(entry_text("paid", {**asked.facts(), "id": str(place), "price": price}))
            done = {"entry": 2 * place + 2, "release": "0" * 64, "fingerprint": "1" * 64}
            bodies.append(entry_text("done", done))
        session.write(*_chained(key_for(secret, "chain"), history.count, history.head, bodies))
    start = time.process_time()
    again = Ledger.open(path)
    spent = time.process_time() - start
    print(f"{spent:.2f} s of processor time to open and check 100 001 entries")
    assert again.balance().releases == 50_000
    assert spent < 6  # 1.5 to 1.9 where it was measured; a check that is quadratic takes hours
