"""One life of a process among several: it may stand still, and its wall clock may be another one.

Owns what waits for a process that stands still, as when it is sent SIGSTOP: timers, the ends of
jobs, and what comes over the network. Invariant: that is done in the order in which it was due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from kafkalite.env.clock import ManualClock, ManualTimer
from kafkalite.sim.life import Life


class MachineLife(Life):
    """Its machine says how far its wall clock is off."""

    def __init__(self, clock: ManualClock, random: Random, shift_ms: Callable[[], int]) -> None:
        super().__init__(clock, random)
        self._shift_ms = shift_ms
        self._waits: deque[Callable[[], None]] | None = None  # while it stands still

    def now_ms(self) -> int:
        return super().now_ms() + self._shift_ms()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        """One that is cancelled while the process stands still does not fire either."""
        timer = ManualTimer(self._clock.monotonic_ms() + max(0, delay_ms), callback)

        def fire() -> None:
            due, timer.callback = timer.callback, None
            if due is not None:
                due()

        self._clock.call_later(delay_ms, lambda: self.does(fire))
        return timer

    def does(self, what: Callable[[], None]) -> None:
        """Now, or when it goes on; never when it is dead."""
        if not self.is_alive:
            return
        if self._waits is None:
            what()
        else:
            self._waits.append(what)

    def stand_still(self) -> None:
        if self._waits is None:
            self._waits = deque()

    def go_on(self) -> None:
        waits, self._waits = self._waits, None
        while waits:
            self.does(waits.popleft())
