"""Which segments are too old, too many, or below the log's start, and their removal.

Owns the rules of `retention.ms`, `retention.bytes` and DeleteRecords. It never removes a record
above the high watermark, and never a part of a segment. Invariant: the log keeps at least one
segment, and its start is never below the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kafkalite.log.names import (
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    is_offset_name,
    offset_of,
)
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_path

if TYPE_CHECKING:
    from kafkalite.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

_INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Removes what the topic's settings do not keep; returns the number of segments."""
    try:
        count = _delete(log, _below_start(log))
        if log.config.is_deleted:
            count += _delete(log, _beyond_size(log))
            count += _delete(log, _beyond_time(log, now_ms))
    except OSError as error:
        log.home.storage_error(error)
        return 0
    return count


Condition = Callable[[Segment, int], bool]  # segment and the offset where the next one begins


def _below_start(log: PartitionLog) -> list[Segment]:
    return list(
        _leading(log, lambda segment, end: end <= log.log_start_offset, is_active_kept=True)
    )


def _beyond_size(log: PartitionLog) -> list[Segment]:
    if log.config.retention_bytes < 0:
        return []
    excess = [log.size - log.config.retention_bytes]

    def is_excess(segment: Segment, end: int) -> bool:
        if excess[0] < segment.size:
            return False
        excess[0] -= segment.size
        return True

    return list(_leading(log, is_excess)) if excess[0] > 0 else []


def _beyond_time(log: PartitionLog, now_ms: int) -> list[Segment]:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return []
    return list(
        _leading(log, lambda segment, end: now_ms - segment.largest_timestamp() > retention_ms)
    )


def _leading(
    log: PartitionLog, condition: Condition, *, is_active_kept: bool = False
) -> Iterator[Segment]:
    """The segments from the first on for which the condition holds, up to the high watermark."""
    segments = log.segments
    for index, segment in enumerate(segments):
        is_active = index + 1 == len(segments)
        if is_active and (is_active_kept or segment.size == 0):
            return
        end = log.log_end_offset if is_active else segments[index + 1].base_offset
        if end > log.high_watermark or not condition(segment, end):
            return
        yield segment


def _delete(log: PartitionLog, segments: list[Segment]) -> int:
    if not segments:
        return 0
    if segments[-1] is log.active:
        log.roll()
    start = log.segments[len(segments)].base_offset
    log.raise_start(start)
    # Recovery takes a gap behind its first segment for a loss, and a crash may leave any of these:
    # so it must begin behind them all.
    log.recovery_point = max(log.recovery_point, start)
    if log.home.saved_recovery_point(log.topic, log.partition) < start:
        log.home.save_recovery_points()
    for segment in segments:
        log.drop_segment(segment)
    remove_later(log, segments)
    _remove_snapshots(log, start)
    logger.info("%s: removed %d segments below %d", log.directory, len(segments), start)
    return len(segments)


def remove_later(log: PartitionLog, segments: list[Segment]) -> None:
    """Renames the files of segments that are out of the log, and removes them when readers are
    done."""
    disk = log.home.disk
    logs = [segment.path(LOG) for segment in segments]
    others = [segment.path(kind) for segment in segments for kind in _INDEXES]
    others = [path for path in others if disk.exists(path)]
    for path in logs:
        # Whoever still sends from a segment reads it under its new name.
        disk.rename(path, path + DELETED)
    if any(path.endswith(TXN_INDEX) for path in others):
        # One that came back without this index would show what was aborted.
        disk.sync_directory(log.directory)
    for path in others:
        disk.rename(path, path + DELETED)
    for segment in segments:
        segment.moved(segment.directory, DELETED)
        segment.close()
    paths = [path + DELETED for path in (*logs, *others)]
    log.home.remove_later(paths, log.config.file_delete_delay_ms)


def _remove_snapshots(log: PartitionLog, start: int) -> None:
    for name in log.home.disk.list_directory(log.directory):
        if is_offset_name(name, SNAPSHOT) and offset_of(name) < start:
            log.home.disk.remove(snapshot_path(log.directory, offset_of(name)))
