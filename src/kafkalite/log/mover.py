"""Moves a log from one directory to another while it is in use (AlterReplicaLogDirs).

Owns the future log that is filled beside the current one until both end at the same offset, the
moment in which it takes the current one's place, and the end of a move that cannot go on. It never
delays an append. Invariant: what was acknowledged is in the log that `choosing` takes after a stop
at any point, or no log of the partition is taken.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Protocol

from kafkalite.env.clock import Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import Disk, FileRange
from kafkalite.log.copies import Copies, Makers
from kafkalite.log.home import LogHome
from kafkalite.log.log_table import LogTable
from kafkalite.log.names import partition_directory
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.throttle import Throttle
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import iterate_headers
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)

_STEP_BYTES = 1 << 18  # that the event loop writes in one turn
_STEP_BATCHES = 300  # and what it looks at then
_REST_BYTES = 1 << 14  # that it reads then, too
_PAUSE_MS = 2  # between two steps, for everything else on the event loop
_TURN_MS, _STEPS_PER_TURN = 3, 16  # of all moves together
_RETRY_MS = 1_000  # when something else has to come first

OnMoved = Callable[[PartitionLog], None]
# Has the metadata name the directory of a log, and goes on when that lasts.
NameDirectory = Callable[[PartitionLog, Callable[[], None]], None]


def name_nothing(log: PartitionLog, then: Callable[[], None]) -> None:
    """For logs that no metadata knows."""
    then()


@dataclass(slots=True, eq=False)
class _Move:
    """One move that is under way."""

    log: PartitionLog
    future: PartitionLog
    on_moved: OnMoved
    timer: Timer | None = None
    must_last: int | None = None  # of the copy, before anything is changed for it
    is_asked: bool = False  # the metadata shall name the new directory
    is_named: bool = False  # and does
    is_holding: bool = False  # nothing more of the log counts as durable until it is replaced
    truncations: int = 0  # how often the log had been cut when the copy began

    @property
    def key(self) -> tuple[str, int]:
        return self.log.topic, self.log.partition


class Futures(Makers, Protocol):
    """What a move asks of whoever opens and removes logs."""

    def drop_future(self, topic: str, partition: int) -> None: ...

    def make_way(self, home: LogHome, path: str) -> bool: ...

    def is_retired(self, path: str) -> bool: ...

    def replace(self, log: PartitionLog, future: PartitionLog) -> None: ...

    def retire(self, log: PartitionLog) -> None: ...


class Mover:
    """All moves that are under way."""

    def __init__(self, logs: LogTable, futures: Futures, name_directory: NameDirectory) -> None:
        self._logs = logs
        self._futures = futures
        self._name_directory = name_directory
        self._moves: dict[tuple[str, int], _Move] = {}
        self._copies = Copies(logs, futures)
        # Logs whose place was taken, until the new one's name lasts.
        self._replaced: dict[PartitionLog, PartitionLog] = {}
        self._due: deque[_Move] = deque()  # whose next step is to be made
        self._is_stopped = False
        settings = logs.settings
        self._throttle = Throttle(
            logs.env.clock, lambda: settings.replica_alter_log_dirs_io_max_bytes_per_second
        )

    def move(self, topic: str, partition: int, path: str, on_moved: OnMoved) -> None:
        """Begins a move, unless it is under way; `on_moved` gets the log that has taken the place.
        One to another directory is given up for it."""
        logs, key = self._logs, (topic, partition)
        if path not in [directory.path for directory in logs.directories]:
            raise KafkaError(Error.LOG_DIR_NOT_FOUND, f"{path} is no log directory")
        log = logs.get(topic, partition)
        if log is None:
            raise KafkaError(Error.REPLICA_NOT_AVAILABLE, f"{topic}-{partition} is not here")
        move = self._moves.get(key)
        if move is not None and self._is_there(move) and move.future.home.path == path:
            return
        if self._copies.is_coming(log, path):
            return
        self._cancel(log)
        if log.home.path == path:
            return
        self._prepare(log, path, on_moved)

    def resume(self, log: PartitionLog, on_moved: OnMoved) -> None:
        """Goes on with a move that a stop had cut short."""
        future = self._logs.future(log.topic, log.partition)
        if future is not None and (log.topic, log.partition) not in self._moves:
            logger.info(
                "%s-%d is still to be moved from %s to %s: %d of %d records' offsets are there",
                log.topic, log.partition, log.home.path, future.home.path,
                max(0, future.log_end_offset - log.log_start_offset),
                log.log_end_offset - log.log_start_offset,
            )  # fmt: skip
            self._begin(log, future, on_moved)
            self._agree(self._moves[log.topic, log.partition])

    def _agree(self, move: _Move) -> None:
        """Before anything is appended: a crash may have taken records from the log that the copy
        has, and others were given their offsets then. That began an epoch."""
        log, future = move.log, move.future
        latest = future.epochs.latest
        epoch, end_offset = log.end_offset_for_epoch(latest)
        try:
            if epoch == latest and end_offset >= log.log_start_offset:
                future.truncate_to(end_offset)
            elif future.log_end_offset > future.log_start_offset:
                self._begin_again(move)
        except KafkaError as error:
            self._give_up(move, error)

    def _prepare(
        self, log: PartitionLog, path: str, on_moved: OnMoved, *, is_asked: bool = False
    ) -> None:
        """Begins a move once there can be a copy."""

        def made(future: PartitionLog | KafkaError) -> None:
            if isinstance(future, KafkaError):
                self._stays(log, path, future, is_asked=is_asked)
            else:
                self._begin(log, future, on_moved, is_asked=is_asked)

        self._copies.make(log, path, made, is_asked=is_asked)

    def _begin(
        self, log: PartitionLog, future: PartitionLog, on_moved: OnMoved, *, is_asked: bool = False
    ) -> None:
        cuts = log.durability.truncations
        move = _Move(log, future, on_moved, is_asked=is_asked, truncations=cuts)
        self._moves[move.key] = move
        self._later(move)

    def _cancel(self, log: PartitionLog) -> None:
        """Another directory is wanted: that of a move under way is not, whatever was asked of the
        metadata."""
        move = self._end(log.topic, log.partition)
        was_asked = self._copies.cancel(log.topic, log.partition)
        self._futures.drop_future(log.topic, log.partition)
        if was_asked or (move is not None and move.is_asked):
            self._name_again(log)

    def _name_again(self, log: PartitionLog) -> None:
        try:
            self._name_directory(log, lambda: None)
        except KafkaError as error:
            logger.error("the metadata cannot say where %s is: %s", log, error)

    def _end(self, topic: str, partition: int) -> _Move | None:
        move = self._moves.pop((topic, partition), None)
        if move is not None and move.timer is not None:
            move.timer.cancel()
        if move is not None:
            self._release(move)
        return move

    def _release(self, move: _Move) -> None:
        if move.is_holding:
            move.is_holding = False
            move.log.durability.release()

    def _later(self, move: _Move, after_ms: int = _PAUSE_MS) -> None:
        if self._is_current(move):
            move.timer = self._logs.env.clock.call_later(after_ms, partial(self._is_due, move))

    def _is_due(self, move: _Move) -> None:
        """Steps come one after the other, and not all of those that are due in one turn."""
        if not self._due:
            self._logs.env.clock.call_later(0, self._turn)
        self._due.append(move)

    def _turn(self) -> None:
        clock = self._logs.env.clock
        end_ms = clock.monotonic_ms() + _TURN_MS
        try:
            for _ in range(min(len(self._due), _STEPS_PER_TURN)):
                move = self._due.popleft()
                if self._is_current(move):
                    self._step(move)
                if clock.monotonic_ms() >= end_ms:
                    break
        finally:  # also when one of them failed by a mistake of ours
            if self._due:
                clock.call_later(0, self._turn)

    def _is_current(self, move: _Move) -> bool:
        return not self._is_stopped and self._moves.get(move.key) is move

    def _is_there(self, move: _Move) -> bool:
        """Whether its logs are in service, and neither was deleted meanwhile."""
        logs = self._logs
        return logs.get(*move.key) is move.log and logs.future(*move.key) is move.future

    def stop(self) -> None:
        """Goes on with nothing; the next start does."""
        self._is_stopped = True
        self._copies.stop()
        for key in list(self._moves):
            self._end(*key)

    def finish(self) -> None:
        """The stop is clean: what has lost its place goes."""
        for log, future in list(self._replaced.items()):
            if future.home.is_online:
                try:
                    future.home.disk.sync_directory(future.home.path)
                except OSError as error:
                    future.home.fail(error)
                else:
                    self._retire(log)

    def make_way(self, directory: str) -> None:
        """A new topic's log needs the name of a log that has lost its place, and its topic."""
        for log in list(self._replaced):
            if log.directory == directory:
                self._retire(log)

    # --- copying ----------------------------------------------------------------------------------

    def _step(self, move: _Move) -> None:
        log, future = move.log, move.future
        if not future.home.is_online:
            self._give_up(move, KafkaError(Error.KAFKA_STORAGE_ERROR, "it is offline"))
        elif not self._is_there(move):
            self._end(*move.key)
        elif not log.home.is_online:
            self._end(*move.key)  # the next start goes on with it
        else:
            try:
                self._go_on(move)
            except KafkaError as error:
                self._give_up(move, error)

    def _go_on(self, move: _Move) -> None:
        log, future = move.log, move.future
        is_within = log.log_start_offset <= future.log_end_offset <= log.log_end_offset
        if not is_within or log.durability.truncations != move.truncations:
            self._begin_again(move)
            return
        if future.log_end_offset < log.log_end_offset and not self._copy_rest(move):
            self._copy(move)
            return
        if move.must_last is None:
            move.must_last = log.log_end_offset
        must_last = max(move.must_last, log.durability.durable_offset)
        if future.durability.durable_offset < must_last or not future.durability.is_named:
            # The copy must outlast a crash before the original goes, be it without a record.
            future.when_flushed(lambda: self._later(move))
        elif not move.is_named and self._is_in_use(future):
            self._later(move, _RETRY_MS)
        elif not move.is_named:
            self._name(move)
        elif log.durability.holds > move.is_holding:
            self._later(move, _RETRY_MS)
        elif not move.is_holding:
            # From here on nothing more becomes durable that the copy would have to follow.
            move.is_holding = True
            log.durability.hold()
            self._later(move)
        else:
            self._replace(move)

    def _begin_again(self, move: _Move) -> None:
        """What the copy has is of no use."""
        self._end(*move.key)
        self._futures.drop_future(*move.key)
        path = move.future.home.path
        self._prepare(move.log, path, move.on_moved, is_asked=move.is_asked)

    def _copy_rest(self, move: _Move) -> bool:
        """Copies the last few records at once, or the copy would never come up with a log that is
        written to all the time; True when it has."""
        log, future = move.log, move.future
        if future.log_end_offset < log.active.base_offset or self._throttle.wait_ms():
            return False
        limit = min(_REST_BYTES, self._throttle.piece)
        found = log.read(future.log_end_offset, limit).range
        if found is None or found.length > limit:
            return False
        try:
            data = bytearray(found.read())
        except OSError:  # who reads it again meets it again
            return False
        self._throttle.take(found.length)
        future.append_as_follower(data)
        return future.log_end_offset == log.log_end_offset

    def _copy(self, move: _Move) -> None:
        """Copies the next piece, which is read off the event loop."""
        wait_ms = self._throttle.wait_ms()
        if wait_ms:
            self._later(move, wait_ms)
            return
        offset = move.future.log_end_offset
        found = move.log.read(offset, min(_STEP_BYTES, self._throttle.piece)).range
        assert found is not None, "a log that ends higher has nothing to read"
        self._throttle.take(found.length)
        disk, path = move.log.home.disk, found.file.path
        self._logs.env.background.submit(
            lambda: _read(disk, path, found), partial(self._read, move, offset, found)
        )

    def _read(self, move: _Move, offset: int, found: FileRange, outcome: object) -> None:
        copied = len(outcome) if isinstance(outcome, bytearray) else 0
        self._throttle.take(copied - found.length)
        if not self._is_current(move):
            return
        if not self._is_there(move):
            self._end(*move.key)
            return
        if isinstance(outcome, bytearray):
            try:
                if self._is_as_read(move, offset, found):
                    move.future.append_as_follower(outcome)
            except KafkaError as error:
                self._give_up(move, error)
                return
        elif isinstance(outcome, OSError) and not isinstance(outcome, FileNotFoundError):
            move.log.home.storage_error(outcome)
        elif isinstance(outcome, BaseException) and not isinstance(outcome, OSError):
            raise outcome
        self._later(move)  # also when retention or compaction has removed the file meanwhile

    def _is_as_read(self, move: _Move, offset: int, found: FileRange) -> bool:
        """Whether the log still has there what was read: compaction may have changed it."""
        log = move.log
        if move.future.log_end_offset != offset or not log.log_start_offset <= offset:
            return False
        if log.durability.truncations != move.truncations:
            return False
        again = log.read(offset, 1).range
        return again is not None and (again.file, again.position) == (found.file, found.position)

    def _name(self, move: _Move) -> None:
        """Only what the metadata names counts after a stop, if the other directory is away then."""

        def named() -> None:
            move.is_named = True
            self._later(move)

        move.is_asked = True
        try:
            self._name_directory(move.future, named)
        except KafkaError as error:
            logger.warning("%s is not moved yet: %s", move.log, error)
            self._later(move, _RETRY_MS)

    def _give_up(self, move: _Move, error: KafkaError) -> None:
        self._end(*move.key)
        self._futures.drop_future(*move.key)
        self._stays(move.log, move.future.home.path, error, is_asked=move.is_asked)

    def _stays(self, log: PartitionLog, path: str, error: KafkaError, *, is_asked: bool) -> None:
        logger.error(
            "%s-%d stays in %s: it cannot be moved to %s (%s). Ask again when that is mended",
            log.topic, log.partition, log.home.path, path, error,
        )  # fmt: skip
        if is_asked:
            self._name_again(log)

    # --- the moment -------------------------------------------------------------------------------

    def _is_in_use(self, future: PartitionLog) -> bool:
        """Whether the name it is to have is that of a log which was moved away before, or would be
        after a power cut: with its directory named in the metadata, that log would count."""
        path = final_path(future)
        is_taken = any(log.directory == path for log in self._replaced)
        return is_taken or path in future.home.vacated or self._futures.is_retired(path)

    def _replace(self, move: _Move) -> None:
        log, future, futures = move.log, move.future, self._futures
        futures.make_way(future.home, final_path(future))
        if final_path(future) in future.home.vacated:
            # Of what nobody knew, or given up since it was named: until that lasts.
            self._release(move)
            self._later(move, _RETRY_MS)
            return
        promote(future)
        future.durability.took_over(log.durability.durable_offset)
        futures.replace(log, future)
        if log.producers is not None:
            future.needed_producers().take_verifications(log.producers)
        future.take_watermark(log)
        future.raise_start(log.log_start_offset)
        self._replaced[log] = future
        move.is_holding = False  # for ever: it is the other's now
        self._end(*move.key)
        logger.info("%s-%d is now in %s", log.topic, log.partition, future.home.path)
        move.on_moved(future)
        if not log.is_durable_on_append:
            future.durability.want(log.log_end_offset)
        disk, path = future.home.disk, future.home.path
        self._logs.env.background.submit(
            lambda: disk.sync_directory(path), partial(self._lasts, log, future)
        )

    def _lasts(self, log: PartitionLog, future: PartitionLog, outcome: object) -> None:
        """The new name is on stable storage, and what follows for the old one."""
        if isinstance(outcome, OSError):
            log.end(future.home.storage_error(outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        elif not self._is_stopped:
            self._tell(log, future)

    def _tell(self, log: PartitionLog, future: PartitionLog) -> None:
        """Who waits for the old log, other than the partition, learns what becomes of the new."""

        def told(error: KafkaError | None) -> None:
            if error is None:
                log.durability.replaced(log.log_end_offset)
            if not self._is_stopped and future.home.is_online:
                self._retire(log)
            elif error is not None:
                log.end(error)

        if log.durability.is_waited_for:
            future.when_durable(log.log_end_offset).then(told)
        elif future.home.is_online:
            self._retire(log)  # or it stays: what it has is all that is left of the partition

    def _retire(self, log: PartitionLog) -> None:
        future = self._replaced.pop(log, None)
        if future is not None:
            where = f"it is moved to {future.home.path}"
            log.end(KafkaError(Error.NOT_LEADER_OR_FOLLOWER, where))
            self._futures.retire(log)


def _read(disk: Disk, path: str, found: FileRange) -> bytearray:
    """On a worker thread, with a descriptor of its own: whole batches, not too many at once."""
    file = disk.open(path)
    try:
        data = bytearray(file.read_at(found.position, found.length))
    finally:
        file.close()
    with suppress(CorruptRecords):  # which the append says
        for header in islice(iterate_headers(data), _STEP_BATCHES, None):
            del data[header.position :]
            break
    return data


def final_path(future: PartitionLog) -> str:
    """Where a future log lies when it is the partition's log."""
    return f"{future.home.path}/{partition_directory(future.topic, future.partition)}"


def promote(future: PartitionLog) -> None:
    """Gives a future log its final name; it lasts with what is written next, or synced."""
    path = final_path(future)
    try:
        future.home.disk.rename(future.directory, path)
    except OSError as error:
        raise future.home.storage_error(error) from error
    future.moved(path)
    future.is_future = False
    future.durability.directory_changed(is_new=True)
