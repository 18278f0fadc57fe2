"""Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` files, as Apache Kafka writes them.

Owns their names and their form: batches between a control record that opens and one that closes
the file. Invariant: a file under its final name is whole; one without a closing record is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from kafkalite.coordinators.cluster.records import encode_record, read_record
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.env.slicing import Steps, finish
from kafkalite.protocol import codec
from kafkalite.protocol.messages import SnapshotFooterRecord, SnapshotHeaderRecord
from kafkalite.records.batch import iterate_headers, verify
from kafkalite.records.control import ControlRecord, ControlType, build_control_batch, read_type
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import BatchBuilder, Record, iterate_records

NAME: Final = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint")
MAX_BATCH_BYTES = 1 << 20
_AT_ONCE = 32  # records


@dataclass(slots=True, frozen=True, order=True)
class SnapshotId:
    """A snapshot covers every record below its end offset; the epoch is that of the last."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


@dataclass(slots=True)
class Contents:
    """What a snapshot holds between the records that open and close it."""

    messages: list[object] = field(default_factory=list)
    control_records: list[Record] = field(default_factory=list)


class BrokenSnapshot(Exception):
    """A file that is no whole snapshot."""


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """The snapshots in a directory, oldest first."""
    matches = (NAME.fullmatch(name) for name in disk.list_directory(directory))
    return sorted(SnapshotId(int(each["offset"]), int(each["epoch"])) for each in matches if each)


@dataclass(slots=True)
class SnapshotWriter:
    """Writes snapshots of one directory, in the versions of one level of metadata.version."""

    disk: Disk
    directory: str
    level: int
    now_ms: int

    def write(
        self, snapshot: SnapshotId, quorum: Iterable[ControlRecord], messages: Iterable[object]
    ) -> Steps[Callable[[], None]]:
        """What writes a snapshot, all of which is encoded: for a worker, since it waits for the
        disk. After a crash it is there whole or not at all."""
        header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=self.now_ms)
        opening = [(ControlType.SNAPSHOT_HEADER, codec.encode(header, 0)), *quorum]
        parts = [self._control(opening, 0, snapshot)]
        offset = len(opening)
        builder = BatchBuilder()
        for number, message in enumerate(messages):
            builder.append(self.now_ms, None, encode_record(message, self.level))
            if builder.size >= MAX_BATCH_BYTES:
                parts.append(builder.build(offset, snapshot.epoch))
                offset += builder.count
                builder = BatchBuilder()
            if (number + 1) % _AT_ONCE == 0:
                yield
        if builder.count:
            parts.append(builder.build(offset, snapshot.epoch))
            offset += builder.count
        footer = codec.encode(SnapshotFooterRecord(version=0), 0)
        parts.append(self._control([(ControlType.SNAPSHOT_FOOTER, footer)], offset, snapshot))
        path = f"{self.directory}/{snapshot.file_name}"
        return lambda: replace_file(self.disk, path, b"".join(parts))

    def _control(
        self, records: list[ControlRecord], offset: int, snapshot: SnapshotId
    ) -> bytearray:
        return build_control_batch(
            records,
            timestamp=self.now_ms,
            base_offset=offset,
            partition_leader_epoch=snapshot.epoch,
        )


def read_snapshot(disk: Disk, path: str) -> Contents:
    """What a snapshot holds; raises BrokenSnapshot unless it is whole."""
    return finish(read_contents(read_whole(disk, path), path))


def read_contents(data: bytes, path: str) -> Steps[Contents]:
    """The same of its bytes."""
    contents = Contents()
    try:
        for header in iterate_headers(data):
            verify(data, header)
            for number, record in enumerate(iterate_records(data, header), 1):
                if header.is_control:
                    contents.control_records.append(record)
                elif record.value is not None:
                    contents.messages.append(read_record(record.value))
                if number % _AT_ONCE == 0:
                    yield
        kinds = [read_type(record.key) for record in contents.control_records]
    except CorruptRecords as error:
        raise BrokenSnapshot(f"{path}: {error}") from error
    is_whole = (
        len(kinds) > 1
        and kinds[0] == ControlType.SNAPSHOT_HEADER
        and kinds[-1] == ControlType.SNAPSHOT_FOOTER
    )
    if not is_whole:
        raise BrokenSnapshot(f"{path} has no opening and closing record")
    return contents
