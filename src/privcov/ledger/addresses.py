"""Where a ledger is: a file, or a PostgreSQL server. Every place that takes a ledger asks here, and only here.

What is not understood is refused and never repeated: a misspelt address may hold a password. The words that are
found here are the words that are connected with, so that no second parser reads an address in another way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import unquote

from privcov.errors import BudgetError

_TEXT = r"(?:[^\s%:/?#\[\]@&]|%[0-9A-Fa-f]{2})*"
"""A name or a password: what would end it earlier than meant is written as %XX."""
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_TEXT})(?::(?P<password>{_TEXT}))?@)?(?P<places>[^/?#@\s]*)"
    rf"(?:/(?P<dbname>{_TEXT}))?(?:\?(?P<query>\S*))?"
)
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::([0-9]*))?")
_PAIR = re.compile(r"([a-z_]+)=((?:[^\s%&=@]|%[0-9A-Fa-f]{2})*)")


def server_words(where: str) -> dict[str, str] | None:
    """The words of a ``postgresql://`` address (host, port, user, …); None for a file. Refuses the rest (E312).

    >>> server_words("postgresql://ann@db.example.org/census?sslmode=verify-full")
    {'host': 'db.example.org', 'user': 'ann', 'dbname': 'census', 'sslmode': 'verify-full'}
    >>> server_words("people.ledger") is None
    True
    """
    if re.match("postgres(?:ql)?://", where):
        return _parsed(where)
    if not where or "\0" in where or _looks_like_a_server(where):
        raise not_understood()
    return None


def shown(words: Mapping[str, str]) -> str:
    """What messages call a server: its host, and neither user, password, database nor options.

    >>> shown({"host": "db.example.org", "user": "ann", "password": "secret", "dbname": "census"})
    'postgresql://db.example.org'
    """
    hosts = (words.get("host") or words.get("hostaddr", "")).split(",")
    return "postgresql://" + ",".join("[local]" if _is_socket(host) else host for host in hosts)


def is_elsewhere(words: Mapping[str, str]) -> bool:
    """Whether a connection would leave this machine: not for a socket, and not for a loopback address.

    >>> [is_elsewhere({"host": host}) for host in ("db.example.org", "localhost,127.0.0.2", "/run/postgresql", "")]
    [True, False, False, False]
    """
    if "hostaddr" in words:
        return not all(map(_is_loopback, words["hostaddr"].split(",")))
    hosts = words.get("host", "").split(",")
    return not all(_is_socket(host) or host == "localhost" or _is_loopback(host) for host in hosts)


def not_understood() -> BudgetError:
    """The refusal of whatever may be a misspelt address."""
    return BudgetError(
        "E312",
        "this is not the address of a ledger. It may hold a password, so it is not repeated here.",
        "Give a file name, or postgresql://HOST/DATABASE with special characters written as %XX. "
        "Write a file name that has = or @ in it as ./NAME.",
    )


def _parsed(address: str) -> dict[str, str]:
    found = _ADDRESS.fullmatch(address)
    places = [_PLACE.fullmatch(place) for place in found["places"].split(",")] if found else []
    pairs = [_PAIR.fullmatch(pair) for pair in found["query"].split("&")] if found and found["query"] else []
    if found is None or None in places or None in pairs:
        raise not_understood()
    words = {
        "host": ",".join(unquote(place[1]).strip("[]") for place in places if place),
        "port": ",".join(place[2] or "" for place in places if place),
        **{word: unquote(found[word] or "") for word in ("user", "password", "dbname")},
        **{pair[1]: unquote(pair[2]) for pair in pairs if pair},
    }
    words = {word: text for word, text in words.items() if text.strip("," if word == "port" else "")}
    if (
        not all(map(_is_host, words.get("host", "").split(",")))
        or ("hostaddr" in words and not all(map(_is_address, words["hostaddr"].split(","))))
        or not re.fullmatch("[0-9,]*", words.get("port", ""))
        or "service" in words  # a file of services would say another host
        or "\0" in "".join(words.values())
    ):
        raise not_understood()
    return words


def _is_host(text: str) -> bool:
    """A name, an address or a socket, and nothing that part of a password could be taken for."""
    return _is_socket(text) or _is_address(text) or bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text))


def _is_socket(text: str) -> bool:
    return text[:1] in ("", "/")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback(text: str) -> bool:
    return _is_address(text) and ip_address(text).is_loopback


def _looks_like_a_server(where: str) -> bool:
    """Whether a text that is no address may have been meant as one; a path that begins as a path is none."""
    if "://" in where or re.match(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/|\s*(jdbc:)?postgres(ql)?\s*:", where, re.I):
        return True
    if re.match(r"\.{0,2}/(?!/)|[A-Za-z]:[\\/]", where):
        return False
    return "=" in where or re.search(":.*@", where, re.S) is not None
