"""Who may ask: a program that knows the token, from our own page, by our own name, in small pieces.

The loopback address is no boundary: any page in the steward's browser can send requests there, and a name that
was rebound to 127.0.0.1 can read the answers. So every request must name this server exactly (Host), come from
its own page (Origin, Sec-Fetch-Site), and questions must carry a secret that only the address printed in the
terminal holds. The token is sent as a header and never as a cookie: browsers send cookies to every port of a host, and
with requests the page did not make. Attacks and defences: docs/do/workbench.md.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = "x-privcov-token"
LARGEST_BODY = 2**20
SLOWEST_BODY = 10.0
"""Seconds within which a body must have arrived."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Refusal(Exception):
    """A request that is not answered: the status, and a fixed sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Guard:
    """An ASGI application in front of another: it refuses, or passes on a whole small request."""

    def __init__(self, app: App, *, port: int, token: str) -> None:
        self._app = app
        self._token = token.encode("ascii")
        self._hosts = {f"{name}:{port}".encode("ascii") for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets: the connection closes without an answer
        try:
            self._check(scope)
            body = await _whole_body(receive)
        except Refusal as refusal:
            await _refuse(send, refusal)
            return
        await self._app(scope, _again(body, receive), _with_headers(send))

    def _check(self, scope: Scope) -> None:
        host = _only(scope, b"host")
        if host not in self._hosts:
            raise Refusal(403, "This server answers only at the address it printed.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refusal(405, "Only GET and POST are answered.")
        if _only(scope, b"sec-fetch-site") not in (None, b"none", b"same-origin") and not _is_visit(scope):
            raise Refusal(403, "Open the address that privcov serve printed; other pages may not ask.")
        origin = _only(scope, b"origin")
        if origin is not None and origin != b"http://" + host:
            raise Refusal(403, "The request came from another page. Only the workbench's own page may ask.")
        if scope["method"] == "POST" and origin is None:
            raise Refusal(403, "A request must say which page it comes from (Origin).")
        if scope["path"].startswith("/api/"):
            given = _only(scope, TOKEN_HEADER.encode("ascii")) or b""
            if not hmac.compare_digest(given, self._token):
                raise Refusal(
                    401, "The token is missing or wrong. Open the whole address that privcov serve printed."
                )
            scope.setdefault("state", {})["known"] = True  # server.py lets it stay
        if scope["method"] == "POST":
            kind = (_only(scope, b"content-type") or b"").partition(b";")[0].strip()
            if kind != b"application/json":
                raise Refusal(415, "A request must be JSON.")
            length = _only(scope, b"content-length") or b"0"
            if not length.isdigit() or int(length) > LARGEST_BODY:
                raise Refusal(413, f"A request has at most {LARGEST_BODY} bytes.")


def _is_visit(scope: Scope) -> bool:
    """Whether the browser goes to the page itself, as a whole: a link may lead to it, as it says nothing to anyone."""
    seen = (_only(scope, b"sec-fetch-mode"), _only(scope, b"sec-fetch-dest"))
    return scope["method"] == "GET" and scope["path"] == "/" and seen == (b"navigate", b"document")


def _only(scope: Scope, name: bytes) -> bytes | None:
    """The one header of this name; a second one is refused, because two readers could each believe another."""
    found = [value for header, value in scope["headers"] if header == name]
    if len(found) > 1:
        raise Refusal(400, f"There are two {name.decode('ascii')} headers.")
    return bytes(found[0]) if found else None


async def _whole_body(receive: Receive) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refusal(400, "The request ended too early.")
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY:  # also where no length was announced
                    raise Refusal(413, f"A request has at most {LARGEST_BODY} bytes.")
                if not message.get("more_body", False):
                    return body
    except TimeoutError:
        raise Refusal(408, "The request took too long to arrive.") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, then whatever the connection says."""
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


def _with_headers(send: Send) -> Send:
    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = [(name.encode("ascii"), value.encode("ascii")) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *ours]}
        await send(message)

    return sealed


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"errors": [{"field": None, "code": None, "text": refusal.sentence}]}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]
    sealed = _with_headers(send)
    await sealed({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await sealed({"type": "http.response.body", "body": body})
