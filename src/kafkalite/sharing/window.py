"""The window of a shared partition: from the first record that is not done with to the last that
was handed out.

Owns the batches in flight, where the window begins and ends, and which record is next to be read.
It is moved on by what is done with; a stretch that nothing is known of although what comes behind
it was handed out before (by a former leader) is the gap. Pure: no clock, nobody to call. Invariant:
batches are in order and do not overlap; `start_offset` never falls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from kafkalite.coordinators.shares.batches import StateBatch
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.sharing.in_flight import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    Batch,
    RecordState,
    Run,
    new_batch,
)

NO_OFFSET = -1


@dataclass(slots=True)
class Gap:
    """From `start` on nothing is known of what lies between batches, while the window ends at
    `end`."""

    start: int
    end: int


@dataclass(slots=True)
class Window:
    start_offset: int
    end_offset: int
    # Records from the start on that are done with.
    complete_count: int = 0
    batches: list[Batch] = field(default_factory=list)
    must_look: bool = False  # some record inside may be free
    gap: Gap | None = None

    @classmethod
    def of(cls, start_offset: int, known: Iterable[StateBatch]) -> Window:
        """As a coordinator kept it; raises KafkaError when that cannot be."""
        window = cls(start_offset, start_offset)
        gap_start, previous = NO_OFFSET, start_offset - 1
        for one in known:
            if one.first < start_offset or one.last < one.first or one.state == ACQUIRED:
                raise KafkaError(Error.UNKNOWN_SERVER_ERROR, f"A state of records cannot be: {one}")
            if gap_start == NO_OFFSET and one.first > previous + 1:
                gap_start = previous + 1
            previous = one.last
            state = RecordState(one.state)
            window.batches.append(new_batch(one.first, one.last, state, one.deliveries))
            if state.is_terminal:
                window.complete_count += one.last - one.first + 1
        if window.batches:
            window.must_look = True
            window.end_offset = window.batches[-1].last
            if gap_start != NO_OFFSET:
                window.gap = Gap(gap_start, window.end_offset)
            window.move_start()
        return window

    # --- looking ----------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def is_gap_open(self) -> bool:
        return self.gap is not None and self.gap.end == self.end_offset

    def floor(self, offset: int) -> Batch | None:
        """The last batch that begins at or before an offset."""
        place = bisect_right(self.batches, offset, key=lambda batch: batch.first)
        return self.batches[place - 1] if place else None

    def beginning_in(self, first: int, last: int) -> list[Batch]:
        low = bisect_left(self.batches, first, key=lambda batch: batch.first)
        return self.batches[low : bisect_right(self.batches, last, key=lambda batch: batch.first)]

    def next_fetch_offset(self) -> int:
        """Where the next record to be handed out is."""
        if not self.batches or self.start_offset > self.batches[-1].last:
            self.must_look = False
            return self.end_offset
        if self.must_look:
            found = self._first_free()
            if found is not None:
                return found
            self.must_look = False
        return self.end_offset + 1

    def _first_free(self) -> int | None:
        gap_start = self.gap.start if self.gap is not None and self.is_gap_open else None
        for batch in self.batches:
            if gap_start is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for run in batch.runs:
                if run.is_free:
                    return run.first
        return None

    def can_acquire(self, most_in_flight: int) -> bool:
        return (
            self.next_fetch_offset() != self.end_offset + 1 or self.in_flight < most_in_flight
        )

    def reaches_over_start(self, batch: Batch) -> bool:
        return batch.first < self.start_offset <= batch.last

    def count_from_start(self, run: Run) -> int:
        """Its records, but for those that lie before the window."""
        return max(0, run.last - max(self.start_offset, run.first) + 1)

    def parts(self, batch: Batch, run: Run) -> list[Run]:
        """A run, cut where the window begins."""
        last = run.last
        return [
            *batch.between(run.first, min(last, self.start_offset - 1)),
            *batch.between(max(run.first, self.start_offset), last),
        ]

    # --- changing ---------------------------------------------------------------------------------

    def add(self, batch: Batch) -> None:
        place = bisect_left(self.batches, batch.first, key=lambda each: each.first)
        self.batches.insert(place, batch)

    def acquired_to(self, offset: int) -> None:
        """Up to there nothing is unknown any more."""
        gap = self.gap
        if gap is not None:
            if gap.end == self.end_offset and offset <= gap.end:
                gap.start = offset
            else:
                self.gap = None

    def archive(
        self, first: int, end: int, batches: Iterable[Batch], state: RecordState, *, counts: bool
    ) -> bool:
        """What of these batches is in that state, from `first` to before `end`, is given up."""
        has_archived = False
        for batch in list(batches):
            if batch.first >= end:
                break
            if batch.last < first or (not batch.is_split and batch.whole.state is not state):
                continue
            for run in batch.between(first, end - 1):
                if run.state is state:
                    run.archive()
                    has_archived = True
                    if counts:
                        self.complete_count += run.size
        return has_archived

    def log_begins_at(self, offset: int) -> None:
        """Records before it are gone."""
        if offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = offset
            self.complete_count = 0
            return
        self.complete_count -= self._done_before(offset)
        if self.archive(self.start_offset, offset, self.batches, AVAILABLE, counts=False):
            self.must_look = True
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        self.move_start()

    def _done_before(self, offset: int) -> int:
        count = 0
        for batch in self.batches:
            if batch.first >= offset:
                break
            for run in batch.runs:
                if run.state.is_terminal:
                    first = max(self.start_offset, run.first)
                    count += max(0, min(offset - 1, run.last) - first + 1)
        return count

    def move_start(self) -> bool:
        """The window begins behind what is done with from its beginning; batches that lie before it
        are forgotten."""
        if not self._can_move():
            return False
        last_done, count = self._done_from_start()
        if last_done == NO_OFFSET:
            return False
        if last_done == self.batches[-1].last:
            self.start_offset = max(self.start_offset, last_done + 1)
            self.end_offset = self.start_offset
            self.batches.clear()
            self.complete_count = 0
            return True
        place = bisect_right(self.batches, last_done, key=lambda batch: batch.first) - 1
        if last_done == self.batches[place].last:
            start = max(self.start_offset, self.batches[place + 1].first)
            if self.gap is not None and self.is_gap_open:
                start = min(self.gap.start, start)
            place += 1
        else:
            start = max(self.start_offset, last_done + 1)
        self.start_offset = start
        self.complete_count -= count
        del self.batches[:place]
        return True

    def _can_move(self) -> bool:
        batch = self.floor(self.start_offset)
        return batch is not None and batch.at(self.start_offset).is_done

    def _done_from_start(self) -> tuple[int, int]:
        """The last offset up to which all is done with, and how many records that is."""
        last, count = NO_OFFSET, 0
        for batch in self.batches:
            if self.gap is not None and self.is_gap_open and batch.last >= self.gap.start:
                break
            for run in batch.runs:
                if not run.is_done:
                    return last, count
                last = run.last
                count += self.count_from_start(run)
        return last, count

    def next_deadline_ms(self) -> int | None:
        """When the next lock expires."""
        return min(
            (
                run.locked_until_ms
                for batch in self.batches
                for run in batch.runs
                if run.locked_until_ms is not None and run.state is ACQUIRED
            ),
            default=None,
        )

    def expire(self, now_ms: int, limit: int) -> Steps[list[StateBatch]]:
        """Locks whose time has come end; returns what is to be written. Between its steps others
        may have their say: what was cut meanwhile is found by the next call."""
        written: list[StateBatch] = []
        count = 0
        for batch in self.batches.copy():
            for run in batch.runs.copy():
                until_ms = run.locked_until_ms
                if run.state is ACQUIRED and until_ms is not None and until_ms <= now_ms:
                    written += [self._expire(part, limit) for part in self.parts(batch, run)]
                count += 1
                if count % ELEMENTS_PER_STEP == 0:
                    yield
        return written

    def _expire(self, run: Run, limit: int) -> StateBatch:
        run.release(ARCHIVED if run.last < self.start_offset else AVAILABLE, limit)
        if run.state is AVAILABLE:
            self.must_look = True
        else:
            self.complete_count += self.count_from_start(run)
        return said_of(run)


def said_of(run: Run) -> StateBatch:
    """What is told of a run to who keeps its state."""
    return StateBatch(run.first, run.last, int(run.state), run.deliveries)
