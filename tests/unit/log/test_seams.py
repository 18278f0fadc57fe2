"""Where retention, compaction, moves and checkpoints meet: one goes on in the midst of another."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.log.checkpoints import read_offsets, write_offsets
from kafkalite.log.config import COMPACT, DELETE, LogConfig
from kafkalite.log.loader import topic_id_in
from kafkalite.log.manager import LogManager
from kafkalite.log.names import CLEAN_SHUTDOWN, LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.seals import SEALS
from kafkalite.log.snapshots import write_snapshot
from kafkalite.protocol.errors import KafkaError
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import (
    CLUSTER_ID,
    ROOT,
    TOPIC_ID,
    World,
    abandon,
    batch,
    committed,
    keyed,
    open_logs,
    read_all,
)

BOTH = LogConfig(
    cleanup_policy=(COMPACT, DELETE), segment_bytes=400, index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01, retention_ms=-1,
)  # fmt: skip


class NothingUnsynced(Random):
    """Chance at its worst: whatever was not synced is lost."""

    def choice(self, options):
        return "nothing"


def filled(world: World, topic: str = "t", count: int = 40, keys: int = 5) -> PartitionLog:
    log = world.log(topic)
    for number in range(count):
        log.append_as_leader(keyed([(b"k%d" % (number % keys), b"v%03d" % number)]), 0)
    return committed(log)


def saved_points(world: World) -> dict[tuple[str, int], int]:
    return read_offsets(world.disk, f"{ROOT}/{RECOVERY_POINTS}")


def test_a_topic_made_anew_during_a_pass_begins_at_no_recovery_point_of_its_forerunner():
    world = World(BOTH)
    filled(world, "a")
    filled(world, "b", 20)
    world.log("b").flush()
    assert world.log("b").recovery_point == 20
    world.env.background = background = QueuedBackground()
    world.manager.periodic.cleaner.run()
    world.manager.delete("b", 0)
    world.manager.create("b", 0, bytes(range(1, 17)), BOTH)
    background.run_all()
    assert saved_points(world).get(("b", 0), 0) == 0


def test_a_checkpoint_counts_when_its_name_lasts():
    world = World(BOTH, CrashDisk())
    directory = world.manager.directories[0]
    world.env.background = background = QueuedBackground()
    directory.write_later(RECOVERY_POINTS, {("t", 0): 7})
    background.run_one()  # written, and renamed
    assert directory.saved_recovery_point("t", 0) == 0
    told: list[bool] = []
    directory.write_later(RECOVERY_POINTS, {("t", 0): 7}, told.append)
    assert told == [False]
    background.run_all()
    assert directory.saved_recovery_point("t", 0) == 7


def test_who_still_reads_a_segment_that_is_removed_between_two_names_can_go_on():
    world = World(BOTH, CrashDisk())
    log = filled(world, keys=33)  # the first two records give way
    world.env.background = background = QueuedBackground()
    world.manager.periodic.cleaner.run()
    while not any(segment.suffix for segment in log.segments):
        background.run_one() if len(background) else world.clock.advance(100)
    found = log.read(0, 1 << 20).range
    assert found is not None
    data = found.read()
    log.delete_records_before(log.segments[1].base_offset)
    world.manager.periodic.retain()
    assert found.file not in [segment.log for segment in log.segments]
    assert found.read() == data


def test_what_is_renamed_during_its_sync_is_not_durable_before_it_is_synced():
    disk = CrashDisk()
    world = World(BOTH, disk)
    log = filled(world)
    log.flush()
    log.append_as_leader(keyed([(b"k", b"new")]), 0)
    world.env.background = background = QueuedBackground()
    log.durability.want(41)
    disk.rename(log.directory, f"{ROOT}/t-1")
    log.moved(f"{ROOT}/t-1")
    background.run_one()
    assert log.durability.durable_offset < 41
    background.run_all()
    assert log.durability.durable_offset == 41
    assert disk.file_at(f"{log.directory}/{log.active.base_offset:020}.log").pending == []


@pytest.mark.parametrize(("is_other", "start"), [(True, 20), (False, 7)])
def test_the_start_of_a_log_that_another_broker_raised_counts(is_other: bool, start: int) -> None:
    world = World(BOTH)
    filled(world).delete_records_before(7)
    world.manager.close(11)
    write_offsets(world.disk, f"{ROOT}/{LOG_STARTS}", {("t", 0): 20})
    if is_other:  # which touches nothing else of a log that nobody wrote to
        marker = world.disk.create(f"{ROOT}/{CLEAN_SHUTDOWN}")
        marker.write_at(0, b'{"version":0,"brokerEpoch":12}')
    world.manager = open_logs(world.env, world.config)
    assert world.log().log_start_offset == start


def test_a_reader_of_a_segment_that_was_replaced_twice_reads_what_it_found():
    world = World(BOTH, CrashDisk())
    log = filled(world, keys=33)
    found = log.read(0, 1 << 20).range
    assert found is not None
    data = found.read()
    for _ in range(2):
        world.manager.periodic.cleaner.run()
        world.clock.advance(1_000)
        filled(world, count=10, keys=4)
    assert found.read() == data


def test_a_segment_that_cannot_be_read_keeps_no_other_log_from_retention(caplog):
    config = LogConfig(index_interval_bytes=100, retention_ms=10_000)
    world = World(config)
    for topic in ("a", "bad", "z"):
        filled(world, topic)
    world.manager.close()
    world.manager = open_logs(world.env, config)
    for topic in ("a", "bad", "z"):
        committed(world.log(topic))
    # Behind an opened log: one that is damaged before has its index built anew.
    for position, suffix in ((0, "timeindex"), (8, "log")):
        file = world.disk.open(f"{ROOT}/bad-0/{0:020}.{suffix}")
        [byte] = file.read_at(position, 1)
        file.write_at(position, bytes([byte ^ 64]))
    for _ in range(2):
        with suppress(KafkaError):
            world.clock.advance(600_000)
    assert [world.log(topic).log_start_offset for topic in ("a", "z")] == [40, 40]
    assert "nothing is removed by retention" in caplog.text


def test_a_segment_that_cannot_be_read_keeps_no_other_log_from_compaction():
    config = replace(BOTH, max_compaction_lag_ms=1_000, min_cleanable_dirty_ratio=0.9)
    world = World(config)
    for topic in ("a", "bad", "z"):
        filled(world, topic)
    world.manager.close()
    file = world.disk.open(f"{ROOT}/bad-0/{0:020}.log")
    file.write_at(8, b"\xff")
    world.manager = open_logs(world.env, config)
    for topic in ("a", "bad", "z"):
        committed(world.log(topic))
    for _ in range(4):
        with suppress(KafkaError):
            world.clock.advance(60_000)
    assert all(len(read_all(world.log(topic))) < 20 for topic in ("a", "z"))


def test_a_snapshot_that_compaction_removes_is_no_failed_disk_for_retention(monkeypatch):
    world = World(BOTH)
    log = world.log()
    for number in range(40):
        made = batch([b"%d" % number], keys=[b"k"], producer_id=7, producer_epoch=0,
                     base_sequence=number)  # fmt: skip
        log.append_as_leader(made, 0)
    committed(log)
    log.flush()
    log.delete_records_before(20)
    listed = world.disk.list_directory

    def listing(path):
        names = listed(path)
        for name in names:
            if name.endswith(".snapshot") and int(name.partition(".")[0]) < 10:
                world.disk.remove(f"{path}/{name}")  # by the worker of a pass
        return names

    monkeypatch.setattr(world.disk, "list_directory", listing)
    world.manager.periodic.retain()
    assert log.home.is_online


def two_directories() -> tuple[LogManager, ManualClock, QueuedBackground]:
    """A log of 20 records in /one, and another directory /two."""
    config = LogConfig(
        segment_bytes=400, index_interval_bytes=50, flush_messages=2, file_delete_delay_ms=1
    )
    env = manual_env(disk=CrashDisk())
    assert isinstance(env.clock, ManualClock)
    manager = LogManager(
        env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID, config_of=lambda topic: config
    )
    manager.start()
    log = manager.create("t", 0, TOPIC_ID, config, directory="/one")
    for number in range(20):
        log.append_as_leader(keyed([(b"k", b"%d" % number)]), 0)
    env.background = background = QueuedBackground()
    return manager, env.clock, background


def test_a_topic_that_is_deleted_while_it_is_copied_is_no_failed_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What has just been read for the copy finds it on its way off the disk."""
    monkeypatch.setattr("kafkalite.log.mover._STEP_BYTES", 400)
    manager, clock, background = two_directories()
    manager.move("t", 0, "/two")
    future = manager.future("t", 0)
    assert future is not None
    clock.advance(2)
    background.run_all()
    clock.advance(2)  # the next piece is asked for
    [(read, come)] = background._jobs
    end_offset, found = future.log_end_offset, read()
    manager.delete("t", 0)
    come(found)
    assert future.log_end_offset == end_offset < 20


def test_who_flushes_a_log_that_is_gone_harms_no_other() -> None:
    manager, clock, background = two_directories()
    log = manager.get("t", 0)
    assert log is not None
    manager.delete("t", 0)
    clock.advance(1)
    background.run_all()
    log.flush()
    background.run_all()
    assert log.home.is_online


def test_a_move_of_a_topic_made_anew_is_not_taken_for_that_of_its_forerunner() -> None:
    manager, clock, background = two_directories()
    manager.move("t", 0, "/two")
    manager.delete("t", 0)
    manager.create("t", 0, bytes(range(1, 17)), directory="/one")
    manager.move("t", 0, "/two")
    for _ in range(2_000):
        clock.advance(5)
        background.run_all()
    log = manager.get("t", 0)
    assert log is not None
    assert log.home.path == "/two"


def test_a_first_index_that_is_gone_is_made_anew_beside_an_older_snapshot() -> None:
    """Whose removal a crash took."""
    world = World(BOTH)
    log = filled(world)
    log.delete_records_before(log.segments[2].base_offset)
    world.manager.periodic.retain()
    first = log.segments[0].base_offset
    write_snapshot(world.disk, log.directory, None, first - 1)
    assert log.seals is not None
    log.seals.add_snapshot(world.disk, log.directory, first - 1)
    log.flush()
    world.manager.checkpoint(RECOVERY_POINTS)
    world.disk.remove(log.segments[0].path(".index"))
    log = world.restart(clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (first, 40)


def test_a_topic_made_anew_has_nothing_of_what_checkpoints_said_of_its_forerunner() -> None:
    world = World(LogConfig())
    log = filled(world, count=20)
    log.delete_records_before(15)
    log.flush()
    world.restart(clean=True)
    world.manager.delete("t", 0)
    log = world.manager.create("t", 0, bytes(range(1, 17)), world.config)
    for number in range(5):
        log.append_as_leader(keyed([(b"k", b"%d" % number)]), 0)
    assert world.manager.directories[0].saved_recovery_point("t", 0) == 0
    abandon(world.manager)
    world.manager = open_logs(world.env, world.config)
    assert [record.value for record in read_all(world.log())] == [b"%d" % n for n in range(5)]


def test_what_is_too_old_goes_when_what_the_log_goes_on_with_lasts() -> None:
    """Or a crash could leave neither, or bring back, as sound, what nobody had synced."""
    config = LogConfig(segment_bytes=400, retention_ms=1_000)
    world = World(config, CrashDisk())
    log = filled(world, count=8)
    world.clock.advance(5_000)
    world.env.background = background = QueuedBackground()
    log.durability.want(8)  # the flusher is at work
    world.manager.periodic.retain()
    assert log.log_start_offset == 8
    assert log.recovery_point < 8
    flush = background._jobs.popleft()
    background.run_all()
    assert not any(name.endswith(".deleted") for name in world.names())
    background._jobs.append(flush)
    background.run_all()
    world.manager.periodic.retain()
    background.run_all()
    assert [segment.base_offset for segment in log.segments] == [8]


def test_a_directory_goes_when_its_name_as_a_deleted_one_lasts() -> None:
    disk = CrashDisk()
    world = World(LogConfig(file_delete_delay_ms=1), disk)
    filled(world)
    world.manager.delete("t", 0)
    done: list[str] = []
    disk.before_operation = lambda kind, path, size: done.append(f"{kind} {path}")
    world.clock.advance(1)
    assert any("remove" in one and "-delete" in one for one in done)
    first = next(number for number, one in enumerate(done) if "remove" in one)
    assert any("sync" in one and one.endswith(f" {ROOT}") for one in done[:first])


def test_a_copy_that_does_not_tell_its_topic_is_made_again() -> None:
    """It may be that of a forerunner, whose deletion and id a power cut took."""
    manager, clock, background = two_directories()
    manager.move("t", 0, "/two")
    copy = manager.future("t", 0)
    assert copy is not None
    clock.advance(2)
    background.run_all()
    for path in ("/one/t-0", copy.directory):
        manager.env.disk.create(f"{path}/partition.metadata").close()
        if manager.env.disk.exists(f"{path}/{SEALS}"):
            manager.env.disk.remove(f"{path}/{SEALS}")
    source = manager.directories[0].directory_id
    manager.abandon()
    manager = LogManager(
        manager.env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID,
        topic_of=lambda topic_id, partition: "t" if topic_id == TOPIC_ID else None,
        named_directory=lambda topic, partition: source,
    )  # fmt: skip
    manager.start()
    background.run_all()
    assert manager.create("t", 0, TOPIC_ID, is_new=False).log_end_offset == 20
    assert manager.future("t", 0) is None
    manager.move("t", 0, "/two")
    future = manager.future("t", 0)
    assert future is not None
    assert topic_id_in(manager.env.disk, future.directory) == TOPIC_ID
    [name] = [n for n in manager.env.disk.list_directory("/two") if n.endswith("-stray")]
    assert copy.directory != f"/two/{name}"


@pytest.mark.parametrize("what", ["deleted", "moved"])
def test_who_still_reads_a_removed_segment_can_go_on_when_its_log_goes(what: str) -> None:
    """And the files of a new log under the old name are no one's to remove."""
    manager, clock, background = two_directories()
    log = manager.get("t", 0)
    assert log is not None
    log.config = replace(log.config, file_delete_delay_ms=1_000)
    found = committed(log).read(0, 100).range
    assert found is not None
    data = found.read()
    log.delete_records_before(log.segments[2].base_offset)
    manager.periodic.retain()
    background.run_all()
    assert found.file.path.endswith(".deleted")
    if what == "deleted":
        manager.delete("t", 0)
        log = manager.create("t", 0, bytes(range(1, 17)), log.config, directory="/one")
    else:
        manager.move("t", 0, "/two")
    for _ in range(20):
        clock.advance(20)
        background.run_all()
    found.file.close()
    assert found.read() == data
    clock.advance(5_000)
    background.run_all()
    names = [name for path in ("/one", "/two") for name in manager.env.disk.list_directory(path)]
    assert [name for name in names if name.startswith("t-")] == ["t-0"]


def test_a_segments_removal_is_no_removal_of_its_namesake_in_a_log_made_anew() -> None:
    config = LogConfig(segment_bytes=400, file_delete_delay_ms=1_000)
    world = World(config, CrashDisk())
    log = filled(world)
    log.delete_records_before(20)
    world.manager.periodic.retain()
    world.clock.advance(500)
    world.manager.delete("t", 0)
    log = world.manager.create("t", 0, bytes(range(1, 17)), config)
    for number in range(40):
        log.append_as_leader(keyed([(b"k", b"%d" % number)]), 0)
    found = committed(log).read(0, 100).range
    assert found is not None
    log.delete_records_before(20)
    world.manager.periodic.retain()
    data = found.read()
    world.clock.advance(600)
    found.file.close()
    assert found.read() == data


def test_a_log_stays_when_the_directory_it_was_moved_to_fails_before_that_lasts() -> None:
    manager, clock, background = two_directories()
    manager.move("t", 0, "/two")
    while (log := manager.get("t", 0)) is not None and log.home.path == "/one":
        background.run_all()
        clock.advance(2)
    assert log is not None
    sync, done = background._jobs.popleft()
    sync()
    log.home.fail(OSError(5, "the disk is broken"))
    done(None)
    background.run_all()
    clock.advance(1_000)
    background.run_all()
    assert "t-0" in manager.env.disk.list_directory("/one")
