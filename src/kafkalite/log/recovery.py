"""Finds out what of a log outlived a crash, and cuts the rest.

Owns the scan of segments that were not known to be on stable storage: every batch is checked,
indexes, epochs and producer state are built anew from those that are whole. It never keeps a
batch behind a broken one. Invariant: it may be interrupted anywhere and run again, and ends with
the same log.

Cut bytes that are more than a torn last batch are kept in a `.corrupt` file beside the segment,
and a line in the log names file, position and count: a flipped bit must not silently destroy the
whole batches behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import Disk
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.names import CORRUPT, INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_name
from kafkalite.log.producers import Producers
from kafkalite.log.replay import marker_of, note_completed
from kafkalite.log.segment import Segment
from kafkalite.records.batch import NO_PRODUCER_ID, BatchHeader, iterate_headers, verify
from kafkalite.records.errors import CorruptRecords, TruncatedRecords

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20
_COPY_BYTES = 1 << 20
_ZEROS_KEPT = 64  # a batch ends with few of them


@dataclass(slots=True)
class Progress:
    """How far one worker has come with the logs that it opens."""

    logs_opened: int = 0
    bytes_expected: int = 0
    bytes_checked: int = 0

    def check(self, size: int) -> None:
        self.bytes_checked += size


@dataclass(slots=True)
class Recovery:
    """What a recovery builds up on its way over the segments."""

    disk: Disk
    producers: Producers
    epochs: LeaderEpochs
    index_interval_bytes: int
    progress: Progress
    # Whether the next segment, at this offset, is the one that was behind a segment, whatever else
    # is known of it; None when nobody can tell.
    is_next: Callable[[Segment, int], bool | None] = lambda segment, base_offset: None
    # Whether the segment at hand has every offset: no compaction went over it, so a gap behind it
    # is a loss. (Segments above the recovery point are not compacted here; a leader's may be.)
    is_dense: bool = True
    first_offset: int | None = None  # of all, while no batch was found: compaction removes some


def recover(recovery: Recovery, segments: list[Segment]) -> list[Segment]:
    """Recovers segments in order; returns those that remain. The last may end earlier than
    before."""
    if recovery.epochs.latest < 0:
        recovery.first_offset = segments[0].base_offset
    for index, segment in enumerate(segments):
        # Below the end: its removal was lost in the crash, and the log was written on since.
        # Above it: the end of the segment before was lost, at just the end of a batch, or all of
        # the one between.
        is_below = segment.base_offset < recovery.producers.end_offset
        if is_below or (index > 0 and _is_loss_between(recovery, segments[index - 1], segment)):
            _discard(recovery.disk, segments[index:])
            return segments[:index]
        if not _recover_segment(recovery, segment):
            behind = segments[index + 1 :]
            if not behind or behind[0].base_offset != recovery.producers.end_offset:
                _discard(recovery.disk, behind)
                return segments[: index + 1]
            # What was cut lay behind the last batch that this segment ever had.
    return segments


def _is_loss_between(recovery: Recovery, one: Segment, other: Segment) -> bool:
    if other.base_offset <= recovery.producers.end_offset:
        return False
    is_next = recovery.is_next(one, other.base_offset)
    return recovery.is_dense if is_next is None else not is_next


def _recover_segment(recovery: Recovery, segment: Segment) -> bool:
    """Checks one segment and builds its indexes; False when its end was cut."""
    size = segment.log.size()
    restart(segment)
    recovery.is_dense = True
    recovery.producers.end_offset = max(recovery.producers.end_offset, segment.base_offset)
    problem: CorruptRecords | None = None
    try:
        for data, header in whole_batches(segment, size, recovery.progress.check):
            _take(recovery, segment, data, header)
    except CorruptRecords as error:
        problem = error
    if problem is not None:
        _cut(segment, size, problem)
    segment.finish()
    segment.close()
    return problem is None


def rebuild(
    disk: Disk, producers: Producers, segment: Segment, interval: int, progress: Progress
) -> None:
    """Builds the indexes of a segment that is whole anew, its aborted transactions among them, and
    brings the producers from its start to its end.

    Raises CorruptRecords when it is not whole; its batches are never touched.
    """
    recovery = Recovery(disk, producers, LeaderEpochs(), interval, progress)
    size = segment.size
    producers.end_offset = segment.base_offset
    restart(segment)
    try:
        for data, header in whole_batches(segment, size, progress.check, _check_if_it_matters):
            _take(recovery, segment, data, header)
    except CorruptRecords as error:
        position, segment.size = segment.size, size
        for kind in (INDEX, TIME_INDEX):  # half of one would be taken for a whole one
            disk.remove(segment.path(kind))
        raise CorruptRecords(f"{segment.path(LOG)} at position {position}: {error}") from None
    finally:
        segment.close()
    segment.finish()
    segment.close()


def _check_if_it_matters(data: bytes, header: BatchHeader) -> None:
    """Damage in records that no index speaks of is for who reads them to find."""
    try:
        verify(data, header)
    except CorruptRecords as error:
        if header.magic < 2 or header.is_control or header.producer_id > NO_PRODUCER_ID:
            raise
        logger.error("offset %d is damaged and stays so: %s", header.base_offset, error)


def restart(segment: Segment) -> None:
    """Forgets what is known of a segment but its file; its indexes are empty."""
    segment.forget()
    segment.size = 0
    segment.index.create()
    segment.time_index.create()
    segment.txn_index.reset()


def whole_batches(
    segment: Segment,
    size: int,
    looked_at: Callable[[int], None] = lambda size: None,
    check: Callable[[bytes, BatchHeader], None] = verify,
) -> Iterator[tuple[bytes, BatchHeader]]:
    """Batches with their bytes and a right checksum, up to `size`; raises CorruptRecords at the
    first other."""
    position = 0
    wanted = _CHUNK_BYTES
    while position < size:
        wanted = min(wanted, size - position)
        data = segment.log.read_at(position, wanted)
        end = 0
        for header in iterate_headers(data):
            check(data, header)
            end = header.end
            yield data, header
        position += end
        looked_at(end)
        if end:
            wanted = _CHUNK_BYTES
        elif len(data) < wanted or position + wanted == size:
            raise TruncatedRecords(f"the last {len(data)} bytes are no whole batch")
        else:
            wanted *= 2  # the batch is larger than what was read


def _take(recovery: Recovery, segment: Segment, data: bytes, header: BatchHeader) -> None:
    """Notes a whole batch in everything that is built from batches."""
    producers = recovery.producers
    first = header.base_offset if header.magic == 2 else header.last_offset
    if first < producers.end_offset or header.last_offset < first:
        raise CorruptRecords(f"offset {first} where {producers.end_offset} or more was next")
    if not segment.can_hold(header.last_offset):
        raise CorruptRecords(f"offset {header.last_offset} is too far from the segment's first")
    if first != producers.end_offset or header.record_count != header.last_offset_delta + 1:
        recovery.is_dense = False
    epoch = header.partition_leader_epoch
    if epoch >= 0 and epoch != recovery.epochs.latest:
        start = header.base_offset if recovery.first_offset is None else recovery.first_offset
        recovery.epochs.assign(epoch, start)
    recovery.first_offset = None
    if header.producer_id > NO_PRODUCER_ID:
        completed = producers.apply(header, marker_of(data, header))
        if completed is not None:
            note_completed(producers, segment, completed)
    producers.end_offset = header.next_offset
    segment.note(
        header.last_offset, header.max_timestamp, header.size, recovery.index_interval_bytes
    )


def _cut(segment: Segment, size: int, problem: CorruptRecords) -> None:
    """Removes everything behind the last whole batch, keeping a copy where it may be worth
    something."""
    position, count = segment.size, size - segment.size
    path = segment.path(LOG)
    kept = "not kept: a torn last batch"
    end = _end_of_contents(segment, position, size)
    if not isinstance(problem, TruncatedRecords) and end > position:
        target = f"{segment.directory}/{offset_name(segment.base_offset)}.{position}{CORRUPT}"
        kept = f"kept in {target}"
        _copy(segment, position, end, target)
    logger.warning("%s: cut %d bytes at position %d (%s); %s", path, count, position, problem, kept)
    segment.log.truncate(position)
    segment.log.sync()


def is_hole(segment: Segment, position: int, size: int) -> bool:
    """Whether only zeros follow."""
    return _end_of_contents(segment, position, size) == position


def _end_of_contents(segment: Segment, position: int, size: int) -> int:
    """Where only zeros follow; `position` when there is nothing else. A file that had grown before
    its bytes arrived, or was preallocated, ends in a hole."""
    end = position
    while position < size:
        data = segment.log.read_at(position, min(_COPY_BYTES, size - position))
        contents = len(data.rstrip(b"\0"))
        if contents:  # some zeros behind it may be contents too
            end = min(position + contents + _ZEROS_KEPT, size)
        position += len(data)
    return end


def _copy(segment: Segment, position: int, size: int, target: str) -> None:
    copy = segment.disk.create(target)
    try:
        start = position
        while position < size:
            data = segment.log.read_at(position, min(_COPY_BYTES, size - position))
            copy.write_at(position - start, data)
            position += len(data)
        copy.sync()
    except OSError as error:
        logger.error("%s could not be written: %s", target, error)
    finally:
        copy.close()


def _discard(disk: Disk, segments: list[Segment]) -> None:
    """Takes segments behind a cut out of the log; their batches are kept in `.corrupt` files."""
    for segment in segments:
        path, size = segment.path(LOG), segment.log.size()
        segment.close()
        target = f"{segment.directory}/{offset_name(segment.base_offset)}.0{CORRUPT}"
        logger.warning("%s: all %d bytes lie behind a cut; kept in %s", path, size, target)
        if size:
            disk.rename(path, target)
        else:
            disk.remove(path)
        for kind in (INDEX, TIME_INDEX, TXN_INDEX):
            if disk.exists(segment.path(kind)):
                disk.remove(segment.path(kind))
    if segments:
        # Before anything is appended: a segment that came back would hold offsets given twice.
        disk.sync_directory(segments[0].directory)
