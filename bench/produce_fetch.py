"""Produce and fetch by a raw client against several brokers, in turns within one run.

    python -m bench.produce_fetch kafkalite=127.0.0.1:9092:PID kafka=127.0.0.1:9192:PID --rounds 5
    python -m bench.produce_fetch --start            # starts both brokers itself, side by side

Each row is the median over the rounds, which alternate between the brokers; the ratio is the first
broker's requests per second to this one's. With PIDs the processor time of each broker per gigabyte
is measured too. `client` is how busy the load generator was: near 100 % it is the limit, not the
broker. Figures of one machine in one run; only the ratios are worth comparing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.raw_client import Fetch, Produce, RawClient, Result, delete_topic, make_batch, make_topic
from bench.raw_client import run as run_load
from tests.compat import brokers
from tests.compat.brokers import BROKERS, Broker

WARM_UP_SECONDS = 0.3
FETCHED_BATCH_BYTES = 16_384
FETCHED_TOPIC_BATCHES = 2_048


@dataclass(slots=True)
class Target:
    """A broker that is measured."""

    name: str
    host: str
    port: int
    pid: int | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        name, _, address = text.partition("=")
        host, port, *pid = address.split(":")
        return cls(name, host, int(port), int(pid[0]) if pid else None)

    def cpu_seconds(self) -> float:
        if self.pid is None:
            return 0.0
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@dataclass(slots=True, frozen=True)
class Case:
    """One row."""

    kind: str
    payload_bytes: int
    in_flight: int
    record_bytes: int = 1_000

    @property
    def name(self) -> str:
        return f"{self.kind} {_size(self.payload_bytes)} x{self.in_flight}"


@dataclass(slots=True)
class Row:
    """What one broker came to in one case, a value per round."""

    per_second: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    cpu_per_gb: list[float] = field(default_factory=list)
    client_busy: list[float] = field(default_factory=list)

    def add(self, result: Result, cpu_seconds: float, client_seconds: float) -> None:
        self.per_second.append(result.per_second)
        self.megabytes.append(result.megabytes_per_second)
        self.p50_ms.append(result.latency_ms(0.5))
        self.p99_ms.append(result.latency_ms(0.99))
        self.cpu_per_gb.append(cpu_seconds / (result.payload_bytes / 1e9))
        self.client_busy.append(client_seconds / result.seconds)


CASES = (
    Case("produce", 200, 1, 100),
    Case("produce", 16_384, 5),
    Case("produce", 65_536, 5),
    Case("produce", 500_000, 5),
    Case("fetch", 16_384, 5),
    Case("fetch", 131_072, 5),
    Case("fetch", 1_048_576, 5),
)


def main() -> None:
    arguments = _arguments()
    with _targets(arguments) as targets:
        rows = measure(targets, arguments.rounds, arguments.seconds, arguments.only)
    print_table(targets, rows)


def measure(
    targets: list[Target], rounds: int, seconds: float, only: str = ""
) -> dict[tuple[str, str], Row]:
    """Rows by case and broker."""
    rows: dict[tuple[str, str], Row] = {}
    for case in (case for case in CASES if only in case.name):
        for _ in range(rounds):
            for target in targets:
                row = rows.setdefault((case.name, target.name), Row())
                row.add(*_measure_once(target, case, seconds))
    return rows


def _measure_once(target: Target, case: Case, seconds: float) -> tuple[Result, float, float]:
    """The result, and the processor time that the broker and the client took for it."""
    client = RawClient(target.host, target.port)
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    make_topic(client, topic)
    try:
        load = _load(client, topic, case)
        run_load(client, load, in_flight=case.in_flight, seconds=WARM_UP_SECONDS)
        before, client_before = target.cpu_seconds(), time.process_time()
        result = run_load(client, load, in_flight=case.in_flight, seconds=seconds)
        return result, target.cpu_seconds() - before, time.process_time() - client_before
    finally:
        delete_topic(client, topic)
        client.close()


def _load(client: RawClient, topic: str, case: Case) -> Produce | Fetch:
    if case.kind == "produce":
        return Produce(topic, *make_batch(case.payload_bytes, case.record_bytes))
    batch, records = make_batch(FETCHED_BATCH_BYTES, case.record_bytes)
    run_load(client, Produce(topic, batch, records), in_flight=5, requests=FETCHED_TOPIC_BATCHES)
    batches = max(1, case.payload_bytes // FETCHED_BATCH_BYTES)
    return Fetch(topic, len(batch), records, batches, FETCHED_TOPIC_BATCHES)


def print_table(targets: list[Target], rows: dict[tuple[str, str], Row]) -> None:
    median = statistics.median
    print(f"{'case':22} {'broker':12} {'/s':>8} {'MB/s':>7} {'p50 ms':>7} {'p99 ms':>7} "
          f"{'CPU s/GB':>8} {'client':>6} spread  ratio")
    for (case, name), row in rows.items():
        first = rows[case, targets[0].name]
        ratio = median(first.per_second) / median(row.per_second)
        compared = "" if row is first else f"{ratio:.2f}"
        spread = (max(row.per_second) - min(row.per_second)) / median(row.per_second)
        print(
            f"{case:22} {name:12} {median(row.per_second):8.0f} {median(row.megabytes):7.0f} "
            f"{median(row.p50_ms):7.3f} {median(row.p99_ms):7.3f} {median(row.cpu_per_gb):8.2f} "
            f"{median(row.client_busy):6.0%} {spread:6.0%}  {compared}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Produce and fetch by a raw client.")
    parser.add_argument("targets", nargs="*", help="NAME=HOST:PORT[:PID]")
    parser.add_argument("--start", action="store_true", help="start both brokers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="only cases whose name has this in it")
    return parser.parse_args()


@contextmanager
def _targets(arguments: argparse.Namespace) -> Iterator[list[Target]]:
    with tempfile.TemporaryDirectory() as folder:
        started: list[Broker] = []
        try:
            kinds = BROKERS if arguments.start else ()
            started += (brokers.start(kind, Path(folder) / kind, heap="1G") for kind in kinds)
            found = [Target(each.kind, each.host, each.port, each.pid) for each in started]
            yield found + [Target.parse(text) for text in arguments.targets]
        finally:
            for broker in started:
                broker.stop()


def _size(count: int) -> str:
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count // 1000} kB" if count >= 1000 else f"{count} B"


if __name__ == "__main__":
    main()
