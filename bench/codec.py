"""Decode and encode cost per message: interpreted construct, construct's own compile, and ours.

    python bench/codec.py

All three run the same layouts on the same bytes in one run; a figure is the best of several rounds,
in microseconds. The goal is Produce v9 with one partition: decoded in less than 4 µs, and 25
times faster than interpreted construct.
"""

from __future__ import annotations

import math
import timeit
from typing import Any

from construct.core import Construct

from kafkalite.protocol import codec, interpreted
from kafkalite.protocol.layout import layout
from kafkalite.protocol.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
    RequestHeader,
)

ROUNDS = 25
ROUND_SECONDS = 0.005
RECORDS = bytes(100)
GOAL_MICROSECONDS = 4.0
GOAL_RATIO = 25.0

Costs = tuple[float, float, float]  # interpreted construct, its own compile, ours


def produce_request(partitions: int) -> ProduceRequest:
    made = [ProduceRequest.PartitionData(index=i, records=RECORDS) for i in range(partitions)]
    topic = ProduceRequest.TopicData(name="page-views", partition_data=made)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response(partitions: int) -> ProduceResponse:
    made = [
        ProduceResponse.PartitionResponse(index=i, base_offset=i) for i in range(partitions)
    ]
    topic = ProduceResponse.Response(name="page-views", partition_responses=made)
    return ProduceResponse(responses=[topic])


def fetch_request(partitions: int) -> FetchRequest:
    made = [
        FetchRequest.Partition(partition=i, fetch_offset=i, partition_max_bytes=1 << 20)
        for i in range(partitions)
    ]
    topic = FetchRequest.Topic(topic="page-views", partitions=made)
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_response(partitions: int) -> FetchResponse:
    made = [
        FetchResponse.Partition(partition_index=i, high_watermark=9, records=RECORDS)
        for i in range(partitions)
    ]
    return FetchResponse(responses=[FetchResponse.Response(topic="page-views", partitions=made)])


def metadata_response(topics: int) -> MetadataResponse:
    partitions = [
        MetadataResponse.Partition(
            partition_index=i, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
        )
        for i in range(3)
    ]
    return MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=1, host="localhost", port=9092)],
        cluster_id="c" * 22,
        topics=[
            MetadataResponse.Topic(name=f"topic-{i}", partitions=partitions)
            for i in range(topics)
        ],
    )


def offset_commit(partitions: int) -> OffsetCommitRequest:
    made = [
        OffsetCommitRequest.Partition(partition_index=i, committed_offset=i, committed_metadata="")
        for i in range(partitions)
    ]
    return OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=1,
        member_id="m" * 40,
        topics=[OffsetCommitRequest.Topic(name="page-views", partitions=made)],
    )


def offset_commit_response(partitions: int) -> OffsetCommitResponse:
    made = [OffsetCommitResponse.Partition(partition_index=i) for i in range(partitions)]
    return OffsetCommitResponse(
        topics=[OffsetCommitResponse.Topic(name="page-views", partitions=made)]
    )


HEADER = RequestHeader(
    request_api_key=1, request_api_version=12, correlation_id=7, client_id="consumer-1"
)
HEARTBEAT = HeartbeatRequest(group_id="group", generation_id=1, member_id="m" * 40)
METADATA = MetadataRequest(topics=[MetadataRequest.Topic(name="page-views")])

CASES: list[tuple[str, Any, int]] = [
    ("Produce v9 request, 1 partition", produce_request(1), 9),
    ("Produce v9 request, 10 partitions", produce_request(10), 9),
    ("Produce v9 request, 100 partitions", produce_request(100), 9),
    ("Produce v9 response, 1 partition", produce_response(1), 9),
    ("Produce v9 response, 100 partitions", produce_response(100), 9),
    ("Request header v2", HEADER, 2),
    ("Fetch v12 request, 1 partition", fetch_request(1), 12),
    ("Fetch v12 request, 10 partitions", fetch_request(10), 12),
    ("Fetch v12 response, 1 partition", fetch_response(1), 12),
    ("Fetch v12 response, 10 partitions", fetch_response(10), 12),
    ("Metadata v12 request", METADATA, 12),
    ("Metadata v12 response, 10 topics", metadata_response(10), 12),
    ("Heartbeat v4 request", HEARTBEAT, 4),
    ("Heartbeat v4 response", HeartbeatResponse(), 4),
    ("OffsetCommit v8 request, 10 partitions", offset_commit(10), 8),
    ("OffsetCommit v8 response, 10 partitions", offset_commit_response(10), 8),
]


def main() -> None:
    print(f"{'':40} {'decode µs':^32} | {'encode µs':^32}")
    columns = f"{'construct':>10} {'compiled':>9} {'ours':>6} {'ratio':>5}"
    print(f"{'':40} {columns} | {columns}")
    for name, message, version in CASES:
        decoding, encoding = measure(message, version)
        print(f"{name:40} {row(decoding)} | {row(encoding)}")
        if (message, version) == CASES[0][1:]:
            first = decoding
    print()
    print(
        f"goal, Produce v9 with 1 partition: {first[2]:.2f} µs (under {GOAL_MICROSECONDS:g}), "
        f"{first[0] / first[2]:.1f} times faster than construct (at least {GOAL_RATIO:g})"
    )


def row(costs: Costs) -> str:
    interpreted_cost, compiled, ours = costs
    ratio = interpreted_cost / ours
    return f"{interpreted_cost:10.2f} {compiled:9.2f} {ours:6.2f} {ratio:5.1f}"


def measure(message: Any, version: int) -> tuple[Costs, Costs]:
    cls = type(message)
    frame = memoryview(bytearray(codec.encode(message, version)))  # as the server has it
    subject = layout(cls, version)
    theirs: Construct = subject.compile()
    decode = codec.decoder(cls, version)
    assert decode(frame) == interpreted.decode(cls, version, frame) == message
    assert theirs.parse(frame) == message
    assert theirs.build(message) == frame
    names = {
        "subject": subject,
        "theirs": theirs,
        "decode": decode,
        "encode": codec.encode,
        "frame": frame,
        "message": message,
        "version": version,
    }
    return (
        microseconds(names, "subject.parse(frame)", "theirs.parse(frame)", "decode(frame)"),
        microseconds(
            names, "subject.build(message)", "theirs.build(message)", "encode(message, version)"
        ),
    )


def microseconds(names: dict[str, Any], *calls: str) -> Costs:
    """The best round of each. Rounds take turns, so that other load falls on all alike."""
    timers = [timeit.Timer(call, globals=names) for call in calls]
    numbers = [round_size(timer) for timer in timers]
    best = [math.inf] * len(calls)
    for _ in range(ROUNDS):
        for index, (timer, number) in enumerate(zip(timers, numbers, strict=True)):
            best[index] = min(best[index], timer.timeit(number) / number * 1e6)
    interpreted_cost, compiled, ours = best
    return interpreted_cost, compiled, ours


def round_size(timer: timeit.Timer) -> int:
    number = 1
    while timer.timeit(number) < ROUND_SECONDS:
        number *= 2
    return number


if __name__ == "__main__":
    main()
