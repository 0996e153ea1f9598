"""Releases that are told to end once they are paid for, or that want one name; at a terminal and at the workbench.

Real processes, real signals. A release of many columns takes a second or two to draw its noise. A signal is sent when
the ledger shows the payment and no release yet: what is paid for must come to its end, whatever is sent.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from privcov.ledger import Ledger
from privcov.privacy import PureDP
from privcov.releases.loading import load
from privcov.schema import Schema
from privcov_lab.bench.serving import PRIVCOV, Page, started

COLUMNS = [f"x{number}" for number in range(160)]
"""So many that Laplace noise for every pair takes a second or two to draw."""
RELEASE = [
    *PRIVCOV,
    *["release", "wide.csv", "--schema", "wide.toml", "--mechanism", "laplace", "--epsilon", "1"],
    *["--neighbours", "replace-one", "--ledger", "wide.ledger", "-o", "wide.release.json"],
]
SIGNALS = {
    "SIGTERM": (signal.SIGTERM,),
    "SIGHUP": (signal.SIGHUP,),
    "SIGTERM, SIGHUP": (signal.SIGTERM, signal.SIGHUP),
    "Ctrl-C three times": (signal.SIGINT,) * 3,
}
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
"""What holds a connection to the workbench open, for whoever has no token; {host} is its own."""
HELD = 100


def prepare(home: Path) -> None:
    """A wide table, its schema, and a ledger."""
    rows = (",".join(f"{(7 * i + 3 * j) % 100 / 100}" for j in range(len(COLUMNS))) for i in range(30))
    (home / "wide.csv").write_text("\n".join([",".join(COLUMNS), *rows, ""]))
    schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in COLUMNS}})
    (home / "wide.toml").write_text(schema.to_toml())
    Ledger.init(home / "wide.ledger", PureDP(epsilon=8, neighbours="replace-one"))


def order(page: Page) -> dict[str, Any]:
    """The release that ``RELEASE`` makes, as the page asks for it."""
    return {
        "draft": page.ask("schema/open", schema="wide.toml")["draft"],
        "loss": {"kind": "pure", "epsilon": "1", "neighbours": "replace-one"},
        "mechanism": "laplace",
        "ledger": "wide.ledger",
        "data": "wide.csv",
        "output": "wide.release.json",
    }


def wait_until_paid(ledger: Path) -> None:
    """Return when there is a payment whose release is not recorded yet."""
    book = Ledger.open(ledger)
    for _ in range(3000):
        if book.balance().burned:
            return
        time.sleep(0.01)
    raise RuntimeError("nothing was paid")


def tell(process: subprocess.Popen[bytes], asked: tuple[signal.Signals, ...]) -> None:
    """Send signals, one after the other."""
    for one in asked:
        process.send_signal(one)
        time.sleep(0.15)


def incomplete(ledger: Path, output: Path, *, read: Callable[[Path], object] = load) -> list[str]:
    """What is wrong where one release was paid for, made and recorded, and nothing else happened.

    ``read`` is how the output is read: an estimate is another kind of file.
    """
    book, found = Ledger.open(ledger), list[str]()
    kinds = [entry.kind for entry in book.log()]
    if kinds != ["opened", "paid", "done"]:
        found.append(f"the ledger has the entries {', '.join(kinds)}")
    found += book.verify()
    try:
        read(output)
    except Exception:
        found.append(f"{output.name} is not there, or torn")
    return found + [f"{name} lies about" for name in os.listdir(output.parent) if name.startswith(".")]


def signalled(asked: tuple[signal.Signals, ...], *, serving: bool) -> Iterator[str]:
    """Faults of a release that is told to end in the middle, in the working directory."""
    prepare(Path())
    if serving:
        page = Page(Path())
        page.ask("release", request="1" * 32, **order(page))
        process = page.process
    else:
        process = started(RELEASE, Path())
    wait_until_paid(Path("wide.ledger"))
    tell(process, asked)
    _, told = process.communicate(timeout=120)
    if process.returncode != 0 or b"Traceback" in told:
        yield f"exit code {process.returncode}"
    yield from incomplete(Path("wide.ledger"), Path("wide.release.json"))


def one_name(*words: str, times: int = 4) -> Iterator[str]:
    """Faults of several releases to one name that are started together: one pays."""
    prepare(Path())
    processes = [started([*RELEASE, *words], Path()) for _ in range(times)]
    for process in processes:
        process.communicate(timeout=240)
    codes = sorted(process.returncode for process in processes)
    if codes != [0] + [2] * (times - 1):
        yield f"exit codes {codes}"
    yield from incomplete(Path("wide.ledger"), Path("wide.release.json"))


def one_name_served(times: int = 8) -> Iterator[str]:
    """The same at the workbench, where each is a click of its own."""
    prepare(Path())
    page = Page(Path())
    try:
        asked, names = order(page), [str(number) * 32 for number in range(times)]
        for name in names:
            page.ask("release", request=name, **asked)
        ends = [_ended(page, name) for name in names]
    finally:
        page.end()
    states = sorted(end["state"] for end in ends)
    if states != ["done"] + ["failed"] * (times - 1):
        yield f"requests ended as {', '.join(states)}"
    if not {end["error"]["code"] for end in ends if end["error"]} <= {"E401", "E430"}:
        yield "a request was refused for another reason than its name"
    yield from incomplete(Path("wide.ledger"), Path("wide.release.json"))


def unfinished(content: bytes) -> Iterator[str]:
    """Faults of a workbench to which a hundred connections are open that never come to an end."""
    page = Page(Path())
    try:
        with ExitStack() as stack:
            for _ in range(HELD):
                stack.enter_context(held(page, content))
            began = time.monotonic()
            status = page.reply("start", wait=30).status
            if status != 200:
                yield f"a proper request was answered with {status}"
            if time.monotonic() - began > 10:
                yield "a proper request waited for more than 10 seconds"
    except OSError:
        yield "a proper request was not answered"
    finally:
        page.end()


def held(page: Page, content: bytes) -> socket.socket:
    """A plain connection on which this was sent, and from which nothing is read."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(20)
    one.connect(page.place)
    one.setblocking(False)
    with suppress(BlockingIOError, ConnectionResetError, BrokenPipeError):
        one.send(content.replace(b"{host}", page.host.encode()))
    time.sleep(0.003)  # so that the server meets them one by one
    return one


def _ended(page: Page, request: str) -> dict[str, Any]:
    while (end := page.ask("job", request=request))["state"] in ("waiting", "paying", "reading"):
        time.sleep(0.05)
    return end
