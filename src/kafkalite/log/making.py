"""New logs: what is known of them before there are files, and who makes these.

A worker makes the files of many logs, one after the other; the loop takes them into service.
Invariant: after `stop` no file is touched any more, so that whoever opens the directories next has
them alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kafkalite.env import Env
from kafkalite.env.background import Gate
from kafkalite.env.dataclasses import dataclass, replace
from kafkalite.env.later import Later, resolve_each
from kafkalite.log.checkpoints import write_partition_metadata
from kafkalite.log.config import LogConfig
from kafkalite.log.home import LogHome
from kafkalite.log.names import PARTITION_METADATA
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.rolling import begin_segment
from kafkalite.log.segment import Segment
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

Made = Segment | Exception
# Takes back what is told of those that had the places; tells where that cannot be done.
Forget = Callable[[Sequence["NewLog"], Callable[[set[LogHome]], None]], None]


@dataclass(slots=True, frozen=True)
class NewLog:
    """A log that is to be made: whose it is, and where."""

    home: LogHome
    topic: str
    partition: int
    topic_id: bytes
    directory: str
    config: LogConfig
    start_offset: int = 0
    takes_name: bool = False  # of a log, whose other name has to last before

    def make_files(self) -> Made:
        """On any thread: the directory with what it begins with."""
        try:
            if self.takes_name:
                self.home.disk.sync_directory(self.home.path)
            self.home.disk.make_directory(self.directory)
            path = f"{self.directory}/{PARTITION_METADATA}"
            write_partition_metadata(self.home.disk, path, self.topic_id)
            segment = begin_segment(self.home, self.directory, self.start_offset, self.config)
            segment.close()
        except Exception as error:  # noqa: BLE001 - whoever takes the log tells what it means
            return error
        return segment

    def taken(self, made: Made) -> PartitionLog:
        """The log with these files; raises KafkaError when there are none."""
        self.home.check_online()
        if isinstance(made, KafkaError):
            raise made
        if isinstance(made, OSError):
            raise self.home.storage_error(made) from made
        if isinstance(made, Exception):
            logger.error("%s cannot be made by a mistake of ours", self.directory, exc_info=made)
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, f"{self.directory} cannot be made")
        log = PartitionLog(
            self.home, self.topic, self.partition, self.topic_id, self.directory, self.config,
            [made],
        )  # fmt: skip
        log.durability.directory_changed(is_new=True)
        return log


class Making:
    """Has a worker make the files of logs."""

    def __init__(self, env: Env, forget: Forget) -> None:
        self._env = env
        self._forget = forget
        self._gate = Gate()
        self._under_way: dict[Later[list[Made]], None] = {}

    def make(self, new: Sequence[NewLog]) -> Later[list[Made]]:
        """Filled with what came of each, in their order; of fewer after a stop."""
        made: Later[list[Made]] = Later()
        self._under_way[made] = None

        def done(outcome: list[Made] | BaseException) -> None:
            if made not in self._under_way:
                return  # told so when it was stopped
            del self._under_way[made]
            if isinstance(outcome, Exception):
                made.fail(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                made.resolve(outcome)

        def forgotten(refusing: set[LogHome]) -> None:
            if made in self._under_way:
                self._env.background.submit(lambda: self._make_all(new, refusing), done)

        self._forget(new, forgotten)
        return made

    def _make_all(self, new: Sequence[NewLog], refusing: set[LogHome]) -> list[Made]:
        made: list[Made] = []
        free: set[LogHome] = set()  # where one sync was for all
        for each in new:
            if each.home in refusing:
                made.append(KafkaError(Error.KAFKA_STORAGE_ERROR, "a checkpoint cannot be written"))
                continue
            if each.home in free:
                each = replace(each, takes_name=False)
            files = self._gate.let(each.make_files)
            if files is None:
                break
            if each.takes_name and isinstance(files, Segment):
                free.add(each.home)
            made.append(files)
        return made

    def stop(self) -> None:
        """What is not there yet is not made any more, and nobody waits for it."""
        self._gate.shut()
        under_way, self._under_way = self._under_way, {}
        resolve_each((made, []) for made in under_way)
