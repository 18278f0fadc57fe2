"""Reads a partition's log from its start to its end into a shard, some records at a time.

Owns the position of one load. It never appends and never decides. Invariant: every record that
was in the log when the load ended has been replayed exactly once, in offset order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.coordinators.effects import Producer, Record
from kafkalite.coordinators.ports import Partition
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Slices, Steps, Work, caught
from kafkalite.records.batch import BatchHeader, iterate_headers, verify
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.record import iterate_records

# Read at once, and replayed a slice per turn of the event loop.
LOAD_CHUNK_BYTES = 256 * 1024
RECORDS_PER_STEP = 16
STEPS_AT_ONCE = 16


class Playback(Protocol):
    """The part of a shard that a load needs."""

    def replay(self, record: Record) -> None: ...

    def replay_end_transaction(self, producer: Producer, committed: bool) -> Steps[None] | None: ...


@dataclass(slots=True)
class Loading:
    slices: Slices
    partition: Partition
    shard: Playback
    on_end: Callable[[Loading, BaseException | None], None]
    offset: int = 0
    record_count: int = 0

    def start(self) -> None:
        """Loads the first records at once, so that a young log is ready on return."""
        self.offset = self.partition.log.log_start_offset
        steps = caught(self._replay_all())  # whatever replay raised ends this load
        try:
            for _ in range(STEPS_AT_ONCE):
                next(steps)
        except StopIteration as stop:
            self._ended(stop.value)
        else:
            self.slices.enter(Work(steps, self._ended, owner=self))

    def abandon(self) -> None:
        self.slices.drop(self)

    def _ended(self, failure: Exception | None) -> None:
        self.on_end(self, failure)

    def _replay_all(self) -> Steps[None]:
        is_done = False
        while not is_done:
            is_done = yield from self._replay_chunk()

    def _replay_chunk(self) -> Steps[bool]:
        """True at the end of the log."""
        log = self.partition.log
        start, end = self.offset, log.log_end_offset
        if start >= end:
            return True
        piece = log.read(start, LOAD_CHUNK_BYTES, end).range
        if piece is not None:
            data = piece.file.read_at(piece.position, piece.length)
            for header in iterate_headers(data):
                verify(data, header)
                yield from self._replay_batch(data, header)
                self.offset = header.next_offset
        # Compaction may have removed all up to the end: reading nothing is the end too.
        return self.offset == start or self.offset >= log.log_end_offset

    def _replay_batch(self, data: bytes, header: BatchHeader) -> Steps[None]:
        producer = None
        if header.is_transactional:
            producer = Producer(header.producer_id, header.producer_epoch)
        for record in iterate_records(data, header):
            if record.offset < self.offset:
                continue
            self.record_count += 1
            if header.is_control:
                yield from self._replay_marker(record.key, producer)
            else:
                self.shard.replay(
                    Record(record.key, record.value, None, record.offset, producer)
                )
            if self.record_count % RECORDS_PER_STEP == 0:
                yield

    def _replay_marker(self, key: bytes | None, producer: Producer | None) -> Steps[None]:
        kind = read_type(key)
        if producer is not None and kind in (ControlType.COMMIT, ControlType.ABORT):
            steps = self.shard.replay_end_transaction(producer, kind is ControlType.COMMIT)
            if steps is not None:
                yield from steps
