"""Nobody but the steward's own page can ask: every way in that a browser or a neighbour has is tried and refused."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

import privcov.web.guard as guard_module
from privcov.web.guard import HEADERS, LARGEST_BODY

PORT = 8123  # as in conftest.py
TOKEN = "0123456789abcdef" * 4
HOST = f"127.0.0.1:{PORT}"
OWN = {
    "host": HOST,
    "origin": f"http://{HOST}",
    "sec-fetch-site": "same-origin",
    "content-type": "application/json",
    "x-privcov-token": TOKEN,
}


def without(*names, **changed):
    kept = {name: value for name, value in OWN.items() if name not in names}
    return {**kept, **{name.replace("_", "-"): value for name, value in changed.items()}}


def test_the_page_s_own_request_is_answered(served):
    assert served.ask("start").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"localhost.:{PORT}",
        f"[::1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.1:{PORT}",
        f"user@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}, evil.example",
        "",
    ],
)
def test_a_forged_host_is_refused_for_every_address(served, host):
    """DNS rebinding: the attacker's page has the attacker's name in Host, and the same in Origin."""
    headers = without(host=host, origin=f"http://{host}")
    assert served.send("POST", "/api/start", headers, (b"{}",)).status == 403
    assert served.send("GET", "/", {"host": host}).status == 403


def test_a_request_without_a_host_or_with_two_is_refused(served):
    assert served.send("GET", "/", {}).status == 403
    assert served.send("GET", "/", [("host", HOST), ("host", "evil.example")]).status == 400
    assert served.send("GET", "/", [("host", HOST), ("host", HOST)]).status == 400


def test_localhost_is_a_name_of_this_server_too(served):
    name = f"localhost:{PORT}"
    headers = without(host=name, origin=f"http://{name}")
    assert served.send("POST", "/api/start", headers, (b"{}",)).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1",
        f"https://127.0.0.1:{PORT}",
        f"http://localhost:{PORT}",
        "http://127.0.0.1:9999",
    ],
)
def test_another_page_is_refused_even_with_the_token(served, origin):
    assert served.send("POST", "/api/start", without(origin=origin), (b"{}",)).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_request_that_another_site_led_to_is_refused(served, site):
    assert served.send("POST", "/api/start", without(sec_fetch_site=site), (b"{}",)).status == 403
    assert served.send("GET", "/", {"host": HOST, "sec-fetch-site": site}).status == 403


def test_a_link_may_lead_to_the_page_itself_and_to_nothing_else(served):
    """The page says nothing to anyone: it is the same for all, and cannot be framed."""
    visit = {
        "host": HOST,
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    assert served.send("GET", "/", visit).status == 200
    assert served.send("GET", "/", {**visit, "sec-fetch-dest": "iframe"}).status == 403
    assert served.send("GET", "/", {**visit, "sec-fetch-mode": "no-cors"}).status == 403
    assert served.send("GET", "/assets/main.js", visit).status == 403
    assert served.send("POST", "/", {**OWN, **visit}, (b"{}",)).status == 403
    assert served.send("POST", "/api/start", {**OWN, **visit}, (b"{}",)).status == 403


def test_a_post_that_does_not_say_where_it_comes_from_is_refused(served):
    assert served.send("POST", "/api/start", without("origin"), (b"{}",)).status == 403


@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], TOKEN[:-1] + "0", TOKEN.upper(), TOKEN + "0", "é"])
def test_without_the_token_nothing_is_answered(served, token):
    headers = without("x-privcov-token") if token is None else without(x_privcov_token=token)
    assert served.send("POST", "/api/start", headers, (b"{}",)).status == 401


def test_the_token_counts_nowhere_but_in_its_header(served):
    """Not in the address, which is logged, and not in a cookie, which the browser sends for other pages."""
    bare = without("x-privcov-token", cookie=f"token={TOKEN}; x-privcov-token={TOKEN}")
    assert served.send("POST", f"/api/start?token={TOKEN}", bare, (b"{}",)).status == 401


def test_a_form_of_another_page_cannot_be_a_question(served):
    """What a page can send without asking first: three content types, none of them ours."""
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""):
        assert served.send("POST", "/api/start", without(content_type=kind), (b"{}",)).status == 415


def test_nothing_but_get_and_post_is_answered_and_no_other_origin_is_invited(served):
    for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"):
        reply = served.send(method, "/api/release", OWN)
        assert reply.status == 405
        assert not any(name.startswith("access-control") for name in reply.headers)


def test_a_question_is_a_post(served):
    assert served.send("GET", "/api/start", OWN).status == 405


def test_a_large_body_is_refused_whether_it_is_announced_or_not(served):
    announced = without(content_length=str(LARGEST_BODY + 1))
    assert served.send("POST", "/api/start", announced, (b"{}",)).status == 413
    pieces = tuple(b" " * 2**16 for _ in range(LARGEST_BODY // 2**16 + 1))
    assert served.send("POST", "/api/start", OWN, pieces).status == 413
    assert served.send("POST", "/api/start", without(content_length="-1"), (b"{}",)).status == 413


def test_a_body_that_never_arrives_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr(guard_module, "SLOWEST_BODY", 0.05)
    assert served.send("POST", "/api/start", OWN, (b"{", b"}"), pause=0.2).status == 408


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000, b'"text"'])
def test_what_is_no_json_object_is_refused_in_words(served, body):
    reply = served.send("POST", "/api/start", OWN, (body,))
    assert reply.status == 400
    assert "JSON" in reply.json["errors"][0]["text"]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {"host": HOST}),
        ("GET", "/assets/main.js", {"host": HOST}),
        ("GET", "/nothing", {"host": HOST}),
        ("POST", "/api/start", OWN),
        ("POST", "/api/nothing", OWN),
        ("POST", "/api/start", {"host": HOST}),
        ("GET", "/", {"host": "evil.example"}),
    ],
)
def test_every_answer_carries_the_strict_headers(served, method, path, headers):
    reply = served.send(method, path, headers, (b"{}",))
    for name, value in HEADERS.items():
        assert reply.headers[name] == value
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["cache-control"] == "no-store"
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../guard.py",
        "/assets/%2e%2e/guard.py",
        "/assets/",
        "/assets//etc/passwd",
        "/../people.csv",
        "/people.csv",
        "/people.ledger",
        "/assets/main.js/",
        "/docs",
        "/openapi.json",
    ],
)
def test_only_the_page_s_own_files_have_addresses(served, path):
    assert served.send("GET", path, {"host": HOST}).status == 404


def test_web_sockets_get_no_answer(served):
    import asyncio

    sent = []

    async def nothing():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    asyncio.run(served.app({"type": "websocket", "path": "/", "headers": []}, nothing, send))
    assert sent == []


def test_the_page_brings_nothing_from_elsewhere_and_runs_nothing_inline():
    home = files("privcov.web") / "assets"
    for entry in home.iterdir():
        text = entry.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'\s<)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, entry.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        )
        if entry.name.endswith(".html"):
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
            assert re.findall(r"<script[^>]*>", text) == ['<script type="module" src="/assets/main.js">']


def test_refused_requests_leave_the_ledger_as_it_was(served, order):
    body = json.dumps({**order, "request": "a" * 32}).encode()
    for headers in (
        without(host="evil.example"),
        without(origin="https://evil.example"),
        without("origin"),
        without(sec_fetch_site="cross-site"),
        without("x-privcov-token"),
        without(content_type="text/plain"),
    ):
        assert served.send("POST", "/api/release", headers, (body,)).status in (401, 403, 415)
    assert served.send("GET", "/api/release", OWN, (body,)).status == 405
    assert served.spent == "0"
    assert not list(served.folder.glob("*.release.json"))


def test_an_internal_error_says_nothing_of_its_reason(served, monkeypatch):
    def broken(question):
        raise ValueError("a person's value")

    monkeypatch.setattr(type(served.workbench), "start", lambda self, question: broken(question))
    reply = served.ask("start")
    assert reply.status == 500
    assert b"person" not in reply.body
    assert reply.codes == ["E900"]
