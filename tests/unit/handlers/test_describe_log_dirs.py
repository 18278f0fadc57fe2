"""DescribeLogDirs: what lies where."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeLogDirsRequest

Request = DescribeLogDirsRequest


def ask(world, topics, version=5):
    given = None
    if topics is not None:
        given = [Request.Topic(topic=name, partitions=indexes) for name, indexes in topics]
    response = world.ask(Request(topics=given), version)
    return {each.log_dir: each for each in response.results}


def listed(results):
    return {
        (topic.name, each.partition_index)
        for result in results.values()
        for topic in result.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(6))
def test_every_partition_is_in_one_directory(world, version):
    world.create("t", 3)
    results = ask(world, None, version)
    assert set(results) == {"/1/a", "/1/b"}
    assert listed(results) == {("t", 0), ("t", 1), ("t", 2)}
    if version >= 4:
        assert results["/1/a"].total_bytes >= results["/1/a"].usable_bytes > 0


def test_only_what_is_asked_for(world):
    world.create("t", 3)
    assert listed(ask(world, [("t", [1]), ("nix", [0])])) == {("t", 1)}
    assert listed(ask(world, [])) == set()


def test_a_failed_directory_says_so(world):
    world.context.logs.directories[1].home.fail(OSError("broken"))
    results = ask(world, None)
    assert results["/1/b"].error_code == Error.KAFKA_STORAGE_ERROR
    assert results["/1/a"].error_code == Error.NONE


def test_a_cordoned_directory_says_so(make_world):
    world = make_world(settings={"cordoned.log.dirs": "/1/b"})
    cordoned = {path: result.is_cordoned for path, result in ask(world, None).items()}
    assert cordoned == {"/1/a": False, "/1/b": True}
