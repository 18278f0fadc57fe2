"""One life of a broker: its clock and its worker threads stop with it, and nothing else does.

Owns the line between what a process did before it died and what would have come after.
Invariant: once it is over, no timer fires and no job's end is heard of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import TypeVar

from kafkalite.env.clock import ManualClock, ManualTimer

T = TypeVar("T")

SLOWEST_JOB_MS = 15


class Life:
    """The world's clock and background, as one process sees them."""

    def __init__(self, clock: ManualClock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self.slowest_job_ms = SLOWEST_JOB_MS
        self.is_alive = True

    def end(self) -> None:
        self.is_alive = False

    # --- as a clock -----------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def processor_ns(self) -> int:
        return self._clock.processor_ns()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        def due() -> None:
            if self.is_alive:
                callback()

        return self._clock.call_later(delay_ms, due)

    # --- as background --------------------------------------------------------------------

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """The job runs now or at its end, and its end comes some time later."""
        delay_ms = self._random.randrange(self.slowest_job_ms)
        if self._random.random() < 0.5:
            outcome = _outcome(job)
            self.call_later(delay_ms, lambda: done(outcome))
        else:
            self.call_later(delay_ms, lambda: done(_outcome(job)))


def _outcome(job: Callable[[], T]) -> T | BaseException:
    counting = sys.getprofile()
    sys.setprofile(None)  # what a worker does is no work of the loop's
    try:
        return job()
    except Exception as error:  # noqa: BLE001 - the caller of submit decides what it means
        return error
    finally:
        sys.setprofile(counting)
