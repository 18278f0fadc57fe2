"""HTTP for whoever reaches an address: who never finishes a request, or never reads its answer, is
cut off.

Owns how many there may be at once, and for how long each may be at one request: from its beginning,
or the end of the one before, until its answer is written; what the system has not taken by then is
dropped a while later. Of more than there may be the one that has been at it longest gives way, so
that who asks for the health is heard.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 32
PATIENCE_S = 30.0


class Bounded(H11Protocol):
    """One connection."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            oldest = min(self.connections, key=_until)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(PATIENCE_S, self.transport.abort)

    @property
    def until_s(self) -> float:
        return 0.0 if self._patience is None else self._patience.when()


def _until(connection: Any) -> float:
    return connection.until_s if isinstance(connection, Bounded) else 0.0


def server_of(app: Any) -> uvicorn.Server:
    """Of an application, on a socket that it is given to run with."""
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, lifespan="off",
        loop="asyncio", http=Bounded, ws="none", server_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    return uvicorn.Server(config)
