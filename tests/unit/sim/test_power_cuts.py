"""Topics and records over power cuts, with the cluster's metadata on one disk and data on others.

Nothing orders the syncs of different disks but the broker itself.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from kafkalite.coordinators.cluster.controller import is_refusal
from kafkalite.coordinators.cluster.events import CreateTopics, DeleteTopics
from kafkalite.log.names import renamed_directory
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest
from kafkalite.sim.world import World
from tests.unit.log.making import batch, read_all

SEEDS = 25
STEPS = 30
LONGEST_NAME = 249  # whose name is cut in that of a deleted log's directory
NAMES = ("a", "b", "c" * LONGEST_NAME)


@dataclass(slots=True)
class Wanted:
    """A topic as its clients know it."""

    name: str
    topic_id: bytes = b""
    is_created: bool = False  # as its creator was told
    is_doomed: bool = False  # its deletion was asked for
    is_deleted: bool = False  # as its remover was told
    values: list[bytes] = field(default_factory=list)  # acknowledged


def has_lasted(answer: object) -> bool:
    return not isinstance(answer, KafkaError)


class Clients:
    """Who creates, writes and deletes, and waits for no answer before what comes next."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.topics: list[Wanted] = []
        self._count = 0

    def step(self) -> None:
        kind = self.world.random.random()
        name = self.world.random.choice(NAMES)
        known = self._known(name)
        if known is None:
            self._create(name)
        elif kind < 0.12:
            self._delete(known)
        else:
            self._write(known)

    def _known(self, name: str) -> Wanted | None:
        topic_id = self.world.broker.metadata.image.topic_id(name)
        return next((each for each in self.topics if each.topic_id == topic_id), None)

    def _create(self, name: str) -> None:
        broker = self.world.broker
        wanted = Wanted(name)
        self.topics.append(wanted)
        topic = CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=-1)
        later = broker.controller.submit(CreateTopics(CreateTopicsRequest(topics=[topic])))
        if later.is_resolved and is_refusal(later.value):
            return  # its disk has failed
        topic_id = broker.metadata.image.topic_id(name)
        assert topic_id is not None
        wanted.topic_id = topic_id
        later.then(lambda answer: setattr(wanted, "is_created", has_lasted(answer)))

    def _delete(self, wanted: Wanted) -> None:
        wanted.is_doomed = True
        request = DeleteTopicsRequest(topic_names=[wanted.name])
        later = self.world.broker.controller.submit(DeleteTopics(request))
        later.then(lambda answer: setattr(wanted, "is_deleted", has_lasted(answer)))

    def _write(self, wanted: Wanted) -> None:
        partition = self.world.broker.partitions.get(wanted.name, 0)
        if partition is None:
            return  # its log is still to be opened, and clients ask again
        assert partition.topic_id == wanted.topic_id
        self._count += 1
        value = b"%d" % self._count
        now_ms = self.world.clock.now_ms()
        partition.append(batch([value], timestamp=now_ms), now_ms)
        acknowledged = partition.when_committed(partition.log.log_end_offset)
        acknowledged.then(lambda error: None if error else wanted.values.append(value))

    def check(self) -> None:
        """What was acknowledged is there; a topic whose deletion was not is gone or whole."""
        image = self.world.broker.metadata.image
        for wanted in self.topics:
            is_there = image.topic_id(wanted.name) == wanted.topic_id
            assert is_there or wanted.is_doomed or not (wanted.is_created or wanted.values), wanted
            assert not (is_there and wanted.is_deleted), wanted
            if is_there:
                log = self.world.broker.logs.get(wanted.name, 0)
                assert log is not None
                assert log.topic_id == wanted.topic_id
                found = [one.value for one in read_all(log) if one.value in wanted.values]
                assert found == wanted.values, wanted


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("directories", ["/data", "/data,/more", "/data,/more,/most"])
def test_nothing_acknowledged_is_lost_whichever_disk_is_slower(directories: str, seed: int) -> None:
    world = World(seed, durability="fsync", directories=directories)
    clients = Clients(world)
    for _ in range(3):
        world.run_until(lambda: world.is_up, "the broker comes up")
        clients.check()
        clients.topics = [each for each in clients.topics if clients._known(each.name) is each]
        for _ in range(world.random.randrange(STEPS)):
            clients.step()
            world.run(world.random.choice((0, 0, 1, 3, 12)))
        world.die(is_power_cut=True)
    world.run_until(lambda: world.is_up, "the broker comes back")
    clients.check()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("directories", ["/data", "/data,/more"])
def test_nothing_acknowledged_is_lost_when_a_disk_begins_to_fail(
    directories: str, seed: int
) -> None:
    world = World(seed, durability="fsync", directories=directories)
    clients = Clients(world)
    world.run_until(lambda: world.is_up, "the broker comes up")
    chance = world.random
    first = world.disk.operations + chance.randrange(10, 300)
    kinds = chance.choice([("sync",), ("write",), ("write", "sync", "create", "rename")])
    broken = chance.choice(["/data/", "/data/__cluster_metadata-0/", "/more/", "/"])

    def fail(kind: str, path: str, size: int) -> None:
        if world.disk.operations >= first and kind in kinds and path.startswith(broken):
            raise OSError(errno.EIO, "failed", path)

    world.disk.before_operation = fail
    for _ in range(STEPS):
        with suppress(KafkaError):
            clients.step()
        world.run(chance.choice((0, 0, 1, 3, 12)))
    if world.is_up:
        world.die(is_power_cut=True)
    else:
        world.disk = world.disk.crashed(chance)
        world.start_broker()
    world.disk.before_operation = None
    world.run_until(lambda: world.is_up, "the broker comes back")
    clients.check()


@pytest.mark.parametrize("length", [1, LONGEST_NAME])
def test_a_deletion_that_did_not_last_is_undone_whatever_the_topic_is_called(length: int) -> None:
    world, name = world_with_record("/data", "t" * length)
    metadata = "/data/__cluster_metadata-0/00000000000000000000.log"
    size = world.disk.size_of(metadata)
    topic_id = world.broker.metadata.image.topic_id(name)
    world.broker.controller.submit(DeleteTopics(DeleteTopicsRequest(topic_names=[name])))
    world.broker.create_topic(name, 1)  # whose log needs the name of the first one's directory
    assert world.broker.metadata.image.topic_id(name) != topic_id
    world.die(is_power_cut=False)
    world.disk.open(metadata).truncate(size)
    world.run_until(lambda: world.is_up, "the broker comes back")
    assert world.broker.metadata.image.topic_id(name) == topic_id
    assert values(world, name) == [b"value"]


@pytest.mark.parametrize("length", [1, LONGEST_NAME])
def test_a_move_is_finished_whatever_the_topic_is_called(length: int) -> None:
    world, name = world_with_record("/data,/more", "t" * length)
    log = world.broker.logs.get(name, 0)
    assert log is not None
    target = "/more" if log.directory.startswith("/data/") else "/data"
    world.broker.logs.move(name, 0, target)
    moved = f"{target}/{name}-0"
    world.run_until(lambda: world.disk.exists(moved), "the log is moved")
    world.die(is_power_cut=False)
    world.disk.rename(moved, f"{target}/{renamed_directory(name, 0, 'f' * 32, 'future')}")
    world.run_until(lambda: world.is_up, "the broker comes back")
    world.run_until(lambda: world.disk.exists(moved), "the move is finished")
    assert values(world, name) == [b"value"]


def world_with_record(directories: str, name: str) -> tuple[World, str]:
    """A broker that is up, and a topic with one record that lasts."""
    world = World(1, durability="fsync", directories=directories)
    world.run_until(lambda: world.is_up, "the broker comes up")
    world.create_topic(name, 1)
    partition, now_ms = world.broker.partitions.find(name, 0), world.clock.now_ms()
    partition.append(batch([b"value"], timestamp=now_ms), now_ms)
    committed = partition.when_committed(1)
    world.run_until(lambda: committed.is_resolved, "the record lasts")
    return world, name


def values(world: World, name: str) -> list[bytes | None]:
    log = world.broker.logs.get(name, 0)
    assert log is not None
    return [record.value for record in read_all(log)]


def test_a_topic_id_that_a_power_cut_took_is_written_again() -> None:
    world = World(1)
    world.run_until(lambda: world.is_up, "the broker comes up")
    world.create_topic("t", 1)
    topic_id = world.broker.metadata.image.topic_id("t")
    world.disk.create("/data/t-0/partition.metadata").close()  # its name has lasted, no more
    world.die(is_power_cut=False)
    world.run_until(lambda: world.is_up, "the broker comes back")
    log = world.broker.logs.get("t", 0)
    assert log is not None
    assert log.topic_id == topic_id
    text = bytes(world.disk.file_at("/data/t-0/partition.metadata").data)
    assert text.startswith(b"version: 0\ntopic_id: ")


def test_a_topic_that_cannot_last_is_not_said_to_be_created() -> None:
    world = World(1, durability="fsync")
    world.run_until(lambda: world.is_up, "the broker comes up")
    broken = OSError(5, "the disk is broken")

    def fail(kind: str, path: str, size: int) -> None:
        if kind == "sync":
            raise broken

    world.disk.before_operation = fail
    created = world.broker.create_topic("t", 1)
    world.run(1_000)
    assert isinstance(created.value, KafkaError)
    asked = DeleteTopics(DeleteTopicsRequest(topic_names=["t"]))
    refused = world.broker.controller.submit(asked).value
    assert isinstance(refused, KafkaError)
    assert refused.code == Error.NOT_CONTROLLER  # it ends
