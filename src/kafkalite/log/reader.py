"""Finding things in a log: a range of bytes to send, an offset for a time, the transactions to
hide.

Owns the search over segments. It never changes a log and never checks who asks. Invariant: a range
begins at a batch and never reaches past the limit it was given.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalite.env.disk import FileRange
from kafkalite.log.index import NO_TIMESTAMP
from kafkalite.log.segment import Segment
from kafkalite.records.batch import BatchHeader
from kafkalite.records.convert import iterate_any

_READ_AHEAD_BYTES = 1 << 20


@dataclass(slots=True)
class LogRead:
    """What a read found: at most one range, since it never crosses from one segment's file into the
    next."""

    range: FileRange | None
    end_offset: int  # every record of the range lies below; may be higher than its last one

    @property
    def size(self) -> int:
        return self.range.length if self.range is not None else 0


class FoundOffset(NamedTuple):
    """Where a point in time is in a log."""

    timestamp: int
    offset: int
    leader_epoch: int


def segment_slot(bases: Sequence[int], offset: int) -> int:
    """The index of the segment that an offset belongs to; -1 below the first."""
    return bisect_right(bases, offset) - 1


def read(
    segments: Sequence[Segment],
    slot: int,
    offset: int,
    max_bytes: int,
    limit: tuple[int, int],
    min_one_batch: bool,
) -> tuple[FileRange, int] | None:
    """Bytes from the batch that holds `offset`; with the slot of their segment, or None when there
    are none.

    `limit` is the slot and position behind which nothing may be read.
    """
    limit_slot, limit_position = limit
    while slot <= limit_slot:
        segment = segments[slot]
        end = limit_position if slot == limit_slot else segment.size
        header = segment.find(offset)
        if header is not None:
            if header.position >= end:
                return None
            size = max(max_bytes, header.size) if min_one_batch else max_bytes
            length = min(size, end - header.position)
            return FileRange(segment.log, header.position, length), slot
        slot += 1
    return None


def record_at_time(segment: Segment, timestamp: int, start_offset: int) -> FoundOffset | None:
    """The first record of a segment at or after a time and an offset."""
    _, indexed = segment.time_index.lookup(timestamp)
    for header in segment.walk(segment.index.lookup(max(indexed, start_offset))):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        found = _first_record(segment, header, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _first_record(
    segment: Segment, header: BatchHeader, timestamp: int, start_offset: int
) -> FoundOffset | None:
    for record in iterate_any(read_batch(segment, header), at_zero(header)):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def newest_record(segments: Sequence[Segment]) -> FoundOffset | None:
    """The first record that has the largest timestamp of the log."""
    newest = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp, offset = newest.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    for header in newest.walk(newest.index.lookup(offset)):
        if header.max_timestamp == timestamp:
            return _first_record(newest, header, timestamp, 0)
    return None


def read_batch(segment: Segment, header: BatchHeader) -> bytes:
    return segment.log.read_at(header.position, header.size)


def at_zero(header: BatchHeader) -> BatchHeader:
    """The header as it is for the batch alone in a buffer."""
    header.position = 0
    return header
