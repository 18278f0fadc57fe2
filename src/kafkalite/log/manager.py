"""All logs of a broker, in all its log directories.

Owns their opening, creation and deletion, and the periodic work: one timer for each kind, none for
a single log. It never looks into a record. Invariant: what is in the table is open, and has its
name to itself.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial

from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.log.choosing import Choice, Copy, NamedDirectory, Places, TopicOf, choose, strangers
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.deleting import OnceDurable, Retired, bring_back, now
from kafkalite.log.describing import DirectoryInfo, describe
from kafkalite.log.directory import Identity, LogDirectory, lock_all
from kafkalite.log.finding import find_openings, has_no_record
from kafkalite.log.forerunners import make_now
from kafkalite.log.home import LogHome
from kafkalite.log.loading import Loading, Opened
from kafkalite.log.log_table import LogTable, TopicPartition
from kafkalite.log.making import Made, NewLog
from kafkalite.log.mover import Mover, NameDirectory, name_nothing, promote
from kafkalite.log.names import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    is_future_name,
    partition_directory,
    renamed_directory,
    stray_path,
)
from kafkalite.log.offline import UNKNOWN_TOPIC_ID, OfflinePartition, unserved
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.periodic import Periodic
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

_DEFAULTS = LogConfig()


class LogManager(LogTable):
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
        named_directory: NamedDirectory = lambda topic, partition: None,
        name_directory: NameDirectory = name_nothing,
        on_offline: Callable[[LogHome], None] = lambda home: None,
    ) -> None:
        super().__init__(env, settings or LogSettings())
        self.identity = Identity(cluster_id, node_id)
        self.config_of = config_of
        self._topic_of = topic_of
        self._named_directory = named_directory
        self._found: dict[TopicPartition, list[Copy]] = {}  # until all are opened
        self.loading = Loading()
        self._on_offline = on_offline
        self._retired = Retired(self.rename)
        # Logs in each directory, so that finding the emptiest is no walk over all of them.
        self._counts: Counter[str] = Counter()
        self.periodic = Periodic(self)
        self.mover = Mover(self, self, name_directory)
        self._is_locked = self._is_taken = False
        for path in directories:
            home = LogHome(env, path.rstrip("/"), self.settings, self._failed)
            self.directories.append(LogDirectory(home))

    # --- starting ---------------------------------------------------------------------------------

    def lock(self) -> None:
        """Locks the directories for this process, so that the metadata in them can be read; what
        is in them stays as it is.

        Raises LockedByOther or WrongDirectory. A directory whose disk fails is offline and does
        not keep the others from starting.
        """
        if not self._is_locked:
            lock_all(self.directories, self.identity)
            self._is_locked = True

    def take(self) -> None:
        """Makes the directories this broker's own."""
        self.lock()
        if self._is_taken:
            return
        self._is_taken = True
        for directory in self.directories:
            if directory.home.is_online:
                try:
                    directory.take()
                except OSError as error:
                    directory.home.fail(error)
            directory.home.save_checkpoint = partial(self._write_checkpoint, directory)
            offsets_of = partial(self.offsets, directory)
            directory.home.save_checkpoint_later = partial(directory.write_in_turn, offsets_of)
            directory.home.saved_recovery_point = directory.saved_recovery_point

    def start(self) -> Later[None]:
        """Takes the directories and opens every log in them; filled when all are open."""
        self.take()
        kept = self._bring_back()
        for directory in self.directories:
            if directory.home.is_online:
                try:
                    openings = find_openings(directory, self.config_of, self._topic_of, kept)
                    self.loading.waiting.extend((directory, opening) for opening in openings)
                except OSError as error:
                    directory.home.fail(error)
        return self._load_all()

    def _bring_back(self) -> set[str]:
        """Returns what must stay as it is, whatever it is called."""

        def may_come_back(topic: str, partition: int) -> bool:
            named = self._named_directory(topic, partition)
            return Places.of(self.directories).why_not_made(named) is None

        paths = [each.path for each in self.directories if each.home.is_online]
        try:
            return bring_back(self.env.disk, paths, self._topic_of, may_come_back, self._unique)
        except OSError as error:
            logger.error("deleted logs cannot be looked at: %s", error)
            return set()

    def _load_all(self) -> Later[None]:
        loaded: Later[None] = Later()

        def done() -> None:
            self._ready()
            loaded.resolve(None)

        workers = self.settings.num_recovery_threads_per_data_dir * len(self.directories)
        self.loading.begin(self.env, workers, self._loaded, done)
        return loaded

    def _loaded(self, results: list[tuple[LogDirectory, Opened]]) -> None:
        for directory, result in results:
            if isinstance(result, OSError):
                directory.home.fail(result)
                continue
            if isinstance(result, PartitionLog):
                result.is_future = is_future_name(result.directory)
            self._found.setdefault((result.topic, result.partition), []).append(result)

    def _settle(self, copies: list[Copy]) -> None:
        """Takes one of the logs that were found of a partition into service, or none."""
        named = self._named_directory(copies[0].topic, copies[0].partition)
        places = Places.of(self.directories)
        others = strangers(copies, self._topic_of, named, places)
        for stranger in others:
            self._lay_aside(stranger)
        copies = [each for each in copies if each not in others and each.home.is_online]
        if not copies:
            return
        choice = choose(copies, named, places)
        if choice.log is None:
            self._leave_offline(copies, choice.reason)
        else:
            self._take_up(choice)

    def _take_up(self, choice: Choice) -> None:
        log = choice.log
        assert log is not None
        for copy in choice.aside:
            logger.error("%s is another copy of %s, and not the one that counts", copy, log)
            self._lay_aside(copy)
        if log.is_future:
            promote(log)
        for taken, logs in ((log, self._logs), (choice.future, self._future)):
            if taken is not None:
                logs[taken.topic, taken.partition] = taken
                self._counts[taken.home.path] += 1

    def _leave_offline(self, copies: list[Copy], reason: str) -> None:
        kept = [
            unserved(each, reason, is_clean=self.directory_of(each).was_clean)
            if isinstance(each, PartitionLog)
            else each
            for each in copies
        ]
        self.offline.add(kept[0], kept)

    def _ready(self) -> None:
        found, self._found = self._found, {}
        for copies in found.values():
            self._settle(copies)
        if self.loading.bytes_expected:
            logger.info("%s", self.loading)
        self.periodic.start()

    # --- stopping ---------------------------------------------------------------------------------

    def close(self, broker_epoch: int = -1) -> None:
        """Makes everything last and says that this stop was clean."""
        self.periodic.stop()
        self.mover.stop()
        self.mover.finish()
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
            self.periodic.cleaner.close(directory)
            if all(offline.is_clean for offline in self.offline.within(directory.home)):
                directory.mark_clean(broker_epoch)
        except OSError as error:
            logger.error("log directory %s is not closed cleanly: %s", directory.path, error)

    def _failed(self, home: LogHome, error: OSError) -> None:
        for log in [
            log for log in (*self._logs.values(), *self._future.values()) if log.home is home
        ]:
            log.gone_offline()
            if log.is_future:  # the move is given up; what is there is left as it is
                del self._future[log.topic, log.partition]
        self._on_offline(home)

    # --- checkpoints ------------------------------------------------------------------------------

    def _write_checkpoint(self, directory: LogDirectory, name: str) -> None:
        directory.write(name, self.offsets(directory, name))

    # --- logs come and go -------------------------------------------------------------------------

    def create(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig | None = None,
        *, directory: str | None = None, is_new: bool = True,
    ) -> PartitionLog:  # fmt: skip
        """The log of a partition, made at once unless it is there."""
        found = self.find_or_plan(
            topic, partition, topic_id, config, directory=directory, is_new=is_new
        )
        if isinstance(found, NewLog):
            return self.take_new(found, make_now(self, found))
        return found

    def find_or_plan(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig | None = None,
        *, directory: str | None = None, is_new: bool = True, is_copied: bool = False,
    ) -> PartitionLog | NewLog:  # fmt: skip
        """The log of a partition, or where it is to be made: in the directory that has fewest
        unless one is named. One that is not new and not there may be where nobody can look; of one
        that `is_copied` others have all that it had."""
        found = self._logs.get((topic, partition))
        if found is not None and self._is_of(found, topic_id):
            found.home.check_online()
            return found
        if is_copied and self.offline.is_missing((topic, partition)):
            self._check_may_make(topic, partition, topic_id, is_copied=True)
            self.offline.pop((topic, partition))
        earlier = self.offline.of_earlier_topic((topic, partition), topic_id)
        if earlier is not None:
            self.set_aside(earlier)
        if not is_new:
            self._check_may_make(topic, partition, topic_id, is_copied=is_copied)
        place = self._place(directory)
        path = f"{place.path}/{partition_directory(topic, partition)}"
        takes_name = self.make_way(place.home, path)
        self._counts[place.path] += 1
        config = config or self.config_of(topic)
        return NewLog(place.home, topic, partition, topic_id, path, config, takes_name=takes_name)

    def take_new(self, new: NewLog, made: Made) -> PartitionLog:
        """Takes a log into service whose files were made, or raises KafkaError."""
        try:
            log = new.taken(made)
        except KafkaError:
            self._counts[new.home.path] -= 1
            raise
        self._logs[new.topic, new.partition] = log
        return log

    def check_up_to_date(self, log: PartitionLog, led_in: int) -> None:
        """Raises KafkaError, and takes the log out of service, when what its partition has may lie
        where the metadata names a directory that is not here: this one was left behind before the
        epoch `led_in`."""
        named = self._named_directory(log.topic, log.partition)
        places = Places.of(self.directories)
        if named is None or named in places.online or log.epochs.latest >= led_in:
            return
        reason = f"{log.directory} may be older than its partition; {places.why_not_there(named)}"
        self._counts[log.home.path] -= 1
        del self._logs[log.topic, log.partition]
        self._leave_offline([log], reason)
        raise KafkaError(Error.KAFKA_STORAGE_ERROR, reason)

    def _check_may_make(
        self, topic: str, partition: int, topic_id: bytes, *, is_copied: bool
    ) -> None:
        named = self._named_directory(topic, partition)
        reason = Places.of(self.directories).why_not_made(named, is_copied=is_copied)
        if reason is not None:
            self.offline.add(OfflinePartition(topic, partition, reason, topic_id))
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, reason)

    def _is_of(self, log: PartitionLog, topic_id: bytes) -> bool:
        """Whether a log is of this topic, and not of an earlier one of the same name."""
        if log.topic_id == UNKNOWN_TOPIC_ID:  # but its place does, see `strangers`
            log.tell_topic(topic_id)
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
        return min(online, key=lambda directory: self._counts[directory.path])

    def _unique(self) -> str:
        return f"{self.env.random.getrandbits(128):032x}"

    def delete(self, topic: str, partition: int, once_durable: OnceDurable = now) -> None:
        """Takes a log out of service at once; its files vanish later, see `retired`."""
        for logs in (self._logs, self._future):
            log = logs.pop((topic, partition), None)
            if log is not None:
                log.end(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
                self._counts[log.home.path] -= 1
                self._retired.add(log, once_durable)
                self.periodic.cleaner.forget(log)
                self.periodic.soon(LOG_STARTS)  # of all logs, as Kafka does at each deletion
        for copy in self.offline.pop((topic, partition)):
            self._retired.add(copy, once_durable)

    def set_aside(self, log: PartitionLog | OfflinePartition) -> None:
        """Takes a log out of service that no topic of the cluster knows; its files stay."""
        key = (log.topic, log.partition)
        if isinstance(log, OfflinePartition):
            for copy in self.offline.pop(key):
                self._lay_aside(copy)
        elif self._logs.get(key) is log:
            for taken in (self._logs.pop(key), self._future.pop(key, None)):
                if taken is not None:
                    self._counts[taken.home.path] -= 1
                    self._lay_aside(taken)

    def _lay_aside(self, log: Copy) -> None:
        if isinstance(log, PartitionLog) and has_no_record(self.env.disk, log.directory):
            self._retired.add(log, now)
            return
        logger.warning("%r is set aside as a stray", log)
        self.rename(log, "stray")

    def rename(self, log: Copy, role: str) -> None:
        """Gives the directory of a log that is out of service another name."""
        log.end(KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION))
        if not log.home.is_online:
            return
        name = renamed_directory(log.topic, log.partition, self._unique(), role)
        path = f"{log.home.path}/{name}"
        try:
            self.env.disk.rename(log.directory, path)
        except OSError as error:
            raise log.home.storage_error(error) from error
        log.home.vacated.add(log.directory, tells_its_topic=log.tells_its_topic)
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

    def forget(self, log: PartitionLog, directory: str, then: Callable[[bool], None]) -> None:
        """Has checkpoints of another directory tell nothing of a log's partition, see
        `LogDirectory.forget_later`."""
        place = self._place(directory)
        place.forget_later([(log.topic, log.partition)], partial(self.offsets, place), then)

    def create_future(self, log: PartitionLog, directory: str) -> PartitionLog:
        """An empty copy of a log that begins where the log does; no checkpoint tells of another."""
        place = self._place(directory)
        name = renamed_directory(log.topic, log.partition, self._unique(), "future")
        new = NewLog(
            place.home, log.topic, log.partition, log.topic_id, f"{place.path}/{name}", log.config,
            log.log_start_offset,
        )  # fmt: skip
        future = new.taken(new.make_files())
        future.is_future = True
        self._future[log.topic, log.partition] = future
        self._counts[place.path] += 1
        return future

    def make_way(self, home: LogHome, path: str) -> bool:
        """Clears a name, overwriting nothing; whether that must last before a log has it."""
        self.mover.make_way(path)
        try:
            is_taken = self._retired.make_way(path)
            if self.env.disk.exists(path):
                stray = stray_path(path, self._unique())
                logger.warning("%s is of no log in service, and is set aside as %s", path, stray)
                self.env.disk.rename(path, stray)
                home.vacated.add(path, tells_its_topic=False)
        except OSError as error:
            raise home.storage_error(error) from error
        return is_taken or home.vacated.is_doubtful(path)

    def is_retired(self, path: str) -> bool:
        """Whether a deleted log has a name still."""
        return path in self._retired

    def drop_future(self, topic: str, partition: int) -> None:
        """Gives up the copy that was to take a log's place."""
        future = self._future.pop((topic, partition), None)
        if future is not None:
            future.end(KafkaError(Error.REPLICA_NOT_AVAILABLE, "it is moved elsewhere, or not"))
            self._counts[future.home.path] -= 1
            self._retired.add(future, now)

    def replace(self, log: PartitionLog, future: PartitionLog) -> None:
        """The copy is the log now; the old one stays until that lasts."""
        key = (log.topic, log.partition)
        assert self._logs[key] is log
        self._counts[log.home.path] -= 1
        del self._future[key]
        self._logs[key] = future
        self.periodic.cleaner.forget(log)
        self.periodic.soon(LOG_STARTS)

    def retire(self, log: PartitionLog) -> None:
        """Another log has its place for good, and its directory goes."""
        self._retired.add(log, now)

    # --- describing -------------------------------------------------------------------------------

    def describe(self) -> list[DirectoryInfo]:
        """Every directory with the logs in it, future ones too."""
        return [describe(each, self.logs_in(each)) for each in self.directories]

