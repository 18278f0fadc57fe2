"""Which records a member is handed, of those that were read for it.

Owns the rules: whole batches where that is within reason, so many records and no more where the
member says so, fewer and fewer at a time of those that were handed out often before, and nothing of
what somebody else has. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from kafkalite.env.dataclasses import dataclass
from kafkalite.sharing.in_flight import ACQUIRED, AVAILABLE, Batch, Run, new_batch
from kafkalite.sharing.window import Window

LEAST_THROTTLED_DELIVERIES = 2
EVERY_DELIVERY = 2  # of so few the last one is nothing special


class Fetched(NamedTuple):
    """A batch of records as it was read."""

    first: int
    last: int


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


@dataclass(slots=True, frozen=True)
class Asker:
    """Who asks, and for how much; and what its group allows."""

    member: str
    until_ms: int  # when its locks expire
    most_records: int
    batch_size: int
    is_strict: bool  # so many records and no more
    most_in_flight: int
    most_deliveries: int

    @property
    def throttled_from(self) -> int:
        """Records that were delivered so often come a few at a time."""
        return max(LEAST_THROTTLED_DELIVERIES, ceil(self.most_deliveries / 2))


def acquire(
    window: Window, asker: Asker, fetch_offset: int, fetched: Sequence[Fetched]
) -> list[Acquired]:
    """What the asker has from now on, of what was read from `fetch_offset` on."""
    if not fetched or asker.most_records <= 0 or fetched[-1].last < window.start_offset:
        return []
    _archive_vanished(window, fetch_offset, fetched[0].first)
    last, most = _room(window, asker, fetch_offset, fetched[-1].last)
    if most <= 0:
        return []
    first = fetched[0].first
    floor = window.floor(first)
    if floor is None:
        first = max(first, window.start_offset)
    elif floor.last >= first:
        first = floor.first
    acquiring = _Acquiring(window, asker, fetched, last, most)
    known = window.beginning_in(min(fetched[0].first, first), last)
    if known:
        acquiring.take_known(known, first)
    else:
        acquiring.take_new(first, last)
    return acquiring.taken


def _room(
    window: Window, asker: Asker, fetch_offset: int, last: int
) -> tuple[int, int]:
    """Up to where may be acquired, and how much; inside the window also when it is full."""
    most = min(asker.most_records, asker.most_in_flight - window.in_flight)
    if most <= 0 and fetch_offset <= window.end_offset:
        most = min(asker.most_records, window.end_offset - fetch_offset + 1)
        last = min(last, window.end_offset)
    return last, most


def _archive_vanished(window: Window, fetch_offset: int, first: int) -> None:
    """Compaction has removed what was to be read: nobody waits for it."""
    if not window.batches or fetch_offset >= first:
        return
    floor = window.floor(fetch_offset)
    begin = floor.first if floor is not None and floor.last >= fetch_offset else fetch_offset
    batches = window.beginning_in(begin, first - 1)
    if window.archive(fetch_offset, first, batches, AVAILABLE, counts=True):
        window.must_look = True
        window.move_start()


class _Acquiring:
    """One request for records of one partition."""

    __slots__ = ("asker", "count", "fetched", "last", "most", "taken", "window")

    def __init__(
        self, window: Window, asker: Asker, fetched: Sequence[Fetched], last: int, most: int
    ) -> None:
        self.window, self.asker, self.fetched = window, asker, fetched
        self.last, self.most = last, most
        self.taken: list[Acquired] = []
        self.count = 0

    @property
    def left(self) -> int:
        return self.most - self.count

    def take_known(self, known: list[Batch], first: int) -> None:
        window = self.window
        for batch in known:
            if self.left <= 0:
                break
            if window.is_gap_open:
                if first < batch.first:
                    self.take_new(first, batch.first - 1)
                first = batch.last + 1
                if self.left <= 0:
                    break
            self._take_batch(batch)
        if self.left > 0 and known[-1].last < self.last:
            self.take_new(known[-1].last + 1, self.last)
        if self.taken:
            window.acquired_to(self.taken[-1].last + 1)

    def _take_batch(self, batch: Batch) -> None:
        asker, first = self.asker, self.fetched[0].first
        is_throttled = self._is_throttled(batch)
        if is_throttled and self.count:
            self.most = self.count
            return
        is_part = not batch.is_within(first, self.last)
        is_too_large = asker.is_strict and batch.size > self.left
        if not batch.is_split and not batch.whole.is_free:
            return
        if is_part or batch.is_split or is_too_large or is_throttled:
            batch.is_split = True
            taken = self._take_some(batch)
            self.count += taken
            if is_throttled and taken:
                self.most = self.count
            return
        self._take(batch.whole)
        self.taken.append(Acquired(batch.first, batch.last, batch.whole.deliveries))
        self.count += batch.size

    def _take(self, run: Run) -> None:
        run.acquire(self.asker.member, self.asker.until_ms)

    def _is_throttled(self, batch: Batch) -> bool:
        """Whether some record of it that is to be handed out was so often before."""
        first, last = (
            (self.fetched[0].first, self.last) if batch.is_split else (batch.first, batch.last)
        )
        return any(
            run.is_free and run.deliveries >= self.asker.throttled_from
            for run in batch.runs
            if run.last >= first and run.first <= last
        )

    def _take_some(self, batch: Batch) -> int:
        """Records of a batch, as long as they are free; the last chance of one is its own."""
        asker, found, count = self.asker, list[Acquired](), 0
        few: int | None = None
        for run in batch.between(self.fetched[0].first, self.last):
            if not run.is_free:
                continue
            size, is_last_chance = run.size, self._is_last_chance(run)
            if is_last_chance and count:
                break
            if run.deliveries >= asker.throttled_from and few is None:
                few = max(1, batch.size >> (run.deliveries - asker.throttled_from + 1))
            if is_last_chance:
                size = 1
            if asker.is_strict:
                size = min(size, self.left - count)
            if few is not None and few > count:
                size = min(size, few - count)
            for part in batch.between(run.first, run.first + size - 1):
                self._take(part)
                found.append(Acquired(part.first, part.last, part.deliveries))
            count += size
            is_enough = (asker.is_strict and count == self.left) or count == few
            if is_last_chance or is_enough:
                break
        self.taken += _joined(found)
        return count

    def _is_last_chance(self, run: Run) -> bool:
        most = self.asker.most_deliveries
        return most > EVERY_DELIVERY and run.deliveries == most - 1

    def take_new(self, first: int, last: int) -> None:
        """Records that nobody was handed yet."""
        window, most = self.window, self.left
        if not window.batches and window.end_offset > first:
            first = window.end_offset
        if first > last:
            return
        if most < last - first + 1:
            whole = self._end_of_batch(first + most - 1)
            last = min(whole, last) if window.is_gap_open else whole
        taken = self._new_batches(first, last, most)
        if window.batches[0].first == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, last)
        if self.asker.is_strict:
            last = taken[0].last
        window.acquired_to(last + 1)
        self.taken += taken
        self.count += last - first + 1

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the batch that was read with this one."""
        place = bisect_right(self.fetched, offset, key=lambda one: one.first) - 1
        if place >= 0 and offset <= self.fetched[place].last:
            return self.fetched[place].last
        return offset

    def _new_batches(self, first: int, last: int, most: int) -> list[Acquired]:
        asker = self.asker
        if asker.is_strict and last - first + 1 > most:
            batch = new_batch(first, last, AVAILABLE, 0)
            batch.is_split = True
            self.window.add(batch)
            self.window.must_look = True
            for run in batch.between(first, first + most - 1):
                self._take(run)
            return [Acquired(first, first + most - 1, 1)]
        found: list[Acquired] = []
        if not asker.is_strict and last - first + 1 > asker.batch_size:
            for one in self.fetched:
                if one.first > last:
                    break
                if one.first - first >= asker.batch_size:
                    found.append(Acquired(first, one.first - 1, 1))
                    first = one.first
        found.append(Acquired(first, last, 1))
        for each in found:
            batch = new_batch(each.first, each.last, ACQUIRED, each.deliveries, asker.member)
            batch.whole.locked_until_ms = asker.until_ms
            self.window.add(batch)
        return found


def _joined(found: Iterable[Acquired]) -> list[Acquired]:
    """Neighbours that were delivered as often as one."""
    joined: list[Acquired] = []
    for one in found:
        last = joined[-1] if joined else None
        if last is not None and (last.last + 1, last.deliveries) == (one.first, one.deliveries):
            joined[-1] = last._replace(last=one.last)
        else:
            joined.append(one)
    return joined


# --- aborted transactions -------------------------------------------------------------------------


def without(
    window: Window, acquired: list[Acquired], aborted: Iterable[Fetched]
) -> list[Acquired]:
    """What was acquired but for these batches, of aborted transactions: nobody is given them, and
    the window does not wait for them."""
    left = acquired
    for gone in aborted:
        floor = window.floor(gone.first)
        if floor is not None:
            batches = window.beginning_in(floor.first, gone.last)
            window.archive(gone.first, gone.last + 1, batches, ACQUIRED, counts=True)
        left = [part for one in left for part in _cut_out(one, gone)]
    window.move_start()
    return left


def _cut_out(one: Acquired, gone: Fetched) -> Iterable[Acquired]:
    if one.last < gone.first or one.first > gone.last:
        yield one
        return
    if one.first < gone.first:
        yield one._replace(last=gone.first - 1)
    if one.last > gone.last:
        yield one._replace(first=gone.last + 1)
