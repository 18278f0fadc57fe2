"""A partition in memory with a real log's rules, which can be told to fail or to lag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.memory import MemoryDisk
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import iterate_headers, patch, read_header
from kafkalite.records.record import iterate_records


@dataclass(slots=True)
class Appended:
    base_offset: int
    last_offset: int


@dataclass(slots=True)
class Slice:
    range: FileRange | None


@dataclass(slots=True)
class FakeConfig:
    max_message_bytes: int = 1_048_588


@dataclass(slots=True)
class FakeLog:
    """Batches in one file of a memory disk; reads start at a batch, like a real log's."""

    batches: list[bytearray] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    disk: MemoryDisk = field(default_factory=lambda: MemoryDisk(now_ms=lambda: 0))
    config: FakeConfig = field(default_factory=FakeConfig)

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> Slice:
        chosen = bytearray()
        for batch in self.batches:
            header = read_header(batch)
            if header.last_offset < offset or header.base_offset >= limit_offset:
                continue
            if chosen and len(chosen) + len(batch) > max_bytes:
                break
            chosen += batch
        if not chosen:
            return Slice(None)
        file = self.disk.create("/piece")
        file.write_at(0, chosen)
        return Slice(FileRange(file, 0, len(chosen)))

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> None:
        """Nothing needs a proof here."""

    def append(self, batch: memoryview, leader_epoch: int) -> Appended:
        header = read_header(batch)
        patch(batch, header, self.log_end_offset, leader_epoch)
        base_offset = self.log_end_offset
        self.log_end_offset += header.last_offset_delta + 1
        self.batches.append(bytearray(batch))
        return Appended(base_offset, self.log_end_offset - 1)

    def records(self) -> list[Any]:
        return [
            record
            for batch in self.batches
            for header in iterate_headers(batch)
            if not header.is_control
            for record in iterate_records(batch, header)
        ]


@dataclass(slots=True)
class FakePartition:
    """Commits at once unless `is_lagging`; then `commit()` moves the high watermark."""

    log: FakeLog = field(default_factory=FakeLog)
    high_watermark: int = 0
    leader_epoch: int = 0
    is_lagging: bool = False
    # What the next appends meet with; None lets one through.
    failures: list[KafkaError | None] = field(default_factory=list)
    origins: list[AppendOrigin] = field(default_factory=list)
    waiting: list[tuple[int, Later[KafkaError | None]]] = field(default_factory=list)

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin,
        *,
        is_all: bool,
        transaction_version: int = 0,
    ) -> Appended:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        self.origins.append(origin)
        appended = self.log.append(records, self.leader_epoch)
        if not self.is_lagging:
            self.commit()
        return appended

    def commit(self, offset: int | None = None) -> None:
        self.high_watermark = self.log.log_end_offset if offset is None else offset
        due = [later for end, later in self.waiting if end <= self.high_watermark]
        self.waiting = [entry for entry in self.waiting if entry[0] > self.high_watermark]
        for later in due:
            later.resolve(None)

    def end(self, error: KafkaError) -> None:
        """The role is lost, or the log."""
        waiting, self.waiting = self.waiting, []
        for _, later in waiting:
            later.resolve(error)

    def delete_records_before(self, offset: int) -> int:
        self.log.log_start_offset = offset
        return offset

    def when_committed(self, offset: int) -> Later[KafkaError | None]:
        later: Later[KafkaError | None] = Later()
        if offset <= self.high_watermark:
            later.resolve(None)
        else:
            self.waiting.append((offset, later))
        return later
