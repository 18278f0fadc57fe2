"""Chooses the log that needs compaction most, runs the passes, and puts new segments in place.

Owns the `cleaner-offset-checkpoint` and the order of renames that makes a crash harmless. One pass
runs at a time for the whole broker, in small steps on a worker thread with pauses as long as the
steps, so that clients do not feel it. Invariant: at every moment the files of the log are the old
segments, or a `.swap` that recovery completes, or the new segments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.env.clock import Timer
from kafkalite.log.compaction import STEP_BYTES, Cleaned, Compaction, Plan, Source
from kafkalite.log.directory import LogDirectory
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.names import (
    CLEANED,
    CLEANER_OFFSETS,
    INDEX,
    LOG,
    RECOVERY_POINTS,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    offset_name,
)
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.retention import remove_later
from kafkalite.log.segment import Segment
from kafkalite.records.errors import CorruptRecords

if TYPE_CHECKING:
    from kafkalite.log.manager import LogManager

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
_END = object()


@dataclass(slots=True)
class Dirt:
    """How much of a log waits for compaction."""

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int
    ratio: float
    is_overdue: bool


def measure(log: PartitionLog, cleaned_to: int, now_ms: int) -> Dirt | None:
    """What of a log could be cleaned; None when nothing."""
    first_dirty = max(cleaned_to, log.log_start_offset)
    if first_dirty > log.active.base_offset:
        first_dirty = log.log_start_offset  # the log was cut below what was cleaned
    # What recovery may have to look at stays as it was written: there a gap means a loss.
    end = min(log.last_stable_offset, log.active.base_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    closed = log.segments[:-1]
    if lag_ms > 0:
        for segment in closed:
            if segment.base_offset >= first_dirty and segment.max_timestamp[0] > now_ms - lag_ms:
                end = min(end, segment.base_offset)
                break
    clean_bytes = sum(segment.size for segment in closed if segment.base_offset < first_dirty)
    dirty = [s for s in closed if first_dirty <= s.base_offset < end]
    # A segment that the end cuts through is not looked at; cleaning ends where a segment does.
    dirty_bytes = sum(segment.size for segment in dirty)
    if not dirty_bytes:
        return None
    oldest = min((s.first_timestamp for s in dirty if s.first_timestamp > 0), default=now_ms)
    is_overdue = oldest < now_ms - max(log.config.max_compaction_lag_ms, 0)
    return Dirt(log, first_dirty, end, dirty_bytes / (clean_bytes + dirty_bytes), is_overdue)


class Cleaner:
    """The compaction of one broker."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._offsets: dict[int, dict[TopicPartition, int]] = {}  # by directory
        self._timer: Timer | None = None
        self.is_running = False

    def start(self) -> None:
        for directory in self._manager.directories:
            if directory.home.is_online:
                self._offsets[id(directory)] = directory.read(CLEANER_OFFSETS)
        if self._manager.settings.log_cleaner_enable:
            self._later(self._manager.settings.log_cleaner_backoff_ms)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_running = False

    def _later(self, delay_ms: int) -> None:
        self._timer = self._manager.env.clock.call_later(delay_ms, self.run)

    def cleaned_to(self, log: PartitionLog) -> int:
        """The offset up to which a log is clean; the checkpoint of its directory says so."""
        offsets = self._offsets.get(id(self._manager.directory_of(log)), {})
        return offsets.get((log.topic, log.partition), 0)

    # --- choosing ---------------------------------------------------------------------------------

    def choose(self) -> Dirt | None:
        """The log with the largest share of dirt among those that have enough of it."""
        now_ms = self._manager.env.clock.now_ms()
        best: Dirt | None = None
        for log in self._manager:
            if not log.config.is_compacted or not log.home.is_online or len(log.segments) < 2:
                continue
            dirt = measure(log, self.cleaned_to(log), now_ms)
            if dirt is None:
                continue
            is_enough = dirt.is_overdue or dirt.ratio > log.config.min_cleanable_dirty_ratio
            if is_enough and (best is None or dirt.ratio > best.ratio):
                best = dirt
        return best

    def run(self) -> None:
        """Begins a pass over the dirtiest log, or looks again later."""
        if self.is_running:
            return
        dirt = self.choose()
        if dirt is None:
            self._later(self._manager.settings.log_cleaner_backoff_ms)
            return
        self.is_running = True
        Pass(self._manager, dirt, self._passed).start()

    def _passed(self, done: Pass, end_offset: int | None) -> None:
        """A pass is over: successfully up to an offset, or not at all."""
        if not self.is_running:
            return
        self.is_running = False
        if end_offset is None:
            self._later(self._manager.settings.log_cleaner_backoff_ms)
            return
        directory = done.directory
        offsets = dict(self._offsets.get(id(directory), {}))
        offsets[done.log.topic, done.log.partition] = end_offset
        known = {(log.topic, log.partition) for log in self._manager.logs_in(directory)}
        self._offsets[id(directory)] = {k: v for k, v in offsets.items() if k in known}
        directory.write_later(CLEANER_OFFSETS, self._offsets[id(directory)])
        self._later(0)


class Pass:
    """One pass on its way: map the keys, then write and put in place one group after the other."""

    def __init__(
        self, manager: LogManager, dirt: Dirt, on_end: Callable[[Pass, int | None], None]
    ) -> None:
        self.log = dirt.log
        self.directory: LogDirectory = manager.directory_of(dirt.log)
        self._env = manager.env
        self._bytes_per_ms = manager.settings.log_cleaner_io_max_bytes_per_second / 1000
        self._on_end = on_end
        self._recovery_points = manager.offsets(self.directory, RECOVERY_POINTS)
        self._plan = self._make_plan(dirt, manager.settings.log_cleaner_dedupe_buffer_size)
        self._compaction = Compaction(manager.env.disk, self._plan)
        self._sizes = {source.base_offset: source.size for source in self._plan.sources}
        self._segments = {
            s.base_offset: s for s in self.log.segments if s.base_offset in self._sizes
        }
        self._groups: list[list[Source]] = []

    def _make_plan(self, dirt: Dirt, key_memory: int) -> Plan:
        log = dirt.log
        disk = log.home.disk
        sources = [
            Source(segment.base_offset, segment.size, disk.modified_ms(segment.path(LOG)))
            for segment in log.segments[:-1]
            if segment.base_offset < dirt.end_offset
        ]
        return Plan(
            log.directory,
            log.config,
            sources,
            dirt.first_dirty_offset,
            dirt.end_offset,
            log.aborted(log.log_start_offset, dirt.end_offset),
            {
                state.producer_id: (state.last_offset, state.epoch)
                for state in log.active_producers()
            },
            self._env.clock.now_ms(),
            key_memory,
        )

    # --- steps ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins once the recovery point is on the disk: recovery must not look at what comes."""
        self.directory.write_later(RECOVERY_POINTS, self._recovery_points, self._recorded)

    def _recorded(self, is_written: bool) -> None:
        if is_written:
            self._run(self._compaction.map_keys(), self._mapped)
        else:
            self._end(None)

    def _mapped(self) -> None:
        self._groups = self._compaction.groups()
        self._next_group()

    def _next_group(self) -> None:
        if not self._groups:
            self._end(self._compaction.end_offset)
            return
        group, done = self._groups.pop(0), list[Cleaned]()
        self._run(
            self._compaction.clean(group, done), lambda: self._guarded(lambda: self._swap(done[0]))
        )

    def _run(self, steps: Iterator[None], then: Callable[[], None]) -> None:
        """Has the steps done one by one on a worker, with pauses."""
        clock = self._env.clock
        started_ms = clock.monotonic_ms()

        def done(outcome: object) -> None:
            if isinstance(outcome, (OSError, CorruptRecords)):
                self._failed(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            elif outcome:
                then()
            else:
                took = clock.monotonic_ms() - started_ms
                pause = max(took, int(STEP_BYTES / self._bytes_per_ms))
                clock.call_later(pause, lambda: self._run(steps, then))

        self._env.background.submit(lambda: next(steps, _END) is _END, done)

    def _failed(self, error: Exception) -> None:
        """The log goes on with its old segments; a file that vanished was removed by retention."""
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            self.log.home.storage_error(error)
        elif isinstance(error, CorruptRecords) and self._is_unchanged(self._segments):
            logger.error("%s cannot be compacted: %s", self.log.directory, error)
        self._end(None)

    def _end(self, end_offset: int | None) -> None:
        totals = self._compaction.totals
        if end_offset is not None:
            logger.info(
                "%s: compacted up to %d, kept %d of %d records and %d of %d bytes",
                self.log.directory,
                end_offset,
                totals.records_kept,
                totals.records_read,
                totals.bytes_kept,
                totals.bytes_read,
            )
        self._on_end(self, end_offset)

    # --- putting a new segment in place -----------------------------------------------------------

    def _is_current(self, cleaned: Cleaned) -> bool:
        is_same_place = self.log.directory == self._plan.directory
        return self.log.home.is_online and is_same_place and self._is_unchanged(cleaned.replaces)

    def _is_unchanged(self, bases: Iterable[int]) -> bool:
        """Whether the log still has just the segments that are read here."""
        present = {segment.base_offset: segment for segment in self.log.segments}
        return all(
            present.get(base) is self._segments[base] and present[base].size == self._sizes[base]
            for base in bases
        )

    def _swap(self, cleaned: Cleaned) -> None:
        """From here on a crash leads to the new segment."""
        if not self._is_current(cleaned):
            self._drop(cleaned, CLEANED)
            return
        self._rename(cleaned, CLEANED, SWAP)
        self._synced(partial(self._replace, cleaned))

    def _replace(self, cleaned: Cleaned) -> None:
        """The old segments go; the new one is read under the name it has."""
        if not self._is_current(cleaned):
            self._drop(cleaned, SWAP)
            return
        log = self.log
        old = [self._segments[base] for base in cleaned.replaces]
        for segment in old:
            log.drop_segment(segment)
        remove_later(log, old)
        modified_ms = max(segment.created_ms for segment in old)
        new = Segment(
            log.home.disk, log.directory, cleaned.base_offset, cleaned.size, modified_ms, SWAP
        )
        log.add_segment(new)
        self._synced(partial(self._finish, cleaned, new))

    def _finish(self, cleaned: Cleaned, segment: Segment) -> None:
        """The old names are gone for good: the new segment may have its own."""
        if segment in self.log.segments:
            self._rename(cleaned, SWAP, "")
            segment.moved(segment.directory, "")
        self._synced(self._next_group)

    def _rename(self, cleaned: Cleaned, before: str, after: str) -> None:
        disk, directory = self.log.home.disk, self.log.directory
        kinds = SEGMENT_SUFFIXES if cleaned.has_aborted else (INDEX, TIME_INDEX, LOG)
        for kind in kinds:
            path = f"{directory}/{offset_name(cleaned.base_offset, kind)}"
            disk.rename(path + before, path + after)

    def _drop(self, cleaned: Cleaned, suffix: str) -> None:
        """The log changed meanwhile: what was written for it is worth nothing."""
        for kind in SEGMENT_SUFFIXES:
            path = f"{self._plan.directory}/{offset_name(cleaned.base_offset, kind)}{suffix}"
            if self._env.disk.exists(path):
                self._env.disk.remove(path)
        self._end(None)

    def _synced(self, then: Callable[[], None]) -> None:
        """Goes on when the renames so far are on stable storage."""
        work = FlushWork(0, 0, [], [self.log.directory])
        disk = self._env.disk

        def done(outcome: object) -> None:
            if isinstance(outcome, OSError):
                self.log.home.fail(outcome)
                self._end(None)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._guarded(then)

        self._env.background.submit(lambda: sync_all(disk, [work]), done)

    def _guarded(self, then: Callable[[], None]) -> None:
        try:
            then()
        except OSError as error:
            self._failed(error)
