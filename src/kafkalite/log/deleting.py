"""Logs whose topic was deleted, on their way off the disk.

Owns the time between a log's end of service and the removal of its directory, and what a crash left
of it. Under fsync a directory gets another name only when what says that the topic is deleted is on
stable storage, unless a new log needs the name before. Invariant: the records of a topic that the
cluster still knows after a crash are there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from kafkalite.env.disk import Disk
from kafkalite.log.choosing import TopicOf
from kafkalite.log.loader import topic_id_in
from kafkalite.log.names import (
    parse_renamed_directory,
    partition_directory,
    stray_path,
)
from kafkalite.log.offline import UnopenedLog
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

OnceDurable = Callable[[Callable[[], None]], None]


def now(act: Callable[[], None]) -> None:
    """For what need not last before something is done about it."""
    act()


class Retired:
    """The deleted logs of one broker whose directories still have their names."""

    def __init__(self, rename: Callable[[PartitionLog | UnopenedLog, str], None]) -> None:
        self._give_name = rename  # of one that is out of service, see `names`
        self._logs: dict[str, PartitionLog | UnopenedLog] = {}  # by directory

    def add(self, log: PartitionLog | UnopenedLog, once_durable: OnceDurable) -> None:
        """Removes a log that is out of service; `once_durable` knows when its deletion lasts."""
        self._logs[log.directory] = log
        remove = partial(self._remove, log)
        remove() if log.is_durable_on_append else once_durable(remove)

    def __contains__(self, directory: str) -> bool:
        return directory in self._logs

    def make_way(self, directory: str) -> bool:
        """A new log needs the name. Whether a deleted one has it: that one's new name lasts first,
        or the power could fail and leave the new log in place of the old one."""
        log = self._logs.get(directory)
        if log is not None:
            self._rename(log)
        return log is not None

    def remove_all(self) -> None:
        """The stop is clean: all that was decided will last."""
        for log in list(self._logs.values()):
            self._remove(log)

    def _remove(self, log: PartitionLog | UnopenedLog) -> None:
        try:
            self._rename(log)
        except KafkaError as error:
            logger.error("%s could not be removed: %s", log, error)
        else:
            log.home.remove_later(lambda: [log.directory], log.config.file_delete_delay_ms)

    def _rename(self, log: PartitionLog | UnopenedLog) -> None:
        if self._logs.pop(log.directory, None) is not None:
            self._give_name(log, "delete")


def bring_back(
    disk: Disk,
    paths: list[str],
    topic_of: TopicOf,
    may_come_back: Callable[[str, int], bool],
    unique: Callable[[], str],
) -> set[str]:
    """Gives logs their names again whose partition the cluster still has here: a crash took their
    deletion. The log of an earlier or later topic may have the name. Whose a log is tells its topic
    id: the name of a topic may be cut in that of its directory. Returns those that nobody can judge
    now: they may have been moved to a directory that is not there."""
    kept = set()
    for path in paths:
        for name in disk.list_directory(path):
            renamed = parse_renamed_directory(name)
            if renamed is None or renamed[2] != "delete":
                continue
            partition, directory = renamed[1], f"{path}/{name}"
            topic_id = topic_id_in(disk, directory)
            topic = topic_of(topic_id, partition)
            if topic is None:
                continue
            if any(_has_log(disk, each, topic, partition, topic_id) for each in paths):
                continue  # it was moved there
            if not may_come_back(topic, partition):
                logger.warning("%s may be wanted again, and is left alone", directory)
                kept.add(directory)
                continue
            logger.warning("the deletion of %s did not last", directory)
            wanted = f"{path}/{partition_directory(topic, partition)}"
            if disk.exists(wanted):
                disk.rename(wanted, stray_path(wanted, unique()))
            disk.rename(directory, wanted)
    return kept


def _has_log(disk: Disk, path: str, topic: str, partition: int, topic_id: bytes) -> bool:
    """Whether a directory has a log of the partition, or one that was to take its place."""
    own = partition_directory(topic, partition)
    return any(
        topic_id_in(disk, f"{path}/{name}") == topic_id
        for name in disk.list_directory(path)
        if name == own or _is_future(parse_renamed_directory(name), partition)
    )


def _is_future(renamed: tuple[str, int, str] | None, partition: int) -> bool:
    return renamed is not None and renamed[1:] == (partition, "future")
