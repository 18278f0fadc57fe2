"""What of one log is on stable storage, who waits for more, and what has to be synced for it.

Owns the durable offset and the list of files and directories that changed since the last sync. It
never syncs anything itself: that is the flusher's, off the event loop. Invariant: everything below
`durable_offset` outlasts the machine's crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.env.later import Later
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.flusher import FlushWork
from kafkalite.log.home import LogHome
from kafkalite.log.names import INDEX, LEADER_EPOCHS, LOG, PARTITION_METADATA, TIME_INDEX, TXN_INDEX
from kafkalite.log.seals import SEALS, Seals
from kafkalite.log.segment import Segment
from kafkalite.log.watermark import Watermark
from kafkalite.protocol.errors import KafkaError


class Flushed(Protocol):
    """What of a log is looked at here; the last two are set when a complete flush is through."""

    home: LogHome
    directory: str
    segments: list[Segment]
    epochs: LeaderEpochs
    seals: Seals | None
    log_end_offset: int
    recovery_point: int
    last_flush_ms: int

    def slot_of(self, offset: int) -> int: ...


class Durability:
    """The part of a log's state that is about stable storage."""

    __slots__ = (
        "_directories",
        "_directory_changes",
        "_has_new_epochs",
        "_holds",
        "_log",
        "_lost",
        "_rolled_from",
        "_snapshots",
        "_truncations",
        "_wanted_offset",
        "on_moved",
        "watermark",
    )

    def __init__(self, log: Flushed, durable_offset: int) -> None:
        # Both until the end: what is deleted goes with its last reference, and needs no collector
        # of garbage.
        self._log: Flushed | None = log
        self._lost: KafkaError | None = None  # why nothing more of it comes to last
        self.watermark = Watermark(log.home.env.clock, durable_offset)
        self.on_moved: Callable[[], None] | None = None  # told at once; must act on nobody else
        self._wanted_offset = 0  # somebody needs everything below it to last
        self._directories: tuple[str, ...] = ()  # whose entries changed, inner ones first
        self._directory_changes = 0  # how often: what changes during a sync waits for the next
        self._snapshots: list[str] | None = None
        self._has_new_epochs = False
        self._rolled_from: int | None = None  # of the first segment completed since the last sync
        self._truncations = 0  # how often what a sync under way has to tell became worth nothing
        self._holds = 0  # by what has to last before anything here counts as durable

    @property
    def durable_offset(self) -> int:
        return self.watermark.offset

    # --- what changed -----------------------------------------------------------------------------

    def directory_changed(self, *, is_new: bool = False) -> None:
        """Files came or went; with `is_new`, the log's own directory too."""
        log = self._log
        self._directory_changes += 1
        if log is None:
            return
        if is_new:
            self._directories = (log.directory, log.home.path)
        elif not self._directories:
            self._directories = (log.directory,)

    def segment_completed(self, base_offset: int) -> None:
        """A segment got its last index entries, and lost what lay behind its records, though all
        of these may be durable already."""
        if self._rolled_from is None or base_offset < self._rolled_from:
            self._rolled_from = base_offset

    def snapshot_written(self, path: str) -> None:
        if self._snapshots is None:
            self._snapshots = []
        self._snapshots.append(path)
        self.directory_changed()

    def epochs_changed(self) -> None:
        """They are written with the next complete flush: until then recovery finds them in the
        batches above the recovery point."""
        self._has_new_epochs = True

    def truncated(self, offset: int) -> None:
        """What was durable above an offset is not in the log any more."""
        self._truncations += 1
        self._wanted_offset = min(self._wanted_offset, offset)
        self.watermark.cut_to(offset)

    def took_over(self, offset: int) -> None:
        """The log has the place of another, of which everything below an offset was durable: more
        than that is so when its new name is."""
        self.watermark.lower_to(offset)
        self.directory_changed(is_new=True)

    def replaced(self, offset: int) -> None:
        """Another log has the place of this one, and holds everything below an offset on stable
        storage."""
        self._is_durable_up_to(offset)

    def moved(self, old: str, new: str) -> None:
        """The directory has another name: a sync that runs may find no file under the old one, and
        tells nothing."""
        self._directories = tuple(new if path == old else path for path in self._directories)
        self._directory_changes += 1
        self._truncations += 1
        self._has_new_epochs |= self._log is not None and self._log.epochs.latest >= 0
        self._snapshots = None

    @property
    def has_contents(self) -> bool:
        """Whether records, or what is kept beside them, wait to be synced."""
        log = self._log
        if log is None:
            return False
        is_behind = log.recovery_point < log.log_end_offset
        has_new_files = self._has_new_epochs or bool(self._snapshots)
        return is_behind or has_new_files or self._rolled_from is not None

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all waits to be synced; a new log without a record has its names."""
        return not self.has_contents and not self._directories

    @property
    def is_named(self) -> bool:
        """Whether what the log is called lasts, and whose it is."""
        return len(self._directories) < 2

    @property
    def has_names(self) -> bool:
        """Whether the files and the directory have lasting names."""
        return not self._directories

    # --- waiting ----------------------------------------------------------------------------------

    def hold(self) -> None:
        """Until it is released, nothing more of this log counts as durable: it would be worth
        nothing without something else that is not, perhaps on another disk."""
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        self._go_on()

    def want(self, offset: int) -> None:
        """Has everything below an offset made durable; `on_moved` tells of it."""
        if offset > self.durable_offset:
            self._wanted_offset = max(self._wanted_offset, offset)
            self.flush()

    def when_durable(self, offset: int) -> Later[KafkaError | None]:
        self.want(offset)
        if offset > self.durable_offset and self._lost is not None:
            return Later.of(self._lost)
        return self.watermark.wait_for(offset)

    def end(self, error: KafkaError) -> None:
        """Nothing more of this log will be durable: a sync that runs may not find its files."""
        self._holds += 1
        log, self._log, self._lost = self._log, None, error
        if log is not None:
            log.home.flusher.forget(self)
        self.watermark.fail(error)
        on_moved, self.on_moved = self.on_moved, None
        if on_moved is not None:
            on_moved()

    def _is_durable_up_to(self, offset: int) -> None:
        if self.watermark.raise_to(offset) and self.on_moved is not None:
            self.on_moved()

    def _go_on(self) -> None:
        """What was written during a sync, or while something else had to last, needs another."""
        is_wanted = self.durable_offset < self._wanted_offset
        if is_wanted and not self._holds:
            self.flush()

    @property
    def holds(self) -> int:
        """How many others have something that has to last first."""
        return self._holds

    @property
    def truncations(self) -> int:
        """How often what was read of the log before may not be what is there now."""
        return self._truncations

    @property
    def is_waited_for(self) -> bool:
        return self.watermark.waiting is not None

    # --- flushing ---------------------------------------------------------------------------------

    def flush(self, *, is_complete: bool = False) -> None:
        """Has a sync begun, or the next one take part; the files of a log that is out of service
        may be gone."""
        log = self._log
        if log is not None:
            log.home.flusher.request(self, is_complete=is_complete)

    def flush_work(self, *, is_complete: bool) -> FlushWork:
        """What is to be synced so that the log lasts up to its end now."""
        log = self._log
        assert log is not None, "what is to be synced of a log that has gone"
        work = FlushWork(log.log_end_offset, self._truncations, is_complete=is_complete)
        from_offset = log.recovery_point if is_complete else self.durable_offset
        if is_complete and self._rolled_from is not None:
            from_offset = min(from_offset, self._rolled_from)
        for segment in log.segments[max(0, log.slot_of(from_offset)) :]:
            work.files.append(segment.path(LOG))
            if is_complete:
                segment.write_waiting()
                work.files.extend(segment.path(kind) for kind in (INDEX, TIME_INDEX))
                if segment.write_aborted():
                    work.files.append(segment.path(TXN_INDEX))
                    self.directory_changed()  # the file may be new
        if is_complete:
            self._add_side_files(work)
        if not self.is_named:
            work.files.append(f"{log.directory}/{PARTITION_METADATA}")
        work.directories.extend(self._directories)
        work.directory_changes = self._directory_changes
        return work

    def _add_side_files(self, work: FlushWork) -> None:
        log = self._log
        assert log is not None
        if self._has_new_epochs:
            log.epochs.save(log.home.disk, log.directory)
            work.files.append(f"{log.directory}/{LEADER_EPOCHS}")
            self._has_new_epochs = False
            self.directory_changed()
            if log.seals is not None:
                log.seals.add_epochs(log.home.disk, log.directory, log.epochs.entries())
        if log.seals is not None and log.seals.has_new_lines:
            work.files.append(f"{log.directory}/{SEALS}")
            log.seals.has_new_lines = False
        work.files.extend(self._snapshots or ())
        self._snapshots = None

    def flushed(self, work: FlushWork) -> None:
        log = self._log
        if log is None:
            return  # it was deleted meanwhile
        # What was cut off meanwhile has lasted, but not what was written in its place.
        is_valid = work.truncations == self._truncations and not self._holds
        end_offset = work.end_offset if is_valid else 0
        if work.directory_changes == self._directory_changes:
            self._directories = ()
            if work.is_complete:
                self._rolled_from = None
        if work.is_complete:
            log.recovery_point = max(log.recovery_point, end_offset)
            log.last_flush_ms = log.home.env.clock.now_ms()
        self._is_durable_up_to(end_offset)
        self._go_on()
