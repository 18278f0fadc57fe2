"""Replies that wait for a partition to move: long-poll fetches and acknowledgements.

Owns the parked attempts and their deadlines; knows nothing of requests. An attempt is tried again
after some of its partitions moved, and told which, at most once per turn of the event loop however
often they moved; and a last time when its deadline has come or nobody is left to reply to. Where
thousands wait for one append, some of them are tried in each turn, in the order in which they are
due. Invariant: a finished attempt is parked nowhere, and one that fails by a mistake of ours is
answered with that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later
from kafkalite.env.slicing import SLICE_MS

TRIED_PER_TURN = 64
# What waits, as Apache Kafka calls its purgatories.
FETCH, PRODUCE, DELETE_RECORDS, SHARE_FETCH, OTHER = (
    "Fetch", "Produce", "DeleteRecords", "ShareFetch", ""
)  # fmt: skip
PURGATORIES = (FETCH, PRODUCE, DELETE_RECORDS, SHARE_FETCH)


class Watched(Protocol):
    """Something whose progress can be waited for."""

    def watch(self, parked: Parked) -> None: ...

    def unwatch(self, parked: Parked) -> None: ...


# Told which of the watched have moved, None for the last time; says whether it is done.
Attempt = Callable[[Collection[Watched] | None], bool]


class Parked:
    """One attempt that is tried until it succeeds or its time is up."""

    __slots__ = ("_answer", "_attempt", "_moved", "_timer", "_waiting", "_watched", "kind")

    def __init__(
        self, waiting: Waiting, attempt: Attempt, answer: Later[Any], kind: str
    ) -> None:
        self._waiting = waiting
        self.kind = kind
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
        self._due: deque[Parked] = deque()
        self._is_turn_coming = False

    def park(
        self, watched: Iterable[Watched], delay_ms: int, attempt: Attempt, answer: Later[Any],
        kind: str = FETCH,
    ) -> Parked:  # fmt: skip
        """Makes an attempt after moves of the watched until it is done, or fails: that is the
        answer then."""
        parked = Parked(self, attempt, answer, kind)
        parked.start(watched, delay_ms)
        return parked

    def stop(self) -> None:
        """Nobody waits any longer."""
        for parked in list(self.parked):
            parked.expire()

    def due(self, parked: Parked) -> None:
        self._due.append(parked)
        self._go_on()

    def _go_on(self) -> None:
        if self._due and not self._is_turn_coming:
            self._is_turn_coming = True
            self.clock.call_later(0, self._retry_due)

    def _retry_due(self) -> None:
        self._is_turn_coming = False
        due = self._due
        left = min(len(due), TRIED_PER_TURN)  # what comes due meanwhile is for the next turn
        end_ms = self.clock.monotonic_ms() + SLICE_MS if left > 1 else 0
        try:
            while left:
                left -= 1
                due.popleft().retry()
                if left and self.clock.monotonic_ms() >= end_ms:
                    break
        finally:  # also when one of them failed by a mistake of ours
            self._go_on()
