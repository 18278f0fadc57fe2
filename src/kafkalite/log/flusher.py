"""Makes what was written last: fsync off the event loop, grouped over all logs of one directory
that wait.

Owns the one job that runs at a time for a directory; requests that come meanwhile go together into
the next. It never tries an fsync again that failed: what the disk holds is unknown then, and
`on_failure` takes the directory offline. Invariant: a log is told of an offset only when everything
below it is on stable storage.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Protocol

from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.disk import Disk
from kafkalite.env.slicing import SLICE_MS
from kafkalite.log.failures import NO_ROOM, is_out_of_descriptors

# Until what was out of descriptors is tried again.
RETRY_MS = 100
# In one job: what they need is put together, and they are told, in one turn of the loop.
MOST_LOGS = 64


@dataclass(slots=True)
class FlushWork:
    """What has to be synced so that a log lasts up to an offset."""

    end_offset: int
    truncations: int  # how often the log had been cut when the work began
    files: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    is_complete: bool = False  # indexes, snapshots and epochs too: the recovery point may move
    directory_changes: int = 0  # how often files had come or gone when the work began


class Flushable(Protocol):
    """A log, as the flusher sees it."""

    def flush_work(self, *, is_complete: bool) -> FlushWork: ...

    def flushed(self, work: FlushWork) -> None: ...


def sync_all(disk: Disk, works: list[FlushWork]) -> None:
    """Syncs the files and directories of several logs, each once."""
    files = dict.fromkeys(path for work in works for path in work.files)
    for path in files:
        file = disk.open(path)
        try:
            file.sync()
        except FileNotFoundError:
            continue  # renamed or removed meanwhile: its bytes are not needed under this name
        finally:
            file.close()
    for path in dict.fromkeys(path for work in works for path in work.directories):
        with suppress(FileNotFoundError):  # the same; to look first would be too early
            disk.sync_directory(path)


def _work_of(log: Flushable, is_complete: bool) -> FlushWork:
    """What is to be synced; without indexes and the like where a full disk cannot take them."""
    try:
        return log.flush_work(is_complete=is_complete)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        return log.flush_work(is_complete=False)


class Flusher:
    """The fsyncs of one directory."""

    def __init__(self, env: Env, on_failure: Callable[[OSError], None]) -> None:
        self._env = env
        self._on_failure = on_failure
        self._waiting: dict[Flushable, bool] = {}  # to whether the flush is to be complete
        self._is_running = False
        self._has_failed = False

    def request(self, log: Flushable, *, is_complete: bool = False) -> None:
        """Has a log synced up to where it ends when the work begins."""
        self._waiting[log] = is_complete or self._waiting.get(log, False)
        if not self._is_running:
            self._start()

    def forget(self, log: Flushable) -> None:
        """The log is gone; what runs for it already ends unheard."""
        self._waiting.pop(log, None)

    def _start(self) -> None:
        some = list(islice(self._waiting.items(), MOST_LOGS))
        clock = self._env.clock
        end_ms = clock.monotonic_ms() + SLICE_MS
        jobs: list[tuple[Flushable, FlushWork]] = []
        for log, is_complete in some:
            del self._waiting[log]
            try:
                jobs.append((log, _work_of(log, is_complete)))
            except OSError as error:
                if not is_out_of_descriptors(error):
                    self._fail(error)
                    return
                self._waiting[log] = is_complete
            if clock.monotonic_ms() >= end_ms:
                break  # it writes files beside the log, and the others have the next job
        if self._has_failed:
            return
        if not jobs:
            if self._waiting:
                clock.call_later(RETRY_MS, self._go_on)
            return
        self._is_running = True
        self._sync(jobs)

    def _sync(self, jobs: list[tuple[Flushable, FlushWork]]) -> None:
        works = [work for _, work in jobs]
        disk = self._env.disk
        self._env.background.submit(
            lambda: sync_all(disk, works), lambda outcome: self._done(jobs, outcome)
        )

    def _done(self, jobs: list[tuple[Flushable, FlushWork]], outcome: object) -> None:
        if is_out_of_descriptors(outcome):  # no fsync has failed: some file could not be opened
            self._env.clock.call_later(RETRY_MS, lambda: self._sync(jobs))
            return
        self._is_running = False
        if isinstance(outcome, OSError):
            self._fail(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        elif not self._has_failed:
            for log, work in jobs:
                log.flushed(work)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting and not self._is_running and not self._has_failed:
            self._start()

    def _fail(self, error: OSError) -> None:
        self._has_failed = True
        self._waiting.clear()
        self._on_failure(error)
