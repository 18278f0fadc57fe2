"""How a group does, from its last commits: Burrow's question, and its rules.

Owns the last commits of each partition of a group, and what is concluded from them. Invariant: at
most `WINDOW` commits are kept of a partition, and they are at least a second apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

WINDOW = 10
APART_MS = 1_000

Place = tuple[str, int]  # topic and partition


class Status(IntEnum):
    """In the order in which one is worse than another."""

    NOTFOUND = 0
    OK = 1
    WARN = 2  # it goes on, and falls behind
    ERR = 3
    STOP = 4  # it commits no more
    STALL = 5  # it commits the same offset again and again
    REWIND = 6  # it went back


@dataclass(slots=True)
class Commit:
    """lag: when it was seen, None where the partition's end was not known."""

    offset: int
    at_ms: int
    lag: int | None


@dataclass(slots=True)
class PartitionStatus:
    place: Place
    status: Status
    first: Commit
    last: Commit
    lag: int
    complete: float  # how much of a window there is


@dataclass(slots=True)
class Windows:
    """The windows of all groups."""

    groups: dict[str, dict[Place, deque[Commit]]] = field(default_factory=dict)

    def commit(self, group: str, place: Place, offset: int, at_ms: int, end: int | None) -> None:
        window = self.groups.setdefault(group, {}).setdefault(place, deque(maxlen=WINDOW))
        if window and at_ms < window[-1].at_ms:
            return  # it was told late, and a later one is known
        lag = None if end is None else max(end - offset, 0)
        if len(window) > 1 and at_ms - window[-2].at_ms < APART_MS:
            window.pop()
        window.append(Commit(offset, at_ms, lag))

    def forget(self, group: str, place: Place | None = None) -> None:
        """A partition's commits are gone, or all of a group."""
        if place is None:
            self.groups.pop(group, None)
            return
        windows = self.groups.get(group, {})
        windows.pop(place, None)
        if not windows:
            self.groups.pop(group, None)

    def keep(self, places: Iterable[Place]) -> None:
        """Those of other partitions are forgotten: their topics are gone."""
        known = set(places)
        for group in list(self.groups):
            for place in self.groups[group].keys() - known:
                self.forget(group, place)

    def look(self, group: str, ends: dict[Place, int], now_ms: int) -> list[PartitionStatus]:
        """Each partition of a group; `ends` has where partitions end now."""
        return [
            _look(place, window, ends.get(place), now_ms)
            for place, window in sorted(self.groups.get(group, {}).items())
        ]


def of_group(partitions: list[PartitionStatus]) -> Status:
    """As bad as its worst partition; which of the bad ones that is, is the partition's matter."""
    if not partitions:
        return Status.NOTFOUND
    return min(max(each.status for each in partitions), Status.ERR)


def _look(place: Place, window: deque[Commit], end: int | None, now_ms: int) -> PartitionStatus:
    first, last = window[0], window[-1]
    lag = max(end - last.offset, 0) if end is not None else last.lag or 0
    status = _status(list(window), lag, now_ms)
    return PartitionStatus(place, status, first, last, lag, len(window) / WINDOW)


def _status(window: list[Commit], lag: int, now_ms: int) -> Status:
    """The first rule that holds."""
    steps = list(pairwise(window))
    if lag == 0 or any(each.lag == 0 for each in window):
        return Status.OK
    if any(after.offset < before.offset for before, after in steps):
        return Status.REWIND
    if now_ms - window[-1].at_ms > window[-1].at_ms - window[0].at_ms:
        return Status.STOP
    if all(after.offset == before.offset for before, after in steps):
        return Status.STALL
    lags = [each.lag for each in window if each.lag is not None]
    is_caught_up_with = any(after < before for before, after in pairwise(lags))
    return Status.OK if is_caught_up_with or len(lags) < len(window) else Status.WARN
