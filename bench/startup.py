"""What a start costs, and what a broker holds: until the first acknowledged record, idle, loaded.

A start is one on a data directory that has been formatted and used before, and ends when a record
has been acknowledged in a topic that the same client just created. The last rows are kafkalite's
alone: importing it and making the codecs of a first produce and consume, in a process of its own.
`kept` finds the code that an earlier run left behind, `packaged` compiles the source that a wheel
carries, as the first start after an installation does, and `generated` goes the way over construct,
as the first start in a source tree.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bench import pair
from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import Produce, RawClient, make_batch, make_topic
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.protocol import wheel_building
from tests.compat.brokers import BROKERS

T = TypeVar("T")
SUITE = "start"
GOAL = 0.15
CODEC_LIMIT_MS = 60.0
CODEC_RUNS = 11
IDLE_SECONDS = 3.0
LOAD_BATCH_BYTES = 65_536
MEGA = 1e6

# The APIs that a producer and a consumer of a group go through until records flow.
CODE = """
import time
start = time.perf_counter(), time.process_time()
import kafkalite
from kafkalite.protocol import codec, code_cache, wheel_sources
from kafkalite.protocol.messages import message_class
if {way!r} != "kept":
    code_cache.load = lambda *_: None
    code_cache.store = lambda *_: None
if {way!r} == "packaged":
    wheel_sources._HERE = wheel_sources.Path({folder!r})
for api, version in (
    ("ApiVersions", 4), ("Metadata", 12), ("InitProducerId", 4), ("Produce", 9), ("Fetch", 12),
    ("FindCoordinator", 4), ("JoinGroup", 7), ("SyncGroup", 5), ("Heartbeat", 4),
    ("OffsetFetch", 8),
):
    codec.decoder(message_class(api + "Request"), version)
    codec.encoder(message_class(api + "Response"), version)
codec.prefix_decoder(message_class("RequestHeader"), 2)
codec.encoder(message_class("ResponseHeader"), 1)
print((time.process_time() - start[1]) * 1000)
"""


def measure(run: Run) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        yield from _brokers(run, Path(folder))
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        wheel_building.write_all(Path(folder))
        for way in ("kept", "packaged", "generated"):
            _codecs(way, folder)
            costs = [_codecs(way, folder) for _ in range(3 if run.is_quick else CODEC_RUNS)]
            yield Row(
                SUITE, f"codecs of a first produce, {way}", "CPU ms", costs,
                limit=CODEC_LIMIT_MS, is_rate=False,
            )  # fmt: skip


def _brokers(run: Run, folder: Path) -> Iterator[Row]:
    for kind in BROKERS:  # formats, and leaves internal topics behind
        with _running(kind, folder) as target:
            _acknowledge(target)
    starts: dict[str, list[float]] = {OURS: [], THEIRS: []}
    idle: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for number in range(1 if run.is_quick else run.rounds):
        run.tell(f"start to first acknowledgement: {number + 1}")
        for kind in BROKERS:
            began = time.perf_counter()
            with _running(kind, folder) as target:
                _acknowledge(target)
                starts[target.name].append(time.perf_counter() - began)
                time.sleep(IDLE_SECONDS)
                idle[target.name].append(target.memory() / MEGA)
    yield _row("start to first acknowledged record", "s", starts)
    yield _row("memory when idle", "MB", idle)
    gigabytes = 0.5 if run.is_quick else 10.0
    loaded: dict[str, list[float]] = {}
    for kind in BROKERS:
        run.tell(f"memory after {gigabytes:g} GB: {kind}")
        with _running(kind, folder) as target:
            _load(target, gigabytes)
            loaded[target.name] = [target.memory() / MEGA]
    yield _row(f"memory after {gigabytes:g} GB were produced", "MB", loaded)


def _row(name: str, unit: str, found: dict[str, list[float]]) -> Row:
    return Row(SUITE, name, unit, found[OURS], found[THEIRS], goal=GOAL, is_rate=False)


@contextmanager
def _running(kind: str, folder: Path) -> Iterator[Target]:
    target = pair.start(kind, folder / kind)
    try:
        yield target
    finally:
        target.broker.stop()


def _with_topic(target: Target, use: Callable[[RawClient, str], T], **configs: str) -> T:
    client = RawClient(target.host, target.port)
    topic = f"start-{uuid.uuid4().hex[:8]}"
    make_topic(client, topic, 1, **configs)
    try:
        return use(client, topic)
    finally:
        client.close()


def _acknowledge(target: Target) -> None:
    load = make_batch(100, 100)
    _with_topic(target, lambda client, topic: run_load(
        client, Produce(topic, *load), in_flight=1, requests=1
    ))  # fmt: skip


def _load(target: Target, gigabytes: float) -> None:
    """Through a topic that keeps a gigabyte, so that the disk need not hold it all."""
    load = make_batch(LOAD_BATCH_BYTES, 1_000)
    requests = int(gigabytes * 1e9 / LOAD_BATCH_BYTES)
    _with_topic(
        target,
        lambda client, topic: run_load(
            client, Produce(topic, *load), in_flight=5, requests=requests
        ),
        retention_bytes=str(10**9),
        segment_bytes=str(10**8),
    )


def _codecs(way: str, folder: str) -> float:
    command = [sys.executable, "-c", CODE.format(way=way, folder=folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)
