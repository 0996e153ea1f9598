"""``privcov`` as a process, and ``privcov serve`` with what its page would ask."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PRIVCOV = [sys.executable, "-m", "privcov"]


def started(command: list[str], home: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A process that begins now, in a directory."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=home, **{"stdout": pipe, "stderr": pipe, **options})


class Page:
    """A workbench that serves a directory."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = started([*PRIVCOV, "serve", "--no-browser", "--json", *words], home)
        assert self.process.stdout is not None
        said = b""
        while b"}" not in said:
            piece = os.read(self.process.stdout.fileno(), 4096)
            assert piece
            said += piece
        url = json.loads(said)["url"]
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/#token=([0-9a-f]{64})", url)
        assert found is not None
        self.host, self.token = found.groups()

    @property
    def place(self) -> tuple[str, int]:
        """Where a plain socket connects to."""
        name, _, port = self.host.partition(":")
        return name, int(port)

    def reply(self, name: str, *, wait: float = 60, **question: Any) -> http.client.HTTPResponse:
        """A question as the page asks it."""
        wire = http.client.HTTPConnection(self.host, timeout=wait)
        headers = {
            "origin": f"http://{self.host}",
            "x-privcov-token": self.token,
            "content-type": "application/json",
            "connection": "close",
        }
        wire.request("POST", f"/api/{name}", body=json.dumps(question), headers=headers)
        return wire.getresponse()

    def ask(self, name: str, **question: Any) -> dict[str, Any]:
        """What it says to a question."""
        answer: dict[str, Any] = json.loads(self.reply(name, **question).read())
        return answer

    def end(self) -> tuple[bytes, bytes]:
        """Ctrl-C, and what it said since it was ready."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=120)
