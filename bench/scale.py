"""Memory and time as things grow in number: topics, partitions, idle connections; both brokers.

    python -m bench.scale [--topics 5000] [--partitions 10000] [--connections 10000]

The brokers run one after the other, each alone on the machine, with the same steps: create topics
of one partition, one topic of many, ask for the metadata of all, open connections that then stay
idle. A row gives the time of a step and the resident memory after it.
"""

from __future__ import annotations

import argparse
import resource
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.raw_client import RawClient, decode_reply, frame_of
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.compat import brokers
from tests.compat.brokers import BROKERS, Broker

TOPICS_PER_REQUEST = 100
PARTITIONS_PER_REQUEST = 2_000
CREATE_VERSION, METADATA_VERSION = 7, 12
TIMEOUT_MS = 300_000
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(slots=True)
class Measured:
    """Seconds and resident bytes of each step, by its name."""

    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    def step(self, broker: Broker, name: str, work: Callable[[], None]) -> None:
        started = time.perf_counter()
        work()
        self.seconds[name] = time.perf_counter() - started
        self.memory[name] = psutil.Process(broker.pid).memory_info().rss


def ask(client: RawClient, request: object, version: int, response: type) -> object:
    client.send(frame_of(request, version, 0))
    return decode_reply(client.receive(), response, version)


def create(client: RawClient, topics: dict[str, int]) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=1)
            for name, count in topics.items()
        ],
        timeout_ms=TIMEOUT_MS,
    )
    answer = ask(client, request, CREATE_VERSION, CreateTopicsResponse)
    assert isinstance(answer, CreateTopicsResponse)
    refused = [topic for topic in answer.topics if topic.error_code]
    assert not refused, refused[:3]


def create_topics(client: RawClient, count: int) -> None:
    names = [f"scale-{number}" for number in range(count)]
    for start in track(range(0, count, TOPICS_PER_REQUEST), description="topics"):
        create(client, dict.fromkeys(names[start : start + TOPICS_PER_REQUEST], 1))


def create_partitions(client: RawClient, count: int) -> None:
    for start in track(range(0, count, PARTITIONS_PER_REQUEST), description="partitions"):
        create(client, {f"wide-{start}": min(PARTITIONS_PER_REQUEST, count - start)})


def metadata_of_all(client: RawClient, topics: int) -> None:
    """Asks until the answer names all of them: Apache Kafka's brokers learn of topics later."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        answer = ask(client, MetadataRequest(topics=None), METADATA_VERSION, MetadataResponse)
        assert isinstance(answer, MetadataResponse)
        if len(answer.topics) >= topics:
            return
    raise AssertionError(f"metadata of {topics} topics did not come")


def connect(stack: ExitStack, broker: Broker, count: int) -> None:
    """Opens connections, each of which has one ApiVersions answered and then rests."""
    for number in track(range(count), description="connections"):
        # Several addresses of this machine, since one has not enough ports for all.
        source = (f"127.0.{1 + number // 20_000}.1", 0)
        link = socket.create_connection((broker.host, broker.port), 30, source)
        stack.enter_context(link)
        link.sendall(API_VERSIONS)
        assert link.recv(4, socket.MSG_WAITALL)


def measure(kind: str, folder: Path, arguments: argparse.Namespace) -> Measured:
    measured = Measured()
    started = time.perf_counter()
    broker = brokers.start(kind, folder, {"num.partitions": "1"}, heap="1G")
    measured.seconds["start"] = time.perf_counter() - started
    measured.memory["start"] = psutil.Process(broker.pid).memory_info().rss
    try:
        with ExitStack() as stack:
            client = RawClient(broker.host, broker.port)
            steps: list[tuple[str, Callable[[], None]]] = [
                (f"{arguments.topics} topics", lambda: create_topics(client, arguments.topics)),
                (
                    f"{arguments.partitions} partitions",
                    lambda: create_partitions(client, arguments.partitions),
                ),
                ("metadata of all", lambda: metadata_of_all(client, arguments.topics)),
                (
                    f"{arguments.connections} connections",
                    lambda: connect(stack, broker, arguments.connections),
                ),
            ]
            for name, work in steps:
                measured.step(broker, name, work)
    finally:
        broker.kill()
    return measured


def show(found: dict[str, Measured]) -> None:
    ours, theirs = (found[kind] for kind in BROKERS)
    table = Table(title="growth, one broker at a time")
    for column in ("step", "kafkalite s", "Kafka s", "ratio", "kafkalite MB", "Kafka MB", "ratio"):
        table.add_column(column, justify="left" if column == "step" else "right")
    for name in ours.seconds:
        table.add_row(
            name,
            f"{ours.seconds[name]:.2f}",
            f"{theirs.seconds[name]:.2f}",
            f"{ours.seconds[name] / theirs.seconds[name]:.2f}",
            f"{ours.memory[name] / 1e6:.0f}",
            f"{theirs.memory[name] / 1e6:.0f}",
            f"{ours.memory[name] / theirs.memory[name]:.2f}",
        )
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=5_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=10_000)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="kafkalite-scale-") as folder:
        show({kind: measure(kind, Path(folder) / kind, arguments) for kind in BROKERS})


if __name__ == "__main__":
    main()
