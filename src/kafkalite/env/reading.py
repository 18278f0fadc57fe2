"""Whose bytes are read in this turn of the loop, when very many sockets have some at once.

Owns how many were read, and who is put off until the next turns. Invariant: no turn reads more than
`READ_PER_TURN` sockets of a loop, and who is put off is read before who comes later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

READ_PER_TURN = 256  # each with a request that costs some tens of microseconds


class Readable(Protocol):
    """A socket with something to read."""

    def put_off(self) -> None:
        """Takes it out of what the loop looks at."""

    def go_on(self) -> None:
        """The opposite, and reads; the socket may have been closed meanwhile."""


class Reading:
    """The sockets of one loop."""

    __slots__ = ("_count", "_going_on", "_is_under_way", "_loop", "_open", "_put_off", "is_crowded")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open = self._count = 0
        self._put_off: deque[Readable] = deque()
        self._is_under_way = False
        self._going_on: Readable | None = None
        self.is_crowded = False  # else there is nothing to ask

    def enter(self) -> None:
        self._open += 1
        self.is_crowded = self._open > READ_PER_TURN

    def leave(self) -> None:
        self._open -= 1
        self.is_crowded = self._open > READ_PER_TURN

    def has_room(self, readable: Readable) -> bool:
        """Whether it may be read in this turn; else it is put off."""
        if readable is self._going_on:
            return True
        if not self._is_under_way:
            self._is_under_way = True
            self._loop.call_soon(self._next_turn)
        if self._count < READ_PER_TURN:
            self._count += 1
            return True
        readable.put_off()
        self._put_off.append(readable)
        return False

    def _next_turn(self) -> None:
        self._count = min(READ_PER_TURN, len(self._put_off))
        self._is_under_way = self._count > 0
        for _ in range(self._count):
            self._loop.call_soon(self._go_on, self._put_off.popleft())
        if self._is_under_way:
            self._loop.call_soon(self._next_turn)

    def _go_on(self, readable: Readable) -> None:
        self._going_on = readable
        try:
            readable.go_on()
        finally:
            self._going_on = None
