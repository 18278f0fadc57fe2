"""What a test suite pays for its broker: until the first record, per test, and between tests.

The rows in milliseconds are of a broker in the process of the test, after its imports and one
start. Beside it stands Apache Kafka from its jars, as a suite without containers has it: a process
with a formatted directory. The last rows run pytest: a hundred tests with a broker of their own
each, less what a hundred tests without one take.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer

from bench import pair
from bench.pair import Run
from bench.raw_client import Produce, RawClient, make_batch, make_topic
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.brokers import APACHE_KAFKA

SUITE = "stand-in"
FIRST_RECORD_LIMIT_MS = 10.0
BETWEEN_LIMIT_MS = 5.0
SUITE_LIMIT_S = 3.0
TESTS = 100
RECORDS = 10_000

WITH = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_has_a_broker_of_its_own(fresh_kafkalite, number):
    assert fresh_kafkalite.port
"""
WITHOUT = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_has_none(number):
    assert number >= 0
"""


def measure(run: Run) -> Iterator[Row]:
    rounds = 3 if run.is_quick else 3 * run.rounds
    yield from _first_record(run, rounds)
    yield from _between_tests(run, rounds)
    yield _hundred_tests(run)


# --- until the first record -----------------------------------------------------------------------


def _first_record(run: Run, rounds: int) -> Iterator[Row]:
    run.tell("a broker and its first record")
    _embedded()  # codecs and imports are made once in a process
    ours = [_embedded() for _ in range(rounds)]
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        starts = range(1 if run.is_quick else 3)
        theirs = [_of_jars(Path(folder) / str(number)) for number in starts]
    yield Row(
        SUITE, "a new broker and its first acknowledged record", "ms", ours, theirs,
        limit=FIRST_RECORD_LIMIT_MS, is_rate=False,
    )  # fmt: skip


def _embedded() -> float:
    began = time.perf_counter()
    with EmbeddedKafka() as kafka:
        _acknowledge("127.0.0.1", kafka.port)
        return _ms_since(began)


def _of_jars(folder: Path) -> float:
    began = time.perf_counter()
    target = pair.start(APACHE_KAFKA, folder)
    try:
        _acknowledge(target.host, target.port)
        return _ms_since(began)
    finally:
        target.broker.stop()


def _acknowledge(host: str, port: int) -> None:
    client = RawClient(host, port)
    try:
        make_topic(client, "first", 1)
        run_load(client, Produce("first", *make_batch(100, 1)), in_flight=1, requests=1)
    finally:
        client.close()


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


# --- between tests --------------------------------------------------------------------------------


def _between_tests(run: Run, rounds: int) -> Iterator[Row]:
    run.tell("reset, snapshot and restore")
    with _used() as kafka:
        full = kafka.snapshot()
        found: dict[str, list[float]] = {"snapshot": [], "restore": [], "reset": []}
        for _ in range(rounds):
            found["snapshot"].append(_timed(kafka.snapshot))
            found["reset"].append(_timed(kafka.reset))
            found["restore"].append(_timed(lambda: kafka.restore(full)))
    for name, costs in found.items():
        yield Row(
            SUITE, f"{name} beside a producer and a consumer, {RECORDS:,} records", "ms", costs,
            limit=BETWEEN_LIMIT_MS, is_rate=False,
        )  # fmt: skip


@contextmanager
def _used() -> Iterator[EmbeddedKafka]:
    """A broker with records, to which a producer and a consumer of a group are connected."""
    with EmbeddedKafka(topics={"orders": 3}) as kafka:
        config = kafka.client_config("kafka-python")
        producer = KafkaProducer(**config)
        consumer = KafkaConsumer("orders", group_id="clerks", **config)
        try:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number)
            producer.flush()
            consumer.poll(1_000)
            yield kafka
        finally:
            consumer.close()
            producer.close()


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return _ms_since(began)


# --- a hundred tests ------------------------------------------------------------------------------


def _hundred_tests(run: Run) -> Row:
    run.tell(f"{TESTS} tests with a broker of their own")
    rounds = 1 if run.is_quick else 3
    costs = [_suite(WITH) - _suite(WITHOUT) for _ in range(rounds)]
    return Row(
        SUITE, f"{TESTS} tests with a broker of their own each", "s", costs,
        limit=SUITE_LIMIT_S, is_rate=False,
    )  # fmt: skip


def _suite(text: str) -> float:
    """Seconds of a run of pytest over a module in a folder of its own, which knows the plugin."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        module = Path(folder) / "test_suite.py"
        module.write_text(text.format(tests=TESTS))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(module)]
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began
