"""Moves a log from one directory to another while it is in use (AlterReplicaLogDirs).

Owns the future log that is filled beside the current one until both end at the same offset, and the
moment in which it takes the current one's place. It never delays an append. Invariant: at every
moment a directory with the partition's own name, or else a `-future` one that is complete, holds
everything that was appended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkalite.env.clock import Timer
from kafkalite.log.names import parse_renamed_directory, partition_directory
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError

if TYPE_CHECKING:
    from kafkalite.log.manager import LogManager

logger = logging.getLogger(__name__)

_STEP_BYTES = 1 << 20
_PAUSE_MS = 2  # between two steps, for everything else on the event loop

OnMoved = Callable[[PartitionLog], None]


class Mover:
    """All moves that are under way."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._timers: dict[tuple[str, int], Timer] = {}

    def move(self, topic: str, partition: int, path: str, on_moved: OnMoved) -> None:
        """Begins a move; `on_moved` gets the log that has taken the place."""
        manager, key = self._manager, (topic, partition)
        if path not in [directory.path for directory in manager.directories]:
            raise KafkaError(Error.LOG_DIR_NOT_FOUND, f"{path} is no log directory")
        log = manager.get(topic, partition)
        if log is None:
            raise KafkaError(Error.REPLICA_NOT_AVAILABLE, f"{topic}-{partition} is not here")
        future = manager.future(topic, partition)
        if future is not None and future.home.path == path and key in self._timers:
            return
        if future is not None and future.home.path != path:
            self._cancel(log)
            future = None
        if log.home.path == path:
            return
        if future is None:
            future = manager.create(
                topic, partition, log.topic_id, log.config, directory=path, is_future=True
            )
            if log.log_start_offset > 0:
                future.truncate_fully_and_start_at(log.log_start_offset)
        self._later(log, on_moved)

    def _cancel(self, log: PartitionLog) -> None:
        timer = self._timers.pop((log.topic, log.partition), None)
        if timer is not None:
            timer.cancel()
        self._manager.drop_future(log.topic, log.partition)

    def _later(self, log: PartitionLog, on_moved: OnMoved) -> None:
        clock = self._manager.env.clock
        self._timers[log.topic, log.partition] = clock.call_later(
            _PAUSE_MS, lambda: self._step(log, on_moved)
        )

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # --- copying ----------------------------------------------------------------------------------

    def _step(self, log: PartitionLog, on_moved: OnMoved) -> None:
        key = (log.topic, log.partition)
        del self._timers[key]
        future = self._manager.future(*key)
        if future is None or self._manager.get(*key) is not log:
            return  # deleted meanwhile
        try:
            is_even = _copy(log, future)
        except KafkaError as error:
            logger.error("%s cannot be moved to %s: %s", log, future.home.path, error)
            return
        if not is_even:
            self._later(log, on_moved)
        elif future.recovery_point < future.log_end_offset:
            # The copy must outlast a crash before the original goes.
            future.when_flushed(lambda: self._later(log, on_moved))
        else:
            self._replace(log, future, on_moved)

    # --- the moment -------------------------------------------------------------------------------

    def _replace(self, log: PartitionLog, future: PartitionLog, on_moved: OnMoved) -> None:
        manager = self._manager
        future.raise_start(log.log_start_offset)
        manager.replace(log, future)
        promote(future)
        future.high_watermark = log.high_watermark
        log.durability.replaced(log.log_end_offset)
        logger.info("%s-%d is now in %s", log.topic, log.partition, future.home.path)
        on_moved(future)


def _copy(log: PartitionLog, future: PartitionLog) -> bool:
    """Copies the next piece; True when there is nothing left to copy."""
    if future.log_end_offset > log.log_end_offset:
        future.truncate_to(log.log_end_offset)
    if future.log_end_offset < log.log_start_offset:
        future.truncate_fully_and_start_at(log.log_start_offset)
    found = log.read(future.log_end_offset, _STEP_BYTES)
    if found.range is not None:
        future.append_as_follower(bytearray(found.range.read()))
    return future.log_end_offset == log.log_end_offset


def promote(future: PartitionLog) -> None:
    """Gives a future log its final name."""
    path = f"{future.home.path}/{partition_directory(future.topic, future.partition)}"
    future.home.disk.rename(future.directory, path)
    future.home.disk.sync_directory(future.home.path)
    future.moved(path)
    future.is_future = False


def is_future_name(directory: str) -> bool:
    found = parse_renamed_directory(directory.rpartition("/")[2])
    return found is not None and found[2] == "future"
