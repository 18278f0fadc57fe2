"""Lives of a broker's logs in which everything meets everything: where the seams are.

Several logs in two directories are appended to, rolled, retained, compacted, moved, deleted and
made again, while workers do their jobs in any order and readers are slow; then the broker stops,
is killed, or its machine dies, and the next life begins on what is left. Owns this workload and
what must hold at every step of it. A failure names the seed that leads back to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import FileRange
from kafkalite.log.config import COMPACT, DELETE, FSYNC, PAGE_CACHE, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.names import LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import KafkaError
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import CLUSTER_ID, keyed, read_all

DIRECTORIES = ["/one", "/two"]
TOPICS = "abc"
KEYS = 6
WORKERS = 4
STEPS = 150  # of all lives of a seed
DEATH = 0.012  # how likely one follows a step
FAVOURED = 20  # how likely the action is that these lives are about
EVICTION = 0.3  # how likely a reader's file is closed while others are wanted more
# The passes of the timers are made by the workload, when it pleases.
QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)


class Workers:
    """Threads that do a job at some time, of whose outcome the loop hears at some later time."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self._outcomes: list[tuple[Callable[[Any], None], Any]] = []

    def __len__(self) -> int:
        return len(self._jobs) + len(self._outcomes)

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self._jobs.append((job, done))

    def turn(self) -> None:
        """One of those that were submitted first is done, or one that is done is heard of."""
        if self._outcomes and (not self._jobs or self._random.random() < 0.5):
            is_first = self._random.random() < 0.7
            index = 0 if is_first else self._random.randrange(len(self._outcomes))
            done, outcome = self._outcomes.pop(index)
            done(outcome)
        elif self._jobs:
            job, done = self._jobs.pop(self._random.randrange(min(WORKERS, len(self._jobs))))
            try:
                outcome = job()
            except Exception as error:  # noqa: BLE001 - as `done` wants it
                outcome = error
            self._outcomes.append((done, outcome))


@dataclass(slots=True)
class Topic:
    """One partition, and what its clients know of it."""

    topic_id: bytes
    written: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)  # by offset
    gone: set[int] = field(default_factory=set)  # of these, since the last death or before
    acknowledged_end: int = 0  # what lies below lasts longer than the machine
    start: int = 0  # what lies below may have been removed
    directory_id: bytes | None = None  # where the metadata has it

    @property
    def end(self) -> int:
        return max(self.written, default=-1) + 1

    def check(self, log: PartitionLog, needed_end: int, *, is_compacted: bool) -> None:
        """Nothing below an end that is far enough is gone, and nothing is there that was not
        written."""
        assert log.log_end_offset >= needed_end, f"{log} ends before {needed_end}"
        found = {record.offset: (record.key, record.value) for record in read_all(log)}
        for offset, pair in found.items():
            assert self.written.get(offset) == pair, f"{log} has {pair} at {offset}"
        # And no hole below the end, whether anybody was promised what had been there or not.
        wanted = [o for o in sorted(self.written) if o < log.log_end_offset and o not in self.gone]
        if is_compacted:  # each key has its last value, or a later one
            wanted = list({self.written[offset][0]: offset for offset in wanted}.values())
            latest = {pair[0]: offset for offset, pair in sorted(found.items())}
            wanted = [o for o in wanted if latest.get(self.written[o][0], -1) < o]
        lost = [offset for offset in wanted if offset >= self.start and offset not in found]
        assert not lost, f"{log} lacks {lost}"

    def settle(self, log: PartitionLog, *, is_durable: bool) -> None:
        """What a death took was never promised; offsets behind the end may be given again."""
        end = log.log_end_offset
        self.written = {offset: pair for offset, pair in self.written.items() if offset < end}
        self.gone = set(self.written) - {record.offset for record in read_all(log)}
        if is_durable:
            self.acknowledged_end = end
        self.note_start(log)

    def note_start(self, log: PartitionLog) -> None:
        self.start = max(self.start, log.log_start_offset)


@dataclass(slots=True)
class SlowReader:
    """Who was given a range of a file, and may send from it until the file's delay is over."""

    since_ms: int
    range: FileRange
    data: bytes

    def check(self) -> None:
        """Its bytes are still the same, whatever became of the log."""
        try:
            data = self.range.read()
        except FileNotFoundError:
            raise AssertionError(f"{self.range.file.path} is gone under its reader") from None
        assert data == self.data, f"{self.range.file.path} gives its reader other bytes"


def config_of(random: Random, *, is_fsynced: bool) -> LogConfig:
    policy = random.choice([(COMPACT,), (COMPACT, DELETE), (DELETE,)])
    return LogConfig(
        cleanup_policy=policy,
        segment_bytes=random.choice([300, 500, 900]),
        index_interval_bytes=100,
        min_cleanable_dirty_ratio=0.01,
        retention_ms=random.choice([-1, -1, 300]),
        retention_bytes=random.choice([-1, 2000]) if DELETE in policy else -1,
        file_delete_delay_ms=random.choice([1, 50, 1000]),
        kafkalite_durability=FSYNC if is_fsynced else PAGE_CACHE,
    )


class Lives:
    """All lives of one seed, each on the disk that the one before had left."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = 0
        self.random = Random(f"seams/{seed}")
        self.config = config_of(self.random, is_fsynced=seed % 2 == 0)
        self._topics: dict[str, Topic] = {}
        self._ids = self._values = 0
        self._actions: dict[Callable[[], None], int] = {
            self._make: 4, self._append: 41, self._flush: 5, self._roll: 3, self._compact: 7,
            self._retain: 6, self._delete_records: 3, self._move: 3, self._delete: 2,
            self._checkpoint: 4, self._read: 8, self._wait: 14,
        }  # fmt: skip
        favourite = self.random.choice(list(self._actions))  # there is much of, in these lives
        self._actions[favourite] = max(self._actions[favourite], FAVOURED)
        self._open(CrashDisk(), 0)

    def run(self, steps: int = STEPS) -> int:
        """Returns how many lives were lived."""
        for _ in range(steps):
            self._step()
            for _ in range(self.random.choice([0, 0, 1, 2, 4])):
                self.workers.turn()
            self._check_now()
            if self.random.random() < DEATH:
                self._die()
        while len(self.workers):
            self.workers.turn()
        self._check_now()
        self._check_topics(is_crash=False)
        return self.count

    # --- from start to stop -----------------------------------------------------------------------

    def _open(self, disk: CrashDisk, elapsed_ms: int) -> None:
        self.count += 1
        self.disk = disk
        # Chance of its own for each life, or names that are to be unique would come again.
        self.env: Env = manual_env(self.seed * 1000 + self.count, disk)
        assert isinstance(self.env.clock, ManualClock)
        self.clock: ManualClock = self.env.clock
        self.clock.advance(elapsed_ms)
        self.manager = LogManager(
            self.env,
            DIRECTORIES,
            node_id=1,
            cluster_id=CLUSTER_ID,
            settings=QUIET,
            config_of=lambda topic: self.config,
            topic_of=self._topic_of,
            named_directory=self._named_directory,
            name_directory=self._name_directory,
        )
        assert self.manager.start().is_resolved
        for log in list(self.manager):
            log.replicated(log.log_end_offset)
            if log.topic not in self._topics:
                self.manager.set_aside(log)
        for name, topic in self._topics.items():
            self.manager.create(name, 0, topic.topic_id, self.config, is_new=False)
        self.workers = Workers(self.random)
        self.env.background = self.workers
        self._readers: list[SlowReader] = []
        for log in list(self.manager):
            if self.manager.future(log.topic, 0) is not None:
                self.manager.mover.resume(log, lambda moved: None)

    def _die(self) -> None:
        for name, topic in self._topics.items():
            topic.note_start(self._log(name))
        kind = self.random.random()
        is_clean, is_crash = kind < 0.3, kind >= 0.6
        if is_clean:
            self.manager.close()
        else:
            self.manager.abandon()
        left = self.disk.crashed(self.random) if is_crash else self.disk.stopped()
        self._open(left, self.clock.monotonic_ms())
        self._check_topics(is_crash=is_crash)
        for name, topic in self._topics.items():
            topic.settle(self._log(name), is_durable=is_clean)

    # --- what the metadata says -------------------------------------------------------------------

    def _topic_of(self, topic_id: bytes, partition: int) -> str | None:
        return next((n for n, topic in self._topics.items() if topic.topic_id == topic_id), None)

    def _named_directory(self, name: str, partition: int) -> bytes | None:
        return self._topics[name].directory_id if name in self._topics else None

    def _name_directory(self, log: PartitionLog, then: Callable[[], None]) -> None:
        directory_id = self.manager.directory_of(log).directory_id

        def name() -> None:
            topic = self._topics.get(log.topic)
            if topic is not None and topic.topic_id == log.topic_id:
                topic.directory_id = directory_id
            then()

        self.clock.call_later(self.random.choice([0, 5]), name)

    # --- what happens -----------------------------------------------------------------------------

    def _step(self) -> None:
        if self._topics:
            actions = list(self._actions)
            self.random.choices(actions, list(self._actions.values()))[0]()
        else:
            self._make()
        for name, topic in self._topics.items():
            topic.note_start(self._log(name))

    def _log(self, name: str) -> PartitionLog:
        log = self.manager.get(name, 0)
        assert log is not None, f"{name} is not served"
        return log

    def _any(self) -> tuple[str, Topic, PartitionLog]:
        name = self.random.choice(sorted(self._topics))
        return name, self._topics[name], self._log(name)

    def _make(self) -> None:
        name = self.random.choice(TOPICS)
        if name not in self._topics:
            self._ids += 1
            topic = self._topics[name] = Topic(bytes([self._ids]) * 16)
            log = self.manager.create(name, 0, topic.topic_id, self.config)
            topic.directory_id = self.manager.directory_of(log).directory_id

    def _append(self) -> None:
        _, topic, log = self._any()
        self._values += 1
        key = b"k%d" % self.random.randrange(KEYS)
        value = b"v%05d" % self._values + b"x" * self.random.randrange(40)
        data = keyed([(key, value)], timestamp=self.clock.now_ms())
        offset = log.append_as_leader(data, 0).base_offset
        assert offset >= topic.acknowledged_end, f"{log} gives {offset} again"
        assert offset not in topic.written, f"{log} gives {offset} again"
        topic.written[offset] = (key, value)
        log.replicated(log.log_end_offset)
        if self.config.is_fsynced:

            def acknowledge(error: KafkaError | None) -> None:
                if error is None:
                    topic.acknowledged_end = max(topic.acknowledged_end, offset + 1)

            log.when_durable(offset + 1).then(acknowledge)

    def _flush(self) -> None:
        self._any()[2].flush()

    def _roll(self) -> None:
        self._any()[2].roll()

    def _compact(self) -> None:
        self.manager.periodic.cleaner.run()

    def _retain(self) -> None:
        self.manager.periodic.retain()

    def _delete_records(self) -> None:
        _, _, log = self._any()
        offset = self.random.randrange(log.log_start_offset, log.high_watermark + 1)
        log.delete_records_before(offset)

    def _move(self) -> None:
        self.manager.move(self._any()[0], 0, self.random.choice(DIRECTORIES))

    def _delete(self) -> None:
        name, _, _ = self._any()
        del self._topics[name]
        self.manager.delete(name, 0, self._once_durable)

    def _once_durable(self, act: Callable[[], None]) -> None:
        self.clock.call_later(self.random.choice([0, 30]), act)

    def _checkpoint(self) -> None:
        self.manager.checkpoint(self.random.choice([RECOVERY_POINTS, LOG_STARTS]))

    def _read(self) -> None:
        _, _, log = self._any()
        if log.log_start_offset < log.log_end_offset:
            offset = self.random.randrange(log.log_start_offset, log.log_end_offset)
            found = log.read(offset, 1 << 20).range
            if found is not None:
                now_ms = self.clock.now_ms()
                self._readers.append(SlowReader(now_ms, found, found.read()))

    def _wait(self) -> None:
        self.clock.advance(self.random.choice([0, 1, 2, 5, 20, 100]))

    # --- what must hold ---------------------------------------------------------------------------

    def _check_now(self) -> None:
        since_ms = self.clock.now_ms() - self.config.file_delete_delay_ms
        self._readers = [reader for reader in self._readers if reader.since_ms > since_ms]
        for reader in self._readers:
            if self.random.random() < EVICTION:
                reader.range.file.close()
            reader.check()
        for directory in self.manager.directories:
            assert directory.home.is_online, directory.home.failure

    def _check_topics(self, *, is_crash: bool) -> None:
        for name, topic in self._topics.items():
            log = self._log(name)
            needed_end = topic.acknowledged_end if is_crash else topic.end
            if needed_end > 0:
                assert log.log_start_offset <= topic.start, f"{log} began at {topic.start}"
            else:  # of a log that was never synced a later segment may be all that is left
                topic.note_start(log)
            topic.check(log, needed_end, is_compacted=self.config.is_compacted)


def live(seed: int) -> int:
    """Lives all lives of a seed and returns how many they were; a failure names the seed."""
    try:
        return Lives(seed).run()
    except Exception as problem:
        raise AssertionError(f"seams, seed {seed}: {problem!r}") from problem
