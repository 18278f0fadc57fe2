"""Copies of logs in other directories that are to be made, for moves.

Owns the time until checkpoints of the directory tell nothing any more of a log that had the place,
off the event loop: where that one began, say, would be said of the copy. It copies nothing.
Invariant: no file of a copy is made before that lasts, nor for a log that has gone or shall go
elsewhere meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.env.dataclasses import dataclass
from kafkalite.log.log_table import LogTable
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError


class Makers(Protocol):
    """What is asked of whoever makes logs."""

    def forget(self, log: PartitionLog, directory: str, then: Callable[[bool], None]) -> None: ...

    def create_future(self, log: PartitionLog, directory: str) -> PartitionLog: ...


@dataclass(slots=True, eq=False)
class _Coming:
    log: PartitionLog
    path: str
    made: Callable[[PartitionLog | KafkaError], None]
    is_asked: bool  # the metadata shall name the directory
    is_late: bool = False  # nobody is there any more to be told of an error
    error: KafkaError | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.log.topic, self.log.partition


class Copies:
    """One for each log at most."""

    def __init__(self, logs: LogTable, makers: Makers) -> None:
        self._logs = logs
        self._makers = makers
        self._coming: dict[tuple[str, int], _Coming] = {}

    def make(
        self, log: PartitionLog, path: str, made: Callable[[PartitionLog | KafkaError], None],
        *, is_asked: bool,
    ) -> None:  # fmt: skip
        """`made` is told of the copy, or later why there is none; at once that is raised."""
        coming = _Coming(log, path, made, is_asked)
        self._coming[coming.key] = coming
        self._makers.forget(log, path, lambda is_done: self._forgotten(coming, is_done))
        coming.is_late = True
        if coming.error is not None:
            raise coming.error

    def is_coming(self, log: PartitionLog, path: str) -> bool:
        coming = self._coming.get((log.topic, log.partition))
        return coming is not None and (coming.log, coming.path) == (log, path)

    def cancel(self, topic: str, partition: int) -> bool:
        """Whether one was coming whose directory the metadata shall name."""
        coming = self._coming.pop((topic, partition), None)
        return coming is not None and coming.is_asked

    def stop(self) -> None:
        """Makes no more; the next start goes on with what was made."""
        self._coming.clear()

    def _forgotten(self, coming: _Coming, is_done: bool) -> None:
        if self._coming.get(coming.key) is not coming:
            return
        del self._coming[coming.key]
        if self._logs.get(*coming.key) is not coming.log:
            return
        try:
            if not is_done:
                raise KafkaError(Error.KAFKA_STORAGE_ERROR, "a checkpoint cannot be written")
            future = self._makers.create_future(coming.log, coming.path)
        except KafkaError as error:
            coming.error = error
            if coming.is_late:
                coming.made(error)
        else:
            coming.made(future)
