"""Cutting a log at its end, or emptying it: what a follower does to agree with its leader.

Owns the order in which segments, indexes, epochs, snapshots and producer state are cut, such that a
crash between any two steps leaves a log that recovery accepts. Invariant: afterwards the log ends
at the offset asked for, or below it where a batch spans it.

Each step waits for the disk. A log that is opened is cut so, by a worker or a start; and by the
loop where a follower's log parts from its leader's, which happens when another one leads.
"""

from __future__ import annotations

from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.log_state import LogState
from kafkalite.log.names import (
    LOG_STARTS,
    RECOVERY_POINTS,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    is_offset_name,
    offset_of,
)
from kafkalite.log.producers import Producers
from kafkalite.log.replay import load_snapshot, replay
from kafkalite.log.rolling import begin_segment
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets, snapshot_path


def truncate_to(log: LogState, offset: int) -> bool:
    """Removes every batch that reaches an offset; True when there was one."""
    if offset >= log.log_end_offset:
        if log.epochs.truncate_end(log.log_end_offset):
            log.durability.epochs_changed()
        return False
    if offset < log.segments[0].base_offset:
        truncate_fully(log, offset)
        return True
    # A batch that spans the offset goes as a whole, so the log may end before it; recovery begins
    # at a segment's first offset in any case.
    segment = log.segments[max(0, log.slot_of(offset - 1))]
    header = segment.find(offset)
    _announce(log, offset if header is None else min(offset, header.base_offset))
    _lower_recovery_point(log, segment.base_offset)
    while log.active is not segment:
        remove_segment(log, log.segments[-1])
    log.active.truncate_to(offset, log.home.env.clock.now_ms())
    _sync(log.active)
    end_offset = log.active.next_offset()
    _end_at(log, end_offset)
    if log.epochs.truncate_end(end_offset):
        log.durability.epochs_changed()
    _lower_start(log, end_offset)
    reload_producers(log)
    return True


def truncate_fully(log: LogState, offset: int) -> None:
    """Empties the log; the next record gets the offset given."""
    _announce(log, offset)
    _lower_recovery_point(log, min(offset, log.segments[0].base_offset))
    kept = next((each for each in log.segments if each.base_offset == offset), None)
    if kept is None:
        # Before the others go: a log that a crash leaves without any begins at 0.
        kept = begin_segment(log.home, log.directory, offset, log.config)
        log.add_segment(kept)
        log.home.disk.sync_directory(log.directory)
    for segment in reversed(log.segments.copy()):
        if segment is not kept:
            remove_segment(log, segment)
    kept.truncate_to(offset, log.home.env.clock.now_ms())
    _sync(kept)
    _end_at(log, offset)
    log.begin_at(offset, offset)
    if log.epochs.clear():
        log.durability.epochs_changed()
    reload_producers(log)


def _sync(segment: Segment) -> None:
    """Or else a crash may bring old batches back between new ones of the same size, or entries of
    an index that flushes do not reach any more because the next segment begins here."""
    segment.write_aborted()
    kinds = [kind for kind in SEGMENT_SUFFIXES if segment.disk.exists(segment.path(kind))]
    sync_all(segment.disk, [FlushWork(0, 0, [segment.path(kind) for kind in kinds])])


def _lower_recovery_point(log: LogState, offset: int) -> None:
    """Before anything else: whatever a crash leaves behind is then looked at by recovery."""
    if offset < log.recovery_point:
        log.recovery_point = offset
        log.home.save_checkpoint(RECOVERY_POINTS)


def _announce(log: LogState, offset: int) -> None:
    """Before anything else, too: a log that began anew at the start that it had, or at that of its
    last clean stop, would lose what is written from the cut on."""
    if log.seals is not None:
        log.seals.cut(log.home.disk, log.directory, offset)
    _lower_start(log, offset)


def _lower_start(log: LogState, offset: int) -> None:
    if offset < log.log_start_offset:
        log.log_start_offset = offset
        log.home.save_checkpoint(LOG_STARTS)


def _end_at(log: LogState, offset: int) -> None:
    log.cut(offset)
    # Before anything is appended: a segment that came back would hold offsets given twice.
    log.home.disk.sync_directory(log.directory)


def remove_segment(log: LogState, segment: Segment) -> None:
    """Removes a segment's files at once: its offsets will be given again, so its names are
    needed."""
    log.drop_segment(segment)
    segment.close()
    disk = log.home.disk
    # The log file last: recovery removes indexes without a log, but would trust a log without them.
    for kind in (".txnindex", ".timeindex", ".index", ".log"):
        if disk.exists(segment.path(kind)):
            disk.remove(segment.path(kind))


def reload_producers(log: LogState) -> None:
    """Makes the producer state that of the log as it is now."""
    disk, start, end = log.home.disk, log.log_start_offset, log.log_end_offset
    names = disk.list_directory(log.directory)
    for name in names:
        if is_offset_name(name, SNAPSHOT) and not start < offset_of(name) <= end:
            disk.remove(snapshot_path(log.directory, offset_of(name)))
    offsets = [offset for offset in snapshot_offsets(names) if start < offset <= end]
    if log.producers is None:
        log.snapshot_taken(offsets[-1] if offsets else start)
        return
    producers = Producers(log.look_back, start)
    oldest_ms = log.home.env.clock.now_ms() - log.home.settings.producer_id_expiration_ms
    load_snapshot(disk, log.directory, offsets, producers, oldest_ms)
    log.snapshot_taken(producers.end_offset)
    replay(producers, log.segments, end)
    producers.replicated(log.high_watermark)
    log.producers = producers
