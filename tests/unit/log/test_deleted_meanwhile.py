"""A topic is deleted before any call that a worker makes of the disk: no disk has failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.memory import MemoryDisk
from kafkalite.log.config import COMPACT, LogConfig
from kafkalite.log.manager import LogManager
from tests.unit.log.making import CLUSTER_ID, TOPIC_ID, committed, keyed

CONFIG = LogConfig(
    cleanup_policy=(COMPACT,), segment_bytes=400, index_interval_bytes=50, flush_messages=2,
    min_cleanable_dirty_ratio=0.01, file_delete_delay_ms=1,
)  # fmt: skip


class MeddledDisk:
    """A disk at which somebody does something before one of the calls of a worker."""

    def __init__(self) -> None:
        self._disk = MemoryDisk()
        self.is_worker = False
        self.calls = 0
        self.meddle: dict[int, Callable[[], None]] = {}

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._disk, name)

        def meddled(*arguments: Any, **named: Any) -> Any:
            if self.is_worker:
                self.calls += 1
                act = self.meddle.pop(self.calls, None)
                if act is not None:
                    self.is_worker = False
                    act()
                    self.is_worker = True
            return call(*arguments, **named)

        return meddled


class MeddledWorkers(QueuedBackground):
    def __init__(self, disk: MeddledDisk) -> None:
        super().__init__()
        self.disk = disk

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def watched() -> Any:
            self.disk.is_worker = True
            try:
                return job()
            finally:
                self.disk.is_worker = False

        super().submit(watched, done)


def flush(manager: LogManager) -> None:
    log = manager.get("t", 0)
    assert log is not None
    log.append_as_leader(keyed([(b"k", b"a"), (b"k", b"b")]), 0)


def move(manager: LogManager) -> None:
    manager.move("t", 0, "/two")


def clean(manager: LogManager) -> None:
    manager.periodic.cleaner.run()


def grow(manager: LogManager) -> None:
    """Another topic is made, and its first record flushed."""
    manager.create("u", 0, bytes(range(1, 17)), CONFIG, directory="/one")
    flush(manager)


def deleted_before(work: Callable[[LogManager], None], call: int) -> bool:
    """Whether the work came to that call of the disk, before which its topic was deleted."""
    disk = MeddledDisk()
    env = manual_env(disk=disk)
    assert isinstance(env.clock, ManualClock)
    manager = LogManager(
        env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID, config_of=lambda topic: CONFIG
    )
    manager.start()
    log = manager.create("t", 0, TOPIC_ID, CONFIG, directory="/one")
    for number in range(20):
        log.append_as_leader(keyed([(b"k", b"%d" % number)]), 0)
    committed(log)
    env.background = workers = MeddledWorkers(disk)
    disk.meddle = {call: lambda: manager.delete("t", 0)}
    work(manager)
    for _ in range(200):
        env.clock.advance(5)
        workers.run_all()
    assert all(each.home.is_online for each in manager.directories), f"before call {call}"
    return not disk.meddle


@pytest.mark.parametrize("work", [flush, move, clean, grow])
def test_a_topic_that_is_deleted_under_a_worker_is_no_failed_disk(
    work: Callable[[LogManager], None],
) -> None:
    call = 1
    while deleted_before(work, call):
        call += 1
    assert call > 3
