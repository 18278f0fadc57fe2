"""Nobody waits for anybody: one client asks for a lot, and another one's small requests are timed.

Each row is one large request or one pass of housekeeping at full size. Beside it a process of its
own asks for ApiVersions and produces single records all the time; what counts is the worst that it
had to wait, and its 99.9th percentile, from the large request's first byte until it is answered (or
the pass is over). Each broker runs alone, one after the other, through the same rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import pair
from bench.large import data, groups, topics, writing
from bench.large.stage import BYSTANDERS_TOPIC, ROWS, Sizes, Stage
from bench.pair import OURS, THEIRS, Run
from bench.raw_client import RawClient, make_topic
from bench.rows import Row
from tests.compat.brokers import BROKERS

SUITE = "fairness"
MODULES = (topics, data, groups, writing)  # which put their rows into the table
WORST_MS = 25.0
QUIET_SECONDS = 0.3  # before and after, so that what comes late is seen, too


@dataclass(slots=True)
class Waits:
    """What somebody else had to wait for each of its requests, in milliseconds."""

    all: list[float] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.all)

    @property
    def usual(self) -> float:
        return sorted(self.all)[int(len(self.all) * 0.999)]


def measure(run: Run) -> Iterator[Row]:
    sizes = Sizes.quick() if run.is_quick else Sizes()
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        found = {
            pair.NAMES[kind]: dict(_measure_alone(run, kind, Path(folder) / kind, sizes))
            for kind in BROKERS
        }
    for name, ours in found[OURS].items():
        theirs = found[THEIRS].get(name)
        if theirs is None:
            continue
        yield Row(SUITE, f"{name}: the worst wait", "ms", [ours.worst], [theirs.worst],
                  goal=1.0, limit=WORST_MS, is_rate=False)  # fmt: skip
        yield Row(SUITE, f"{name}: p99.9", "ms", [ours.usual], [theirs.usual], is_rate=False)


def _measure_alone(run: Run, kind: str, folder: Path, sizes: Sizes) -> Iterator[tuple[str, Waits]]:
    """All rows with one broker; where one could not be measured the next begin with another."""
    left = [name for name in ROWS if run.wants(name)]
    for start in range(len(ROWS)):
        if not left:
            return
        name = left[0]
        target = pair.start(kind, folder / str(start), **sizes.settings())
        try:
            client = RawClient(target.host, target.port)
            make_topic(client, BYSTANDERS_TOPIC)
            stage = Stage(target.host, target.port, client, sizes)
            while left:
                name = left.pop(0)
                run.tell(f"{kind}: {name}")
                yield name, _waits(stage, name)
        except AssertionError as reason:
            print(f"{kind}: {name} could not be measured: {reason}", file=sys.stderr, flush=True)
            left = [each for each in left if each != name]
        finally:
            target.broker.kill()


def _waits(stage: Stage, name: str) -> Waits:
    steps = ROWS[name](stage)
    next(steps)  # up to here nobody looks
    waits = Waits()
    with bystander(stage.host, stage.port, waits):
        next(steps, None)
    next(steps, None)
    stage.tidy_up()
    return waits


@contextmanager
def bystander(host: str, port: int, waits: Waits) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.bystander", host, str(port), BYSTANDERS_TOPIC]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(QUIET_SECONDS)
        began = time.monotonic()
        yield
        time.sleep(QUIET_SECONDS)
        said, _ = process.communicate("", timeout=60)
        waits.all = [took * 1000 for start, took in json.loads(said) if start + took >= began]
    finally:
        process.kill()
        process.wait()
