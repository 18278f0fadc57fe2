"""What a worker has to do first: before the copy of a log is made, takes a name, or files go."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.log.checkpoints import read_offsets
from kafkalite.log.config import COMPACT, DELETE, LogConfig
from kafkalite.log.directory import LogDirectory
from kafkalite.log.manager import LogManager
from kafkalite.log.names import LOG_STARTS
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.protocol.errors import KafkaError
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import CLUSTER_ID, TOPIC_ID, World, committed, keyed, marker

OTHER_ID = bytes(range(1, 17))


class Moving:
    """A log of /one, and /two, a checkpoint of which tells of a log that was there."""

    def __init__(self) -> None:
        self.disk = CrashDisk()
        env = manual_env(disk=self.disk)
        assert isinstance(env.clock, ManualClock)
        self.clock: ManualClock = env.clock
        config = LogConfig(segment_bytes=400, file_delete_delay_ms=1)
        self.manager = LogManager(
            env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID, config_of=lambda topic: config
        )
        self.manager.start()
        self.log = self.manager.create("t", 0, TOPIC_ID, config, directory="/one")
        for number in range(20):
            self.log.append_as_leader(keyed([(b"k", b"%d" % number)]), 0)
        committed(self.log)
        self.two.write(LOG_STARTS, {("t", 0): 7})
        env.background = self.background = QueuedBackground()
        self.changes: list[str] = []
        self.disk.before_operation = self.look
        self.refuse: Callable[[str, str], None] = lambda kind, path: None

    @property
    def two(self) -> LogDirectory:
        return self.manager.directories[1]

    @property
    def now(self) -> PartitionLog | None:
        return self.manager.get("t", 0)

    def look(self, kind: str, path: str, size: int) -> None:
        self.refuse(kind, path)
        self.changes.append(f"{kind} {path}")

    def go_on(self, duration_ms: int = 2_000) -> None:
        for _ in range(duration_ms // 5):
            self.clock.advance(5)
            self.background.run_all()

    def copies(self) -> list[str]:
        return [name for name in self.disk.list_directory("/two") if name.startswith("t-0")]


def place(changes: list[str], beginning: str) -> int:
    return next(at for at, each in enumerate(changes) if each.startswith(beginning))


def test_a_copy_is_made_when_no_checkpoint_tells_of_another_log() -> None:
    moving = Moving()
    moving.manager.move("t", 0, "/two")
    assert moving.copies() == []
    moving.go_on()
    assert moving.now is not None
    assert (moving.now.home.path, moving.now.log_start_offset) == ("/two", 0)
    made = place(moving.changes, "make_directory /two/t-0")
    forgotten = place(moving.changes, f"rename /two/{LOG_STARTS}")
    assert "sync_directory /two" in moving.changes[forgotten:made]
    assert ("t", 0) not in read_offsets(moving.disk, f"/two/{LOG_STARTS}")


def test_a_copy_that_is_asked_for_again_is_made_once() -> None:
    moving = Moving()
    moving.manager.move("t", 0, "/two")
    moving.manager.move("t", 0, "/two")
    moving.go_on()
    assert sum(each.startswith("make_directory /two/t-0") for each in moving.changes) == 1
    assert moving.copies() == ["t-0"]


def test_no_copy_is_made_that_nobody_wants_any_more() -> None:
    moving = Moving()
    moving.manager.move("t", 0, "/two")
    moving.manager.move("t", 0, "/one")
    moving.go_on()
    assert (moving.copies(), moving.manager.future("t", 0)) == ([], None)


@pytest.mark.parametrize("is_made_again", [True, False])
def test_no_copy_is_made_of_a_log_that_is_deleted(is_made_again: bool) -> None:
    moving = Moving()
    moving.manager.move("t", 0, "/two")
    moving.manager.delete("t", 0)
    if is_made_again:
        moving.manager.create("t", 0, OTHER_ID, directory="/one")
    moving.go_on()
    assert (moving.copies(), moving.manager.future("t", 0)) == ([], None)


def test_a_log_stays_where_a_checkpoint_cannot_be_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moving = Moving()

    def full(kind: str, path: str) -> None:
        if kind == "write" and path.startswith("/two"):
            raise OSError(errno.ENOSPC, "full")

    moving.refuse = full
    moving.manager.move("t", 0, "/two")
    moving.go_on()
    assert moving.now is moving.log
    assert any("t-0 stays in /one" in line for line in caplog.messages)
    moving.refuse = lambda kind, path: None
    moving.manager.move("t", 0, "/two")
    moving.go_on()
    assert moving.now is not None
    assert moving.now.home.path == "/two"


def test_who_asks_is_told_at_once_that_there_can_be_no_copy() -> None:
    moving = Moving()
    moving.two.write(LOG_STARTS, {})

    def full(kind: str, path: str) -> None:
        if kind == "make_directory":
            raise OSError(errno.ENOSPC, "full")

    moving.refuse = full
    with pytest.raises(KafkaError, match="full"):
        moving.manager.move("t", 0, "/two")


def test_a_stop_makes_no_copy() -> None:
    moving = Moving()
    moving.manager.move("t", 0, "/two")
    moving.manager.mover.stop()
    moving.go_on()
    assert moving.copies() == []


def test_a_copy_takes_a_name_when_it_is_free_for_good() -> None:
    moving = Moving()
    moving.disk.make_directory("/two/t-0")
    refused: list[str] = []

    def no_descriptor(kind: str, path: str) -> None:
        is_renamed = any(each.startswith("rename /two/t-0") for each in moving.changes[-3:])
        if kind == "sync_directory" and path == "/two" and is_renamed and not refused:
            refused.append(path)
            raise OSError(errno.EMFILE, "too many open files")

    moving.refuse = no_descriptor
    moving.manager.move("t", 0, "/two")
    while not refused:
        moving.go_on(5)
    assert moving.now is moving.log
    assert moving.log.durability.holds == 0, "who writes would wait as long"
    moving.go_on(8_000)
    assert moving.now is not moving.log
    aside = moving.changes.index("rename /two/t-0")
    taken = next(
        at for at, each in enumerate(moving.changes)
        if each.startswith("rename /two/t-0.") and each.endswith("-future")
    )  # fmt: skip
    assert "sync_directory /two" in moving.changes[aside:taken]


# --- transaction indexes --------------------------------------------------------------------------


def aborted(world: World) -> PartitionLog:
    log = world.log()
    for number in range(8):
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}
        records = keyed([(b"k", b"%d" % number)], is_transactional=True, **fields)
        log.append_as_leader(records, 0)
        log.append_as_leader(marker(7, 0, commit=False), 0, AppendOrigin.COORDINATOR)
        log.append_as_leader(keyed([(b"k", b"v%d" % number)]), 0)
        log.roll()
    log.flush()
    return committed(log)


@pytest.mark.parametrize("policy", [COMPACT, DELETE])
def test_a_transaction_index_keeps_its_name_until_that_of_its_log_lasts(policy: str) -> None:
    disk = CrashDisk()
    config = LogConfig(
        cleanup_policy=(policy,), file_delete_delay_ms=60_000, min_cleanable_dirty_ratio=0.01
    )
    world = World(config, disk)
    log = aborted(world)
    background = world.env.background = QueuedBackground()
    changes: list[str] = []
    disk.before_operation = lambda kind, path, size: changes.append(f"{kind} {path}")
    if policy == DELETE:
        log.delete_records_before(log.segments[4].base_offset)
        world.manager.periodic.retain()
    else:
        world.manager.periodic.cleaner.run()
    for _ in range(100):
        background.run_all()
        world.clock.advance(100)
    first = f"{log.directory}/{0:020}"
    gone, follows = changes.index(f"rename {first}.log"), changes.index(f"rename {first}.txnindex")
    assert f"sync_directory {log.directory}" in changes[gone:follows]
    names = disk.list_directory(log.directory)
    assert {f"{0:020}{kind}.deleted" for kind in (".log", ".index", ".txnindex")} <= {*names}
    world.clock.advance(60_000)
    background.run_all()
    assert not [name for name in disk.list_directory(log.directory) if name.endswith(".deleted")]
    assert log.leaving == []
