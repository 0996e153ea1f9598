"""The server: the routes of the page, a socket on the loopback address, a fresh token, and who may keep a connection.

The page, its few files, and one address for every question. Opening the page without saying its address aloud: what a
browser is started with, other accounts can list. Starlette and uvicorn come with the extra ``web``; ``privcov serve``
says so where they are missing.

How long a connection may be held, and by how many: nobody without the token keeps the steward out. uvicorn waits for
ever for the rest of a header, and refuses everybody (503) once many connections are open. Here a connection on which no
question with the token is being answered is worth nothing: it ends after ``LONGEST`` seconds, and the oldest of them
makes room for a new one when there are ``MOST``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from privcov.errors import OutputError, ParameterError, PrivcovError
from privcov.noise.randomness import kernel
from privcov.publish.ending import orderly, say
from privcov.report.drawing import THEME, Markup, join, tag
from privcov.web.asking import Answer, Download, Question, Refused
from privcov.web.guard import App, Guard
from privcov.web.workbench import Workbench

LOOPBACK = "127.0.0.1"
MOST = 64
LONGEST = 5.0
"""Seconds for a request and the reading of its answer, unless it carries the token."""
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the page is. The token stands after the #, which browsers keep to themselves."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"


def serve(workbench: Workbench, *, port: int, ready: Callable[[Address], object]) -> None:
    """Serve the page until a signal asks it to end; ``ready`` is told the address once it can be opened."""
    with _listening(port) as door:
        address = Address(port=door.getsockname()[1], token=_token())
        app = application(workbench, port=address.port, token=address.token)
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="critical",
            lifespan="off",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            http=Connection,
            backlog=MOST,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        # Its own way with signals is to die of them once it has closed its connections, releases or none.
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]

        def end() -> None:
            if not server.should_exit and workbench.jobs.running:
                say(
                    "A paid release will be finished first. (kill -9 would stop it now, and the payment would be lost.)"
                )
            server.should_exit = True

        with contextlib.suppress(KeyboardInterrupt), orderly(end) as wait:
            ready(address)
            wait()
            try:
                server.run(sockets=[door])
            finally:
                workbench.close()


def _listening(port: int) -> socket.socket:
    """A socket that only this machine can reach."""
    if isinstance(port, bool) or not 0 <= port <= 65535:
        raise OutputError("E407", f"a port is a number from 0 to 65535, got {port}.")
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((LOOPBACK, port))
        door.listen(64)
    except OSError as reason:
        door.close()
        raise OutputError(
            "E407", f"cannot listen on port {port}: {reason.strerror}.", "Leave --port out."
        ) from None
    return door


def _token() -> str:
    """256 bits that nobody can guess."""
    return kernel().words(4).tobytes().hex()


@contextmanager
def doorway(url: str) -> Iterator[Path]:
    """A file that leads to the address, readable for its owner alone, for as long as it is needed."""
    handle, name = tempfile.mkstemp(prefix="privcov-", suffix=".html")  # made with mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_page(url))
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def open_browser(door: Path) -> bool:
    """Ask the system to show the file; whether it knew how."""
    return webbrowser.open(door.as_uri())


def _page(url: str) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="refresh", content=f"0;url={url}"),
        tag("title", "privcov workbench"),
    )
    body = tag("body", tag("p", tag("a", "Open the workbench", href=url)))
    return join([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n")])


def application(workbench: Workbench, *, port: int, token: str) -> App:
    """The whole application behind its guard."""
    asset = _assets()

    async def page(request: Request) -> Response:
        kind, content = asset[request.url.path]
        return Response(content, media_type=kind)

    async def ask(request: Request) -> Response:
        answer = workbench.questions.get(request.path_params["name"])
        if answer is None:
            return _errors(404, "There is no such question.")
        try:
            question = json.loads(await request.body())
        except (ValueError, RecursionError):
            question = None
        if not isinstance(question, dict):
            return _errors(400, "A question must be a JSON object.")
        try:
            return await run_in_threadpool(_answered, answer, question)
        except Exception:  # a fault of ours: its text could carry a value, so it is not shown
            return _errors(500, "Internal error; nothing was released.", code="E900")

    def _answered(answer: Callable[[Question], Answer], question: Question) -> Response:
        try:
            return _reply(answer(question))
        except Refused as refused:
            return JSONResponse(refused.to_dict(), status_code=refused.status)
        except PrivcovError as reason:
            whole = Refused([(None, reason)])
        except ArithmeticError:  # of typed numbers alone: no answer computes with a table
            beyond = ParameterError(
                "E291", "a number is too large or too small to compute with.", "Type one nearer to 1."
            )
            whole = Refused([(None, beyond)])
        return JSONResponse(whole.to_dict(), status_code=whole.status)

    def _reply(answer: Answer) -> Response:
        if isinstance(answer, Download):
            headers = {"content-disposition": f'attachment; filename="{_plain(answer.name)}"'}
            return Response(answer.content, media_type=answer.kind, headers=headers)
        return JSONResponse(answer)

    def _errors(status: int, sentence: str, *, code: str | None = None) -> Response:
        return JSONResponse({"errors": [{"field": None, "code": code, "text": sentence}]}, status_code=status)

    routes: list[Any] = [Route(path, page, methods=["GET"]) for path in asset]
    routes.append(Route("/api/{name:path}", ask, methods=["POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # an address is one of ours, or it is none
    return Guard(app, port=port, token=token)


def _assets() -> dict[str, tuple[str, bytes]]:
    """The page's own files by address, read once: an address is looked up, never opened as a path."""
    found = {"/assets/theme.css": ("text/css", str(THEME).encode("utf-8"))}
    for entry in (files("privcov.web") / "assets").iterdir():
        ending = "." + entry.name.rpartition(".")[2]
        if ending in _KINDS:
            address = "/" if entry.name == "index.html" else f"/assets/{entry.name}"
            found[address] = (_KINDS[ending], entry.read_bytes())
    return found


def _plain(name: str) -> str:
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name
    )


class Connection(H11Protocol):
    """One connection, which makes room for others unless it is asking with the token."""

    _since = 0.0
    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        there = [one for one in self.connections if isinstance(one, Connection) and not one.is_closing]
        if len(there) > MOST:
            min((one for one in there if not one.is_known), key=lambda one: one._since).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._begin()
        super().on_response_complete()

    @property
    def is_closing(self) -> bool:
        """Whether nothing more is said on it."""
        return self.transport.is_closing()

    @property
    def is_known(self) -> bool:
        """Whether a question is being answered that the guard let pass for its token."""
        asking = self.cycle is not None and not self.cycle.response_complete
        return asking and bool(self.scope["state"].get("known"))

    def drop(self) -> None:
        """End it without a word; what was not sent yet is thrown away."""
        if not self.is_known:
            self.transport.abort()

    def _begin(self) -> None:
        """Its time begins anew: it was opened, or its last answer is complete."""
        if self._end is not None:
            self._end.cancel()
        self._since = self.loop.time()
        self._end = self.loop.call_later(LONGEST, self.drop)
