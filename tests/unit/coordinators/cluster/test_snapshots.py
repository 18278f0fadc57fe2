"""Snapshots that a worker writes while the controller goes on."""

from __future__ import annotations

import errno
from random import Random
from typing import Any

import pytest

from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.snapshots import list_snapshots
from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import Disk
from kafkalite.protocol.messages import CreateTopicsRequest
from kafkalite.sim.disk import CrashDisk
from tests.unit.beside import Beside
from tests.unit.coordinators.cluster.test_local_controller import DIRECTORY, create, open_controller

EVERY_SECOND_TOPIC = {
    "metadata.log.max.record.bytes.between.snapshots": "150",
    "kafkalite.durability": "fsync",
}


class SlowDisk(Beside):
    """Workers that begin when they are told to, and who syncs and removes beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.on_loop: list[str] = []

    def look(self, kind: str, path: str, size: int) -> None:
        if self.is_loop and (kind in ("sync", "sync_directory", "remove") or ".checkpoint" in path):
            self.on_loop.append(f"{kind} {path}")


def world(disk: Disk | None = None) -> tuple[Env, SlowDisk]:
    env, background = manual_env(3, disk or CrashDisk()), SlowDisk()
    env.background = background
    env.disk.make_directory("/data")
    env.disk.sync_directory("/")
    return env, background


def ask(controller: LocalController, name: str) -> Any:
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1)
    return controller.submit(CreateTopics(CreateTopicsRequest(topics=[topic])))


def snapshot_is_due(env: Env) -> None:
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(3_600_000)


def test_the_loop_waits_for_no_disk_over_a_snapshot() -> None:
    env, background = world()
    controller = open_controller(env)
    background.run_all()
    assert isinstance(env.disk, CrashDisk)
    env.disk.before_operation = background.look
    for name in "ab":
        create(controller, name)
        snapshot_is_due(env)
        background.run_all()
    assert [each.end_offset for each in list_snapshots(env.disk, DIRECTORY)] == [
        controller.log.end_offset
    ]
    assert background.on_loop == []


def test_what_is_decided_meanwhile_is_behind_it() -> None:
    env, background = world()
    controller = open_controller(env)
    create(controller, "a")
    end_offset = controller.log.end_offset
    snapshot_is_due(env)
    create(controller, "b")
    assert list_snapshots(env.disk, DIRECTORY) == []
    assert controller.log.log.log_start_offset == 0, "it does not count before it lasts"
    background.run_all()
    (snapshot,) = list_snapshots(env.disk, DIRECTORY)
    assert snapshot.end_offset == controller.log.log.log_start_offset == end_offset
    assert f"{0:020d}.log" not in env.disk.list_directory(DIRECTORY)
    assert open_controller(env, node_ids=()).metadata.image == controller.metadata.image


def test_the_next_one_waits_for_it() -> None:
    env, background = world()
    controller = open_controller(env)
    for name in "abc":
        create(controller, name)
        snapshot_is_due(env)
    background.run_all()
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1
    snapshot_is_due(env)
    background.run_all()
    (newest,) = list_snapshots(env.disk, DIRECTORY)
    assert newest.end_offset == controller.log.end_offset


def test_a_stop_leaves_nothing_to_a_worker() -> None:
    env, background = world()
    controller = open_controller(env)
    create(controller, "a")
    snapshot_is_due(env)
    controller.close()
    (newest,) = list_snapshots(env.disk, DIRECTORY)
    assert newest.end_offset == controller.log.end_offset, "the last one is written by the stop"
    assert isinstance(env.disk, CrashDisk)
    changed: list[str] = []
    env.disk.before_operation = lambda kind, path, size: changed.append(kind)
    background.run_all()
    assert set(changed) <= {"sync", "sync_directory"}
    assert open_controller(env, node_ids=()).metadata.image == controller.metadata.image


def test_one_that_cannot_be_written_leaves_the_log_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    env, background = world()
    controller = open_controller(env)
    background.run_all()
    create(controller, "a")

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        snapshot_is_due(env)
        patch.setattr(env.disk, "create", full)
        background.run_all()
    create(controller, "b")
    assert controller.log.log.log_start_offset == 0
    assert open_controller(env, node_ids=()).metadata.image == controller.metadata.image
    snapshot_is_due(env)
    background.run_all()
    assert len(list_snapshots(env.disk, DIRECTORY)) == 1


def test_a_power_cut_at_any_operation_takes_nothing_that_was_acknowledged() -> None:
    env, background = world()
    controller = open_controller(env, EVERY_SECOND_TOPIC)
    background.run_all()
    disk, clock, random = env.disk, env.clock, Random(5)
    assert isinstance(disk, CrashDisk)
    assert isinstance(clock, ManualClock)
    known: list[str] = []
    after: list[tuple[CrashDisk, list[str]]] = []

    def cut(*_: Any) -> None:
        after.append((disk.crashed(random), list(known)))

    disk.before_operation = cut
    for number in range(12):
        answer = ask(controller, f"t{number}")
        answer.then(lambda _, name=f"t{number}": known.append(name))
        for _ in range(random.randrange(4)):
            clock.advance(1)
            if len(background):
                background.run_one()
    for _ in range(10):
        clock.advance(10)
        background.run_all()
    assert len(known) == 12
    assert len(after) > 60
    for crashed, names in after:
        again, workers = world(crashed)
        found = open_controller(again, EVERY_SECOND_TOPIC, node_ids=())
        assert set(names) <= set(found.metadata.image.topics)
        create(found, "later")
        workers.run_all()
