"""How long a connection may be held, and by how many: nobody without the token keeps the steward out.

uvicorn waits for ever for the rest of a header, and refuses everybody (503) once many connections are open. Here a
connection on which no question with the token is being answered is worth nothing: it ends after ``LONGEST`` seconds,
and the oldest of them makes room for a new one when there are ``MOST``.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 64
LONGEST = 5.0
"""Seconds for a request and the reading of its answer, unless it carries the token."""


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
