"""Finding things in a log: a range of bytes to send, an offset for a time, the transactions to
hide.

Owns the search over segments. It never changes a log and never checks who asks. Invariant: a range
begins at a batch and never reaches past the limit it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalite.env.disk import FileRange
from kafkalite.env.slicing import Steps
from kafkalite.log.index import NO_TIMESTAMP
from kafkalite.log.log_state import LogState
from kafkalite.log.segment import Segment
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import BatchHeader
from kafkalite.records.convert import iterate_times

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_TO_BE_TIERED = -6


@dataclass(slots=True)
class LogRead:
    """What a read found: at most one range, since it never crosses from one segment's file into the
    next."""

    range: FileRange | None
    limit: int
    segment: Segment | None = None  # of the range, when the range ends before the segment does
    is_too_small: bool = False  # there is a batch, which is larger than what may be read

    @property
    def end_offset(self) -> int:
        """Every record of the range lies below; may be higher than its last one. Looked up when
        asked for, by the reader who may see committed records only."""
        after = None
        if self.segment is not None and self.range is not None:
            after = self.segment.offset_after(self.range.position + self.range.length)
        return self.limit if after is None else min(after + 1, self.limit)

    @property
    def size(self) -> int:
        return self.range.length if self.range is not None else 0


class Place(NamedTuple):
    """Where in the log's files the batch of an offset begins, or would."""

    segment: Segment
    position: int


class FoundOffset(NamedTuple):
    """Where a point in time is in a log."""

    timestamp: int
    offset: int
    leader_epoch: int


def read(
    log: LogState, offset: int, max_bytes: int, limit: int, min_one_batch: bool
) -> LogRead:
    """Bytes from the batch that holds `offset`, or the first after it, up to the one of `limit`."""
    last, limit_position = place_of(log, limit)
    for slot in range(log.slot_of(offset), len(log.segments)):
        segment = log.segments[slot]
        if segment.base_offset > last.base_offset:
            break
        found = segment.locate(offset)
        if found is None:
            continue
        position, batch_bytes = found
        end = limit_position if segment is last else segment.size
        if position >= end:
            break
        size = max(max_bytes, batch_bytes) if min_one_batch else max_bytes
        if size < batch_bytes:
            return LogRead(None, limit, is_too_small=size > 0)
        length = min(size, end - position)
        if slot + 1 < len(log.bases):
            limit = min(limit, log.bases[slot + 1])
        is_cut = position + length < segment.size
        found_range = FileRange(segment.log, position, length)
        return LogRead(found_range, limit, segment if is_cut else None)
    return LogRead(None, limit)


def place_of(log: LogState, offset: int) -> Place:
    """The first byte that a read up to an offset may not see, and one from it on begins with."""
    segments = log.segments
    if offset >= log.log_end_offset:
        return Place(segments[-1], segments[-1].size)
    segment = segments[log.slot_of(offset)]
    found = segment.locate(offset)
    return Place(segment, found[0] if found is not None else segment.size)


def is_current(log: LogState, place: Place) -> bool:
    """Whether a place is still one of the log: compaction and retention put others there."""
    slot = log.slot_of(place.segment.base_offset)
    return slot >= 0 and log.segments[slot] is place.segment


def offset_for_time(
    log: LogState, timestamp: int, limit: int | None
) -> Steps[FoundOffset | None]:
    """The first record at or after a time, or a place with a name; None when none is below the
    limit. In steps, since a batch may hold millions of records."""
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(-1, log.log_start_offset, log.epochs.epoch_at(log.log_start_offset))
    if timestamp == LATEST:
        return FoundOffset(-1, log.log_end_offset if limit is None else limit, log.epochs.latest)
    if timestamp in (LATEST_TIERED, EARLIEST_TO_BE_TIERED):
        return FoundOffset(-1, -1, -1)
    if timestamp == MAX_TIMESTAMP:
        found = yield from _newest_record(log.segments)
    else:
        found = yield from _first_at(log, timestamp)
    return None if found is None or (limit is not None and found.offset >= limit) else found


def _first_at(log: LogState, timestamp: int) -> Steps[FoundOffset | None]:
    """The first record at or after a time.

    Between two steps the log may be cut, compacted or moved: every batch is looked up anew.
    """
    start_offset = log.log_start_offset
    while True:
        batch = _batch_at_time(log.segments, timestamp, start_offset)
        if batch is None:
            return None
        found = yield from _first_record(*batch, timestamp, start_offset)
        if found is not None:
            return found
        start_offset = batch[1].next_offset


def aborted(log: LogState, first: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions with records in a range of offsets."""
    found: list[AbortedTransaction] = []
    for segment in log.segments[max(0, log.slot_of(first)) :]:
        some, is_all = segment.txn_index.collect(first, end)
        found.extend(some)
        if is_all:
            break
    return found


def _batch_at_time(
    segments: Sequence[Segment], timestamp: int, start_offset: int
) -> tuple[bytes, BatchHeader] | None:
    """The first batch that reaches a time and an offset. A segment's may all lie below these."""
    for segment in segments:
        if segment.largest_timestamp() < timestamp:
            continue
        _, indexed = segment.time_index.lookup(timestamp)
        for header in segment.walk(segment.place_before(max(indexed, start_offset))):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                return read_batch(segment, header), at_zero(header)
    return None


def _first_record(
    data: bytes, header: BatchHeader, timestamp: int, start_offset: int
) -> Steps[FoundOffset | None]:
    for found in iterate_times(data, header):
        if found is None:
            yield
        elif found[1] >= timestamp and found[0] >= start_offset:
            return FoundOffset(found[1], found[0], header.partition_leader_epoch)
    return None


def _newest_record(segments: Sequence[Segment]) -> Steps[FoundOffset | None]:
    """The first record that has the largest timestamp of the log."""
    newest = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp, offset = newest.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    for header in newest.walk(newest.place_before(offset)):
        if header.max_timestamp == timestamp:
            return (
                yield from _first_record(read_batch(newest, header), at_zero(header), timestamp, 0)
            )
    return None


def read_batch(segment: Segment, header: BatchHeader) -> bytes:
    return segment.log.read_at(header.position, header.size)


def at_zero(header: BatchHeader) -> BatchHeader:
    """The header as it is for the batch alone in a buffer."""
    header.position = 0
    return header
