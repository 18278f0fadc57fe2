"""Batches that take long to look at, a slice at a time between everything else.

Few bytes can hold many records, and whoever sends or asks for them must not hold up the others.
Owns the lines in which such batches wait: one per partition for what is to be appended, so that
what comes later is appended later, and one for each reader; and one slice of one line per turn of
the event loop. Invariant: a line is there only while somebody stands in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from kafkalite.env.clock import Clock
from kafkalite.log.validator import Checked
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.steps import Steps
from kafkalite.replication.partition import Partition

# What waiting batches may hold together; who comes then is asked to come again.
MAX_HELD_BYTES = 64 * 1024 * 1024
# Batches that are done at the first look, in one turn.
DONE_PER_TURN = 64
# What is looked at before anybody has to wait: some milliseconds of work at most.
FREE_SLICES = 8

T = TypeVar("T")
_Key: TypeAlias = tuple[bytes, int]

_READERS = b""  # in place of a topic's id


@dataclass(slots=True)
class _Waiting:
    steps: Steps[Any]
    size: int
    done: Callable[[Any], None]


class Examiner:
    """All lines of one broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[_Key, deque[_Waiting]] = {}
        self._held_bytes = 0
        self._readers = 0
        self._is_due = False

    def is_busy(self, partition: Partition) -> bool:
        """Whether something has to be waited for before the next append."""
        return bool(self._lines) and _key(partition) in self._lines

    def submit(
        self,
        partition: Partition,
        steps: Steps[Checked],
        size: int,
        done: Callable[[Checked | KafkaError], None],
    ) -> None:
        """Calls `done` in the partition's order; raises KafkaError when too much waits already."""
        self._submit(_key(partition), _Waiting(steps, size, done))

    def read(self, steps: Steps[T], size: int, done: Callable[[T | KafkaError], None]) -> None:
        """The same for who waits for nobody; `size` is what it holds in memory."""
        self._readers += 1
        self._submit((_READERS, self._readers), _Waiting(steps, size, done))

    def _submit(self, key: _Key, waiting: _Waiting) -> None:
        size = waiting.size
        if self._held_bytes + size > MAX_HELD_BYTES and self._lines:
            raise KafkaError(Error.REQUEST_TIMED_OUT, "too many large batches are being looked at")
        self._go_on()
        self._held_bytes += size
        self._lines.setdefault(key, deque()).append(waiting)

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


def advance(steps: Steps[T], slices: int = 1) -> T | KafkaError | None:
    """What came of it within so many slices, None when there is more to do."""
    try:
        for _ in range(slices):
            next(steps)
    except StopIteration as stop:
        value: T = stop.value
        return value
    except KafkaError as error:
        return error
    return None


def _key(partition: Partition) -> _Key:
    return partition.topic_id, partition.index
