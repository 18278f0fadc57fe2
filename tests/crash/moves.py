"""Moves between log directories, cut short at every disk operation, and starts without some disks.

Owns the workload and what must hold after it: a partition is served with everything that was
acknowledged, or it is not served at all until its directory is back; then nothing is missing and no
offset was given out twice.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkalite.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import iterate_headers, verify
from kafkalite.replication.partition import Partition
from kafkalite.sim.disk import CrashDisk, Inode
from tests.crash.worlds import UnevenBackground
from tests.unit.handlers.whole_broker import SilentNetwork
from tests.unit.log.making import batch, iterate_log

# The metadata lies in the first, which is always there; the topic and its copy in the others.
DIRECTORIES = ("/meta", "/one", "/two")
TOPIC = "t"


@dataclass(slots=True)
class MoveWorkload:
    """What one seed does: appends, and moves there and back."""

    seed: int
    is_fsynced: bool
    is_uneven: bool = False
    steps: int = 24


class Life:
    """A broker from its start until it dies, with some of its directories away."""

    def __init__(self, disk: CrashDisk, workload: MoveWorkload, *, is_uneven: bool = False) -> None:
        self.env = manual_env(workload.seed, disk)
        assert isinstance(self.env.clock, ManualClock)
        self.clock: ManualClock = self.env.clock
        self.disk = disk
        self.broker = Broker(self.env, SilentNetwork(), BrokerConfig({
            "node.id": "1",
            "log.dirs": ",".join(DIRECTORIES),
            "kafkalite.durability": "fsync" if workload.is_fsynced else "page-cache",
            "log.cleaner.enable": "false",
            "log.segment.delete.delay.ms": "5",
        }))  # fmt: skip
        started = self.broker.start()
        assert started.is_resolved
        assert started.value is None, started.value
        if is_uneven:
            self.env.background = UnevenBackground(workload.seed)

    @property
    def partition(self) -> Partition | None:
        return self.broker.partitions.get(TOPIC, 0)

    def turn(self, duration_ms: int = 0) -> None:
        self.clock.advance(duration_ms)
        if isinstance(self.env.background, UnevenBackground):
            self.env.background.turn()

    def die(self) -> None:
        self.broker.logs.abandon()

    def close(self) -> None:
        self.broker.stop(0)
        self.turn(1_000)


@dataclass(slots=True)
class Promised:
    """Every value that was written by its offset, and below which offset it was acknowledged."""

    written: dict[int, list[bytes]] = field(default_factory=dict)
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    start: int = 0  # DeleteRecords may have removed what lies below

    def copy(self) -> Promised:
        written = {offset: list(values) for offset, values in self.written.items()}
        return Promised(written, dict(self.acknowledged), self.start)

    def append(self, life: Life, value: bytes) -> None:
        partition = life.partition
        assert partition is not None
        offset = partition.log.log_end_offset
        assert offset not in self.acknowledged, f"offset {offset} is given out again"
        self.written.setdefault(offset, []).append(value)
        now_ms = life.clock.now_ms()
        partition.append(batch([value], timestamp=now_ms), now_ms)
        partition.when_committed(offset + 1).then(
            lambda _: self.acknowledged.update({offset: value})
        )

    def check(self, partition: Partition) -> None:
        """Everything that was acknowledged is there, and nothing that was never written."""
        log = partition.log
        found = {record.offset: record.value for record in iterate_log(log, 1 << 16)}
        for offset, value in found.items():
            assert value in self.written[offset], (offset, value)
        missing = {
            offset for offset, value in self.acknowledged.items()
            if offset >= self.start and found.get(offset) != value
        }  # fmt: skip
        assert not missing, f"{log} lacks {sorted(missing)}"
        if log.log_end_offset > log.log_start_offset:
            data = log.read(log.log_start_offset, 1 << 20).range
            assert data is not None
            held = data.read()
            for header in iterate_headers(held):
                verify(held, header)


class Run:
    """A workload under way."""

    def __init__(self, workload: MoveWorkload, disk: CrashDisk) -> None:
        self.workload = workload
        self.random = Random(f"moves/{workload.seed}")
        self.promised = Promised()
        self.life = Life(disk, workload, is_uneven=workload.is_uneven)
        for topic in ("pad", TOPIC):  # the first one goes where the metadata is
            created = self.life.broker.create_topic(topic, 1)
            while not created.is_resolved:
                self.life.turn(1)
        for _ in range(10):
            self.life.turn(5)
        self._number = 0

    def run(self) -> None:
        self._append()
        for step in range(self.workload.steps):
            self._step(step)
            self.life.turn(self.random.choice((0, 1, 2, 3, 5)))
        for _ in range(50):
            self.life.turn(5)
        assert len(self.promised.acknowledged) == self._number, "somebody waits for ever"
        self.life.close()

    def _step(self, step: int) -> None:
        partition = self.life.partition
        assert partition is not None
        kind = self.random.random()
        if step % 8 == 1:
            self._move(partition)
        elif kind < 0.5:
            self._append()
        elif kind < 0.6:
            partition.log.flush()
        elif kind < 0.7:
            partition.log.roll()
        elif kind < 0.75:
            offset = self.random.randrange(
                partition.log.log_start_offset, partition.high_watermark + 1
            )
            self.promised.start = max(self.promised.start, offset)
            partition.delete_records_before(offset)
        elif kind < 0.8:
            self.life.turn(60_000)  # checkpoints

    def _move(self, partition: Partition) -> None:
        here = partition.log.home.path
        target = self.random.choice([path for path in ("/one", "/two", "/one") if path != here])
        self.life.broker.logs.move(TOPIC, 0, target, partition.moved)

    def _append(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._number += 1
            self.promised.append(self.life, b"%d/" % self._number + b"x" * (self._number % 7))


def crash_points_of_moves(workload: MoveWorkload, states: int, *, every: int = 1) -> int:
    """Crashes before each of the workload's operations; returns how many times."""
    disk = CrashDisk()
    run = Run(workload, disk)
    count = 0

    def before(kind: str, path: str, size: int) -> None:
        nonlocal count
        if disk.operations % every:
            return
        for state in range(states):
            random = Random(f"{workload.seed}/{disk.operations}/{state}")
            left = disk.stopped() if state == 0 else disk.crashed(random)
            promised = run.promised.copy()
            if state > 0 and not workload.is_fsynced:
                promised.acknowledged.clear()
            for away in ([], ["/one"], ["/two"], ["/one", "/two"]):
                try:
                    _check(left.stopped(), promised.copy(), workload, away, random)
                except Exception as problem:
                    where = f"operation {disk.operations} {kind} {path} state {state} away {away}"
                    raise AssertionError(f"{workload}: {where}: {problem!r}") from problem
                count += 1

    disk.before_operation = before
    run.run()
    return count


def _check(
    disk: CrashDisk, promised: Promised, workload: MoveWorkload, away: list[str], random: Random
) -> None:
    """Lives without some directories, then without others, then with all."""
    others = random.choice([[], ["/one"], ["/two"], ["/one", "/two"]])
    lives = [away, others, [], []] if random.random() < 0.5 else [away, [], []]
    for number, each in enumerate(lives):
        disk = disk.stopped()
        gone = detach(disk, each)
        life = Life(disk, workload)
        partition = life.partition
        if partition is not None and partition.is_leader:
            promised.check(partition)
            promised.append(life, b"life %d" % number)
            life.turn(random.choice((0, 1, 3, 50)))
            found = life.partition
            assert found is not None
            promised.check(found)
        else:
            assert each, "nothing is away, and the partition is not served"
            _check_refused(life)
        if random.random() < 0.5:
            life.turn(200)
            life.close()
        else:
            life.die()
        disk.before_operation = None
        attach(disk, gone)


def _check_refused(life: Life) -> None:
    try:
        found = life.broker.partitions.find(TOPIC, 0)
        found.append(batch([b"never"], timestamp=0), 0)
    except KafkaError:
        return
    raise AssertionError("a record is taken that nobody leads")


def detach(disk: CrashDisk, paths: list[str]) -> dict[str, Any]:
    """Takes disks away: nothing of them can be seen, nothing be made in their place."""
    gone: dict[str, Inode] = {}
    entries = disk._root.entries
    assert entries is not None
    for path in paths:
        gone[path] = entries.pop(path[1:])
        disk._root.stable_entries.pop(path[1:], None)

    def fail(kind: str, path: str, size: int) -> None:
        if any(path == each or path.startswith(f"{each}/") for each in paths):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    disk.before_operation = fail
    return gone


def attach(disk: CrashDisk, gone: dict[str, Any]) -> None:
    """Puts them back as they were."""
    assert disk._root.entries is not None
    for path, inode in gone.items():
        disk._root.entries[path[1:]] = inode
        disk._root.stable_entries[path[1:]] = inode
