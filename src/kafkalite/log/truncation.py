"""Cutting a log at its end, or emptying it: what a follower does to agree with its leader.

Owns the order in which segments, indexes, epochs, snapshots and producer state are cut, such that a
crash between any two steps leaves a log that recovery accepts. Invariant: afterwards the log ends
at the offset asked for, or below it where a batch spans it.

A cut is announced, made, and made to last. What of it waits for the disk is handed out, one need
after the other: where a log is opened they are met at once, and by workers where it serves, see
`cutting`. In between the log is as it was, or as it is to be.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TypeAlias

from kafkalite.env.slicing import Steps, finish
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.log_state import LogState
from kafkalite.log.names import (
    CUT,
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
from kafkalite.log.seals import SEALS
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets, snapshot_path

# A checkpoint that has to say what is so now, something that touches files alone, or long work of
# the loop.
Need: TypeAlias = "str | Callable[[], object] | Steps[None]"


def truncate_to(log: LogState, offset: int) -> bool:
    """Removes every batch that reaches an offset; True when there was one."""
    if not reaches(log, offset):
        return False
    meet_all(log, Cut(log, offset))
    return True


def truncate_fully(log: LogState, offset: int) -> None:
    """Empties the log; the next record gets the offset given."""
    meet_all(log, Cut(log, offset, is_whole=True))


def reaches(log: LogState, offset: int) -> bool:
    """Whether the log has to be cut for it; epochs that begin behind its end go in any case."""
    if offset >= log.log_end_offset and log.epochs.truncate_end(log.log_end_offset):
        log.durability.epochs_changed()
    return offset < log.log_end_offset


def meet_all(log: LogState, cut: Cut) -> None:
    """Makes a cut and waits for the disk."""
    for need in cut.needs():
        if isinstance(need, str):
            log.home.save_checkpoint(need)
        elif isinstance(need, Generator):
            finish(need)
        else:
            need()


class Cut:
    """One cut, at an offset; with `is_whole` nothing is left, and the log begins there."""

    __slots__ = ("_announced", "_begun", "_gone", "_is_whole", "_log", "_offset", "is_made")

    def __init__(self, log: LogState, offset: int, *, is_whole: bool = False) -> None:
        self._log, self._offset = log, offset
        self._is_whole = is_whole or offset < log.segments[0].base_offset
        self._announced: int | None = None  # in the seals
        self._begun: Segment | None = None  # a new one, for a log that begins anew
        self._gone: list[str] = []  # files that are out of the log
        self.is_made = False  # or about to be: there is no way back

    def needs(self) -> Iterator[Need]:
        """What has to be met, each before the next is asked for. Before it is made a cut may be
        given up; behind the last nothing of it is taken back by a crash."""
        while needs := self._announcement():
            yield from needs
        if self._is_whole and self._offset not in self._log.bases:
            # Before the others go: a log that a crash leaves without any begins at 0.
            self._begun = self._begin()
            yield partial(self._log.home.disk.sync_directory, self._log.directory)
        start = self._log.log_start_offset
        kept = self._make()
        self._log.reloading = reload_producers(self._log)
        yield self._log.reloading
        yield self._last(kept)
        if self._log.log_start_offset < start:
            yield LOG_STARTS

    def give_up(self) -> None:
        """Nothing was cut."""
        if self._begun is not None:
            self._begun.close()
            paths = [self._begun.path(kind) for kind in SEGMENT_SUFFIXES]
            self._log.home.remove_now(paths)

    def _announcement(self) -> list[Need]:
        """What is still to be said of it: whatever a crash leaves behind is looked at by recovery,
        and nothing that was sealed behind the cut counts, nor where the log was closed."""
        log, needs = self._log, list[Need]()
        first, recovery_point = self._extent()
        seals = log.seals
        if seals is not None and (self._announced is None or first < self._announced):
            self._announced = first
            if seals.cut(log.home.disk, log.directory, first):
                work = FlushWork(0, 0, [f"{log.directory}/{SEALS}"])
                needs.append(partial(sync_all, log.home.disk, [work]))
        if recovery_point < log.recovery_point:
            log.recovery_point = recovery_point
            needs.append(RECOVERY_POINTS)
        return needs

    def _extent(self) -> tuple[int, int]:
        """The first offset that goes, and what recovery has to begin with. A batch that spans the
        offset goes as a whole, so the log may end before it; recovery begins at a segment's first
        offset in any case."""
        if self._is_whole:
            return self._offset, min(self._offset, self._log.segments[0].base_offset)
        segment = self._last_segment()
        header = segment.find(self._offset)
        first = self._offset if header is None else min(self._offset, header.base_offset)
        return first, segment.base_offset

    def _last_segment(self) -> Segment:
        return self._log.segments[max(0, self._log.slot_of(self._offset - 1))]

    def _begin(self) -> Segment:
        log = self._log
        return begin_segment(log.home, log.directory, self._offset, log.config)

    def _make(self) -> Segment:
        """In one go, in memory and in the files; returns the segment that is the last now."""
        log, offset = self._log, self._offset
        self.is_made = True
        if self._begun is not None:
            log.add_segment(self._begun)
        kept = log.segments[log.bases.index(offset)] if self._is_whole else self._last_segment()
        for segment in reversed(log.segments.copy()):
            if segment is not kept and (self._is_whole or segment.base_offset > kept.base_offset):
                self._take_out(segment)
        kept.truncate_to(offset, log.home.env.clock.now_ms())
        kept.write_aborted()
        if self._is_whole:
            log.cut(offset)
            log.begin_at(offset, offset)
            is_cut = log.epochs.clear()
        else:
            log.cut(kept.next_offset())
            log.log_start_offset = min(log.log_start_offset, log.log_end_offset)
            is_cut = log.epochs.truncate_end(log.log_end_offset)
        if is_cut:
            log.durability.epochs_changed()
        return kept

    def _take_out(self, segment: Segment) -> None:
        """Its files have other names at once, since its offsets will be given again."""
        self._log.drop_segment(segment)
        segment.close()
        disk = segment.disk
        # The log last: recovery removes indexes without a log, but would trust a log without them.
        for kind in reversed(SEGMENT_SUFFIXES):
            path = segment.path(kind)
            if disk.exists(path):
                disk.rename(path, path + CUT)
                self._gone.append(path + CUT)

    def _last(self, kept: Segment) -> Need:
        """Or else a crash may bring old batches back between new ones of the same size, entries of
        an index that flushes do not reach any more because the next segment begins here, or a
        segment with offsets that were given again."""
        disk = kept.disk
        kinds = [kind for kind in SEGMENT_SUFFIXES if disk.exists(kept.path(kind))]
        work = FlushWork(0, 0, [kept.path(kind) for kind in kinds], [self._log.directory])
        home, gone = self._log.home, self._gone

        def last() -> None:
            sync_all(disk, [work])
            home.remove_now(gone)

        return last


def reload_producers(log: LogState) -> Steps[None]:
    """Makes the producer state that of the log as it is now, which nothing is appended to
    meanwhile."""
    disk, start, end = log.home.disk, log.log_start_offset, log.log_end_offset
    names = disk.list_directory(log.directory)
    for name in names:
        if is_offset_name(name, SNAPSHOT) and not start < offset_of(name) <= end:
            disk.remove(snapshot_path(log.directory, offset_of(name)))
    offsets = [offset for offset in snapshot_offsets(names) if start < offset <= end]
    if log.producers is None:
        log.snapshot_taken(offsets[-1] if offsets else start)
    else:
        producers = Producers(log.look_back, start)
        oldest_ms = log.home.env.clock.now_ms() - log.home.settings.producer_id_expiration_ms
        load_snapshot(disk, log.directory, offsets, producers, oldest_ms)
        log.snapshot_taken(producers.end_offset)
        first = max(log.slot_of(producers.end_offset), 0)
        yield from replay(producers, log.segments[first:], end)
        producers.replicated(log.high_watermark)
        log.producers = producers
    log.reloading = None
