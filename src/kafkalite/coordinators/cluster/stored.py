"""The metadata as it lies on the disk: the newest whole snapshot, and what the log has behind it.

Reads and never changes a byte, so that a broker that must not go on leaves the directory as it
found it. What a crash left behind the last whole batch is passed over, as recovery cuts it off.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from kafkalite.coordinators.cluster.quorum import Quorum
from kafkalite.coordinators.cluster.records import read_record
from kafkalite.coordinators.cluster.snapshots import (
    BrokenSnapshot,
    Contents,
    SnapshotId,
    list_snapshots,
    read_snapshot,
)
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.disk import Disk
from kafkalite.log.names import LOG, is_offset_name, offset_of
from kafkalite.log.recovery import whole_batches
from kafkalite.log.segment import Segment
from kafkalite.records.batch import BatchHeader
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import iterate_records

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Stored:
    """A directory of metadata that is being read."""

    disk: Disk
    directory: str
    quorum: Quorum
    # Known when all was read: of the next record, and of the last one.
    end_offset: int = 0
    epoch: int = 0
    bytes_behind_snapshot: int = 0
    # Segments, by base offset, of which the snapshot has everything.
    covered: list[int] = field(default_factory=list)

    def read(self) -> Iterator[object]:
        """Every message in order; raises one of `refusal.CAUSES`."""
        if not self.disk.is_directory(self.directory):
            return
        segments = self._segments()
        first_offset = segments[0].base_offset if segments else 0
        snapshot, contents = self._newest_snapshot(first_offset)
        if snapshot is not None:
            self.end_offset, self.epoch = snapshot.end_offset, snapshot.epoch
            for record in contents.control_records:
                self.quorum.fold(record, snapshot.end_offset - 1)
            yield from contents.messages
        elif first_offset > 0:
            raise BrokenSnapshot(f"the log begins at {first_offset} without a snapshot")
        while len(segments) > 1 and segments[1].base_offset <= self.end_offset:
            self.covered.append(segments.pop(0).base_offset)
        for data, header in self._batches(segments):
            if header.base_offset > self.end_offset:
                raise BrokenSnapshot(f"nothing has the offsets from {self.end_offset} on")
            if header.next_offset > self.end_offset:
                self.epoch = header.partition_leader_epoch
                self.bytes_behind_snapshot += header.size
                yield from self._messages(data, header)
                self.end_offset = header.next_offset

    def _segments(self) -> list[Segment]:
        names = self.disk.list_directory(self.directory)
        bases = sorted(offset_of(name) for name in names if is_offset_name(name, LOG))
        return [Segment(self.disk, self.directory, base, 0, 0) for base in bases]

    def _newest_snapshot(self, first_offset: int) -> tuple[SnapshotId | None, Contents]:
        for snapshot in reversed(list_snapshots(self.disk, self.directory)):
            if snapshot.end_offset < first_offset:
                break  # records between it and the log are gone
            try:
                path = f"{self.directory}/{snapshot.file_name}"
                return snapshot, read_snapshot(self.disk, path)
            except BrokenSnapshot as error:
                if snapshot.end_offset == 0:
                    raise  # formatting wrote it, and nothing else may say who the voters are
                logger.warning("a metadata snapshot is passed over: %s", error)
        return None, Contents()

    def _batches(self, segments: list[Segment]) -> Iterator[tuple[bytes, BatchHeader]]:
        """Whole batches, as far as their offsets go on without a gap."""
        position = segments[0].base_offset if segments else 0
        for segment in segments:
            if segment.base_offset != position:
                return
            try:
                for data, header in whole_batches(segment, segment.log.size()):
                    if header.base_offset < position:
                        raise CorruptRecords(f"offset {header.base_offset} comes twice")
                    yield data, header
                    position = header.next_offset
            except CorruptRecords as error:
                logger.info("%s ends at %d: %s", segment.path(LOG), position, error)
            finally:
                segment.close()

    def _messages(self, data: bytes, header: BatchHeader) -> Iterator[object]:
        for record in iterate_records(data, header):
            if record.offset < self.end_offset:
                continue
            if header.is_control:
                self.quorum.fold(record, record.offset)
            elif record.value is not None:
                yield read_record(record.value)
