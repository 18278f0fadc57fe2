"""Time as a test steers it: the wall clock stands still, or everything jumps ahead.

Owns how far the brokers' time is from the machine's, over all their lives, and the timers of the
present one. A jump is what a machine sees that was suspended: each timer that fell due meanwhile
fires once, in the order of their moments, and what it sets anew counts from the moment of arrival.
Invariant: monotonic time never goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter

from kafkalite.env.clock import RealClock, Timer


class Shift:
    """How far the brokers' time is from the machine's."""

    __slots__ = ("_frozen_ms", "_skew_ms", "ahead_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._skew_ms = 0  # of the wall clock alone: how long it stood still
        self._frozen_ms: int | None = None

    @property
    def is_frozen(self) -> bool:
        return self._frozen_ms is not None

    def freeze(self, machine_ms: int, at_ms: int | None) -> None:
        """The wall clock stands still, where it is or where it is set to."""
        if at_ms is not None:
            self._frozen_ms = at_ms - self.ahead_ms
        elif self._frozen_ms is None:
            self._frozen_ms = machine_ms + self._skew_ms

    def unfreeze(self, machine_ms: int) -> None:
        """It goes on from where it stood."""
        if self._frozen_ms is not None:
            self._skew_ms = self._frozen_ms - machine_ms
            self._frozen_ms = None

    def reset(self) -> None:
        """It is the machine's, but for the jumps."""
        self._frozen_ms, self._skew_ms = None, 0

    def wall_ms(self, machine_ms: int) -> int:
        base_ms = machine_ms + self._skew_ms if self._frozen_ms is None else self._frozen_ms
        return base_ms + self.ahead_ms


class SteeredTimer:
    """A timer of a `SteeredClock`, which is one of the loop's as well."""

    __slots__ = ("_clock", "callback", "due_ms", "handle")

    def __init__(self, clock: SteeredClock, due_ms: int, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.due_ms = due_ms
        self.callback = callback
        self.handle: Timer | None = None

    def cancel(self) -> None:
        if self._clock.forget(self) and self.handle is not None:
            self.handle.cancel()

    def fire(self) -> None:
        if self._clock.forget(self):
            self.callback()


class SteeredClock(RealClock):
    """The machine's clock, shifted; its timers follow."""

    __slots__ = ("_shift", "_timers")

    def __init__(self, loop: asyncio.AbstractEventLoop, shift: Shift) -> None:
        super().__init__(loop)
        self._shift = shift
        self._timers: dict[SteeredTimer, None] = {}

    def now_ms(self) -> int:
        return self._shift.wall_ms(super().now_ms())

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._shift.ahead_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        if delay_ms <= 0:
            return super().call_later(0, callback)
        timer = SteeredTimer(self, self.monotonic_ms() + delay_ms, callback)
        self._timers[timer] = None
        timer.handle = super().call_later(delay_ms, timer.fire)
        return timer

    def forget(self, timer: SteeredTimer) -> bool:
        """Whether it was still set."""
        return self._timers.pop(timer, self) is None

    def freeze(self, at_ms: int | None = None) -> None:
        self._shift.freeze(super().now_ms(), at_ms)

    def unfreeze(self) -> None:
        self._shift.unfreeze(super().now_ms())

    def reset(self) -> None:
        self._shift.reset()

    def jump(self, duration_ms: int) -> None:
        """All time is that much later from here on."""
        self._shift.ahead_ms += duration_ms
        now_ms = self.monotonic_ms()
        for timer in sorted(self._timers, key=attrgetter("due_ms")):
            if timer.handle is not None:
                timer.handle.cancel()
            # Not at once: a callback must not run inside of what asked for the jump.
            timer.handle = super().call_later(max(0, timer.due_ms - now_ms), timer.fire)
