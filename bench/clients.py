"""Stock clients end to end: produce, consume, and both at once, with records of 100 B and 1 KB.

Every load is a process of its own that says how fast it was (client_loads.py; for Java, the
performance tools that Apache Kafka ships). Beside the rate stands what the broker's processor time
came to per million records: where the client is what limits, the brokers differ only in that.
"""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import RawClient, delete_topic, make_topic
from bench.rows import Row
from kafkalite.jvm import jars, java

SUITE = "clients"
JAVA = "Java"
# How many records of 100 B each client handles in a round; of 1 KB, less by this factor.
RECORDS = {"kafka-python": 40_000, "aiokafka": 40_000, "confluent-kafka": 500_000, JAVA: 1_000_000}
LARGE_SHARE = 0.3
SIZES = {"100 B": 100, "1 KB": 1_000}
MODES = ("produce", "consume", "both")
RATE_GOAL, CPU_GOAL = 1.0, 0.7
WAIT_SECONDS = 180

_SENT = re.compile(r"^\d+ records sent, ([\d.]+) records/sec.* 99.9th", re.MULTILINE)


@dataclass(slots=True, frozen=True)
class Case:
    """One row and its processor time."""

    client: str
    mode: str
    size: str

    @property
    def name(self) -> str:
        return f"{self.client} {self.mode} {self.size}"

    @property
    def records(self) -> int:
        count = RECORDS[self.client]
        return count if self.size == "100 B" else int(count * LARGE_SHARE)


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    for client in RECORDS:
        for size in SIZES:
            for mode in MODES:
                case = Case(client, mode, size)
                if run.wants(case.name):
                    yield from _measure_case(run, targets, case)


def _measure_case(run: Run, targets: list[Target], case: Case) -> Iterator[Row]:
    found = run.turns(targets, lambda target: _sample(target, case), case.name)
    ours, theirs = ([rate for rate, _ in found[side]] for side in (OURS, THEIRS))
    yield Row(SUITE, case.name, "records/s", ours, theirs, goal=RATE_GOAL)
    ours, theirs = ([cost for _, cost in found[side]] for side in (OURS, THEIRS))
    name = f"{case.name}, processor"
    yield Row(SUITE, name, "CPU s/M records", ours, theirs, goal=CPU_GOAL, is_rate=False)


def _sample(target: Target, case: Case) -> tuple[float, float]:
    """Records a second, and seconds of the broker's processor time per million records."""
    topic = f"clients-{uuid.uuid4().hex[:8]}"
    link = RawClient(target.host, target.port)
    make_topic(link, topic)
    if case.mode == "consume":
        _fill(target, topic, case)
    before = target.cpu_seconds()
    modes = ("consume", "produce") if case.mode == "both" else (case.mode,)
    running = [_start(target, topic, case, mode) for mode in modes]
    rates = [_rate(process, mode) for process, mode in zip(running, modes, strict=True)]
    cost = (target.cpu_seconds() - before) / case.records * 1e6
    delete_topic(link, topic)
    link.close()
    return min(rates), cost


def _fill(target: Target, topic: str, case: Case) -> None:
    filler = Case("confluent-kafka", "produce", case.size)
    count = case.records + 1
    command = _python(target, topic, filler, "produce", count)
    subprocess.run(command, check=True, capture_output=True, timeout=WAIT_SECONDS)


def _start(target: Target, topic: str, case: Case, mode: str) -> subprocess.Popen[str]:
    command = (
        _java(target, topic, case, mode)
        if case.client == JAVA
        else _python(target, topic, case, mode, case.records)
    )
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _rate(process: subprocess.Popen[str], mode: str) -> float:
    out, errors = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, out + errors
    if "-m" in process.args:  # type: ignore[operator]
        return float(out)
    if mode == "produce":
        found = _SENT.search(out)
        assert found is not None, out + errors
        return float(found[1])
    # …, records per second of fetching: from the group's being assigned on
    return float(out.strip().splitlines()[-1].split(",")[-1])


def _python(target: Target, topic: str, case: Case, mode: str, records: int) -> list[str]:
    command = [sys.executable, "-m", "bench.client_loads", case.client, mode]
    return [*command, target.bootstrap, topic, str(records), str(SIZES[case.size])]


def _java(target: Target, topic: str, case: Case, mode: str) -> list[str]:
    records = str(case.records)
    if mode == "produce":
        tool = ["ProducerPerformance", "--topic", topic, "--num-records", records]
        tool += ["--record-size", str(SIZES[case.size]), "--throughput", "-1"]
        tool += ["--producer-props", f"bootstrap.servers={target.bootstrap}"]
    else:
        tool = ["ConsumerPerformance", "--topic", topic, "--num-records", records]
        tool += ["--bootstrap-server", target.bootstrap, "--group", f"group-{topic}"]
        tool += ["--timeout", str(WAIT_SECONDS * 1000)]
    class_path = jars.class_path("reference")
    return java.command(class_path, f"org.apache.kafka.tools.{tool[0]}", *tool[1:], heap="512M")
