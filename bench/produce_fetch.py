"""Produce and fetch by a raw client: rates, latencies, and processor time per gigabyte.

Each round makes a topic of its own, warms up, and measures. The load generator's own ceiling is
measured in the same run against a server that does nothing, and the floor of a produce against one
that only receives, computes the checksum and writes (see null_server.py).
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench import null_server
from bench.pair import COMPILED, OURS, THEIRS, Run, Target
from bench.raw_client import Fetch, Produce, RawClient, Result, delete_topic, make_batch, make_topic
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.records.batch import HEADER

SUITE = "raw"
WARM_UP_SECONDS = 0.25
BOUND_ROUNDS = 3  # for ceiling and floor
FETCHED_BATCH_BYTES = 16_384
FETCHED_TOPIC_BATCHES = 2_048
CPU_GOAL, FLOOR_GOAL = 0.4, 2.0


@dataclass(slots=True, frozen=True)
class Case:
    """One load."""

    kind: str
    payload_bytes: int
    in_flight: int
    goal: float
    record_bytes: int = 1_000
    is_core: bool = True

    @property
    def name(self) -> str:
        return f"{self.kind} {_size(self.payload_bytes)}"

    @property
    def is_produce(self) -> bool:
        return self.kind == "produce"


CASES = (
    Case("produce", 200, 1, 1.3, 100),
    Case("produce", 16_384, 5, 3.0),
    Case("produce", 65_536, 5, 3.0),
    Case("produce", 500_000, 5, 2.0),
    Case("fetch", 16_384, 5, 2.5),
    Case("fetch", 131_072, 5, 1.4),
    Case("fetch", 1_048_576, 5, 1.0),
)


class Server(Protocol):
    """What a load goes to."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    def cpu_seconds(self) -> float: ...


@dataclass(slots=True)
class Sample:
    """What one round came to."""

    result: Result
    cpu_seconds: float

    @property
    def cpu_per_gb(self) -> float:
        return self.cpu_seconds / (self.result.payload_bytes / 1e9)


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    for case in CASES:
        if run.wants(case.name):
            yield from _measure_case(run, targets, case)


def _measure_case(run: Run, targets: list[Target], case: Case) -> Iterator[Row]:
    seconds = 0.4 if run.is_quick else 1.5
    found = run.turns(targets, lambda target: _sample(target, case, seconds), case.name)
    ceiling = _best_against_nobody(case, "produce" if case.is_produce else "fetch", seconds)
    floor = _best_against_nobody(case, "floor", seconds) if case.is_produce else None

    def row(name: str, unit: str, value: str, **rest: object) -> Row:
        ours, theirs, compiled = (
            [_value(sample, value) for sample in found.get(side, ())]
            for side in (OURS, THEIRS, COMPILED)
        )
        label = f"{case.name}{name}"
        return Row(SUITE, label, unit, ours, theirs, compiled, **rest)  # type: ignore[arg-type]

    yield row(
        "", "requests/s", "rate", goal=case.goal, ceiling=ceiling.result.per_second,
        floor=floor.result.per_second if floor else None,
    )  # fmt: skip
    if case.in_flight == 1:
        yield row(", p50", "ms", "p50", is_rate=False)
        yield row(", p99", "ms", "p99", is_rate=False, goal=1.0)
        return
    yield row(
        ", processor", "CPU s/GB", "cpu", is_rate=False,
        goal=CPU_GOAL if case.is_produce else None,
        floor=floor.cpu_per_gb if floor else None,
        floor_goal=FLOOR_GOAL if floor else None,
    )  # fmt: skip


def _value(sample: Sample, what: str) -> float:
    if what == "rate":
        return sample.result.per_second
    if what == "cpu":
        return sample.cpu_per_gb
    return sample.result.latency_ms({"p50": 0.5, "p99": 0.99}[what])


def _sample(target: Target, case: Case, seconds: float) -> Sample:
    client = RawClient(target.host, target.port)
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    make_topic(client, topic)
    try:
        if not case.is_produce:
            _fill(client, topic, case)
        # What the round before wrote goes to the disk now, not at the cost of this one.
        os.sync()
        return _under_load(target, client, topic, case, seconds)
    finally:
        delete_topic(client, topic)
        client.close()


def _under_load(
    server: Server, client: RawClient, topic: str, case: Case, seconds: float
) -> Sample:
    load = _load(topic, case)
    run_load(client, load, in_flight=case.in_flight, seconds=WARM_UP_SECONDS)
    before = server.cpu_seconds()
    result = run_load(client, load, in_flight=case.in_flight, seconds=seconds)
    return Sample(result, server.cpu_seconds() - before)


def _load(topic: str, case: Case) -> Produce | Fetch:
    if case.is_produce:
        return Produce(topic, *make_batch(case.payload_bytes, case.record_bytes))
    batch, records = make_batch(FETCHED_BATCH_BYTES, case.record_bytes)
    return Fetch(topic, len(batch), records, _batches(case), FETCHED_TOPIC_BATCHES)


def _batches(case: Case) -> int:
    return max(1, case.payload_bytes // FETCHED_BATCH_BYTES)


def _fill(client: RawClient, topic: str, case: Case) -> None:
    batch, records = make_batch(FETCHED_BATCH_BYTES, case.record_bytes)
    run_load(client, Produce(topic, batch, records), in_flight=5, requests=FETCHED_TOPIC_BATCHES)


def _best_against_nobody(case: Case, mode: str, seconds: float) -> Sample:
    """What can be reached is what was reached once: of few short rounds some are disturbed."""
    samples = [_against_nobody(case, mode, seconds) for _ in range(BOUND_ROUNDS)]
    return max(samples, key=lambda sample: sample.result.per_second)


def _against_nobody(case: Case, mode: str, seconds: float) -> Sample:
    """The same load against a server that does as little as its mode allows."""
    topic = "bench-12345678"
    with tempfile.NamedTemporaryFile(prefix="kafkalite-bench-") as file:
        if case.is_produce:
            batch, records = make_batch(case.payload_bytes, case.record_bytes)
            piece = len(batch)
        else:
            piece, records = _write_topic(Path(file.name), case)
        with null_server.serving(mode, topic, piece, records, file.name) as server:
            client = RawClient(server.host, server.port)
            try:
                return _under_load(server, client, topic, case, seconds)
            finally:
                client.close()


def _write_topic(path: Path, case: Case) -> tuple[int, int]:
    """The batches of a topic as a broker would have them on its disk."""
    batch, records = make_batch(FETCHED_BATCH_BYTES, case.record_bytes)
    fields = HEADER.unpack_from(batch)
    data = bytearray(batch * FETCHED_TOPIC_BATCHES)
    for number in range(FETCHED_TOPIC_BATCHES):
        HEADER.pack_into(data, number * len(batch), number * records, *fields[1:])
    path.write_bytes(data)
    return len(batch) * _batches(case), records


def _size(count: int) -> str:
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count // 1000} KB" if count >= 1000 else f"{count} B"
