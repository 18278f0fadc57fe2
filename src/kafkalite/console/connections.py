"""Connections of browsers that do not get on, ended.

Owns how long one is waited for that sends no request, sends it drop by drop, or reads no answer:
there are only so many places, and whoever holds one with nothing keeps others out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LOOK_SECONDS = 10.0


class Prompt(H11Protocol):
    """Looks from time to time; what has not gone on between two looks is given up."""

    _watch: asyncio.TimerHandle
    _seen: tuple[RequestResponseCycle | None, int] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch = self.loop.call_later(LOOK_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        is_ours = cycle is not None and not cycle.more_body and not cycle.response_complete
        is_our_turn = is_ours and not self.flow.write_paused  # else an answer before it waits
        seen = cycle, self.transport.get_write_buffer_size()
        if seen == self._seen and not is_our_turn:
            self.transport.abort()
            return
        self._seen = seen
        self._watch = self.loop.call_later(LOOK_SECONDS, self._look)
