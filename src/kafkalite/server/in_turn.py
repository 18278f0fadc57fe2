"""How many frames are answered in one turn of the loop, of connections that sent several at once.

Owns what is left for all connections together, and who goes on in the next turns. The first frame
of whoever is read or goes on is always answered; those behind it as long as the turn is short. To
be told when a turn ends costs as much as a small request, so it is asked for only when a share is
used up, and then there is one more until that end. Invariants: however many connections have sent
however many frames, no turn goes on with more than `BACKLOGS_PER_TURN` of them and answers more
than two shares behind a first one; who was put off goes on in the order in which that was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.env.clock import Clock
from kafkalite.env.slicing import SLICE_MS

FRAMES_PER_SHARE = 64
BACKLOGS_PER_TURN = 64


class PutOff(Protocol):
    """A connection with frames that have come and are not answered."""

    def go_on(self) -> None: ...


class InTurn:
    """The connections of one loop."""

    __slots__ = ("_clock", "_end_ms", "_is_ending", "_left", "_put_off", "_soon")

    def __init__(self, clock: Clock, soon: Callable[[Callable[[], None]], None]) -> None:
        self._clock = clock
        self._soon = soon
        self._put_off: dict[PutOff, None] = {}
        self._is_ending = False  # the end of this turn is told
        self._left = self._end_ms = 0

    def has_room(self) -> bool:
        """Whether a frame that is not its connection's first has its place in this turn."""
        now_ms = self._clock.monotonic_ms()
        if self._left <= 0 or now_ms >= self._end_ms:
            if self._is_ending:
                return False
            self._tell_end()
            self._share(now_ms)
        self._left -= 1
        return True

    def put_off(self, connection: PutOff) -> None:
        """Has it go on in one of the next turns."""
        self._put_off[connection] = None
        self._tell_end()

    def _share(self, now_ms: int) -> None:
        self._left = FRAMES_PER_SHARE
        self._end_ms = now_ms + SLICE_MS

    def _tell_end(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_ending = False
        self._share(self._clock.monotonic_ms())
        for _ in range(min(len(self._put_off), BACKLOGS_PER_TURN)):
            self._tell_end()
            connection = next(iter(self._put_off))
            del self._put_off[connection]
            connection.go_on()
            if self._clock.monotonic_ms() >= self._end_ms:
                break
