"""The routes: the page, its few files, and one address for every question. Starlette is imported on first use."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from privcov.errors import ParameterError, PrivcovError
from privcov.report.drawing import THEME
from privcov.web.asking import Answer, Download, Question, Refused
from privcov.web.guard import App, Guard
from privcov.web.workbench import Workbench

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def application(workbench: Workbench, *, port: int, token: str) -> App:
    """The whole application behind its guard; needs the extra ``web``."""
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise ParameterError(
            "E291", "the workbench needs starlette and uvicorn.", "Install them: pip install 'privcov[web]'"
        ) from None

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
