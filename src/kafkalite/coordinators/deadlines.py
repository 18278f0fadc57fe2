"""Many named deadlines on one timer of the clock.

Owns the deadlines of one shard; never calls into it by itself: `meet` hands them out.
Invariant: the clock holds at most one timer per instance, and none when nothing is armed or while
those that have passed are handed out.
Moving a deadline later, what every heartbeat does, is one dictionary write.
"""

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kafkalite.env.clock import Clock
from kafkalite.env.clock import Timer as ClockTimer
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps

# Cancelled entries are kept in the heap until they outnumber the live ones by this factor.
GARBAGE_FACTOR = 2
GARBAGE_MINIMUM = 64


E = TypeVar("E")


@dataclass(slots=True)
class Deadlines(Generic[E]):
    clock: Clock
    wake: Callable[[], None]
    _due: dict[Hashable, tuple[int, E]] = field(default_factory=dict)
    _queued: dict[Hashable, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, Hashable]] = field(default_factory=list)
    _sequence: int = 0
    _timer: ClockTimer | None = None
    _timer_at: int = 0
    _is_meeting: bool = False

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._due

    def arm(self, key: Hashable, delay_ms: int, event: E) -> None:
        at = self.clock.monotonic_ms() + max(delay_ms, 0)
        self._due[key] = (at, event)
        queued = self._queued.get(key)
        if queued is None or queued > at:
            self._push(key, at)
            self._wake_at_head()

    def postpone(self, key: Hashable, by_ms: int) -> None:
        """Moves a deadline that is armed."""
        if key in self._due:
            at, event = self._due[key]
            self._due[key] = (at + by_ms, event)

    def cancel(self, key: Hashable) -> None:
        self._due.pop(key, None)
        if len(self._heap) > GARBAGE_MINIMUM + GARBAGE_FACTOR * len(self._due):
            self._rebuild()
        if not self._due:
            self.clear()

    def clear(self) -> None:
        self._due.clear()
        self._queued.clear()
        self._heap.clear()
        self._stop_timer()

    def meet(self, handle: Callable[[Hashable, E], None]) -> Steps[None]:
        """Hands out those that have passed, the earliest first, which are then no longer armed.

        One in each step: there may be thousands, and whoever handles one may move or cancel the
        next. Not those that are armed meanwhile: a delay of 0 means the next turn of the loop.
        """
        self._is_meeting = True  # from now on: its first step may have to wait
        return self._met(handle)

    def _met(self, handle: Callable[[Hashable, E], None]) -> Steps[None]:
        try:
            for _ in range(len(self._due)):
                due = self._take_due()
                if due is None:
                    break
                handle(*due)
                yield
        finally:
            self._is_meeting = False
            self._wake_at_head()

    def _take_due(self) -> tuple[Hashable, E] | None:
        now = self.clock.monotonic_ms()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._queued.get(key) != at:
                continue  # an entry that an earlier deadline of the same key has replaced
            del self._queued[key]
            due = self._due.get(key)
            if due is None:
                continue
            if due[0] > now:
                self._push(key, due[0])
                continue
            del self._due[key]
            return key, due[1]
        return None

    def _push(self, key: Hashable, at: int) -> None:
        self._sequence += 1
        self._queued[key] = at
        heapq.heappush(self._heap, (at, self._sequence, key))

    def _rebuild(self) -> None:
        self._heap.clear()
        self._queued.clear()
        for key, (at, _) in self._due.items():
            self._push(key, at)
        self._wake_at_head()

    def _wake_at_head(self) -> None:
        if self._is_meeting:
            return
        self._drop_garbage()
        if not self._heap:
            self._stop_timer()
            return
        head = self._heap[0][0]
        if self._timer is not None and self._timer_at <= head:
            return
        self._stop_timer()
        self._timer_at = head
        self._timer = self.clock.call_later(
            max(head - self.clock.monotonic_ms(), 0), self._on_timer
        )

    def _drop_garbage(self) -> None:
        """Entries at the head that nothing is due at: the clock would wake us for nothing."""
        while self._heap:
            at, _, key = self._heap[0]
            is_current = self._queued.get(key) == at
            if is_current and key in self._due:
                return
            heapq.heappop(self._heap)
            if is_current:
                del self._queued[key]

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()
