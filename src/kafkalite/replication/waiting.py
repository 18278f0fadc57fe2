"""Replies that wait for a partition to move: long-poll fetches and acknowledgements.

Owns the parked attempts and their deadlines; knows nothing of requests. An attempt is tried again
after some of its partitions moved, and told which, at most once per turn of the event loop however
often they moved; and a last time when its deadline has come or nobody is left to reply to.
Invariant: a finished attempt is parked nowhere, and one that fails by a mistake of ours is answered
with that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later


class Watched(Protocol):
    """Something whose progress can be waited for."""

    def watch(self, parked: Parked) -> None: ...

    def unwatch(self, parked: Parked) -> None: ...


# Told which of the watched have moved, None for the last time; says whether it is done.
Attempt = Callable[[Collection[Watched] | None], bool]


class Parked:
    """One attempt that is tried until it succeeds or its time is up."""

    __slots__ = ("_answer", "_attempt", "_moved", "_timer", "_waiting", "_watched")

    def __init__(self, waiting: Waiting, attempt: Attempt, answer: Later[Any]) -> None:
        self._waiting = waiting
        self._attempt = attempt
        self._answer = answer
        self._watched: list[Watched] = []
        self._moved: dict[int, Watched] = {}
        self._timer: Timer | None = None

    def start(self, watched: Iterable[Watched], delay_ms: int) -> None:
        self._waiting.parked[self] = None
        self._timer = self._waiting.clock.call_later(delay_ms, self.expire)
        for one in watched:
            self.watch(one)

    def watch(self, watched: Watched) -> None:
        """One more, unless the attempt is over."""
        if self._timer is not None:
            self._watched.append(watched)
            watched.watch(self)

    def moved(self, watched: Watched) -> None:
        """One of the watched has moved: have the attempt tried again this turn."""
        if self._timer is not None:
            if not self._moved:
                self._waiting.due(self)
            self._moved[id(watched)] = watched

    def leave(self) -> None:
        """It is tried no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            del self._waiting.parked[self]
            for one in self._watched:
                one.unwatch(self)
            self._watched = []

    def retry(self) -> None:
        moved, self._moved = self._moved, {}
        if self._timer is not None and self._try(moved.values()):
            self.leave()

    def _try(self, moved: Collection[Watched] | None) -> bool:
        try:
            return self._attempt(moved)
        except Exception as error:
            if self._answer.is_resolved:
                raise
            self._answer.resolve(error)
            return True

    def expire(self) -> None:
        """The time is up, or nobody is left to reply to: the attempt is made a last time."""
        if self._timer is not None:
            self.leave()
            self._try(None)


class Waiting:
    """All parked attempts of one broker, and those of them to be tried this turn."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.parked: dict[Parked, None] = {}
        self._due: list[Parked] = []

    def park(
        self, watched: Iterable[Watched], delay_ms: int, attempt: Attempt, answer: Later[Any]
    ) -> Parked:
        """Makes an attempt after moves of the watched until it is done, or fails: that is the
        answer then."""
        parked = Parked(self, attempt, answer)
        parked.start(watched, delay_ms)
        return parked

    def stop(self) -> None:
        """Nobody waits any longer."""
        for parked in list(self.parked):
            parked.expire()

    def due(self, parked: Parked) -> None:
        if not self._due:
            self.clock.call_later(0, self._retry_due)
        self._due.append(parked)

    def _retry_due(self) -> None:
        due, self._due = self._due, []
        tried = 0
        try:
            for parked in due:
                tried += 1
                parked.retry()
        finally:
            if tried < len(due):  # one of them failed by a mistake of ours; the others go on
                self._due = due[tried:] + self._due
                self.clock.call_later(0, self._retry_due)
