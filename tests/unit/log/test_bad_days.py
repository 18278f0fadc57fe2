"""A disk that is full, a disk that fails, files that are damaged."""

import errno
import logging

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.env.disk import LockedByOther
from kafkalite.log.checkpoints import write_offsets
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.directory import WrongDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.manager import LogManager
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import (
    CLUSTER_ID,
    ROOT,
    World,
    abandon,
    batch,
    committed,
    open_logs,
    read_all,
)

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)
FSYNC = LogConfig(segment_bytes=500, kafkalite_durability="fsync")
LOG = f"{ROOT}/t-0/00000000000000000000.log"


def fill(log, count=10, size=20):
    for index in range(count):
        log.append_as_leader(batch([b"%03d" % index + b"x" * size]), 0)


# --- full -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 30))
def test_a_full_disk_refuses_writes_keeps_reads_and_takes_writes_again(number):
    """Whichever operation is the first to find no room."""
    disk = CrashDisk()
    world = World(SMALL, disk)
    fill(world.log(), 5)
    accepted = read_all(world.log())
    first = disk.operations + number

    def full(kind, path, size):
        if disk.operations >= first and kind in ("write", "create", "make_directory"):
            if kind == "write":
                return size // 2
            raise OSError(errno.ENOSPC, "full", path)
        return None

    disk.before_operation = full
    refused: list[object] = []
    for index in range(30):
        try:
            world.log().append_as_leader(batch([b"more%02d" % index + b"x" * 30]), 0)
            accepted = read_all(world.log())
        except KafkaError as error:
            refused.append(error.code)
            assert read_all(world.log()) == accepted
    assert set(refused) == {Error.KAFKA_STORAGE_ERROR}
    disk.before_operation = None
    assert world.log().home.is_online
    fill(world.log(), 20)
    everything = read_all(world.log())
    assert everything[: len(accepted)] == accepted
    assert len(everything) == len(accepted) + 20
    for clean in (True, False):
        assert read_all(world.restart(clean=clean)) == everything


# --- failing --------------------------------------------------------------------------------------


def fail_on(disk, wanted, code=errno.EIO):
    def fail(kind, path, size):
        if kind == wanted:
            raise OSError(code, "failed", path)

    disk.before_operation = fail


def test_a_failed_fsync_takes_the_directory_offline_and_is_never_tried_again():
    disk = CrashDisk()
    world = World(FSYNC, disk)
    log = world.log()
    log.append_as_leader(batch([b"a"]), 0)
    assert log.when_durable(1).value is None
    synced = []

    def fail_once(kind, path, size):
        if kind == "sync":
            synced.append(path)
            if len(synced) == 1:
                raise OSError(errno.EIO, "failed", path)

    disk.before_operation = fail_once
    log.append_as_leader(batch([b"b"]), 0)
    later = log.when_durable(2)
    world.clock.advance(0)
    assert is_storage_error(later.value)
    assert not log.home.is_online
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch([b"c"]), 0)
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    world.clock.advance(1_000_000)
    assert is_storage_error(log.when_durable(2).value)
    assert len(synced) == 1
    world.manager.close()
    assert not disk.exists(f"{ROOT}/.kafka_cleanshutdown")


def is_storage_error(outcome):
    return outcome is not None and outcome.code == Error.KAFKA_STORAGE_ERROR


def test_a_failed_write_takes_the_directory_offline():
    disk = CrashDisk()
    world = World(SMALL, disk)
    offline: list[LogHome] = []
    world.manager._on_offline = offline.append
    fill(world.log(), 1)
    fail_on(disk, "write")
    with pytest.raises(KafkaError) as refused:
        fill(world.log(), 1)
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    assert [home.path for home in offline] == [ROOT]


@pytest.mark.parametrize("opening", range(1, 5))
@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "cleaner-offset-checkpoint"])
def test_a_checkpoint_that_cannot_be_opened_at_a_start_takes_the_directory_offline(name, opening):
    disk = CrashDisk()
    world = World(SMALL, disk)
    fill(world.log(), 5)
    world.manager.close()
    path, opened = f"{ROOT}/{name}", []
    if not disk.exists(path):
        write_offsets(disk, path, {("t", 0): 1})

    def fail(wanted):
        if wanted == path:
            opened.append(path)
            if len(opened) == opening:
                raise OSError(errno.EIO, "failed", path)

    disk.before_open = fail
    world.manager = open_logs(world.env, SMALL)
    [directory] = world.manager.directories
    assert directory.home.is_online == (len(opened) < opening)
    abandon(world.manager)


def test_waiters_for_durability_wait_together():
    disk = CrashDisk()
    world = World(FSYNC, disk)
    world.env.background = background = QueuedBackground()
    logs = [world.log("t", index) for index in range(5)]
    told: list[KafkaError | None] = []
    for log in logs:
        log.append_as_leader(batch([b"a"]), 0)
        log.when_durable(1).then(told.append)
    background.run_one()  # for the first alone; the others came while it was under way
    assert told == []  # in the loop's next turn
    world.clock.advance(0)
    assert told == [None]
    assert len(background) == 1
    background.run_one()
    world.clock.advance(0)
    assert told == [None] * 5


# --- damaged --------------------------------------------------------------------------------------


def test_a_torn_last_batch_is_dropped():
    world = World()
    fill(world.log(), 5)
    before = read_all(world.log())
    file = world.disk.open(LOG)
    file.truncate(file.size() - 5)
    log = world.restart(clean=False)
    assert read_all(log) == before[:4]
    assert not any(name.endswith(".corrupt") for name in world.names())


def allowed(batch, position):
    """How many batches may be left. The offset and the leader's epoch are not under the
    checksum: a wrong epoch is not noticed, and a wrong offset only at the batch behind it, as in
    Apache Kafka."""
    if position < 8:
        return {batch, batch + 1, 3}
    return {3} if 12 <= position < 16 else {batch}


def test_every_flipped_bit_cuts_there_and_keeps_what_it_cut(caplog):
    world = World()
    fill(world.log(), 3, size=3)
    before = read_all(world.log())
    abandon(world.manager)
    data = world.disk.open(LOG).read_at(0, 10_000)
    size = len(data) // 3
    for bit in range(len(data) * 8):
        position = bit // 8
        damaged = bytearray(data)
        damaged[position] ^= 1 << bit % 8
        file = world.disk.create(LOG)
        file.write_at(0, damaged)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            log = world.restart(clean=False)
        kept = [record.value for record in read_all(log)]
        values = [record.value for record in before]
        assert kept == values[: len(kept)]
        assert len(kept) in allowed(position // size, position % size)
        cut = data[:0] if len(kept) == 3 else bytes(damaged[len(kept) * size :])
        name = f"{ROOT}/t-0/{0:020d}.{len(kept) * size}.corrupt"
        if cut and world.disk.exists(name):
            assert world.disk.open(name).read_at(0, 10_000) == cut
            assert name in caplog.text
            world.disk.remove(name)
        elif cut:
            assert f"cut {len(cut)} bytes" in caplog.text
        abandon(world.manager)


def test_segments_behind_a_cut_are_kept_aside():
    world = World(SMALL)
    fill(world.log(), 20)
    assert len(world.log().segments) > 2
    second = f"{ROOT}/t-0/{world.log().segments[1].base_offset:020d}"
    before = read_all(world.log())
    abandon(world.manager)
    data = bytearray(world.disk.open(LOG).read_at(0, 10_000))
    data[100] ^= 1
    world.disk.open(LOG).write_at(0, data)
    world.disk.remove(f"{ROOT}/recovery-point-offset-checkpoint") if world.disk.exists(
        f"{ROOT}/recovery-point-offset-checkpoint"
    ) else None
    log = world.restart(clean=False)
    assert read_all(log) == before[: log.log_end_offset]
    assert log.log_end_offset < 3
    assert world.disk.exists(f"{second}.0.corrupt")
    fill(log, 20)
    assert len(read_all(world.restart(clean=False))) == log.log_end_offset


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "t-0/leader-epoch-checkpoint",
        "t-0/partition.metadata",
    ],
)
@pytest.mark.parametrize(
    "damage", [b"", b"0\n5\nt 0 1\n", b"\xff\xfe", b"0\n1\nt 0 x\n", b"7\n0\n"]
)
@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_side_file_is_rebuilt_with_a_warning(name, damage, clean, caplog):
    world = World(SMALL)
    fill(world.log())
    committed(world.log())
    before, epochs = read_all(world.log()), world.log().epochs.entries()
    if clean:
        world.manager.close()
    else:
        abandon(world.manager)
    world.disk.create(f"{ROOT}/{name}").write_at(0, damage)
    with caplog.at_level(logging.WARNING):
        log = world.restart(clean=False)
    if damage or name.endswith("metadata"):
        assert name in caplog.text
    assert read_all(log) == before
    assert log.epochs.entries() == epochs


def test_a_damaged_snapshot_is_rebuilt_from_the_log(caplog):
    world = World()
    for index in range(3):
        world.log().append_as_leader(
            batch([b"a"], producer_id=5, producer_epoch=0, base_sequence=index), 0
        )
    world.manager.close()
    path = f"{ROOT}/t-0/{3:020d}.snapshot"
    data = bytearray(world.disk.open(path).read_at(0, 1000))
    data[-1] ^= 1
    world.disk.open(path).write_at(0, data)
    with caplog.at_level(logging.WARNING):
        log = world.restart(clean=True)
    assert path in caplog.text
    assert log.producers is None or log.producers.states[5].last_sequence == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_built_anew(suffix, clean):
    world = World(SMALL)
    fill(world.log(), 20)
    before = read_all(world.log())
    world.restart(clean=True)
    for name in world.names():
        if name.endswith(suffix):
            world.disk.remove(f"{ROOT}/t-0/{name}")
    if clean:
        world.manager.close()
        for name in world.names():
            if name.endswith(suffix):
                world.disk.remove(f"{ROOT}/t-0/{name}")
    log = world.restart(clean=False)
    assert read_all(log) == before
    assert log.segments[0].index.entries > 0


def test_a_directory_of_another_cluster_or_broker_is_refused():
    world = World()
    world.manager.close()
    for node_id, cluster_id in ((2, CLUSTER_ID), (1, "other")):
        other = LogManager(world.env, [ROOT], node_id=node_id, cluster_id=cluster_id)
        with pytest.raises(WrongDirectory):
            other.start()
    world.restart(clean=True)


def test_a_directory_in_use_is_refused():
    world = World()
    other = LogManager(world.env, [ROOT], node_id=1, cluster_id=CLUSTER_ID)
    with pytest.raises(LockedByOther):
        other.start()


def test_one_directory_fails_and_the_other_goes_on():
    disk = CrashDisk()
    world = World(disk=disk)
    world.manager.close()
    manager = LogManager(
        world.env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID,
        settings=LogSettings(log_cleaner_enable=False),
    )  # fmt: skip
    manager.start()
    first, second = manager.create("a", 0, bytes(16)), manager.create("a", 1, bytes(16))
    assert {first.home.path, second.home.path} == {"/one", "/two"}
    broken = first.home.path

    def fail(kind, path, size):
        if path.startswith(broken) and kind == "write":
            raise OSError(errno.EIO, "failed", path)

    disk.before_operation = fail
    with pytest.raises(KafkaError):
        first.append_as_leader(batch([b"a"]), 0)
    assert second.append_as_leader(batch([b"a"]), 0).base_offset == 0
    assert manager.create("b", 0, bytes(16)).home is second.home
    assert [info.is_online for info in manager.describe()] == [
        info.path != broken for info in manager.describe()
    ]
    manager.close()


def test_a_long_recovery_says_how_far_it_has_come(caplog):
    """Two workers open the logs; the clock goes on meanwhile."""
    world = World(SMALL)
    for partition in range(4):
        fill(world.log("t", partition))
    expected = sum(log.size for log in world.manager)
    abandon(world.manager)
    background = world.env.background = QueuedBackground()
    manager = LogManager(
        world.env, [ROOT], node_id=1, cluster_id=CLUSTER_ID, config_of=lambda topic: SMALL
    )
    opened = manager.start()
    assert len(background) == 2
    with caplog.at_level(logging.INFO):
        world.clock.advance(10_000)
        assert "opened 0 of 4 logs" in caplog.text
        background.run_one()
        world.clock.advance(10_000)
        background.run_one()
    assert opened.is_resolved
    assert "opened 4 of 4 logs, checked 0 of 0 MB" in caplog.text
    assert manager.loading.bytes_checked == manager.loading.bytes_expected == expected
    assert caplog.text.count("opened") == 3
