"""How fast logs are copied from one directory to another, all of them together.

Owns the bytes that were copied and are not paid for yet by time. It never waits itself. Invariant:
over any time, no more is copied than the rate allows, and one piece for each copy.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from kafkalite.env.clock import Clock

_LOOK_AGAIN_MS = 1_000  # or sooner: the rate may have changed


class Throttle:
    """A number of bytes per second that may change at any time."""

    def __init__(self, clock: Clock, rate: Callable[[], int]) -> None:
        self._clock = clock
        self._rate = rate
        self._debt = 0.0  # bytes
        self._since_ms = 0

    @property
    def piece(self) -> int:
        """So much at once that the pauses are not longer than a second."""
        return max(1, self._rate())

    def take(self, size: int) -> None:
        """So many bytes are copied, or fewer than was said before."""
        self._settle()
        self._debt = max(0.0, self._debt + size)

    def wait_ms(self) -> int:
        """For how long nothing is to be copied now."""
        self._settle()
        rate = self._rate()
        if not self._debt and rate:
            return 0
        return min(ceil(self._debt * 1000 / rate), _LOOK_AGAIN_MS) if rate else _LOOK_AGAIN_MS

    def _settle(self) -> None:
        now_ms = self._clock.monotonic_ms()
        paid = (now_ms - self._since_ms) * self._rate() / 1000
        self._debt, self._since_ms = max(0.0, self._debt - paid), now_ms
