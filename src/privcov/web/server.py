"""The server itself: a socket on the loopback address, a fresh token, and an address to open.

Opening the page without saying its address aloud: what a browser is started with, other accounts can list.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from privcov.errors import OutputError, ParameterError
from privcov.noise.randomness import kernel
from privcov.publish.ending import orderly, say
from privcov.report.drawing import Markup, join, tag
from privcov.web.app import application
from privcov.web.workbench import Workbench

LOOPBACK = "127.0.0.1"


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
    try:
        import uvicorn

        from privcov.web.connections import MOST, Connection
    except ImportError:
        raise ParameterError(
            "E291", "the workbench needs starlette and uvicorn.", "Install them: pip install 'privcov[web]'"
        ) from None

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
