"""How many frames are answered in one turn of the loop, of connections that sent several at once.

Owns what is left of the turn for all connections together, and who goes on in the next turns. The
first frame of whoever is read or goes on is always answered; those behind it as long as the turn is
short. Invariants: however many connections have sent however many frames, no turn goes on with more
than `BACKLOGS_PER_TURN` of them and answers more than `FRAMES_PER_TURN` behind a first one; who was
put off goes on in the order in which that was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.env.clock import Clock
from kafkalite.env.slicing import SLICE_MS

FRAMES_PER_TURN = 128
BACKLOGS_PER_TURN = 64


class PutOff(Protocol):
    """A connection with frames that have come and are not answered."""

    def go_on(self) -> None: ...


class InTurn:
    """The connections of one loop."""

    __slots__ = ("_clock", "_end_ms", "_is_counting", "_left", "_put_off", "_soon")

    def __init__(self, clock: Clock, soon: Callable[[Callable[[], None]], None]) -> None:
        self._clock = clock
        self._soon = soon
        self._put_off: dict[PutOff, None] = {}
        self._is_counting = False
        self._left = self._end_ms = 0

    def has_room(self) -> bool:
        """Whether a frame that is not its connection's first has its place in this turn."""
        self._count()
        self._left -= 1
        return self._left >= 0 and self._clock.monotonic_ms() < self._end_ms

    def put_off(self, connection: PutOff) -> None:
        """Has it go on in one of the next turns."""
        self._put_off[connection] = None
        self._count()

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            self._left = FRAMES_PER_TURN
            self._end_ms = self._clock.monotonic_ms() + SLICE_MS
            self._soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_counting = False
        for _ in range(min(len(self._put_off), BACKLOGS_PER_TURN)):
            self._count()
            connection = next(iter(self._put_off))
            del self._put_off[connection]
            connection.go_on()
            if self._clock.monotonic_ms() >= self._end_ms:
                break
