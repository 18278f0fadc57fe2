"""AlterReplicaLogDirs: a replica moves beside its use, and nothing of it is lost."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterReplicaLogDirsRequest
from kafkalite.records.record import BatchBuilder

Request = AlterReplicaLogDirsRequest


def move(world, path, topic="t", index=0, version=2):
    asked = Request.Topic(name=topic, partitions=[index])
    request = Request(dirs=[Request.Dir(path=path, topics=[asked])])
    ((answer,),) = [each.partitions for each in world.ask(request, version).results]
    return Error(answer.error_code)


def append(world, count=1):
    partition = world.context.partitions.find("t", 0)
    for _ in range(count):
        builder = BatchBuilder()
        builder.append(world.env.clock.now_ms(), b"key", b"value")
        partition.append(memoryview(builder.build()), world.env.clock.now_ms())


def place(world):
    return world.context.partitions.find("t", 0).log.home.path


@pytest.mark.parametrize("version", range(3))
def test_a_replica_moves_with_all_it_has_while_it_is_written(world, version):
    world.create("t")
    append(world, 5)
    target = "/1/b" if place(world) == "/1/a" else "/1/a"
    assert move(world, target, version=version) == Error.NONE
    append(world, 3)
    world.env.clock.advance(1000)
    assert place(world) == target
    partition = world.context.partitions.find("t", 0)
    assert partition.log is world.context.logs.get("t", 0)
    assert (partition.log.log_end_offset, partition.high_watermark) == (8, 8)
    append(world)
    assert partition.high_watermark == 9


def test_a_replica_that_is_there_stays(world):
    world.create("t")
    before = world.context.partitions.find("t", 0).log
    assert move(world, place(world)) == Error.NONE
    world.env.clock.advance(1000)
    assert world.context.partitions.find("t", 0).log is before


def test_refuses_as_kafka_does(three):
    three.create("t")
    leader = three.metadata.image.partition("t", 0).leader
    other = next(each for each in (1, 2, 3) if each != leader)
    asked = Request.Topic(name="t", partitions=[0, 9])
    for node_id, code in (
        (leader, Error.NONE),
        (other, Error.NOT_LEADER_OR_FOLLOWER),
    ):
        request = Request(dirs=[Request.Dir(path=f"/{node_id}/a", topics=[asked])])
        (topic,) = three.ask(request, 2, node_id).results
        assert [Error(each.error_code) for each in topic.partitions] == [
            code,
            Error.UNKNOWN_TOPIC_OR_PARTITION,
        ]


def test_directories_that_take_nothing(make_world):
    world = make_world(settings={"cordoned.log.dirs": "/1/b"})
    world.create("t")
    assert move(world, "/nowhere") == Error.LOG_DIR_NOT_FOUND
    assert move(world, "/1/b") == Error.INVALID_REPLICA_ASSIGNMENT
    world.context.logs.directories[0].home.fail(OSError("broken"))
    assert move(world, "/1/a") == Error.KAFKA_STORAGE_ERROR
