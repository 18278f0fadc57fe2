"""The command line: what a start costs, and records in and out beside kcat, a program in C.

kcat stands in the place of Apache Kafka in these rows; both ask the same kafkalite broker, and each
sample is a process from its start to its end, a file at the other end of its pipe.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import pair
from bench.pair import OURS, THEIRS, Run
from bench.raw_client import RawClient, make_topic
from bench.rows import Row
from tests.compat import client_builds
from tests.compat.brokers import KAFKALITE

SUITE = "command-line"
GOAL = 0.5
START_LIMIT_MS = 150.0
SIZES = {"100 B": (100, 1_000_000), "1 KB": (1_000, 300_000)}
STARTS = (("--version",), ("--help",), ("topic", "--help"), ("consume", "--help"))
WAIT_SECONDS = 300
QUICK_SHARE = 0.2

Command = list[str]


@dataclass(slots=True)
class Programs:
    """By whose they are: ours, and kcat."""

    bootstrap: str
    around: dict[str, str]
    kcat: Command

    def producing(self, side: str, topic: str) -> Command:
        if side == OURS:
            return [*_OURS, "produce", "-b", self.bootstrap, topic]
        return [*self.kcat, "-P", "-b", self.bootstrap, "-t", topic, "-X", "acks=all"]

    def consuming(self, side: str, topic: str) -> Command:
        if side == OURS:
            return [*_OURS, "consume", "-b", self.bootstrap, topic]
        return [*self.kcat, "-C", "-b", self.bootstrap, "-t", topic, "-e", "-q"]

    def seconds(self, command: Command, source: Path | None) -> float:
        began = time.perf_counter()
        with open(source or os.devnull, "rb") as given, tempfile.TemporaryFile() as out:
            subprocess.run(
                command, stdin=given, stdout=out, check=True, timeout=WAIT_SECONDS,
                env={**os.environ, **self.around},
            )  # fmt: skip
        return time.perf_counter() - began


_OURS = [sys.executable, "-m", "kafkalite"]


def measure(run: Run) -> Iterator[Row]:
    yield from _starts(run)
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        target = pair.start(KAFKALITE, Path(folder) / "broker")
        try:
            kcat, around = client_builds.kcat()
            programs = Programs(target.bootstrap, around, kcat)
            for name, (size, count) in SIZES.items():
                if run.wants(f"produce {name}") or run.wants(f"consume {name}"):
                    lines = int(count * (QUICK_SHARE if run.is_quick else 1))
                    yield from _records(run, programs, Path(folder), name, size, lines)
        finally:
            target.broker.stop()


def _starts(run: Run) -> Iterator[Row]:
    for words in STARTS:
        name = f"kafkalite {' '.join(words)}"
        if not run.wants(name):
            continue
        run.tell(name)
        costs = []
        for _ in range(5 if run.is_quick else 21):
            began = time.perf_counter()
            subprocess.run([*_OURS, *words], check=True, capture_output=True, timeout=WAIT_SECONDS)
            costs.append((time.perf_counter() - began) * 1000)
        yield Row(SUITE, name, "ms", costs, limit=START_LIMIT_MS, is_rate=False)


def _records(
    run: Run, programs: Programs, folder: Path, name: str, size: int, count: int
) -> Iterator[Row]:
    source = folder / "lines"
    with open(source, "wb") as file:
        file.writelines(b"%0*d\n" % (size, number) for number in range(count))
    rates: dict[tuple[str, str], list[float]] = {}
    for number in range(1 if run.is_quick else run.rounds):
        run.tell(f"{name}: round {number + 1}")
        for side in (OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS):
            topic = _new_topic(programs.bootstrap)
            taken = programs.seconds(programs.producing(side, topic), source)
            rates.setdefault(("produce", side), []).append(count / taken)
            taken = programs.seconds(programs.consuming(side, topic), None)
            rates.setdefault(("consume", side), []).append(count / taken)
    for what in ("produce", "consume"):
        yield Row(
            SUITE, f"{what} {name}, beside kcat", "records/s", rates[what, OURS],
            rates[what, THEIRS], goal=GOAL,
        )  # fmt: skip


def _new_topic(bootstrap: str) -> str:
    topic = f"command-line-{uuid.uuid4().hex[:8]}"
    host, _, port = bootstrap.rpartition(":")
    client = RawClient(host, int(port))
    make_topic(client, topic, 1)
    client.close()
    return topic
