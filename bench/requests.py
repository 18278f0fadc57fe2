"""Requests without a network: from the frame to the parts of the reply. `python -m bench.requests`

Processor time of one request, the least over many short runs, so that it also means something on a
machine that does other things. What a socket costs comes on top: see bench/produce_fetch.py. As a
suite of `python -m bench` each round is a process of its own. With `--counting`: what a request
costs in a broker that counts (`serve --metrics`), with its connection, beside one that does not.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.pair import COMPILED, OURS, Run, library
from bench.raw_client import FETCH_VERSION, Produce, fetch_request, frame_of, make_batch
from bench.rows import Row
from kafkalite.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.background import InlineBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import RealDisk
from kafkalite.env.network import Part
from kafkalite.env.randomness import seeded_random
from kafkalite.handlers.kept_replies import KeptReplies
from kafkalite.protocol.messages import CreateTopicsRequest, MetadataRequest
from kafkalite.records.batch import Compression
from kafkalite.server.common import Common
from kafkalite.server.connection import Connection
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.counting import Counts
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.limits import Deadlines, Limits, RequestMemory
from kafkalite.server.terms import Terms
from tests.unit.handlers.whole_broker import SilentNetwork

SUITE = "requests"
ROOT = Path(__file__).parents[1]
TOPIC = "t"
BATCH_BYTES = 16_384
BATCHES = 2_048
RUNS, PER_RUN = 40, 500
COUNTING_ROUNDS = 5
FEW_PER_RUN = 10  # of what takes long
MANY_TOPICS = 1_000
METADATA_VERSION = 12
SIZE_BYTES = 4


class Asked:
    """A whole broker on a real disk, asked without a socket."""

    def __init__(self, path: str, counts: Counts | None = None) -> None:
        clock = ManualClock(time.time_ns() // 1_000_000)
        env = Env(clock, RealDisk(), InlineBackground(), seeded_random(1))
        config = BrokerConfig({"log.dirs": path})
        self.broker = Broker(env, SilentNetwork(), config, counts=counts)
        self.broker.start()
        self._connection = ConnectionInfo("PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 2))
        self._dispatcher: Dispatcher = self.broker.dispatcher
        topic = CreateTopicsRequest.Topic(name=TOPIC, num_partitions=1, replication_factor=1)
        self.ask(frame_of(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5, 1))

    def ask(self, frame: bytes | bytearray) -> object:
        return self._dispatcher.answer(memoryview(frame)[SIZE_BYTES:], self._connection)


class Sink:
    """A link to a peer who takes everything."""

    unsent_bytes = held_bytes = 0
    sent = 0

    def send(self, parts: list[Part]) -> None:
        self.sent += 1

    def pause(self) -> None: ...


class Connected:
    """A connection to a broker, without a socket."""

    def __init__(self, path: str, counts: Counts | None) -> None:
        asked = Asked(path, counts)
        env, limits = asked.broker.env, Limits()
        memory = RequestMemory(limits.max_queued_request_bytes)
        deadlines = Deadlines(env.clock, env.slices, limits, memory)
        watch = None if counts is None else counts.watch
        common = Common(limits, memory, deadlines, lambda act: None, watch=watch)
        info = ConnectionInfo("PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 2))
        sink: Any = Sink()
        self.sink = sink
        terms = Terms(asked.broker.dispatcher)
        self._connection = Connection(common, terms, sink, info, lambda _: None)

    def ask(self, frame: bytes | bytearray) -> None:
        size = len(frame)
        self._connection.buffer()[:size] = frame
        self._connection.received(size)


def counting_rows(counts: Counts | None) -> Iterator[tuple[str, float]]:
    """Microseconds of each request, by its connection, of one process."""
    with tempfile.TemporaryDirectory() as path:
        connected = Connected(path, counts)
        batch, records = make_batch(BATCH_BYTES, 1_000)
        fetched = frame_of(fetch_request(TOPIC, 0, 0, len(batch)), FETCH_VERSION, 0)
        for name, frame in (
            ("produce 16 KB", Produce(TOPIC, batch, records).frame), ("fetch 16 KB", fetched),
            ("produce 200 B", Produce(TOPIC, *make_batch(200, 100)).frame),
        ):  # fmt: skip
            connected.ask(frame)
            yield name, 1e6 * time_of(lambda _, frame=frame: connected.ask(frame))  # type: ignore[misc]
            assert connected.sink.sent >= RUNS * PER_RUN


def print_counting() -> None:
    """Processes by turns: what one has compiled for itself is not what the other needs."""
    best: dict[str, list[float]] = {}
    for number in range(2 * COUNTING_ROUNDS):
        side = number % 2
        call = [sys.executable, "-m", "bench.requests", "--counted", ("no", "yes")[side]]
        said = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        for line in said.splitlines():
            name, _, microseconds = line.rpartition(" ")
            row = best.setdefault(name, [float("inf")] * 2)
            row[side] = min(row[side], float(microseconds))
    for name, (off, on) in best.items():
        print(f"{name:15} {off:6.2f} us, counted {on:6.2f} us: {100 * (on / off - 1):+.1f} %")


def time_of(one: Callable[[int], object], count: int = PER_RUN) -> float:
    """Seconds of processor time, the least of many runs."""
    best = float("inf")
    for run in range(RUNS):
        started = time.thread_time_ns()
        for number in range(run * count, run * count + count):
            one(number)
        best = min(best, time.thread_time_ns() - started)
    return best / count / 1e9


def produce(
    asked: Asked,
    payload_bytes: int,
    record_bytes: int,
    compression: Compression = Compression.NONE,
) -> Callable[[int], object]:
    batch, records = make_batch(payload_bytes, record_bytes, compression)
    frame = bytearray(Produce(TOPIC, batch, records).frame)
    offset_at = frame.rindex(batch)

    def one(number: int) -> object:
        struct.pack_into(">q", frame, offset_at, 0)  # where the last one was put
        return asked.ask(frame)

    return one


def fetch(
    asked: Asked, batches: int, records: int, size: int, step: int
) -> Callable[[int], object]:
    positions = BATCHES // batches
    order = [number * step % positions for number in range(positions)]
    frames = [
        frame_of(fetch_request(TOPIC, 0, at * batches * records, batches * size), FETCH_VERSION, 0)
        for at in order
    ]
    return lambda number: asked.ask(frames[number % positions])


def metadata(asked: Asked, *, is_kept: bool) -> Callable[[int], object]:
    """All topics, of which there are many more from here on."""
    topics = [
        CreateTopicsRequest.Topic(name=f"many-{number}", num_partitions=10, replication_factor=1)
        for number in range(0 if is_kept else MANY_TOPICS)
    ]
    asked.ask(frame_of(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 5, 1))
    frame = frame_of(MetadataRequest(topics=None), METADATA_VERSION, 0)
    context = asked.broker.context

    def one(_: int) -> object:
        if not is_kept:
            context.kept_replies = KeptReplies()
        return asked.ask(frame)

    return one


def measure(run: Run) -> Iterator[Row]:
    """The table, of a process per round."""
    rows: dict[str, Row] = {}
    for number in range(run.rounds):
        run.tell(f"requests: round {number + 1} of {run.rounds}")
        for side in (OURS, COMPILED) if run.is_compiled else (OURS,):
            for name, microseconds in _table(side):
                row = rows.setdefault(name, Row(SUITE, name, "µs", is_rate=False))
                (row.kafkalite if side == OURS else row.compiled).append(microseconds)
    yield from (row for name, row in rows.items() if run.wants(name))


def _table(side: str) -> Iterator[tuple[str, float]]:
    with library(side):
        call = [sys.executable, "-m", "bench.requests"]
        said = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in said.splitlines():
        name, _, microseconds = line.removesuffix("us").strip().rpartition(" ")
        yield name.strip(), float(microseconds)


def main() -> None:
    arguments = argparse.ArgumentParser(description="Requests without a network.")
    arguments.add_argument("--profile", default="", help="profile the row with this in its name")
    arguments.add_argument("--counting", action="store_true", help="what it costs to count")
    arguments.add_argument("--counted", choices=("no", "yes"), help="one side of that")
    given = arguments.parse_args()
    wanted = given.profile
    if given.counting:
        print_counting()
        return
    if given.counted:
        counts = Counts(time.monotonic_ns) if given.counted == "yes" else None
        for name, microseconds in counting_rows(counts):
            print(f"{name} {microseconds:.3f}", flush=True)
        return
    with tempfile.TemporaryDirectory() as path:
        for name, one, count in _rows(Asked(path)):
            if wanted in name:
                one(0)
                print(f"{name:50} {time_of(one, count) * 1e6:7.1f} us", flush=True)
                if wanted:
                    _profile(one, count)


def _rows(asked: Asked) -> Iterator[tuple[str, Callable[[int], object], int]]:
    """Names, requests, and how many of them in a run."""
    batch, records = make_batch(BATCH_BYTES, 1_000)
    fill = produce(asked, BATCH_BYTES, 1_000)
    for number in range(BATCHES):
        fill(number)
    lz4 = Compression.LZ4
    yield "fetch 16 KB, one after the other", fetch(asked, 1, records, len(batch), 1), PER_RUN
    yield "fetch 16 KB, here and there", fetch(asked, 1, records, len(batch), 997), PER_RUN
    yield "fetch 1 MB, one after the other", fetch(asked, 64, records, len(batch), 1), PER_RUN
    yield "produce 200 B", produce(asked, 200, 100), PER_RUN
    yield "produce 16 KB", fill, PER_RUN
    yield "produce 64 KB", produce(asked, 65_536, 1_000), PER_RUN
    yield "produce 64 KB of small records", produce(asked, 65_536, 100), PER_RUN
    yield "produce 64 KB of small records, lz4", produce(asked, 65_536, 100, lz4), PER_RUN
    yield "produce 900 KB of small records", produce(asked, 900_000, 100), FEW_PER_RUN
    yield "produce 900 KB of small records, lz4", produce(asked, 900_000, 100, lz4), FEW_PER_RUN
    yield "metadata of 1,000 topics, after a change", metadata(asked, is_kept=False), FEW_PER_RUN
    yield "metadata of 1,000 topics", metadata(asked, is_kept=True), PER_RUN


def _profile(one: Callable[[int], object], count: int) -> None:
    profile = cProfile.Profile()
    profile.enable()
    for number in range(count * 10):
        one(number)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
