"""What one thread waits for and another brings, safe also from the handler of a signal.

A handler runs in the middle of whatever its thread does, so nothing here holds a lock that the same
thread may already have: `threading.Event` does, while it waits.
"""

from __future__ import annotations

import threading


class Outcome:
    """Something that is done, or an error; once, however many wait for it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.is_there = False
        self._gate = threading.Lock()
        self._gate.acquire()

    def done(self) -> None:
        """Lets all go on who wait; what comes later counts no more."""
        if not self.is_there:
            self.is_there = True
            self._gate.release()

    def fail(self, error: BaseException) -> None:
        if not self.is_there:
            self.error = error
            self.done()

    def told(self, error: BaseException | None) -> None:
        self.done() if error is None else self.fail(error)

    def told_if_failed(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)

    def wait(self, seconds: float) -> bool:
        """Whether it is there within the time."""
        if not self.is_there and self._gate.acquire(timeout=seconds):
            self._gate.release()
        return self.is_there
