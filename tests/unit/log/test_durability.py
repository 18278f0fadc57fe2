"""What outlasts a crash of the machine: files, and the names by which they are found."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.log.config import LogConfig
from kafkalite.log.names import RECOVERY_POINTS
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, START_MS, TOPIC_ID, World, batch, marker, read_all

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)


class NothingUnsynced(Random):
    """Chance at its worst: whatever was not synced is lost."""

    def choice(self, options):
        return "nothing"


def after_power_cut(world: World) -> World:
    """A new process on what certainly outlasts the crash."""
    assert isinstance(world.disk, CrashDisk)
    return World(world.config, world.disk.crashed(NothingUnsynced()))


def send(log, value, sequence, **fields):
    data = batch([value], producer_id=7, producer_epoch=0, base_sequence=sequence, **fields)
    log.append_as_leader(data, 0)


def synced_world(config: LogConfig = SMALL) -> World:
    """One record on stable storage, and nothing that waits for a sync."""
    world = World(config, CrashDisk())
    send(world.log(), b"a", 0)
    world.log().flush()
    assert world.log().recovery_point == 1
    return world


def test_after_a_clean_stop_the_producers_outlast_a_power_cut():
    world = synced_world()
    send(world.log(), b"b", 1)
    world.manager.close()
    log = after_power_cut(world).log()
    assert log.producers is not None
    assert log.producers.states[7].last_sequence == 1


def test_after_a_clean_stop_the_leader_epochs_outlast_a_power_cut():
    world = synced_world()
    world.log().append_as_leader(batch([b"b"]), 3)
    world.log().home.flusher.request(world.log().durability)  # not complete: no epochs yet
    world.manager.close()
    assert after_power_cut(world).log().epochs.entries() == [(0, 0), (3, 1)]


def test_after_a_clean_stop_aborted_transactions_outlast_a_power_cut():
    world = synced_world()
    send(world.log(), b"b", 1, is_transactional=True)
    world.log().append_as_leader(marker(7, 0, commit=False), 0, AppendOrigin.COORDINATOR)
    world.manager.close()
    found = after_power_cut(world).log()
    assert found.aborted_transactions(0, 3) == [(7, 1)]


@pytest.mark.parametrize("seed", range(24))
def test_a_segment_whose_removal_did_not_last_knows_its_aborted_transactions(seed):
    world = synced_world()
    send(world.log(), b"b", 1, is_transactional=True)
    world.log().append_as_leader(marker(7, 0, commit=False), 0, AppendOrigin.COORDINATOR)
    world.log().roll()
    world.log().replicated(3)
    world.log().flush()
    world.log().delete_records_before(3)
    world.manager.periodic.retain()
    assert isinstance(world.disk, CrashDisk)
    found = World(SMALL, world.disk.crashed(Random(seed))).log()
    assert found.aborted_transactions(0, 3) == ([(7, 1)] if found.log_start_offset == 0 else [])


def test_a_completed_segment_keeps_its_last_time_though_its_records_were_synced_before():
    world = synced_world()
    world.log().append_as_leader(batch([b"b"], timestamp=START_MS + 9), 0)
    world.log().flush()
    world.log().roll()
    world.manager.checkpoint(RECOVERY_POINTS)  # so that recovery does not look at the first
    world.log().append_as_leader(batch([b"c"], timestamp=START_MS), 0)
    world.log().flush()
    found = after_power_cut(world).log().offset_for_time(START_MS + 9)
    assert found is not None
    assert found.offset == 1


class SlowToTell:
    """Does a job at once and tells of it later."""

    def __init__(self) -> None:
        self.untold: list[Callable[[], None]] = []

    def submit(self, job, done) -> None:
        outcome = job()
        self.untold.append(lambda: done(outcome))

    def tell(self) -> None:
        self.untold.pop(0)()


def test_a_segment_that_began_during_a_sync_outlasts_a_power_cut():
    world = synced_world(LogConfig(segment_bytes=500, kafkalite_durability="fsync"))
    background = world.env.background = SlowToTell()
    log = world.log()
    log.roll()  # asks for a sync
    for sequence in range(1, 10):
        send(log, b"x" * 100, sequence)
    assert len(log.segments) > 3
    durable = log.when_durable(10)
    while not durable.is_resolved:
        background.tell()
        world.clock.advance(0)
    assert durable.value is None
    assert len(read_all(after_power_cut(world).log())) == 10


@pytest.mark.parametrize("is_staged", [True, False])
def test_a_checkpoint_is_not_undone_by_an_older_one_that_took_longer(is_staged):
    world = World(SMALL, CrashDisk())
    directory = world.manager.directories[0]
    background = SlowToTell() if is_staged else QueuedBackground()
    world.env.background = background
    told: list[bool] = []
    directory.write_later(RECOVERY_POINTS, {("t", 0): 9}, told.append)
    directory.write(RECOVERY_POINTS, {("t", 0): 4})  # as before a truncation
    while not told:
        background.tell() if isinstance(background, SlowToTell) else background.run_one()
    assert told == [False]
    assert directory.read(RECOVERY_POINTS) == {("t", 0): 4}
    assert not any(name.endswith(".tmp") for name in world.disk.list_directory(ROOT))


def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline():
    disk = CrashDisk()
    world = World(SMALL, disk)
    directory = world.manager.directories[0]

    def fail(kind, path, size):
        if kind == "sync":
            raise OSError(errno.EIO, "failed", path)

    disk.before_operation = fail
    told: list[bool] = []
    directory.write_later(RECOVERY_POINTS, {("t", 0): 9}, told.append)
    assert told == [False]
    assert not directory.home.is_online


def test_a_directory_that_is_renamed_during_a_sync_is_synced_under_its_new_name():
    world = World(SMALL, CrashDisk())
    log = world.log()
    work = log.durability.flush_work(is_complete=True)
    log.moved(f"{ROOT}/t-1")
    log.durability.flushed(work)
    assert f"{ROOT}/t-1" in log.durability.flush_work(is_complete=True).directories


def acknowledged_on_disk(world: World) -> None:
    """One record that is told to be durable, and is after a power cut."""
    send(world.log(), b"a", 0)
    durable = world.log().when_durable(world.log().log_end_offset)
    assert durable.is_resolved
    log = after_power_cut(world).manager.get("t", 0)
    assert log is not None
    assert log.topic_id == TOPIC_ID  # or a later topic of the name could not be told apart
    assert [record.value for record in read_all(log)] == [b"a"]


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_records_keeps_its_names_over_restarts(clean):
    """A clean stop does not sync them, and of a dead process nobody knows whether it had."""
    world = World(SMALL, CrashDisk())
    world.log()
    world.restart(clean=clean)
    acknowledged_on_disk(world)


def test_a_log_whose_files_a_power_cut_took_gets_names_that_last():
    world = World(SMALL, CrashDisk())
    world.log()
    world.disk.sync_directory(ROOT)
    world = after_power_cut(world)
    assert world.names() == ["00000000000000000000.index", "00000000000000000000.log",
                             "00000000000000000000.timeindex"]
    world.manager.create("t", 0, TOPIC_ID)  # the broker says whose it is
    acknowledged_on_disk(world)


@pytest.mark.parametrize("clean", [True, False])
def test_a_new_segment_keeps_its_name_over_restarts(clean):
    world = synced_world()
    world.log().roll()
    world.restart(clean=clean)
    send(world.log(), b"b", 1)
    assert world.log().when_durable(2).is_resolved
    assert len(read_all(after_power_cut(world).log())) == 2
