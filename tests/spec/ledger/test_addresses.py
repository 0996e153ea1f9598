"""Where a ledger is, in one grammar: what it does not know is refused, and no part of a password is ever said."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.cli import main
from privcov.errors import BudgetError, PrivcovError
from privcov.ledger import Ledger, Request
from privcov.ledger.addresses import is_elsewhere, server_words, shown
from privcov_lab.bench.attacks import PIECES, SPELLINGS

ONE = "replace-one"
BUDGET = pc.PureDP(epsilon=1, neighbours=ONE)
LOSS = ["--epsilon", "1", "--neighbours", ONE]


def pure(epsilon="0.1"):
    return Request(loss=pc.PureDP(epsilon=epsilon, neighbours=ONE), mechanism="laplace")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://db/census", {"host": "db", "dbname": "census"}),
        ("postgres://db:5433", {"host": "db", "port": "5433"}),
        ("postgresql://", {}),
        ("postgresql:///census", {"dbname": "census"}),
        ("postgresql://ann@[::1]:1/c", {"host": "::1", "port": "1", "user": "ann", "dbname": "c"}),
        ("postgresql://a:1,b,[::1]:3/", {"host": "a,b,::1", "port": "1,,3"}),
        ("postgresql://%2Frun%2Fpg/c", {"host": "/run/pg", "dbname": "c"}),
        ("postgresql:///c?host=/run/pg&port=7", {"host": "/run/pg", "port": "7", "dbname": "c"}),
        ("postgresql://a/c?host=b", {"host": "b", "dbname": "c"}),  # as libpq: the query has the last word
        ("postgresql://ann:p%2F%5B%40%3A@db", {"host": "db", "user": "ann", "password": "p/[@:"}),
        ("postgresql://db/c?options=-csearch_path%3Dx", {"host": "db", "dbname": "c", "options": "-csearch_path=x"}),
    ],
)  # fmt: skip
def test_an_address_is_read_as_libpq_reads_it(address, words):
    assert server_words(address) == words
    conninfo = pytest.importorskip("psycopg").conninfo
    theirs = {word: str(text) for word, text in conninfo.conninfo_to_dict(address).items()}
    ours = {
        word: str(text) for word, text in conninfo.conninfo_to_dict(conninfo.make_conninfo(**words)).items()
    }
    assert ours == {word: text for word, text in theirs.items() if text}


@pytest.mark.parametrize(
    "path",
    [
        "people.ledger",
        "a/b.ledger",
        "./e=1.ledger",
        "/data/year=2020/l",
        "../x@y:z",
        "C:\\x\\l",
        "12:30.ledger",
        "a@b",
    ],
)
def test_a_path_is_a_file(path):
    assert server_words(path) is None


def test_a_path_object_is_read_like_its_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given_ in (Path("postgresql://ann:Zq7Xw9@127.0.0.1/db"), Path("host=127.0.0.1 password=Zq7Xw9")):
        with pytest.raises(BudgetError, match="E312"):
            Ledger.init(given_, BUDGET)
    Ledger.init(Path("./x=1").absolute(), BUDGET)
    assert os.listdir(tmp_path) == ["x=1"]


@pytest.mark.parametrize(
    ("words", "elsewhere", "name"),
    [
        ({}, False, "[local]"),
        ({"host": "/run/pg"}, False, "[local]"),
        ({"host": "localhost"}, False, "localhost"),
        ({"host": "127.1.2.3,::1"}, False, "127.1.2.3,::1"),
        ({"host": "localhost,db"}, True, "localhost,db"),
        ({"host": "localhost.example.org"}, True, "localhost.example.org"),
        ({"host": "db", "hostaddr": "127.0.0.1"}, False, "db"),
        ({"host": "localhost", "hostaddr": "192.0.2.1"}, True, "localhost"),
        ({"hostaddr": "127.0.0.1,192.0.2.1"}, True, "127.0.0.1,192.0.2.1"),
        ({"host": "0.0.0.0"}, True, "0.0.0.0"),
    ],
)
def test_what_leaves_this_machine_and_what_it_is_called(words, elsewhere, name):
    assert is_elsewhere(words) is elsewhere
    assert shown({**words, "user": "ann", "password": "p", "dbname": "d"}) == f"postgresql://{name}"


def told(where):
    """What every way to open a ledger says of an address, as it is printed and as it is kept."""
    said = []
    for act in (lambda: Ledger.open(where), lambda: Ledger.init(where, BUDGET)):
        with pytest.raises(PrivcovError) as caught:
            act()
        assert caught.value.code in ("E302", "E312", "E313"), caught.value
        assert caught.value.__cause__ is None
        said.append(f"{caught.value} {caught.value!r} {caught.value.args}")
    return " ".join(said)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(
    marks=st.tuples(*2 * [st.text(st.sampled_from("/[]@:?#&=%,;'\"\\ \n+!$é\0"), max_size=2)]),
    escaped=st.booleans(),
)
@example(marks=("", ""), escaped=False)
@example(marks=("/", "["), escaped=False)
@example(marks=("@", "?user="), escaped=False)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_no_message_has_a_part_of_a_password(spelling, marks, escaped, tmp_path_factory):
    """Fuzzed passwords in every spelling; none is answered with a file, a traceback, or a piece of the password."""
    pytest.importorskip("psycopg")
    password = PIECES[0] + marks[0] + PIECES[1] + marks[1] + PIECES[2]
    where = spelling.format(quote(password, safe="") if escaped else password)
    home, before = tmp_path_factory.mktemp("home"), os.getcwd()
    os.chdir(home)
    try:
        said = told(where)
    finally:
        os.chdir(before)
    assert not [piece for piece in PIECES if piece in said], said
    assert not [*home.iterdir()]


@pytest.mark.parametrize("password", ["Zq7Xw9", "Zq7/Xw9", "Zq7[Xw9", "Zq7?Xw9", "Zq7%2FXw9", "", "Zq7,Xw9"])
def test_a_password_before_a_forgotten_host_is_taken_for_a_port_and_not_said(password):
    with pytest.raises(BudgetError) as caught:
        Ledger.open(f"postgresql://:{password}/db?host=/nowhere")
    assert not re.search("Zq7|Xw9", str(caught.value))


@pytest.mark.parametrize(
    "where",
    [
        "host=127.0.0.1 port=1 password=Zq7Xw9",
        "POSTGRESQL://Bob5:Zq7Xw9@127.0.0.1:1/db",
        "postgresql://Bob5:Zq7/Xw9@127.0.0.1:1/db",
        "postgresql://Bob5:Zq7[Xw9@127.0.0.1:1/db",
        "postgresql://Bob5:Zq7Xw9@127.0.0.1:1/Bob5",
    ],
)
def test_every_command_refuses_an_address_without_repeating_it(where, people, schema, capsys, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(people.parent)
    Path("people.toml").write_text(schema.to_toml())
    before = sorted(os.listdir())
    paid = ["--schema", "people.toml", "--ledger", where]
    for words in (
        ["ledger", "init", where, *LOSS],
        ["ledger", "show", where],
        ["ledger", "log", where],
        ["ledger", "verify", where],
        ["release", "people.csv", *paid, *LOSS],
        ["check", "people.csv", *paid, *LOSS],
        ["schema", "explain", "people.toml", "--data", "people.csv", "--ledger", where, *LOSS],
        [
            "estimate",
            "people.csv",
            "--columns",
            "age",
            "--rho",
            "1",
            "--largest-variance",
            "99",
            "--ledger",
            where,
        ],
        ["serve", "--ledger", where, "--no-browser"],
    ):
        code = main(words)
        out, err = capsys.readouterr()
        assert code == 3, (words, err)
        assert not re.search("Zq7|Xw9|Bob5", out + err), words
        assert re.match("privcov: E3(02|12) ", err), words
    with pytest.raises(BudgetError, match=r"E3(02|12)"):
        pc.release("people.csv", schema=schema, loss=BUDGET, ledger=where)
    assert sorted(os.listdir()) == before


def test_the_workbench_names_the_host_of_a_server_alone(on_postgres, tmp_path, monkeypatch):
    from privcov.cli.serve import _ledger
    from privcov.web.places import Directory

    Ledger.init(on_postgres, BUDGET)
    monkeypatch.chdir(tmp_path)  # where an address read as a path would lie
    assert _ledger(on_postgres, Directory.of("."))["ledger"] == "postgresql://[local]"
    Ledger.init("here.ledger", BUDGET)
    assert _ledger("here.ledger", Directory.of("."))["ledger"] == "here.ledger"


def _home(server):
    return Path(server_words(server)["host"])


def _over_tcp(address, *, host, user="postgres", more=""):
    words = server_words(address)
    return f"postgresql://{user}@{host}:{words['port']}/postgres?options={quote(words['options'])}{more}"


def test_a_password_with_every_mark_opens_the_ledger_and_a_wrong_one_does_not(server, on_postgres, request):
    import psycopg

    password = "p/[a]@b:c?d#e&f=g%h,i;j'k\\l m\"n"
    rules = _home(server) / "data" / "pg_hba.conf"
    before = rules.read_text()
    words = server_words(on_postgres)
    name = words["options"].removeprefix("-csearch_path=")
    with psycopg.connect(server, autocommit=True) as connection:

        def restore():
            rules.write_text(before)
            with psycopg.connect(server, autocommit=True) as again:
                again.execute("SELECT pg_reload_conf()")

        request.addfinalizer(restore)
        quoted = password.replace("'", "''")
        connection.execute(f"CREATE ROLE u{name} LOGIN PASSWORD '{quoted}'")
        connection.execute(f"GRANT ALL ON SCHEMA {name} TO u{name}")
        rules.write_text(f"host all u{name} 127.0.0.1/32 scram-sha-256\n{before}")
        connection.execute("SELECT pg_reload_conf()")
    right = _over_tcp(on_postgres, host="127.0.0.1", user=f"u{name}:{quote(password, safe='')}")
    for _ in range(100):  # until the server has read its rules again
        with pytest.raises(BudgetError) as caught:
            Ledger.open(right.replace("%2F", "%2E"))
        if "no ledger" not in str(caught.value):
            break
    assert str(caught.value).startswith("E302 postgresql://127.0.0.1 cannot be used: no connection.")
    ledger = Ledger.init(right, BUDGET)
    ledger.pay(pure())
    assert Ledger.open(right).left == {"epsilon": pc.privacy.exact("0.9")}
    assert repr(ledger) == "<Ledger postgresql://127.0.0.1>"


def test_a_server_that_logs_every_statement_does_not_log_the_secret(server, on_postgres, sql):
    """What is sent with COPY is not in the log; the statements and their parameters are."""
    talkative = on_postgres + "%20-clog_statement%3Dall"
    ledger = Ledger.init(talkative, BUDGET)
    ledger.done(ledger.pay(pure()), digest="a" * 64, fingerprint="f" * 64)
    facts = dict(sql(on_postgres, "SELECT name, value FROM privcov_facts"))
    log = (_home(server) / "log").read_text()
    assert facts["seal"] in log  # the log does hold what it is given
    assert facts["secret"] not in log
    assert "f" * 64 not in log


@pytest.fixture
def with_tls(server):
    """The server offers TLS, with a certificate that nobody knows."""
    import psycopg
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    home, key = _home(server) / "data", ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "db")]), datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    pem, owner = serialization.Encoding.PEM, home.stat()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in (
        ("server.key", private),
        ("server.crt", made.sign(key, hashes.SHA256()).public_bytes(pem)),
    ):
        (home / file).write_bytes(content)
        (home / file).chmod(0o600)
        os.chown(home / file, owner.st_uid, owner.st_gid)

    def switch(word):
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET ssl = {word}")
            connection.execute("SELECT pg_reload_conf()")
        for _ in range(500):
            with psycopg.connect(server) as connection:
                if connection.execute("SHOW ssl").fetchone()[0] == word:
                    return

    switch("on")
    yield
    switch("off")


def test_another_machine_is_not_spoken_to_in_the_clear(on_postgres, monkeypatch):
    """0.0.0.0 is no loopback address, and the kernel leads it to this machine: a real connection to 'elsewhere'."""
    Ledger.init(on_postgres, BUDGET)
    far = _over_tcp(on_postgres, host="0.0.0.0")
    for mode in (None, "disable", "prefer"):  # what the environment says is not the address
        monkeypatch.setenv("PGSSLMODE", mode) if mode else monkeypatch.delenv("PGSSLMODE", raising=False)
        with pytest.raises(
            BudgetError, match=r"E313 no encrypted connection to postgresql://0\.0\.0\.0 could be made"
        ):
            Ledger.open(far)
    for mode in ("prefer", "allow"):
        with pytest.raises(BudgetError, match=r"E313 .* this sslmode allows unencrypted connections"):
            Ledger.open(f"{far}&sslmode={mode}")
    with pytest.raises(BudgetError, match="E313"):
        Ledger.open(f"{far}&sslmode=require")
    Ledger.open(f"{far}&sslmode=disable").pay(pure())
    near = _over_tcp(on_postgres, host="127.0.0.1")
    assert Ledger.open(near).spent == {"epsilon": pc.privacy.exact("0.1")}


def test_the_host_of_the_environment_is_another_machine_too(on_postgres, monkeypatch):
    Ledger.init(on_postgres, BUDGET)
    monkeypatch.setenv("PGHOST", "0.0.0.0")
    with pytest.raises(BudgetError, match="E313"):
        Ledger.open(_over_tcp(on_postgres, host=""))


def test_another_machine_with_tls_is_spoken_to_under_it(on_postgres, with_tls, sql, monkeypatch):
    far = _over_tcp(on_postgres, host="0.0.0.0")
    Ledger.init(far, BUDGET).pay(pure())
    with Ledger.open(far)._store.session() as session:
        asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert [row[0] for row in session._execute(asked, ())] == [True]
    monkeypatch.setenv("PGSSLMODE", "verify-full")  # more than is asked for stays, and no issuer is known
    monkeypatch.setenv("PGSSLROOTCERT", "/nowhere")
    with pytest.raises(BudgetError, match="E302"):
        Ledger.open(far)
