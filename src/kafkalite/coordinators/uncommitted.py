"""What waits until the high watermark covers it: replies, and what follows the commit.

Owns its order, which is that of the offsets, and how long each may take. It tells nobody: the
runtime does. Invariant: what follows a commit stays, however long ago its clients were told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kafkalite.coordinators.asked import Parked, Waiter


class Uncommitted:
    __slots__ = ("_parked",)

    def __init__(self) -> None:
        self._parked: deque[Parked] = deque()

    def __bool__(self) -> bool:
        return bool(self._parked)

    def add(self, entry: Parked) -> None:
        self._parked.append(entry)

    def covered(self, high_watermark: int) -> Iterator[Parked]:
        """Those that wait no longer."""
        while self._parked and self._parked[0].end_offset <= high_watermark:
            yield self._parked.popleft()

    def late(self, now_ms: int) -> list[Parked]:
        """Those whose clients have waited long enough."""
        return [entry for entry in self._parked if entry.deadline_ms <= now_ms]

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When the next clients have; nothing is kept of those for whom nothing is left."""
        self._parked = deque(entry for entry in self._parked if entry.is_wanted)
        return next((each.deadline_ms for each in self._parked if each.deadline_ms > now_ms), None)

    def give_up(self) -> list[Parked]:
        entries, self._parked = list(self._parked), deque()
        return entries

    @property
    def errands(self) -> list[object]:
        return [errand for entry in self._parked for errand in entry.sends]


def waiters_of(entries: list[Parked]) -> list[Waiter]:
    return [later for entry in entries for later, _ in entry.replies]
