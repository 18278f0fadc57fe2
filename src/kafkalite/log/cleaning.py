"""One pass on its way: its steps on workers, and new segments put in the place of old ones.

Owns the order of renames that makes a crash harmless. Steps are small, with pauses as long as the
steps, so that clients do not feel them. Invariant: at every moment the files of the log are the old
segments, or a `.swap` that recovery completes, or the new segments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from kafkalite.env.dataclasses import dataclass
from kafkalite.log.compaction import STEP_BYTES, Cleaned, Compaction, Plan, Source
from kafkalite.log.directory import LogDirectory
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.log_table import LogTable
from kafkalite.log.names import (
    CLEANED,
    INDEX,
    LOG,
    RECOVERY_POINTS,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    offset_name,
)
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.retention import Rest, remove_later
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import remove_within
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)

_END = object()


@dataclass(slots=True)
class Dirt:
    """How much of a log waits for compaction."""

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int
    ratio: float
    is_overdue: bool


class Pass:
    """One pass on its way: map the keys, then write and put in place one group after the other."""

    def __init__(
        self, logs: LogTable, dirt: Dirt, on_end: Callable[[Pass, int | None], None]
    ) -> None:
        self.log = dirt.log
        self.directory: LogDirectory = logs.directory_of(dirt.log)
        self._env = logs.env
        self._bytes_per_ms = logs.settings.log_cleaner_io_max_bytes_per_second / 1000
        self._on_end = on_end
        self.hindering: Segment | None = None  # the segment that the pass could not go through
        self._logs = logs
        self._plan = self._make_plan(dirt, logs.settings.log_cleaner_dedupe_buffer_size)
        self._compaction = Compaction(logs.env.disk, self._plan)
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
            log.aborted(sources[0].base_offset, dirt.end_offset),
            {
                state.producer_id: (state.last_offset, state.epoch)
                for state in log.active_producers()
            },
            self._env.clock.now_ms(),
            key_memory,
        )

    # --- steps ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins once all that the plan goes by is on the disk: a crash that took back the end of a
        transaction would not bring back what had to give way to its records."""
        log = self.log
        segments = log.segments[max(0, log.slot_of(log.durability.durable_offset)) :]
        self._synced(self._record, files=[segment.path(LOG) for segment in segments])

    def _record(self) -> None:
        """Recovery must not look at what comes. The points are those of now: retention relies on
        what it wrote meanwhile, and a topic may have been made anew."""
        points = self._logs.offsets(self.directory, RECOVERY_POINTS)
        self.directory.write_later(RECOVERY_POINTS, points, self._recorded)

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
            self._done()
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
            if isinstance(outcome, Exception):
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

    # --- the end ----------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        """The log goes on with its old segments; a file that vanished was removed by retention."""
        if isinstance(error, OSError):
            if not isinstance(error, FileNotFoundError):
                self.log.home.storage_error(error)
        elif self._is_unchanged(self._segments):
            self._give_up(str(error), None if isinstance(error, CorruptRecords) else error)
        self._end(None)

    def _give_up(self, reason: str, error: Exception | None = None) -> None:
        """Said once: the log is not chosen again while it has this segment."""
        self.hindering = segment = self._segments[self._compaction.reading]
        logger.error(
            "%s is not compacted any more: segment %d cannot be read through: %s. It is tried again"
            " when that segment is gone (deleting the records below %d removes it) or the broker"
            " starts anew; reading, writing and other partitions go on as before",
            self.log.directory,
            segment.base_offset,
            reason,
            self._plan.end_of_segment(segment.base_offset),
            exc_info=error,
        )

    def _done(self) -> None:
        end_offset, totals = self._compaction.end_offset, self._compaction.totals
        if end_offset <= self._plan.first_dirty_offset:
            self._give_up("log.cleaner.dedupe.buffer.size is too small for one batch")
            self._end(None)
            return
        logger.info(
            "%s: compacted up to %d, kept %d of %d records and %d of %d bytes",
            self.log.directory,
            end_offset,
            totals.records_kept,
            totals.records_read,
            totals.bytes_kept,
            totals.bytes_read,
        )
        self._end(end_offset)

    def _end(self, end_offset: int | None) -> None:
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
        rest = remove_later(log, old)
        modified_ms = max(segment.created_ms for segment in old)
        new = Segment(
            log.home.disk, log.directory, cleaned.base_offset, cleaned.size, modified_ms, SWAP
        )
        log.add_segment(new)
        self._synced(partial(self._finish, cleaned, new, rest))

    def _finish(self, cleaned: Cleaned, segment: Segment, rest: Rest | None) -> None:
        """The old names are gone for good: the new segment may have its own."""
        if rest is not None:
            rest()
        if segment in self.log.segments:
            self._rename(cleaned, SWAP, "")
            segment.moved(segment.directory, "")
            following = self.log.segments.index(segment) + 1
            self.log.seal(segment, self.log.bases[following])
        home, directory = self.log.home, self.log.directory
        self._synced(
            self._next_group,
            before=lambda: remove_within(home, directory, cleaned.base_offset, cleaned.end_offset),
        )

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

    def _synced(
        self,
        then: Callable[[], None],
        *,
        files: Sequence[str] = (),
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """Goes on when these files and the renames so far are on stable storage."""
        work = FlushWork(0, 0, list(files), [self.log.directory])
        disk = self._env.disk

        def sync() -> None:
            before()
            sync_all(disk, [work])

        def done(outcome: object) -> None:
            if isinstance(outcome, FileNotFoundError):
                self._end(None)  # the log was deleted or moved
            elif isinstance(outcome, OSError):
                self.log.home.storage_error(outcome)
                self._end(None)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._guarded(then)

        self._env.background.submit(sync, done)

    def _guarded(self, then: Callable[[], None]) -> None:
        try:
            then()
        except OSError as error:
            self._failed(error)
