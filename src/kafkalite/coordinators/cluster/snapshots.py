"""Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` files, as Apache Kafka writes them.

Owns their names and their form: batches between a control record that opens and one that closes
the file. Invariant: a file under its final name is whole; one without a closing record is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kafkalite.coordinators.cluster.records import decode_record, encode_record
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.protocol import codec
from kafkalite.protocol.messages import SnapshotFooterRecord, SnapshotHeaderRecord
from kafkalite.records.batch import iterate_headers, verify
from kafkalite.records.control import ControlType, build_control_batch, read_type
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import BatchBuilder, iterate_records

NAME: Final = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint")
MAX_BATCH_BYTES = 1 << 20


@dataclass(slots=True, frozen=True, order=True)
class SnapshotId:
    """A snapshot covers every record below its end offset; the epoch is that of the last."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


class BrokenSnapshot(Exception):
    """A file that is no whole snapshot."""


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """The snapshots in a directory, oldest first."""
    matches = (NAME.fullmatch(name) for name in disk.list_directory(directory))
    return sorted(SnapshotId(int(each["offset"]), int(each["epoch"])) for each in matches if each)


def write_snapshot(
    disk: Disk, directory: str, snapshot: SnapshotId, messages: Iterable[Any], now_ms: int
) -> None:
    """Writes a snapshot; after a crash it is there whole or not at all."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=now_ms)
    parts = [_control(ControlType.SNAPSHOT_HEADER, codec.encode(header, 0), 0, snapshot, now_ms)]
    offset = 1
    for builder in _batches(messages, now_ms):
        parts.append(builder.build(offset, snapshot.epoch))
        offset += builder.count
    footer = codec.encode(SnapshotFooterRecord(version=0), 0)
    parts.append(_control(ControlType.SNAPSHOT_FOOTER, footer, offset, snapshot, now_ms))
    replace_file(disk, f"{directory}/{snapshot.file_name}", b"".join(parts))


def _control(
    kind: ControlType, value: bytes, offset: int, snapshot: SnapshotId, now_ms: int
) -> bytearray:
    return build_control_batch(
        kind,
        value,
        timestamp=now_ms,
        base_offset=offset,
        partition_leader_epoch=snapshot.epoch,
    )


def _batches(messages: Iterable[Any], now_ms: int) -> Iterator[BatchBuilder]:
    builder = BatchBuilder()
    for message in messages:
        builder.append(now_ms, None, encode_record(message))
        if builder.size >= MAX_BATCH_BYTES:
            yield builder
            builder = BatchBuilder()
    if builder.count:
        yield builder


def read_snapshot(disk: Disk, directory: str, snapshot: SnapshotId) -> list[Any]:
    """The messages of a snapshot; raises BrokenSnapshot unless it is whole."""
    data = read_whole(disk, f"{directory}/{snapshot.file_name}")
    messages: list[Any] = []
    kinds: list[ControlType] = []
    try:
        for header in iterate_headers(data):
            verify(data, header)
            for record in iterate_records(data, header):
                if header.is_control:
                    kinds.append(read_type(record.key))
                elif record.value is not None:
                    messages.append(decode_record(record.value))
    except CorruptRecords as error:
        raise BrokenSnapshot(f"{snapshot.file_name}: {error}") from error
    is_whole = (
        len(kinds) > 1
        and kinds[0] == ControlType.SNAPSHOT_HEADER
        and kinds[-1] == ControlType.SNAPSHOT_FOOTER
    )
    if not is_whole:
        raise BrokenSnapshot(f"{snapshot.file_name} has no opening and closing record")
    return messages
