"""A process that runs out of descriptors: connections wait, and files are opened all the same."""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bench.raw_client import RawClient
from kafkalite.env.descriptors import Descriptors
from kafkalite.env.disk import RealDisk
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkalite.sim.world import World
from tests.unit.broker.test_serve_command import serving
from tests.unit.log.making import batch

LIMIT = 256
IDLE = 300
PARTITIONS = 120


@pytest.mark.parametrize("limit", [16, 64, 256, 1_024, 65_536, 1 << 30])
def test_connections_stop_before_kept_files_and_both_before_the_limit(limit: int) -> None:
    shared = Descriptors(limit)
    assert 0 < shared.connections_end < shared.kept_files_end < limit
    assert shared.reserve <= limit // 4


def test_idle_connections_leave_what_files_need(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))

    with serving(tmp_path, prepare=limit) as (process, port), ExitStack() as closing:
        client = RawClient("127.0.0.1", port)
        closing.callback(client.close)
        topic = CreateTopicsRequest.Topic(
            name="t", num_partitions=PARTITIONS, replication_factor=1
        )
        asked = CreateTopicsRequest(topics=[topic])
        [created] = client.call(asked, 5, CreateTopicsResponse).topics
        assert created.error_code == Error.NONE
        with idle_connections(port) as (first, last):
            assert codes_of(client) == {Error.NONE}
            for each in first:  # in their place those are taken that waited
                each.close()
            late = RawClient("127.0.0.1", port)
            closing.callback(late.close)
            assert codes_of(late) == {Error.NONE}
            assert last
        process.terminate()
        said = process.communicate(timeout=20)[0]
        assert process.returncode == 0
    assert said.count("new connections wait until others end") == 1
    assert "offline" not in said


@contextmanager
def idle_connections(port: int) -> Iterator[tuple[list[socket.socket], list[socket.socket]]]:
    """More than the process may have files open; those that are not taken wait in the system."""
    made = []
    for _ in range(IDLE):
        idle = socket.socket()
        idle.setblocking(False)
        assert idle.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS)
        made.append(idle)
    yield made[:-10], made[-10:]
    for idle in made:
        idle.close()


def codes_of(client: RawClient) -> set[int]:
    """What writing to every partition comes to."""
    data = ProduceRequest.TopicData(
        name="t",
        partition_data=[
            ProduceRequest.PartitionData(index=index, records=batch([b"value"]))
            for index in range(PARTITIONS)
        ],
    )
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    [answer] = client.call(request, 9, ProduceResponse).responses
    assert len(answer.partition_responses) == PARTITIONS
    return {each.error_code for each in answer.partition_responses}


# --- the disk -------------------------------------------------------------------------------------


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """Only so many more can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_file_is_opened_in_place_of_one_that_nobody_uses(tmp_path: Path) -> None:
    disk = RealDisk(max_open_files=1_000)
    paths = [f"{tmp_path}/{number}" for number in range(40)]
    for path in paths:
        disk.create(path).close()
    files = [disk.open(path) for path in paths]
    with few_descriptors(10):
        for number, file in enumerate(files):
            file.write_at(0, b"%d" % number)
        disk.sync_directory(str(tmp_path))
        assert disk.list_directory(str(tmp_path)) == sorted(str(each) for each in range(40))
        assert disk.create(f"{tmp_path}/new").size() == 0
        found = [file.read_at(0, 9) for file in files]
    assert found == [b"%d" % number for number in range(40)]


def test_with_nothing_to_close_the_error_is_told(tmp_path: Path) -> None:
    disk = RealDisk()
    with few_descriptors(0), pytest.raises(OSError, match="Too many open files") as failed:
        disk.create(f"{tmp_path}/file")
    assert failed.value.errno == errno.EMFILE


# --- the broker -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("kind", ["write", "create", "sync", "rename", "sync_directory"])
@pytest.mark.parametrize("durability", ["page-cache", "fsync"])
def test_a_file_that_cannot_be_opened_for_now_is_no_failed_disk(
    durability: str, kind: str, code: int
) -> None:
    world = World(1, durability=durability)
    world.run_until(lambda: world.is_up, "the broker comes up")
    world.create_topic("t", 1)

    def fail(found: str, path: str, size: int) -> None:
        if found == kind:
            raise OSError(code, os.strerror(code), path)

    world.disk.before_operation = fail
    partition = world.broker.partitions.find("t", 0)
    now_ms = world.clock.now_ms()
    try:
        partition.append(batch([b"value"], timestamp=now_ms), now_ms)
        code_of_append = Error.NONE
    except KafkaError as refused:
        code_of_append = Error(refused.code)
    assert code_of_append in (Error.NONE, Error.KAFKA_STORAGE_ERROR)
    created = world.broker.create_topic("refused", 1)
    partition.log.flush()
    world.run(10_000)
    world.disk.before_operation = None
    world.run(1_000)
    assert not world.broker.ended.is_resolved
    assert partition.log.home.is_online
    assert partition.high_watermark == (code_of_append is Error.NONE)
    assert created.is_resolved
    assert partition.log.recovery_point == partition.log.log_end_offset
    world.create_topic("after", 1)
