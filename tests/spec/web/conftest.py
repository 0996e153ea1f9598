"""A workbench on a small directory, asked as a browser would ask it, header by header."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patience import until

pytest.importorskip("starlette", reason="the workbench needs the extra web")
pytest.importorskip("uvicorn", reason="the workbench needs the extra web")

import privcov as pc
from privcov.web.asking import Given
from privcov.web.places import Directory
from privcov.web.server import application
from privcov.web.workbench import Workbench

PORT = 8123
TOKEN = "0123456789abcdef" * 4
HOST = f"127.0.0.1:{PORT}"
OWN = {
    "host": HOST,
    "origin": f"http://{HOST}",
    "sec-fetch-site": "same-origin",
    "content-type": "application/json",
    "x-privcov-token": TOKEN,
}
PURE = {"kind": "pure", "epsilon": "1", "neighbours": "replace-one"}


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def errors(self) -> dict[str | None, str]:
        """The first refusal of each field."""
        return {error["field"]: error["text"] for error in reversed(self.json["errors"])}

    @property
    def codes(self) -> list[str]:
        return [error["code"] for error in self.json["errors"]]


@dataclass
class Served:
    """The application with its directory; requests go through the guard."""

    folder: Path
    workbench: Workbench
    app: Any = field(init=False)

    def __post_init__(self) -> None:
        self.app = application(self.workbench, port=PORT, token=TOKEN)

    def send(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | list[tuple[str, str]],
        chunks: tuple[bytes, ...] = (b"",),
        pause: float = 0.0,
    ) -> Reply:
        """One request with exactly these headers; a body in pieces, as slowly as wanted."""
        pairs = list(headers.items()) if isinstance(headers, dict) else headers
        scope = {
            "type": "http",
            "method": method,
            "path": path.partition("?")[0],
            "raw_path": path.encode(),
            "query_string": path.partition("?")[2].encode(),
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 40_000),
            "headers": [(name.encode(), value.encode()) for name, value in pairs],
        }
        waiting, sent = list(chunks), []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(pause)
            if not waiting:
                await asyncio.sleep(60)
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = sent[0]
        return Reply(
            status=start["status"],
            headers={name.decode(): value.decode() for name, value in start["headers"]},
            body=b"".join(message.get("body", b"") for message in sent[1:]),
        )

    def ask(self, name: str, /, **question: Any) -> Reply:
        """A question as the page asks it."""
        body = json.dumps(question).encode()
        return self.send("POST", f"/api/{name}", {**OWN, "content-length": str(len(body))}, (body,))

    def finished(self, request: str) -> dict[str, Any]:
        """A job once it has come to its end."""
        until(lambda: self.ask("job", request=request).json["state"] in ("done", "refused", "failed"))
        job: dict[str, Any] = self.ask("job", request=request).json
        return job

    @property
    def spent(self) -> str:
        """What the ledger says is spent."""
        return str(pc.Ledger.open(self.folder / "people.ledger").spent["epsilon"])


@pytest.fixture
def served(people: Path, schema: pc.Schema) -> Iterator[Served]:
    """The table of 300 people, its schema, and a ledger of epsilon 2."""
    folder = people.parent
    (folder / "people.toml").write_text(schema.to_toml())
    pc.Ledger.init(folder / "people.ledger", pc.PureDP(epsilon=2, neighbours="replace-one"))
    found = Served(folder=folder, workbench=Workbench(directory=Directory.of(folder), given=Given()))
    yield found
    found.workbench.close()


@pytest.fixture
def draft(served: Served) -> dict[str, Any]:
    """The schema as the page's fields."""
    return served.ask("schema/open", schema="people.toml").json["draft"]


@pytest.fixture
def order(draft: dict[str, Any]) -> dict[str, Any]:
    """A release, all but the name of its request."""
    return {
        "draft": draft,
        "loss": PURE,
        "ledger": "people.ledger",
        "data": "people.csv",
        "output": "people.release.json",
    }
