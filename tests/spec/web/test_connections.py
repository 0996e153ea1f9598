"""Nobody without the token keeps the steward out: not with half a request, nor by never reading an answer."""

from __future__ import annotations

import re
import socket
import time
from contextlib import ExitStack

import pytest
from serving import Page

from privcov.web.connections import LONGEST, MOST

HALF = b"GET / HTTP/1.1\r\nHost: 127.0."
OWN = b"Host: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n"
UNFINISHED = {
    "half a header": HALF,
    "not a byte": b"",
    "a body that is announced and does not come": b"POST / HTTP/1.1\r\n"
    + OWN
    + b"Content-Length: 9\r\n\r\n{",
    "a body in chunks without an end": b"POST / HTTP/1.1\r\n"
    + OWN
    + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{",
    "a visit with a body": b"GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n",
    "half of the next request": b"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n" + HALF,
    "answers that nobody reads": b"GET /assets/theme.css HTTP/1.1\r\nHost: {host}\r\n\r\n" * 400,
}


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

        def opened(content: bytes) -> socket.socket:
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(20)
            one.connect(page.place)
            one.setblocking(False)
            try:
                one.send(content.replace(b"{host}", page.host.encode()))
            except (BlockingIOError, ConnectionResetError, BrokenPipeError):
                pass
            time.sleep(0.003)  # so that the server meets them one by one
            return one

        yield opened


@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_hundred_unfinished_requests_keep_nobody_out(page, sockets, kind):
    held = [sockets(UNFINISHED[kind]) for _ in range(100)]
    began = time.monotonic()
    for _ in range(3):
        assert page.reply("start", wait=5).status == 200
    assert time.monotonic() - began < 5
    assert len(held) == 100


def test_half_a_header_is_not_waited_for(page, sockets, monkeypatch):
    one = sockets(HALF)
    one.setblocking(True)
    one.settimeout(LONGEST + 5)
    began = time.monotonic()
    try:
        assert one.recv(100) == b""
    except ConnectionResetError:
        pass
    assert time.monotonic() - began > LONGEST / 2


def test_a_question_with_the_token_is_not_given_up_for_others(page, sockets):
    """Its body is still on its way when many others come; it is answered all the same."""
    head = OWN + b"X-Privcov-Token: " + page.token.encode() + b"\r\nContent-Length: 2\r\n\r\n"
    asked = sockets(b"POST /api/start HTTP/1.1\r\n" + head)
    time.sleep(0.3)
    held = [sockets(HALF) for _ in range(3 * MOST)]
    time.sleep(0.3)
    asked.setblocking(True)
    asked.settimeout(5)
    asked.send(b"{}")
    assert re.match(rb"HTTP/1.1 200 ", asked.recv(100))
    assert len(held) == 3 * MOST
