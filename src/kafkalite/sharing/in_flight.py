"""Records that were handed out and are not done with, as ranges of offsets that fare alike.

Owns the states of such a range and its transitions, and the order of ranges in a batch. A
transition that is yet to be written is seen at once, and can be taken back. Invariant: the runs of
a batch are in order and cover it, without a gap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import IntEnum

from kafkalite.env.dataclasses import dataclass, field

NOBODY = ""


class RecordState(IntEnum):
    """Their numbers are those of the coordinator's records."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self >= RecordState.ACKNOWLEDGED


AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


@dataclass(slots=True, eq=False)
class Transition:
    """What one request changes, until that is written: the runs, as long as it is open."""

    runs: list[Run] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.runs


@dataclass(slots=True, frozen=True)
class _Before:
    """What a run was, and how often its records may be handed out."""

    state: RecordState
    member: str
    limit: int


@dataclass(slots=True, eq=False)
class Run:
    first: int
    last: int
    state: RecordState
    deliveries: int
    member: str = NOBODY
    locked_until_ms: int | None = None
    pending: Transition | None = None
    before: _Before | None = None
    is_lost: bool = False  # archived whatever comes of the transition that is open

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_free(self) -> bool:
        return self.state is AVAILABLE and self.pending is None

    @property
    def is_done(self) -> bool:
        return self.state.is_terminal and self.pending is None

    def acquire(self, member: str, until_ms: int) -> None:
        self.state, self.member, self.locked_until_ms = ACQUIRED, member, until_ms
        self.deliveries += 1

    def release(self, state: RecordState, limit: int) -> None:
        """At once, when its lock has expired."""
        self.state = self._within(state, limit)
        self.member, self.locked_until_ms = NOBODY, None

    def archive(self) -> None:
        self.state, self.member, self.locked_until_ms = ARCHIVED, NOBODY, None
        self.is_lost = True

    def begin(self, transition: Transition, state: RecordState, limit: int) -> None:
        self.before = _Before(self.state, self.member, limit)
        self.state, self.member = self._within(state, limit), NOBODY
        self.pending = transition
        transition.runs.append(self)

    def _within(self, state: RecordState, limit: int) -> RecordState:
        return ARCHIVED if state is AVAILABLE and self.deliveries >= limit else state

    def end(self, *, is_written: bool, now_ms: int) -> None:
        """Of the transition: what it changed holds, or is taken back."""
        before, self.pending, self.before = self.before, None, None
        assert before is not None, "a transition has ended twice"
        until_ms = self.locked_until_ms
        if is_written or self.is_lost:
            self.locked_until_ms = None
        elif until_ms is not None and until_ms <= now_ms:
            self.state = ARCHIVED if self.deliveries >= before.limit else AVAILABLE
            self.locked_until_ms = None
        else:
            self.state, self.member = before.state, before.member

    def split(self, offset: int) -> Run:
        """The part from `offset` on, which fares on its own from now on."""
        rest = Run(
            offset, self.last, self.state, self.deliveries, self.member, self.locked_until_ms,
            self.pending, self.before, self.is_lost,
        )  # fmt: skip
        self.last = offset - 1
        if rest.pending is not None:
            rest.pending.runs.append(rest)
        return rest


@dataclass(slots=True, eq=False)
class Batch:
    """Records that were handed out together, first."""

    first: int
    last: int
    runs: list[Run]
    # Whether its records were looked at one by one since.
    is_split: bool = False

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Run:
        """Of a batch that is not split."""
        [run] = self.runs
        return run

    def is_within(self, first: int, last: int) -> bool:
        return first <= self.first and self.last <= last

    def between(self, first: int, last: int) -> list[Run]:
        """Its runs from one offset to another, cut where they reach beyond."""
        self._cut(first)
        self._cut(last + 1)
        found: list[Run] = []
        place = bisect_left(self.runs, first, key=lambda run: run.first)
        while place < len(self.runs) and self.runs[place].first <= last:
            found.append(self.runs[place])
            place += 1
        return found

    def cut(self, offsets: Sequence[int]) -> None:
        """A run begins at each of these offsets, which are in order."""
        runs: list[Run] = []
        coming = iter(offsets)
        offset = next(coming, None)
        for each in self.runs:
            run = each
            while offset is not None and offset <= run.last:
                if offset > run.first:
                    rest = run.split(offset)
                    runs.append(run)
                    run, self.is_split = rest, True
                offset = next(coming, None)
            runs.append(run)
        self.runs = runs

    def at(self, offset: int) -> Run:
        """The run of an offset, or the last one of those before."""
        return self.runs[max(bisect_right(self.runs, offset, key=lambda run: run.first) - 1, 0)]

    def _cut(self, offset: int) -> None:
        if not self.first < offset <= self.last:
            return
        place = bisect_right(self.runs, offset, key=lambda run: run.first) - 1
        run = self.runs[place]
        if run.first < offset:
            self.runs.insert(place + 1, run.split(offset))
            self.is_split = True


def new_batch(
    first: int, last: int, state: RecordState, deliveries: int, member: str = NOBODY
) -> Batch:
    return Batch(first, last, [Run(first, last, state, deliveries, member)])
