"""Nobody without the token keeps the steward out: not with half a request, nor by never reading an answer."""

from __future__ import annotations

import re
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from patience import PATIENCE

from privcov.web.server import LONGEST, MOST
from privcov_lab.bench.paid import HALF, HELD, OWN, UNFINISHED, held
from privcov_lab.bench.serving import Page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    found = Page(tmp_path_factory.mktemp("served"))
    yield found
    found.end()
    assert found.process.returncode == 0


@pytest.fixture
def sockets(page):
    """Plain connections; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda content: stack.enter_context(held(page, content))


@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_hundred_unfinished_requests_keep_nobody_out(page, sockets, kind):
    waiting = [sockets(UNFINISHED[kind]) for _ in range(HELD)]
    began = time.monotonic()
    for _ in range(3):
        assert page.reply("start", wait=10).status == 200
    assert time.monotonic() - began < 10  # 0.1 s where nothing else runs
    assert len(waiting) == 100


def test_half_a_header_is_not_waited_for(page, sockets):
    one = sockets(HALF)
    one.setblocking(True)
    one.settimeout(PATIENCE)
    began = time.monotonic()
    with suppress(ConnectionResetError):
        assert one.recv(100) == b""
    assert time.monotonic() - began > LONGEST / 2


def test_a_question_with_the_token_is_not_given_up_for_others(page, sockets):
    """Its body is still on its way when many others come; it is answered all the same."""
    head = OWN + b"X-Privcov-Token: " + page.token.encode() + b"\r\nContent-Length: 2\r\n\r\n"
    asked = sockets(b"POST /api/start HTTP/1.1\r\n" + head)
    time.sleep(0.3)
    waiting = [sockets(HALF) for _ in range(3 * MOST)]
    time.sleep(0.3)
    asked.setblocking(True)
    asked.settimeout(PATIENCE)
    asked.send(b"{}")
    assert re.match(rb"HTTP/1.1 200 ", asked.recv(100))
    assert len(waiting) == 3 * MOST


def _posted(*lines: bytes, body: bytes = b"{}", path: bytes = b"/api/start") -> bytes:
    own = b"POST " + path + b" HTTP/1.1\r\n" + OWN + b"X-Privcov-Token: {token}\r\n"
    length = [] if lines else [b"Content-Length: %d" % len(body)]
    return own + b"".join(line + b"\r\n" for line in [*lines, *length]) + b"\r\n" + body


_VISIT = b" HTTP/1.1\r\nHost: {host}\r\n"
SHAPES = [
    b"\r\n\r\n\r\n\r\n",
    b"\x00" * 200 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET /nothing HTTP/9.9\r\nHost: {host}\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : {host}\r\n\r\n",
    b"GET / HTTP/1.1\r\n Host: {host}\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET //evil.example" + _VISIT + b"\r\n",
    b"GET /%00" + _VISIT + b"\r\n",
    b"GET /%ff%fe" + _VISIT + b"\r\n",
    b"GET /\xff" + _VISIT + b"\r\n",
    b"GET /assets/..%2f..%2fguard.py" + _VISIT + b"\r\n",
    b"GET /assets/%2e%2e/guard.py" + _VISIT + b"\r\n",
    b"GET /" + b"a" * 70_000 + _VISIT + b"\r\n",
    b"GET /nothing" + _VISIT + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
    b"GET /nothing" + _VISIT + b"X: y\r\n" * 5000 + b"\r\n",
    b"GET /nothing" + _VISIT + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /nothing" + _VISIT + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
    b"OPTIONS *" + _VISIT + b"\r\n",
    b"CONNECT evil.example:443" + _VISIT + b"\r\n",
    b"TRACE /" + _VISIT + b"\r\n",
    b"PUT /api/start" + _VISIT + b"Content-Length: 0\r\n\r\n",
    b"DELETE /api/release" + _VISIT + b"\r\n",
    b"G\x01T /" + _VISIT + b"\r\n",
    _posted(b"Content-Length: 2", b"Content-Length: 3"),
    _posted(b"Content-Length: -2"),
    _posted(b"Content-Length: 2e0"),
    _posted(b"Content-Length: 99999999999999999999"),
    _posted(b"Content-Length: +2"),
    _posted(b"Transfer-Encoding: gzip"),
    _posted(b"Transfer-Encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"),
    _posted(b"Transfer-Encoding: chunked", body=b"-1\r\n{}\r\n0\r\n\r\n"),
    _posted(b"Transfer-Encoding: chunked", body=b"f" * 40 + b"\r\n{}\r\n"),
    _posted(b"Content-Encoding: gzip", b"Content-Length: 4", body=b"\x1f\x8b\x08\x00"),
    _posted(body=b'{"a": 1' + b"0" * 5000 + b"}", path=b"/api/nothing"),
    _posted(body=b"[" * 50_000),
    _posted(body=b'{"data": "\\ud800"}', path=b"/api/columns"),
    _posted(path=b"/api/../api/start"),
    _posted(path=b"/api/start/"),
    _posted(path=b"/API/START"),
]


def test_requests_of_bad_shapes_are_refused_or_dropped_and_harm_nobody(page):
    """Each alone on a connection: an answer of 400 to 499, or none; never a fault of ours, never a file."""
    assert len(SHAPES) > 45
    for shape in SHAPES:
        with socket.socket() as one:
            one.settimeout(PATIENCE)
            one.connect(page.place)
            said = b""
            with suppress(ConnectionResetError, BrokenPipeError):
                one.sendall(
                    shape.replace(b"{host}", page.host.encode()).replace(b"{token}", page.token.encode())
                )
                one.shutdown(socket.SHUT_WR)
                while piece := one.recv(65536):
                    said += piece
            assert not said or re.match(rb"HTTP/1.1 4\d\d ", said), (shape[:80], said[:200])
            assert b"Traceback" not in said
    assert page.reply("start", wait=PATIENCE).status == 200
