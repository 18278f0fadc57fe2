"""Nothing waits for the disk's sync on the event loop while a broker serves, whatever it does."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kafkalite.env.background import InlineBackground
from kafkalite.log.names import RECOVERY_POINTS
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    OffsetCommitRequest,
)
from kafkalite.sim.disk import CrashDisk
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import writer

HOUR_MS = 3_600_000


class Aside(InlineBackground):
    """Jobs are done at once, and are known for jobs while that lasts."""

    def __init__(self) -> None:
        self.jobs = 0

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def work() -> Any:
            self.jobs += 1
            try:
                return job()
            finally:
                self.jobs -= 1

        super().submit(work, done)


@dataclass(slots=True)
class Guard:
    """Refuses syncs that no worker makes, and takes them down: somebody may swallow the error."""

    aside: Aside
    beside: int = 0  # syncs by workers
    on_loop: list[str] = field(default_factory=list)

    def look(self, kind: str, path: str, size: int) -> None:
        if kind not in ("sync", "sync_directory"):
            return
        self.beside += 1
        if not self.aside.jobs:
            self.beside -= 1
            self.on_loop.append(f"{kind} {path}\n" + "".join(traceback.format_stack(limit=12)))
            raise AssertionError(f"{kind} of {path} on the loop")


class Serving:
    """A broker with three directories, from the end of its start on."""

    def __init__(self, durability: str) -> None:
        self.aside = Aside()
        self.guard = Guard(self.aside)
        self.disk = CrashDisk()
        settings = {
            "kafkalite.durability": durability,
            "log.dirs": "/a,/b,/c",
            "log.cleaner.backoff.ms": "1000",
            "log.retention.check.interval.ms": "5000",
            "log.segment.delete.delay.ms": "100",
            "metadata.log.max.record.bytes.between.snapshots": "2000",
        }
        self.broker = WholeBroker(settings, disk=self.disk, background=self.aside)
        self.go_on()
        self.disk.before_operation = self.guard.look

    def go_on(self, duration_ms: int = 2_000) -> None:
        for _ in range(20):
            self.broker.clock.advance(duration_ms // 20)

    def stop(self) -> None:
        """Nobody is served any more: a stop may wait for the disk."""
        assert self.guard.on_loop == []
        self.disk.before_operation = None
        self.broker.close()

    # --- what clients do --------------------------------------------------------------------------

    def path_of(self, topic: str) -> str:
        return self.broker.partition(topic).log.home.path

    def delete_records(self, topic: str, offset: int) -> None:
        asked = DeleteRecordsRequest.Partition(partition_index=0, offset=offset)
        [answer] = self.broker.ask(
            DeleteRecordsRequest(
                topics=[DeleteRecordsRequest.Topic(name=topic, partitions=[asked])], timeout_ms=100
            ),
            2,
        ).topics
        assert answer.partitions[0].error_code == Error.NONE

    def ask_for_move(self, topic: str, path: str) -> None:
        asked = AlterReplicaLogDirsRequest.Topic(name=topic, partitions=[0])
        directory = AlterReplicaLogDirsRequest.Dir(path=path, topics=[asked])
        [answer] = self.broker.ask(AlterReplicaLogDirsRequest(dirs=[directory]), 2).results
        assert answer.partitions[0].error_code == Error.NONE

    def move(self, topic: str, path: str) -> None:
        self.ask_for_move(topic, path)
        self.go_on(5_000)
        assert self.path_of(topic) == path

    def fill(self, topic: str, count: int = 6) -> None:
        """A segment for each batch; every other is of a transaction that is aborted."""
        who = writer(self.broker, f"of {topic}")
        for number in range(count):
            if number % 2:
                who.transact(b"%d" % number, topic=topic, commit=False)
            else:
                self.broker.append(b"%d" % number, topic=topic)
            self.broker.partition(topic).log.roll()
            self.go_on(100)

    def alter(self, topic: str, **settings: str) -> None:
        changes = [
            IncrementalAlterConfigsRequest.Config(name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ]
        asked = IncrementalAlterConfigsRequest.Resource(
            resource_type=2, resource_name=topic, configs=changes
        )
        [answer] = self.broker.ask(IncrementalAlterConfigsRequest(resources=[asked]), 1).responses
        assert answer.error_code == Error.NONE

    def commit(self, offset: int) -> None:
        asked = OffsetCommitRequest.Partition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequest.Topic(name="t", partitions=[asked])
        answer = self.broker.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
        assert answer.topics[0].partitions[0].error_code == Error.NONE

    def files(self, topic: str) -> list[str]:
        return self.disk.list_directory(self.broker.partition(topic).log.directory)


@pytest.fixture(params=["fsync", "page-cache"])
def serving(request: pytest.FixtureRequest) -> Serving:
    return Serving(request.param)


def test_retention_and_records_that_are_deleted(serving: Serving) -> None:
    serving.broker.create("t", retention_ms=str(HOUR_MS))
    serving.fill("t")
    assert any(name.endswith(".txnindex") for name in serving.files("t"))
    log = serving.broker.partition("t").log
    serving.delete_records("t", log.segments[3].base_offset)
    serving.go_on(20_000)
    assert log.log_start_offset == log.segments[0].base_offset > 0
    serving.go_on(2 * HOUR_MS)
    assert len(log.segments) == 1
    assert not [name for name in serving.files("t") if name.endswith((".txnindex", ".deleted"))]
    serving.stop()


def test_compaction(serving: Serving) -> None:
    serving.broker.create("t")
    serving.fill("t")
    serving.alter("t", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    log = serving.broker.partition("t").log
    before = len(log.segments)
    serving.go_on(60_000)
    assert len(log.segments) < before
    assert not [name for name in serving.files("t") if name.endswith((".swap", ".deleted"))]
    serving.stop()


def test_topics_come_go_and_come_again(serving: Serving) -> None:
    for number in range(4):
        serving.broker.create("t", 5)
        serving.go_on(500)
        serving.broker.append(b"a", b"b")
        serving.delete_records("t", 1)
        serving.go_on(100_000 if number % 2 else 100)  # the checkpoint tells of it, or not yet
        serving.broker.delete("t")
        if number != 2:
            serving.go_on(1_000)
    serving.stop()


def test_a_log_moves_back_to_where_checkpoints_tell_of_it(serving: Serving) -> None:
    serving.broker.create("t")
    serving.fill("t")
    serving.delete_records("t", 1)
    serving.go_on(100_000)
    log = serving.broker.partition("t").log
    other, third = {"/a", "/b", "/c"} - {log.home.path}
    directory = serving.broker.broker.logs.directory_of(log)
    serving.move("t", other)
    assert directory.saved(RECOVERY_POINTS, "t", 0) is not None
    serving.move("t", directory.path)
    serving.ask_for_move("t", other)
    serving.move("t", third)
    serving.broker.delete("t")
    serving.go_on(5_000)
    serving.stop()


def test_a_log_moves_to_where_something_has_its_name(serving: Serving) -> None:
    serving.broker.create("t")
    serving.broker.append(b"a", b"b")
    other = next(path for path in ("/a", "/b") if path != serving.path_of("t"))
    serving.disk.make_directory(f"{other}/t-0")
    serving.move("t", other)
    assert any(name.endswith("-stray") for name in serving.disk.list_directory(other))
    serving.stop()


def test_groups_transactions_and_snapshots_of_the_metadata(serving: Serving) -> None:
    serving.broker.create("t", 3)
    serving.broker.ask(FindCoordinatorRequest(key="g", key_type=0), 1)
    for number in range(30):
        serving.commit(number)
        serving.broker.create(f"topic-{number}")
    who = writer(serving.broker)
    for number in range(4):
        who.transact(b"v", commit=bool(number % 2))
    serving.go_on(HOUR_MS)
    path = "/a/__cluster_metadata-0"
    assert any(name.endswith(".checkpoint") for name in serving.disk.list_directory(path))
    assert serving.guard.beside > 30
    serving.stop()


def test_a_directory_that_fails(serving: Serving) -> None:
    for name in ("t", "u", "v"):
        serving.broker.create(name)
        serving.broker.append(b"x", topic=name)
    [lost] = [
        each.home for each in serving.broker.broker.logs.directories if each.path == "/b"
    ]
    serving.go_on()
    lost.fail(OSError("broken"))
    serving.go_on(100_000)
    serving.broker.create("w")
    serving.go_on()
    serving.stop()


def test_the_guard_sees_a_sync_on_the_loop() -> None:
    serving = Serving("fsync")
    with pytest.raises(AssertionError, match="on the loop"):
        serving.disk.sync_directory("/a")
    [told] = serving.guard.on_loop
    assert "test_the_guard_sees" in told
    serving.aside.submit(lambda: serving.disk.sync_directory("/a"), lambda outcome: None)
    assert len(serving.guard.on_loop) == 1
