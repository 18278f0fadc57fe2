"""What it costs that things grow in number: topics, partitions, connections, the length of a log.

Each broker runs alone, one after the other, through the same steps. The goal for a request's cost
is kafkalite's own: with much of everything at most 1.3 times what it is with little. That cost is
the broker's processor time, which the rest of the machine disturbs least.
"""

from __future__ import annotations

import socket
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import pair
from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Fetch,
    Produce,
    RawClient,
    fetch_request,
    frame_of,
    make_batch,
    make_topic,
)
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from tests.compat.brokers import BROKERS

SUITE = "growth"
TIME_GOAL, MEMORY_GOAL, COST_LIMIT = 0.5, 0.3, 1.3
PARTITIONS = 10  # of each topic
TOPICS_PER_REQUEST = 100
METADATA_TIMES = 9
CREATE_VERSION, METADATA_VERSION = 7, 12
TIMEOUT_MS = 300_000
BATCH_BYTES = 16_384
COST_SECONDS = 2.0
MEGA = 1e6
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(slots=True, frozen=True)
class Sizes:
    topics: int  # of PARTITIONS each
    small_topics: int  # of one partition each
    connections: int
    gigabytes: float


@dataclass(slots=True, frozen=True)
class Step:
    """Topics that are made together."""

    prefix: str
    topics: int
    partitions: int

    def __str__(self) -> str:
        each = f"{self.partitions} partitions" if self.partitions > 1 else "one partition"
        return f"{self.topics:,} topics of {each}"


@dataclass(slots=True)
class Measured:
    """Of one broker, by the step's name."""

    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)  # a request's, in times of the first


def measure(run: Run) -> Iterator[Row]:
    sizes = Sizes(100, 500, 1_000, 0.2) if run.is_quick else Sizes(1_000, 5_000, 10_000, 10.0)
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        found = {
            pair.NAMES[kind]: _measure_alone(run, kind, Path(folder) / kind, sizes)
            for kind in BROKERS
        }
    ours, theirs = found[OURS], found[THEIRS]
    for name in ours.seconds:
        yield Row(SUITE, name, "s", [ours.seconds[name]], [theirs.seconds[name]],
                  goal=TIME_GOAL, is_rate=False)  # fmt: skip
    for name in ours.memory:
        yield Row(SUITE, name, "MB", [ours.memory[name]], [theirs.memory[name]],
                  goal=MEMORY_GOAL, is_rate=False)  # fmt: skip
    for name in ours.costs:
        yield Row(SUITE, name, "times the cost", [ours.costs[name]], [theirs.costs[name]],
                  limit=COST_LIMIT, is_rate=False)  # fmt: skip


def _measure_alone(run: Run, kind: str, folder: Path, sizes: Sizes) -> Measured:
    found = Measured()
    target = pair.start(kind, folder)
    try:
        client = RawClient(target.host, target.port)
        make_topic(client, "first")
        _cost(target, client, "first")  # warms up
        small = _cost(target, client, "first")
        _connections(run, target, client, sizes.connections, small, found)
        big = Step("scale", sizes.topics, PARTITIONS)
        run.tell(f"{kind}: {big}")
        _topics(target, client, big, 0, found)
        name = f"a produce of 16 KB beside {big}"
        found.costs[name] = _cost(target, client, "first") / small
        more = Step("small", sizes.small_topics, 1)
        run.tell(f"{kind}: {more}")
        _topics(target, client, more, sizes.topics, found)
        run.tell(f"{kind}: a log of {sizes.gigabytes:g} GB")
        _long_log(target, client, sizes.gigabytes, found)
    finally:
        target.broker.kill()
    return found


def _connections(
    run: Run, target: Target, client: RawClient, count: int, small: float, found: Measured
) -> None:
    """Alone with a topic: with thousands of partitions too, a broker's open files would not do."""
    run.tell(f"{target.name}: {count:,} connections")
    name = f"{count:,} idle connections"
    with ExitStack() as stack:
        started = time.perf_counter()
        _connect(stack, target, count)
        found.seconds[f"open {name}"] = time.perf_counter() - started
        found.memory[f"memory with {name}"] = _memory(target)
        found.costs[f"a produce of 16 KB beside {name}"] = _cost(target, client, "first") / small


def _topics(target: Target, client: RawClient, step: Step, before: int, found: Measured) -> None:
    """Makes them, after so many others, asks for all, and writes to each partition."""
    names = [f"{step.prefix}-{number}" for number in range(step.topics)]
    started = time.perf_counter()
    for start in range(0, step.topics, TOPICS_PER_REQUEST):
        _create(client, names[start : start + TOPICS_PER_REQUEST], step.partitions)
    _await_all(client, before + step.topics)
    found.seconds[f"create {step}"] = time.perf_counter() - started
    found.seconds[f"metadata after {step}"] = _metadata_seconds(client)
    started = time.perf_counter()
    for name in names:
        _produce_to_all(client, name, step.partitions)
    found.seconds[f"produce to {step}"] = time.perf_counter() - started
    found.memory[f"memory after {step}"] = _memory(target)


def _memory(target: Target) -> float:
    return target.memory() / MEGA


def _create(client: RawClient, names: list[str], partitions: int) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ],
        timeout_ms=TIMEOUT_MS,
    )
    answer = client.call(request, CREATE_VERSION, CreateTopicsResponse)
    refused = [topic for topic in answer.topics if topic.error_code]
    assert not refused, refused[:3]


def _await_all(client: RawClient, topics: int) -> None:
    """Asks until the answer names all of them with leaders: Apache Kafka learns of topics later."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        answer = client.call(MetadataRequest(topics=None), METADATA_VERSION, MetadataResponse)
        led = [topic for topic in answer.topics if all(p.leader_id >= 0 for p in topic.partitions)]
        if len(led) >= topics:
            return
    raise AssertionError(f"metadata of {topics} topics did not come")


def _metadata_seconds(client: RawClient) -> float:
    """From asking for all topics to the reply's last byte, the median of a few times. Decoding it
    is the client's affair, and takes longer."""
    times: list[float] = []
    for number in range(METADATA_TIMES):
        started = time.perf_counter()
        client.send(frame_of(MetadataRequest(topics=None), METADATA_VERSION, number))
        client.receive()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _produce_to_all(client: RawClient, topic: str, partitions: int) -> None:
    """A record to each partition of a topic, again for those that are not led yet."""
    batch, _ = make_batch(100, 100)
    waiting = list(range(partitions))
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while waiting and time.monotonic() < deadline:
        data = [ProduceRequest.PartitionData(index=index, records=batch) for index in waiting]
        request = ProduceRequest(
            acks=1, timeout_ms=TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicData(name=topic, partition_data=data)],
        )  # fmt: skip
        answer = client.call(request, PRODUCE_VERSION, ProduceResponse)
        answers = answer.responses[0].partition_responses
        waiting = [one.index for one in answers if one.error_code]
    assert not waiting, f"{topic} has no leader"


def _cost(target: Target, client: RawClient, topic: str) -> float:
    """The broker's processor time for a produce."""
    load = Produce(topic, *make_batch(BATCH_BYTES, 1_000))
    before = target.cpu_seconds()
    result = run_load(client, load, in_flight=5, seconds=COST_SECONDS)
    return (target.cpu_seconds() - before) / result.requests


def _connect(stack: ExitStack, target: Target, count: int) -> None:
    """Opens connections, each of which has one ApiVersions answered and then rests."""
    for number in range(count):
        # Several addresses of this machine, since one has not enough ports for all.
        source = (f"127.0.{1 + number // 20_000}.1", 0)
        link = socket.create_connection((target.host, target.port), 30, source)
        stack.enter_context(link)
        link.sendall(API_VERSIONS)
        assert link.recv(4, socket.MSG_WAITALL)


def _long_log(target: Target, client: RawClient, gigabytes: float, found: Measured) -> None:
    """The cost of producing to a log and of fetching its first batches, short and long."""
    make_topic(client, "long")
    batch, records = make_batch(BATCH_BYTES, 1_000)
    short = 64
    run_load(client, Produce("long", batch, records), in_flight=5, requests=short)
    fetching = Fetch("long", len(batch), records, 1, short)
    fetch_costs = [_fetch_cost(target, client, fetching)]
    produce_costs = [_cost(target, client, "long")]
    requests = int(gigabytes * 1e9 / 1e6)
    large, many = make_batch(1_000_000, 1_000)
    run_load(client, Produce("long", large, many), in_flight=5, requests=requests)
    fetch_costs.append(_fetch_cost(target, client, fetching))
    produce_costs.append(_cost(target, client, "long"))
    assert _log_start(client) == 0
    name = f"a log of {gigabytes:g} GB instead of 1 MB"
    found.costs[f"a produce to {name}"] = produce_costs[1] / produce_costs[0]
    found.costs[f"a fetch of 16 KB from {name}"] = fetch_costs[1] / fetch_costs[0]


def _fetch_cost(target: Target, client: RawClient, load: Fetch) -> float:
    run_load(client, load, in_flight=5, seconds=COST_SECONDS / 4)
    before = target.cpu_seconds()
    result = run_load(client, load, in_flight=5, seconds=COST_SECONDS)
    return (target.cpu_seconds() - before) / result.requests


def _log_start(client: RawClient) -> int:
    answer = client.call(fetch_request("long", 0, 0, 1), FETCH_VERSION, FetchResponse)
    return answer.responses[0].partitions[0].log_start_offset
