"""Large requests about records, and passes over many logs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.large.stage import (
    TIMEOUT_MS,
    Stage,
    errors_in,
    fetch_of,
    produce_request,
    produce_to_all,
    row,
)
from bench.raw_client import PRODUCE_VERSION, frame_of
from kafkalite.protocol.messages import (
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
)


@row("a produce to 5,000 partitions")
def produce_to_many(stage: Stage) -> Iterator[None]:
    topic = stage.large_topic()
    yield
    produce_to_all(stage, topic, stage.sizes.partitions)
    yield


@row("a fetch of 5,000 partitions")
def fetch_many(stage: Stage) -> Iterator[None]:
    request = fetch_of(stage.large_topic(), stage.sizes.partitions, wait_ms=0, min_bytes=1)
    yield
    (topic,) = stage.ask(request, 12).responses
    assert not errors_in(topic.partitions)
    yield


@row("offsets of 5,000 partitions by time")
def list_offsets(stage: Stage) -> Iterator[None]:
    partitions = [
        ListOffsetsRequest.Partition(partition_index=index, timestamp=1_000)
        for index in range(stage.sizes.partitions)
    ]
    topic = ListOffsetsRequest.Topic(name=stage.large_topic(), partitions=partitions)
    yield
    (found,) = stage.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 6).topics
    assert not errors_in(found.partitions)
    yield


@row("delete the records of 5,000 partitions")
def delete_records(stage: Stage) -> Iterator[None]:
    name = stage.name("cut")
    stage.create({name: stage.sizes.partitions})
    produce_to_all(stage, name, stage.sizes.partitions)
    partitions = [
        DeleteRecordsRequest.Partition(partition_index=index, offset=-1)
        for index in range(stage.sizes.partitions)
    ]
    topic = DeleteRecordsRequest.Topic(name=name, partitions=partitions)
    yield
    answer = stage.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 2)
    assert not errors_in(answer.topics[0].partitions)
    yield


@row("1,000 segments rolled by one produce")
def roll_many(stage: Stage) -> Iterator[None]:
    name = stage.name("rolled")
    stage.create({name: stage.sizes.segments}, segment_ms="1")
    produce_to_all(stage, name, stage.sizes.segments)
    time.sleep(0.1)
    yield
    produce_to_all(stage, name, stage.sizes.segments)
    yield


@row("retention over 5,000 logs")
def retention(stage: Stage) -> Iterator[None]:
    name = stage.name("old")
    stage.create({name: stage.sizes.partitions}, retention_ms="1000")
    produce_to_all(stage, name, stage.sizes.partitions)
    yield
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsRequest.Topic(
                name=name,
                partitions=[
                    ListOffsetsRequest.Partition(partition_index=index, timestamp=-2)
                    for index in (0, stage.sizes.partitions - 1)
                ],
            )
        ],
    )
    for _ in range(600):
        (topic,) = stage.ask(request, 6).topics
        if all(each.offset > 0 for each in topic.partitions):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("retention never came")
    time.sleep(1)
    yield


@row("5,000 readers that wait, and an append")
def waiting_readers(stage: Stage) -> Iterator[None]:
    name = stage.name("awaited")
    stage.create({name: 1})
    request = frame_of(fetch_of(name, 1, wait_ms=60_000, min_bytes=1), 12, 1)
    with ExitStack() as stack:
        readers = []
        for number in range(stage.sizes.readers):
            source = (f"127.0.{1 + number // 20_000}.1", 0)
            link = socket.create_connection((stage.host, stage.port), 30, source)
            readers.append(stack.enter_context(link))
            link.sendall(request)
        time.sleep(1)
        yield
        produce_to_all(stage, name, 1)
        for link in readers:
            assert len(link.recv(4, socket.MSG_WAITALL)) == 4
        yield


@row("5 readers that wait for much of 200 partitions, and a producer")
def patient_readers(stage: Stage) -> Iterator[None]:
    name = stage.name("patient")
    stage.create({name: 200})
    request = fetch_of(name, 200, wait_ms=60_000, min_bytes=30 << 20)
    readers = [stage.another() for _ in range(5)]
    for reader in readers:
        reader.send(frame_of(request, 12, 1))
    end = time.monotonic() + stage.sizes.seconds
    yield
    index = 0
    while time.monotonic() < end:
        index = (index + 1) % 200
        stage.ask(produce_request(name, [index], 100), PRODUCE_VERSION)
    yield
    for reader in readers:
        reader.close()


@row("the sizes of all logs")
def log_dirs(stage: Stage) -> Iterator[None]:
    stage.large_topic()
    yield
    assert stage.ask(DescribeLogDirsRequest(topics=None), 4).results
    yield


@row("the producers of 5,000 partitions")
def producers(stage: Stage) -> Iterator[None]:
    topic = DescribeProducersRequest.Topic(
        name=stage.large_topic(), partition_indexes=list(range(stage.sizes.partitions))
    )
    yield
    (found,) = stage.ask(DescribeProducersRequest(topics=[topic]), 0).topics
    assert not errors_in(found.partitions)
    yield
