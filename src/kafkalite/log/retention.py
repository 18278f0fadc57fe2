"""Which segments are too old, too many, or below the log's start, and their removal.

Owns the rules of `retention.ms`, `retention.bytes` and DeleteRecords. It never removes a record
above the high watermark, and never a part of a segment. Invariant: the log keeps at least one
segment, and its start is never below the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kafkalite.env.disk import Disk
from kafkalite.log.log_state import LogState
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
from kafkalite.log.rolling import roll
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_path

logger = logging.getLogger(__name__)

_INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)


def expired(log: LogState, now_ms: int) -> list[Segment]:
    """The segments that the topic's settings do not keep: those below the log's start, then what
    is beyond its size, then beyond its time."""
    found = list(_leading(log, 0, lambda _, end: end <= log.log_start_offset, is_active_kept=True))
    if log.config.is_deleted:
        found += _beyond_size(log, found)
        found += _beyond_time(log, len(found), now_ms)
    return found


Condition = Callable[[Segment, int], bool]  # segment and the offset where the next one begins


def _beyond_size(log: LogState, gone: list[Segment]) -> list[Segment]:
    if log.config.retention_bytes < 0:
        return []
    excess = log.size - sum(segment.size for segment in gone) - log.config.retention_bytes

    def is_excess(segment: Segment, end: int) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return list(_leading(log, len(gone), is_excess)) if excess > 0 else []


def _beyond_time(log: LogState, first: int, now_ms: int) -> list[Segment]:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return []

    def is_old(segment: Segment, end: int) -> bool:
        return now_ms - segment.largest_timestamp() > retention_ms

    return list(_leading(log, first, is_old))


def _leading(
    log: LogState, first: int, condition: Condition, *, is_active_kept: bool = False
) -> Iterator[Segment]:
    """The segments from one on for which the condition holds, up to the high watermark."""
    segments = log.segments
    for index in range(first, len(segments)):
        segment = segments[index]
        is_active = index + 1 == len(segments)
        if is_active and (is_active_kept or segment.size == 0):
            return
        end = log.log_end_offset if is_active else segments[index + 1].base_offset
        if end > log.high_watermark or not condition(segment, end):
            return
        yield segment


def begin_after(log: LogState, segments: list[Segment]) -> int:
    """From here on the log begins behind these segments, which are its first: nobody reads them any
    more. They may go when the recovery point that is on the disk is not below the start returned.

    Recovery takes a gap behind its first segment for a loss, and a crash may leave any of these: so
    it must begin behind them all.
    """
    if segments[-1] is log.active:
        roll(log)
    start = log.segments[len(segments)].base_offset
    log.raise_start(start)
    return start


def may_go(log: LogState, start: int) -> bool:
    """Whether what lies below the start lasts, and what the log goes on with: a crash may bring
    back what was removed, and what lies below a recovery point is taken for whole."""
    is_last = log.segments[-1].base_offset == start
    return log.recovery_point >= start and (log.durability.has_names or not is_last)


# To be done when the names of a directory last.
Rest = Callable[[], None]


def remove(log: LogState, segments: list[Segment]) -> Rest | None:
    """Takes segments that lie below the log's start out of it, and their files with them, as
    `remove_later` does."""
    start = log.segments[len(segments)].base_offset
    for segment in segments:
        log.drop_segment(segment)
    rest = remove_later(log, segments)
    _remove_snapshots(log, start)
    logger.info("%s: removed %d segments below %d", log.directory, len(segments), start)
    return rest


def remove_later(log: LogState, segments: list[Segment]) -> Rest | None:
    """Renames the files of segments that are out of the log, and removes them when readers are
    done. A segment that came back without its transaction index would show what was aborted: where
    there is one, indexes keep their names until those of the logs last; returns what is due
    then."""
    disk = log.home.disk
    must_last = any(disk.exists(segment.path(TXN_INDEX)) for segment in segments)
    names = [(segment, segment.suffix, _name_of_its_own(disk, segment)) for segment in segments]
    for segment, _, suffix in names:
        # Whoever still sends from a segment reads it under its new name.
        disk.rename(segment.path(LOG), segment.path(LOG, suffix))
    for segment, _, suffix in names:
        segment.moved(segment.directory, suffix)
        segment.close()
    before = [(segment, suffix) for segment, suffix, _ in names]
    if must_last:
        _remove_then(log, segments, (LOG,))
        return partial(_remove_indexes, log, log.directory, before)
    _rename_indexes(disk, before)
    _remove_then(log, segments, (LOG, *_INDEXES))
    return None


def _remove_indexes(log: LogState, directory: str, before: list[tuple[Segment, str]]) -> None:
    """What has another name meanwhile goes as a whole."""
    if log.directory == directory:
        _rename_indexes(log.home.disk, before)
        _remove_then(log, [segment for segment, _ in before], _INDEXES)


def _rename_indexes(disk: Disk, before: list[tuple[Segment, str]]) -> None:
    for segment, suffix in before:
        for kind in _INDEXES:
            if disk.exists(segment.path(kind, suffix)):
                disk.rename(segment.path(kind, suffix), segment.path(kind))


def _remove_then(log: LogState, segments: list[Segment], kinds: Sequence[str]) -> None:
    """Of segments that have their last names: these files, when readers are done."""
    log.leaving += segments

    def names_then() -> list[str]:
        for segment in segments:
            log.leaving.remove(segment)
        return [segment.path(kind) for segment in segments for kind in kinds]

    log.home.remove_later(names_then, log.config.file_delete_delay_ms)


def _name_of_its_own(disk: Disk, segment: Segment) -> str:
    """How a segment's files end now: one that had the same place before may still be read."""
    number, suffix = 0, segment.suffix + DELETED
    while disk.exists(segment.path(LOG, suffix)):
        number += 1
        suffix = f"{segment.suffix}.{number}{DELETED}"
    return suffix


def _remove_snapshots(log: LogState, start: int) -> None:
    names = log.home.disk.list_directory(log.directory)
    old = [offset_of(name) for name in names if is_offset_name(name, SNAPSHOT)]
    # Compaction may be removing some of them just now.
    log.home.remove_now([snapshot_path(log.directory, each) for each in old if each < start])
