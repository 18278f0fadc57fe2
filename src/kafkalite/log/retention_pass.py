"""One pass of retention over the logs of a directory, between everything else.

Owns the order: the logs begin behind what goes, then one checkpoint says so for all of them, only
then do files go, and last those that others need while they could come back. It decides nothing.
Invariant: no file goes before the recovery point that is on the disk lies behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkalite.env.slicing import Steps
from kafkalite.log.directory import LogDirectory
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.log_table import LogTable
from kafkalite.log.names import RECOVERY_POINTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.retention import Rest, begin_after, expired, may_go, remove
from kafkalite.log.segment import Segment
from kafkalite.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

Begin = Callable[[Steps[None], Callable[[], None]], None]


class RetentionPass:
    """What of one directory is to go, and how far that is."""

    def __init__(
        self,
        logs: LogTable,
        directory: LogDirectory,
        begin: Begin,
        on_end: Callable[[], None],
    ) -> None:
        self._logs = logs
        self._directory = directory
        self._begin = begin
        self._on_end = on_end
        self._now_ms = logs.env.clock.now_ms()
        self._found: list[tuple[PartitionLog, list[Segment]]] = []
        self._rest: list[tuple[PartitionLog, Rest]] = []  # of them, when names last
        self._is_saved = True  # whether the recovery points on the disk let all of it go

    def start(self) -> None:
        self._begin(self._choose(), self._chosen)

    def _choose(self) -> Steps[None]:
        for log in self._logs.logs_in(self._directory):
            if not log.home.is_online:
                return
            if self._is_here(log):
                self._look_at(log)
            yield

    def _is_here(self, log: PartitionLog) -> bool:
        """Between two slices a log may have been deleted, or moved to another directory."""
        is_open = self._logs.get(log.topic, log.partition) is log
        return is_open and log.home is self._directory.home

    def _look_at(self, log: PartitionLog) -> None:
        try:
            segments = expired(log, self._now_ms)
            if segments:
                start = begin_after(log, segments)
                if not may_go(log, start):
                    log.flush()
                    return  # the next pass finds them below the log's start
                self._found.append((log, segments))
                saved = self._directory.saved_recovery_point(log.topic, log.partition)
                self._is_saved = self._is_saved and saved >= start
        except (OSError, KafkaError) as error:
            _pass_over(log, error)

    def _chosen(self) -> None:
        if self._is_saved:
            self._saved(True)
        else:
            points = self._logs.offsets(self._directory, RECOVERY_POINTS)
            self._directory.write_later(RECOVERY_POINTS, points, self._saved)

    def _saved(self, is_written: bool) -> None:
        """What was not written is left for the next pass, which finds it below the logs' start."""
        if is_written:
            self._begin(self._remove(), self._removed)
        else:
            self._on_end()

    def _remove(self) -> Steps[None]:
        for log, segments in self._found:
            if not log.home.is_online:
                return
            if self._is_here(log) and log.segments[: len(segments)] == segments:
                size = sum(segment.size for segment in segments)
                try:
                    rest = remove(log, segments)
                except (OSError, KafkaError) as error:
                    _pass_over(log, error)
                else:
                    self._logs.expired_segments += len(segments)
                    self._logs.expired_bytes += size
                    self._rest += [] if rest is None else [(log, rest)]
            yield

    def _removed(self) -> None:
        if not self._rest:
            self._on_end()
            return
        disk = self._logs.env.disk
        work = FlushWork(0, 0, directories=[log.directory for log, _ in self._rest])
        self._logs.env.background.submit(lambda: sync_all(disk, [work]), self._synced)

    def _synced(self, outcome: object) -> None:
        if outcome is None:
            self._begin(self._remove_rest(), self._on_end)
            return
        self._on_end()
        if not isinstance(outcome, OSError):
            assert isinstance(outcome, BaseException)
            raise outcome
        self._directory.home.storage_error(outcome)  # the next start finds indexes without a log

    def _remove_rest(self) -> Steps[None]:
        for log, rest in self._rest:
            if not log.home.is_online:
                return
            try:
                rest()
            except OSError as error:
                _pass_over(log, error)
            yield


def _pass_over(log: PartitionLog, error: OSError | KafkaError) -> None:
    """What is wrong with one log keeps no other from its turn."""
    if isinstance(error, OSError):
        log.storage_error(error)
    else:
        logger.error(
            "%s: nothing is removed by retention: %s. Deleting the records up to there, or the"
            " topic, helps; other partitions go on as before", log.directory, error,
        )  # fmt: skip
