"""Partitions whose log is here, or should be, and cannot be used until the next start.

Owns why each of them is offline, and what the checkpoints say of it. It never touches their files
but for the name of a directory whose topic is deleted or unknown. Invariant: while a partition is
offline no log is made in its place, unless nothing of it is here and others have all of it; what is
known of its log is kept for whoever opens it next.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.log.checkpoints import TopicPartition
from kafkalite.log.config import LogConfig
from kafkalite.log.home import LogHome
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError

UNKNOWN_TOPIC_ID = bytes(16)
# Of these one file or one directory is the cause, and no disk.
_OF_ONE_LOG = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
_CURE = (
    "its files are left as they are. Mend them, put a copy of them in their place or delete the"
    " topic; each start tries again"
)


@dataclass(slots=True)
class OfflinePartition:
    """A partition without a log that can be used."""

    topic: str
    partition: int
    reason: str  # cause and cure
    topic_id: bytes = UNKNOWN_TOPIC_ID


@dataclass(slots=True)
class UnopenedLog(OfflinePartition):
    """A log that is here, but could not be opened, or must not. It is renamed as any other."""

    home: LogHome = field(kw_only=True)
    directory: str = field(kw_only=True)
    config: LogConfig = field(kw_only=True)
    is_clean: bool = field(kw_only=True)  # what the next start may believe of it

    @property
    def is_durable_on_append(self) -> bool:
        return not self.config.is_fsynced

    @property
    def tells_its_topic(self) -> bool:
        return False

    def end(self, error: KafkaError) -> None:
        """It has never been in service."""

    def moved(self, directory: str) -> None:
        self.directory = directory

    def release(self) -> None:
        """No file of it is open."""


def unserved(log: PartitionLog, reason: str, *, is_clean: bool) -> UnopenedLog:
    """A log that could be opened, and must not be served."""
    return UnopenedLog(
        log.topic, log.partition, reason, log.topic_id,
        home=log.home, directory=log.directory, config=log.config, is_clean=is_clean,
    )  # fmt: skip


def is_of_one_log(error: Exception) -> bool:
    """Whether a failure to open a log says nothing about its neighbours."""
    return not isinstance(error, OSError) or error.errno in _OF_ONE_LOG


def why_not_opened(directory: str, error: Exception) -> str:
    """Cause and cure, in a line."""
    cause = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    return f"{directory} cannot be opened ({cause}); {_CURE}"


class Offline:
    """All partitions of a broker that are offline, though their directory may be online."""

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, OfflinePartition] = {}
        self._copies: dict[TopicPartition, list[UnopenedLog]] = {}  # what is here of each

    def __iter__(self) -> Iterator[OfflinePartition]:
        return iter(list(self._logs.values()))

    def add(self, log: OfflinePartition, copies: Iterable[UnopenedLog] = ()) -> None:
        """Takes a partition out of service until the next start, with the copies of its log."""
        key = (log.topic, log.partition)
        self._logs[key] = log
        self._copies[key] = list(copies)

    def pop(self, key: TopicPartition) -> list[UnopenedLog]:
        """The partition is nobody's any more; returns the copies of its log."""
        self._logs.pop(key, None)
        return self._copies.pop(key, [])

    def is_missing(self, key: TopicPartition) -> bool:
        """Whether it is offline because nothing of its log is here."""
        return key in self._logs and not self._copies[key]

    def of_earlier_topic(self, key: TopicPartition, topic_id: bytes) -> OfflinePartition | None:
        """What has the place of a partition that is wanted, but was another topic's; raises
        KafkaError when it is, or may be, that partition's own."""
        log = self._logs.get(key)
        if log is not None and (
            log.topic_id in (topic_id, UNKNOWN_TOPIC_ID) or topic_id == UNKNOWN_TOPIC_ID
        ):
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, log.reason)
        return log

    def within(self, home: LogHome) -> list[UnopenedLog]:
        """Those whose files are in one log directory."""
        return [log for logs in self._copies.values() for log in logs if log.home is home]
