"""Logs that move between directories, watched by Apache Kafka's tool and served by its broker.

These tests are of files, so they do not run twice: they name the brokers they start.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.java_tools import JavaTools

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
COUNT = 60_000
PLACES = ("data", "two")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "broker"
    brokers.end(tmp_path / "broker", signal.SIGTERM)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[JavaTools]:
    (tmp_path / "classes").mkdir()
    made = JavaTools(tmp_path / "classes")
    yield made
    made.close()


def start(kind: str, folder: Path) -> Broker:
    paths = ",".join(str(folder / place) for place in PLACES)
    return brokers.start(
        kind, folder, {"log.dirs": paths, "metadata.log.dir": str(folder / "data")}
    )


def place(folder: Path) -> str:
    [found] = [each for each in PLACES if (folder / each / "t-0").is_dir()]
    return found


def plan(folder: Path, target: str) -> Path:
    """A file that asks for the move of t-0, as the tool takes it."""
    asked = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(folder / target)]}
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [asked]}))
    return path


def reassign(tools: JavaTools, broker: Broker, path: Path, act: str) -> str:
    server = ("--bootstrap-server", broker.bootstrap)
    return tools.run(REASSIGN, *server, "--reassignment-json-file", str(path), act)


def until_complete(tools: JavaTools, broker: Broker, path: Path) -> None:
    deadline = time.monotonic() + 60
    while "completed successfully" not in (said := reassign(tools, broker, path, "--verify")):
        assert "still in progress" in said, said
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def values(broker: Broker) -> list[bytes]:
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": f"reader-{broker.port}",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    consumer.subscribe(["t"])
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(found) < COUNT and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(5_000, 1.0)]
    consumer.close()
    return found


def test_a_move_is_resumed_after_a_kill_and_both_brokers_find_the_log(
    folder: Path, tools: JavaTools
) -> None:
    broker = start(KAFKALITE, folder)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic("t", 1, 1)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    written = [b"%d/" % number + b"x" * 500 for number in range(COUNT)]
    for value in written:
        producer.produce("t", value)
        producer.poll(0)
    assert producer.flush(60) == 0
    source = place(folder)
    target = next(each for each in PLACES if each != source)
    path = plan(folder, target)
    reassign(tools, broker, path, "--execute")
    broker.kill()
    broker = start(KAFKALITE, folder)
    until_complete(tools, broker, path)
    assert place(folder) == target
    assert values(broker) == written
    broker.stop()
    for kind, next_target in ((APACHE_KAFKA, source), (KAFKALITE, target), (APACHE_KAFKA, target)):
        broker = start(kind, folder)
        assert values(broker) == written
        path = plan(folder, next_target)
        reassign(tools, broker, path, "--execute")
        until_complete(tools, broker, path)
        broker.stop()
        assert place(folder) == next_target
