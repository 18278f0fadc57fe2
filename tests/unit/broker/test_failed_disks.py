"""Disks that fail under a broker: what it cannot do without ends it, the rest does not.

Worlds are simulated but for the last test, whose process may write no large file.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalite.broker import Broker
from kafkalite.broker.known import LocalBrokers
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.cluster.states import NO_LEADER
from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
)
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.disk import CrashDisk
from kafkalite.sim.world import World
from tests.unit.broker.test_serve_command import asked, serving
from tests.unit.handlers.whole_broker import SilentNetwork, WholeBroker
from tests.unit.log.making import batch, read_all

METADATA = "__cluster_metadata-0/"
Fault = Callable[[str, str, int], None]


def failing(kind: str, part_of_path: str, code: int = errno.EIO) -> Fault:
    """A disk on which one kind of operation fails for some files."""

    def fail(found: str, path: str, size: int) -> None:
        if found == kind and part_of_path in path:
            raise OSError(code, os.strerror(code), path)

    return fail


def started(world: World) -> World:
    world.run_until(lambda: world.is_up, "the broker comes up")
    return world


def write(world: World, topic: str, value: bytes) -> None:
    """A record that is acknowledged."""
    partition = world.broker.partitions.find(topic, 0)
    now_ms = world.clock.now_ms()
    partition.append(batch([value], timestamp=now_ms), now_ms)
    acknowledged = partition.when_committed(partition.log.log_end_offset)
    world.run_until(lambda: acknowledged.is_resolved, "the record is acknowledged")
    assert acknowledged.value is None


def values(world: World, topic: str) -> list[bytes | None]:
    log = world.broker.logs.get(topic, 0)
    assert log is not None
    return [record.value for record in read_all(log)]


def failure_code(world: World) -> int | None:
    failure = world.broker.ended.value
    return None if failure is None else failure.errno


def mend(world: World) -> None:
    """The disk works again, with what was put on it, and somebody starts the broker."""
    world.disk.before_operation = None
    world.start_broker()
    started(world)


# --- the metadata ---------------------------------------------------------------------------------


@pytest.mark.parametrize("directories", ["/data", "/data,/more"])
@pytest.mark.parametrize("is_power_cut", [False, True])
def test_a_failed_sync_of_the_metadata_ends_the_broker(
    directories: str, is_power_cut: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = started(World(1, durability="fsync", directories=directories))
    world.create_topic("kept", 1)
    write(world, "kept", b"kept")
    world.disk.before_operation = failing("sync", METADATA)
    with caplog.at_level(logging.CRITICAL):
        created = world.broker.create_topic("t", 1)
        world.run(1_000)
    assert isinstance(created.value, KafkaError)
    assert failure_code(world) == errno.EIO
    assert not world.is_up
    [line] = caplog.messages
    assert f"/data/{METADATA}00000000000000000000.log" in line
    assert "mend the disk" in line
    if is_power_cut:
        world.disk = world.disk.crashed(world.random)
    mend(world)
    assert values(world, "kept") == [b"kept"]


def test_a_failed_write_of_the_metadata_ends_the_broker_and_is_told() -> None:
    world = started(World(1))
    world.disk.before_operation = failing("write", METADATA)
    with pytest.raises(KafkaError) as refused:
        world.broker.controller.decide(FenceBroker(1))
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    assert not world.broker.ended.is_resolved  # who asked may be answered
    world.run(0)
    assert failure_code(world) == errno.EIO
    mend(world)
    world.create_topic("t", 1)


def test_a_file_that_must_not_grow_is_no_full_disk() -> None:
    world = started(World(1))
    world.disk.before_operation = failing("write", METADATA, errno.EFBIG)
    created = world.broker.create_topic("t", 1)
    world.run(0)
    assert isinstance(created.value, KafkaError)
    assert world.broker.ended.is_resolved


def test_a_full_disk_refuses_what_needs_metadata_until_it_has_room() -> None:
    world = started(World(1, durability="fsync"))
    world.disk.before_operation = failing("write", METADATA, errno.ENOSPC)
    created = world.broker.create_topic("t", 1)
    assert isinstance(created.value, KafkaError)
    assert created.value.code == Error.KAFKA_STORAGE_ERROR
    assert world.broker.metadata.image.topic_id("t") is None
    world.run(1_000)
    assert world.is_up
    world.disk.before_operation = None
    world.create_topic("t", 1)


@pytest.mark.parametrize(("code", "is_fatal"), [(errno.ENOSPC, False), (errno.EIO, True)])
def test_a_snapshot_that_cannot_be_written_undoes_nothing(code: int, is_fatal: bool) -> None:
    world = started(World(1))
    world.create_topic("t", 1)
    world.disk.before_operation = failing("write", ".checkpoint.tmp", code)
    world.broker.controller.write_snapshot()
    world.run(0)
    assert world.broker.ended.is_resolved == is_fatal
    if not is_fatal:
        world.create_topic("after", 1)
        world.die(is_power_cut=False)
    world.disk.before_operation = None
    if is_fatal:
        world.start_broker()
    started(world)
    assert world.broker.metadata.image.topic_id("t") is not None


@pytest.mark.parametrize("kind", ["write", "sync", "create"])
def test_a_stop_ends_though_the_metadata_cannot_be_written(kind: str) -> None:
    broker = WholeBroker(disk=CrashDisk())
    broker.create("t")
    assert isinstance(broker.env.disk, CrashDisk)
    broker.env.disk.before_operation = failing(kind, METADATA)
    stopped = broker.broker.stop(0)
    broker.clock.advance(1_000)
    assert stopped.is_resolved
    broker.env.disk.before_operation = None
    assert broker.started_again().context.metadata.image.topic_id("t") is not None


# --- starting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["write", "create", "sync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_broker_does_not_start_on_a_broken_disk(kind: str, code: int, is_new: bool) -> None:
    disk = CrashDisk()
    if not is_new:
        WholeBroker(disk=disk).close()
    disk.before_operation = failing(kind, METADATA, code)
    failure = why_not_started(disk)
    assert failure is not None
    assert os.strerror(code) in str(failure)
    disk.before_operation = None
    assert why_not_started(disk) is None


def why_not_started(disk: CrashDisk) -> Exception | None:
    try:
        return new_broker(manual_env(1, disk)).start().value
    except OSError as error:
        return error


def new_broker(
    env: Env, node_id: int = 1, brokers: LocalBrokers | None = None, **settings: str
) -> Broker:
    config = BrokerConfig({"node.id": str(node_id), "log.dirs": f"/data/{node_id}", **settings})
    return Broker(env, SilentNetwork(), config, brokers)


# --- data -----------------------------------------------------------------------------------------


def test_a_failed_directory_of_two_does_not_end_the_broker() -> None:
    world = started(World(1, directories="/data,/more"))
    for name in ("a", "b"):
        world.create_topic(name, 1)
    world.disk.before_operation = failing("write", "/more/")
    lost, kept = ("a", "b") if world.disk.exists("/more/a-0") else ("b", "a")
    with pytest.raises(KafkaError):
        write(world, lost, b"1")
    write(world, kept, b"2")
    world.run(1_000)
    assert not world.broker.ended.is_resolved


def test_a_broker_whose_only_directory_failed_ends() -> None:
    world = started(World(1))
    world.create_topic("t", 1)
    write(world, "t", b"1")
    world.disk.before_operation = failing("write", "/t-0/")
    with pytest.raises(KafkaError):
        write(world, "t", b"2")
    world.run(0)
    assert not world.is_up
    mend(world)
    assert values(world, "t") == [b"1"]


def failing_at_take_up(world: World, path: str, code: int) -> None:
    """The disk begins to fail when a coordinator, in its new role, reads its log."""

    def fail(opened: str) -> None:
        if world.network.accept is not None and path in opened and opened.endswith(".log"):
            raise OSError(code, os.strerror(code), opened)

    world.disk.before_open = fail


def restarted(world: World, path: str, code: int) -> None:
    world.stop_cleanly()
    world.run_until(lambda: not world.is_up and not world.life.is_alive, "the broker stops")
    failing_at_take_up(world, path, code)
    world.run(1_000)


def commit(world: World) -> Error:
    """An offset of a group, whose coordinator's topic is created when it is first asked for."""
    codes: list[Error] = []

    def ask() -> Script:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        while Error.NONE not in codes and len(codes) < 20:
            [answer] = yield Ask([(request, 4)])
            codes.append(Error(answer.coordinators[0].error_code))
            yield Sleep(20)
        committed = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
        topic = OffsetCommitRequest.Topic(name="t", partitions=[committed])
        answer = None
        while answer is None:  # on its way for too long
            [answer] = yield Ask([(OffsetCommitRequest(group_id="g", topics=[topic]), 8)])
        codes.append(Error(answer.topics[0].partitions[0].error_code))

    client = world.client()
    client.start(ask())
    world.run_until(lambda: not client.is_running, "the coordinator answers")
    return codes[-1]


def test_a_broker_whose_only_directory_fails_while_it_takes_up_its_roles_ends() -> None:
    world = started(World(1))
    world.create_topic("t", 1)
    assert commit(world) is Error.NONE
    restarted(world, "/__consumer_offsets-0/", errno.EIO)
    assert not world.is_up
    assert failure_code(world) == errno.EIO
    world.disk.before_open = None
    mend(world)
    assert commit(world) is Error.NONE


def test_a_directory_of_two_that_fails_while_roles_are_taken_up_is_told_to_the_cluster() -> None:
    world = started(World(1, directories="/data,/more"))
    world.create_topic("t", 1)
    assert commit(world) is Error.NONE
    lost = "/more/" if world.disk.exists("/more/__consumer_offsets-0") else "/data/"
    assert lost == "/more/"
    restarted(world, "/more/__consumer_offsets-0/", errno.EIO)
    assert world.is_up
    state = world.broker.metadata.image.partition("__consumer_offsets", 0)
    assert state is not None
    assert state.leader == NO_LEADER


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_a_coordinator_that_cannot_open_its_log_for_now_loads_it_later(code: int) -> None:
    world = started(World(1))
    world.create_topic("t", 1)
    assert commit(world) is Error.NONE
    restarted(world, "/__consumer_offsets-0/", code)
    assert world.is_up
    assert commit(world) is Error.NOT_COORDINATOR
    world.disk.before_open = None
    world.run(10_000)
    assert commit(world) is Error.NONE


def test_a_broker_of_several_that_ends_is_fenced_and_the_others_go_on() -> None:
    env = manual_env(1, CrashDisk())
    brokers = LocalBrokers()
    first = new_broker(env, 1, brokers)
    assert first.start().value is None
    second = new_broker(env, 2, brokers)
    assert second.start().value is None
    assert first.create_topic("t", 2).value is None
    assert isinstance(env.disk, CrashDisk)
    assert isinstance(env.clock, ManualClock)
    env.disk.before_operation = failing("write", "/data/2/")
    led = next(each for each in second.partitions if each.is_leader)
    now_ms = env.clock.now_ms()
    with pytest.raises(KafkaError, match="Input/output error"):
        led.append(batch([b"1"], timestamp=now_ms), now_ms)
    env.clock.advance(1_000)
    assert second.ended.is_resolved
    assert not first.ended.is_resolved
    assert list(first.metadata.image.live_brokers()) == [1]
    assert not led.is_leader
    assert first.create_topic("more", 1).value is None


# --- a process ------------------------------------------------------------------------------------

LARGEST_FILE = 48 * 1024
MOST_TOPICS = 200


def test_a_process_that_cannot_write_its_metadata_says_so_and_ends(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))

    with serving(tmp_path, prepare=limit) as (process, port):
        created = created_until_refused(port)
        said = process.communicate(timeout=20)[0]
        assert process.returncode == 1
    [line] = [line for line in said.splitlines() if "ends, because" in line]
    assert os.strerror(errno.EFBIG) in line
    # Its log, or on a slow machine a checkpoint beside it that grows with the topics, too.
    assert f"{tmp_path}/data/" in line
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    (tmp_path / "port").unlink()
    with serving(tmp_path) as (_, port):
        found = {topic.name for topic in asked(port, MetadataRequest(topics=None), 9).topics}
    assert created
    assert found >= created


def created_until_refused(port: int) -> set[str]:
    """The topics that were said to be created."""
    created: set[str] = set()
    for number in range(MOST_TOPICS):
        name = f"t{number}-{'x' * 200}"
        topic = CreateTopicsRequest.Topic(name=name, num_partitions=10, replication_factor=1)
        try:
            [answer] = asked(port, CreateTopicsRequest(topics=[topic]), 5).topics
        except ConnectionError:
            return created
        if answer.error_code == Error.KAFKA_STORAGE_ERROR:
            return created
        assert answer.error_code == Error.NONE
        created.add(name)
    pytest.fail("the disk never failed")
