"""All logs of a broker, in all its log directories.

Owns which log lies where, their opening, creation and deletion, and the periodic work: one timer
for each kind, none for a single log. It never looks into a record. Invariant: a topic's
partition has one log here, and beside it at most one future log that is to take its place.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.log.checkpoints import write_partition_metadata
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.directory import Identity, LogDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.loader import UNKNOWN_TOPIC_ID, Opening, load_log, topic_id_in
from kafkalite.log.loading import Loading
from kafkalite.log.mover import Mover, is_future_name, promote
from kafkalite.log.names import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    METADATA_DIRECTORY,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_partition_directory,
    parse_renamed_directory,
    partition_directory,
    renamed_directory,
)
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.periodic import Periodic
from kafkalite.log.recovery import Progress
from kafkalite.log.retired import OnceDurable, Retired, TopicOf, bring_back, now
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
_DEFAULTS = LogConfig()
_REPORT_MS = 10_000  # a line in the log for each so many of a long start


@dataclass(slots=True)
class DirectoryInfo:
    """What DescribeLogDirs tells of one directory."""

    path: str
    is_online: bool
    total_bytes: int
    usable_bytes: int
    logs: list[PartitionLog]


class LogManager:
    """The logs of one broker."""

    def __init__(
        self,
        env: Env,
        directories: list[str],
        *,
        node_id: int,
        cluster_id: str,
        settings: LogSettings | None = None,
        config_of: Callable[[str], LogConfig] = lambda topic: _DEFAULTS,
        topic_of: TopicOf = lambda topic_id, partition: None,
        on_offline: Callable[[LogHome], None] = lambda home: None,
    ) -> None:
        self.env = env
        self.settings = settings or LogSettings()
        self.identity = Identity(cluster_id, node_id)
        self.config_of = config_of
        self._topic_of = topic_of
        self.loading = Loading()
        self.directories: list[LogDirectory] = []
        self._on_offline = on_offline
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._future: dict[TopicPartition, PartitionLog] = {}
        self._retired = Retired(self)
        # Logs in each directory, so that finding the emptiest is no walk over all of them.
        self._counts: Counter[str] = Counter()
        self.periodic = Periodic(self)
        self.mover = Mover(self)
        self._is_taken = False
        for path in directories:
            home = LogHome(env, path.rstrip("/"), self.settings, self._failed)
            self.directories.append(LogDirectory(home))

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

    # --- starting ---------------------------------------------------------------------------------

    def take(self) -> None:
        """Takes the directories for this process, so that the metadata in them can be read.

        Raises LockedByOther or WrongDirectory. A directory whose disk fails is offline and does
        not keep the others from starting.
        """
        if not self._is_taken:
            self._take_all()
            self._is_taken = True

    def start(self) -> Later[None]:
        """Takes the directories and opens every log in them; filled when all are open."""
        self.take()
        self._bring_back()
        for directory in self.directories:
            if directory.home.is_online:
                try:
                    self.loading.waiting.extend(
                        (directory, opening) for opening in self._openings(directory)
                    )
                except OSError as error:
                    directory.home.fail(error)
        self.loading.total = len(self.loading.waiting)
        return self._load_all()

    def _bring_back(self) -> None:
        paths = [each.path for each in self.directories if each.home.is_online]
        try:
            bring_back(self.env.disk, paths, self._topic_of, self._unique)
        except OSError as error:
            logger.error("deleted logs cannot be looked at: %s", error)

    def _take_all(self) -> None:
        taken: list[LogDirectory] = []
        for directory in self.directories:
            try:
                directory.take(self.identity)
            except OSError as error:
                directory.home.fail(error)
            except Exception:
                for other in taken:
                    other.release()
                raise
            taken.append(directory)
            directory.home.save_recovery_points = partial(self._write_recovery_points, directory)
            directory.home.saved_recovery_point = directory.saved_recovery_point

    def _openings(self, directory: LogDirectory) -> list[Opening]:
        recovery_points = directory.read(RECOVERY_POINTS)
        log_starts = directory.read(LOG_STARTS)
        disk = self.env.disk
        openings = []
        for name in disk.list_directory(directory.path):
            path = f"{directory.path}/{name}"
            if not disk.is_directory(path) or name == METADATA_DIRECTORY:
                continue
            renamed = parse_renamed_directory(name)
            if renamed is not None and renamed[2] == "delete":
                directory.home.remove_later([path], 0)
                continue
            found = parse_partition_directory(name)
            if renamed is not None and renamed[2] == "future":
                found = self._future_of(renamed, path)
            if found is None:
                logger.warning("%s is no partition of this broker and is left alone", path)
                continue
            openings.append(
                Opening(
                    *found,
                    path,
                    self.config_of(found[0]),
                    recovery_points.get(found, 0),
                    log_starts.get(found, 0),
                    directory.was_clean,
                )
            )
        return openings

    def _future_of(self, renamed: tuple[str, int, str], path: str) -> TopicPartition:
        """Whose a future log is; the topic may be cut in the name of its directory."""
        topic, partition, _ = renamed
        known = self._topic_of(topic_id_in(self.env.disk, path), partition)
        return known or topic, partition

    def _load_all(self) -> Later[None]:
        loaded: Later[None] = Later()
        workers = max(1, self.settings.num_recovery_threads_per_data_dir * len(self.directories))
        workers = min(workers, max(1, self.loading.total))
        left = [workers]

        def done(outcome: object) -> None:
            if isinstance(outcome, BaseException):
                raise outcome
            assert isinstance(outcome, list)
            self._loaded(outcome)
            left[0] -= 1
            if left[0] == 0:
                reporting[0].cancel()
                self._ready()
                loaded.resolve(None)

        def report() -> None:
            logger.info("%s", self.loading)
            reporting[0] = self.env.clock.call_later(_REPORT_MS, report)

        reporting = [self.env.clock.call_later(_REPORT_MS, report)]
        for _ in range(workers):
            progress = self.loading.new_worker()
            self.env.background.submit(partial(self._load_some, progress), done)
        return loaded

    def _load_some(self, progress: Progress) -> list[tuple[LogDirectory, PartitionLog | OSError]]:
        """On a worker thread: opens logs until none is left."""
        results: list[tuple[LogDirectory, PartitionLog | OSError]] = []
        loading = self.loading
        while True:
            try:
                directory, opening = loading.waiting.popleft()
            except IndexError:
                return results
            try:
                results.append((directory, load_log(directory.home, opening, progress)))
            except OSError as error:
                results.append((directory, error))
            progress.logs_opened += 1

    def _loaded(self, results: list[tuple[LogDirectory, PartitionLog | OSError]]) -> None:
        for directory, result in results:
            if isinstance(result, OSError):
                directory.home.fail(result)
                continue
            key = (result.topic, result.partition)
            is_future = is_future_name(result.directory)
            result.is_future = is_future
            logs = self._future if is_future else self._logs
            other = logs.get(key)
            if other is not None:
                self._keep_one(logs, result, other)
                continue
            logs[key] = result
            self._counts[result.home.path] += 1

    def _keep_one(
        self, logs: dict[TopicPartition, PartitionLog], log: PartitionLog, other: PartitionLog
    ) -> None:
        """Of two in different directories: that of the topic which the cluster knows, when one is
        of an earlier topic whose removal did not last."""
        is_wanted = self._topic_of(log.topic_id, log.partition) == log.topic
        if is_wanted and log.topic_id != other.topic_id:
            logs[log.topic, log.partition] = log
            self._counts[other.home.path] -= 1
            self._counts[log.home.path] += 1
            log, other = other, log
        if log.topic_id == other.topic_id:
            logger.error("%s is another copy of %s and is not used", log, other)
        else:
            self._lay_aside(log)

    def _ready(self) -> None:
        for key in [key for key in self._future if key not in self._logs]:
            # The stop came between the two renames of a move: the copy is complete.
            log = self._logs[key] = self._future.pop(key)
            promote(log)
        for directory in self.directories:
            if not directory.home.is_online:
                continue
            high_watermarks = directory.read(HIGH_WATERMARKS)
            for log in self.logs_in(directory):
                offset = high_watermarks.get((log.topic, log.partition), log.log_start_offset)
                log.high_watermark = offset
        if self.loading.bytes_expected:
            logger.info("%s", self.loading)
        self.periodic.start()

    # --- stopping ---------------------------------------------------------------------------------

    def close(self, broker_epoch: int = -1) -> None:
        """Makes everything last and says that this stop was clean."""
        self.periodic.stop()
        self.mover.stop()
        self._retired.remove_all()
        for directory in self.directories:
            if directory.home.is_online:
                self._close_directory(directory, broker_epoch)
            directory.release()

    def abandon(self) -> None:
        """Lets go of everything as it is: a disk has failed, and what was to be done when
        something else lasts must not be done."""
        self.periodic.stop()
        self.mover.stop()
        for directory in self.directories:
            directory.home.refuse_writes()
            directory.release()

    def _close_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        directory.home.refuse_writes()
        try:
            for log in self.logs_in(directory):
                log.close()
            for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
                directory.write(name, self.offsets(directory, name))
            directory.mark_clean(broker_epoch)
        except OSError as error:
            logger.error("log directory %s is not closed cleanly: %s", directory.path, error)

    def _failed(self, home: LogHome, error: OSError) -> None:
        for log in [
            log for log in (*self._logs.values(), *self._future.values()) if log.home is home
        ]:
            log.gone_offline()
        self._on_offline(home)

    # --- checkpoints ------------------------------------------------------------------------------

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        home = directory.home
        logs = (*self._logs.values(), *self._future.values())
        return [log for log in logs if log.home is home]

    def offsets(self, directory: LogDirectory, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint of a directory is to say now."""
        found = {}
        for log in self.logs_in(directory):
            if name == RECOVERY_POINTS:
                offset = log.recovery_point
            elif name == HIGH_WATERMARKS:
                offset = log.high_watermark
            elif log.log_start_offset > log.segments[0].base_offset:
                offset = log.log_start_offset
            else:
                continue
            found[log.topic, log.partition] = offset
        return found

    def checkpoint(self, name: str) -> None:
        """Writes a checkpoint of every directory, off the event loop."""
        for directory in self.directories:
            if directory.home.is_online:
                directory.write_later(name, self.offsets(directory, name))

    def _write_recovery_points(self, directory: LogDirectory) -> None:
        directory.write(RECOVERY_POINTS, self.offsets(directory, RECOVERY_POINTS))

    # --- logs come and go -------------------------------------------------------------------------

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig | None = None,
        *,
        directory: str | None = None,
        is_future: bool = False,
    ) -> PartitionLog:
        """The log of a partition, new unless it is there; in the directory that has fewest
        unless one is named."""
        logs = self._future if is_future else self._logs
        found = logs.get((topic, partition))
        if found is not None and self._is_of(found, topic_id):
            return found
        place = self._place(directory)
        name = partition_directory(topic, partition)
        if is_future:
            name = renamed_directory(topic, partition, self._unique(), "future")
        config = config or self.config_of(topic)
        path = f"{place.path}/{name}"
        try:
            self._retired.make_way(path)
            log = PartitionLog.create(place.home, topic, partition, topic_id, path, config)
        except OSError as error:
            raise place.home.storage_error(error) from error
        log.is_future = is_future
        logs[topic, partition] = log
        self._counts[log.home.path] += 1
        return log

    def _is_of(self, log: PartitionLog, topic_id: bytes) -> bool:
        """Whether a log is of this topic, and not of an earlier one of the same name."""
        if log.topic_id == UNKNOWN_TOPIC_ID:  # its file did not tell, as after a power cut
            log.topic_id = topic_id
            path = f"{log.directory}/{PARTITION_METADATA}"
            try:
                write_partition_metadata(self.env.disk, path, topic_id)
            except OSError as error:
                raise log.home.storage_error(error) from error
            log.durability.directory_changed(is_new=True)
        if topic_id in (log.topic_id, UNKNOWN_TOPIC_ID):
            return True
        self.set_aside(log)
        return False

    def _place(self, path: str | None) -> LogDirectory:
        online = [directory for directory in self.directories if directory.home.is_online]
        if path is not None:
            online = [directory for directory in online if directory.path == path]
        if not online:
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, "no log directory is online")
        if len(online) == 1:
            return online[0]
        return min(online, key=lambda directory: self._counts[directory.path])

    def _unique(self) -> str:
        return f"{self.env.random.getrandbits(128):032x}"

    def delete(
        self, topic: str, partition: int, once_durable: OnceDurable = now
    ) -> None:
        """Takes a log out of service at once; its files vanish later, see `retired`."""
        for logs in (self._logs, self._future):
            log = logs.pop((topic, partition), None)
            if log is not None:
                self._counts[log.home.path] -= 1
                self._retired.add(log, once_durable)

    def set_aside(self, log: PartitionLog) -> None:
        """Takes a log out of service that no topic of the cluster knows; its files stay."""
        if self._logs.get((log.topic, log.partition)) is log:
            del self._logs[log.topic, log.partition]
            self._counts[log.home.path] -= 1
            self._lay_aside(log)

    def _lay_aside(self, log: PartitionLog) -> None:
        logger.warning("%r belongs to no topic and is set aside as a stray", log)
        self.rename(log, "stray")

    def rename(self, log: PartitionLog, role: str) -> None:
        """Gives the directory of a log that is out of service another name."""
        log.home.flusher.forget(log.durability)
        log.durability.hold()  # for ever: a sync that runs may not find the files any more
        if not log.home.is_online:
            return
        name = renamed_directory(log.topic, log.partition, self._unique(), role)
        path = f"{log.home.path}/{name}"
        try:
            self.env.disk.rename(log.directory, path)
        except OSError as error:
            raise log.home.storage_error(error) from error
        log.moved(path)
        log.release()

    # --- moving -----------------------------------------------------------------------------------

    def move(
        self,
        topic: str,
        partition: int,
        directory: str,
        on_moved: Callable[[PartitionLog], None] = lambda log: None,
    ) -> None:
        """Has a log copied to another directory; `on_moved` gets the one that took its place."""
        self.mover.move(topic, partition, directory, on_moved)

    def drop_future(self, topic: str, partition: int) -> None:
        """Gives up the copy that was to take a log's place."""
        future = self._future.pop((topic, partition), None)
        if future is not None:
            self._counts[future.home.path] -= 1
            self._retired.add(future, now)

    def replace(self, log: PartitionLog, future: PartitionLog) -> None:
        """The copy is the log now; the old one's directory goes."""
        key = (log.topic, log.partition)
        assert self._logs[key] is log
        self._counts[log.home.path] -= 1
        self._retired.add(log, now)
        del self._future[key]
        self._logs[key] = future

    # --- describing -------------------------------------------------------------------------------

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        return next(found for found in self.directories if found.home is log.home)

    def describe(self) -> list[DirectoryInfo]:
        """Every directory with the logs in it, future ones too."""
        return [self._describe(directory) for directory in self.directories]

    def _describe(self, directory: LogDirectory) -> DirectoryInfo:
        if not directory.home.is_online:
            return DirectoryInfo(directory.path, False, -1, -1, [])
        total, usable = self.env.disk.space(directory.path)
        return DirectoryInfo(directory.path, True, total, usable, self.logs_in(directory))
