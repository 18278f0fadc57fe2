"""Batches that take long to look at, a slice at a time between everything else.

Few bytes can hold many records, and whoever sends them must not hold up the others. Owns the lines
in which such batches wait: one per partition, so that what comes later is appended later, and one
slice of one line per turn of the event loop. Invariant: a line is there only while somebody stands
in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kafkalite.env.clock import Clock
from kafkalite.log.validator import Checked
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.steps import Steps
from kafkalite.replication.partition import Partition

# What waiting batches may hold together; who comes then is asked to come again.
MAX_HELD_BYTES = 64 * 1024 * 1024
# Batches that are done at the first look, in one turn.
DONE_PER_TURN = 64

Outcome: TypeAlias = Checked | KafkaError
_Key: TypeAlias = tuple[bytes, int]


@dataclass(slots=True)
class _Waiting:
    steps: Steps[Checked]
    size: int
    done: Callable[[Outcome], None]


class Examiner:
    """All lines of one broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[_Key, deque[_Waiting]] = {}
        self._held_bytes = 0
        self._is_due = False

    def is_busy(self, partition: Partition) -> bool:
        """Whether something has to be waited for before the next append."""
        return bool(self._lines) and _key(partition) in self._lines

    def submit(
        self,
        partition: Partition,
        steps: Steps[Checked],
        size: int,
        done: Callable[[Outcome], None],
    ) -> None:
        """Calls `done` in the partition's order; raises KafkaError when too much waits already."""
        if self._held_bytes + size > MAX_HELD_BYTES and self._lines:
            raise KafkaError(Error.REQUEST_TIMED_OUT, "too many large batches are being looked at")
        self._go_on()
        self._held_bytes += size
        self._lines.setdefault(_key(partition), deque()).append(_Waiting(steps, size, done))

    def _go_on(self) -> None:
        """Has a turn come, one at a time whoever asks."""
        if not self._is_due:
            self._is_due = True
            self._clock.call_later(0, self._turn)

    def _turn(self) -> None:
        self._is_due = False
        try:
            for _ in range(DONE_PER_TURN):
                if not (self._lines and self._finish_first()):
                    return
        finally:
            if self._lines:
                self._go_on()

    def _finish_first(self) -> bool:
        """One slice for the line whose turn it is; whether that was its batch's last."""
        key, line = next(iter(self._lines.items()))
        del self._lines[key]
        first = line.popleft()
        self._held_bytes -= first.size
        try:
            outcome = advance(first.steps)
            if outcome is None:
                line.appendleft(first)
                self._held_bytes += first.size
        finally:
            if line:
                self._lines[key] = line  # behind the others
        if outcome is None:
            return False
        first.done(outcome)
        return True


def advance(steps: Steps[Checked], slices: int = 1) -> Outcome | None:
    """What came of it within so many slices, None when there is more to do."""
    try:
        for _ in range(slices):
            next(steps)
    except StopIteration as stop:
        checked: Checked = stop.value
        return checked
    except KafkaError as error:
        return error
    return None


def _key(partition: Partition) -> _Key:
    return partition.topic_id, partition.index
