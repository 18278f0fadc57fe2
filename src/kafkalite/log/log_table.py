"""Which logs of a broker are in service, and where: what all who work on logs look into.

Owns the two maps, of the logs and of those that are to take their places, and what checkpoints are
to say of them. It opens nothing and decides nothing: that is the manager's. Invariant: a topic's
partition has one log here, and beside it at most one future log.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.env import Env
from kafkalite.log.choosing import Copy
from kafkalite.log.config import LogSettings
from kafkalite.log.directory import LogDirectory
from kafkalite.log.offline import Offline
from kafkalite.log.partition_log import PartitionLog

TopicPartition = tuple[str, int]


class LogTable:
    """The logs of one broker."""

    def __init__(self, env: Env, settings: LogSettings) -> None:
        self.env = env
        self.settings = settings
        self.directories: list[LogDirectory] = []
        self.offline = Offline()
        self.expired_segments = self.expired_bytes = 0  # that retention removed, since the start
        self.compactions = self.failed_compactions = 0
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._future: dict[TopicPartition, PartitionLog] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def logs(self) -> list[PartitionLog]:
        return list(self._logs.values())

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def future(self, topic: str, partition: int) -> PartitionLog | None:
        """The log that is being filled in another directory to take the place of this one."""
        return self._future.get((topic, partition))

    def directory_of(self, log: Copy) -> LogDirectory:
        return next(found for found in self.directories if found.home is log.home)

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        home = directory.home
        logs = (*self._logs.values(), *self._future.values())
        return [log for log in logs if log.home is home]

    def offsets(self, directory: LogDirectory, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint of a directory is to say now."""
        found = {}
        for log in self.logs_in(directory):
            offset = directory.due(name, log)
            if offset is not None:
                found[log.topic, log.partition] = offset
        for offline in self.offline.within(directory.home):
            saved = directory.saved(name, offline.topic, offline.partition)
            if saved is not None:
                found[offline.topic, offline.partition] = saved
        return found

    def checkpoint(self, name: str) -> None:
        """Writes a checkpoint of every directory, off the event loop."""
        for directory in self.directories:
            if directory.home.is_online:
                directory.write_later(name, self.offsets(directory, name))
