"""Consumers with a rack read from the replica in it: seen in what each broker sent to consumers."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Message, Producer

from kafkalite.metrics.pages import FRESH_SECONDS
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat import client_builds
from tests.compat.java_tools import JavaTools
from tests.compat.transcript import class_of

RACKS = ["a", "b", "c"]
SETTINGS = {
    "default.replication.factor": 3,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
COUNT, SIZE = 300, 1_000
SENT = re.compile(r'^kafka_server_brokertopicmetrics_bytesout_total\{topic="t",?\} (.+)$', re.M)



class Cluster:
    """A broker in each rack, each of which leads a third of the records."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.kafka = kafka
        self.servers = kafka.bootstrap_servers
        self._told = [0.0, 0.0, 0.0]

    def sent(self) -> list[float]:
        """Bytes of the topic that each broker has sent to consumers since it was asked last."""
        time.sleep(FRESH_SECONDS)  # for so long a page is told again
        before, self._told = self._told, [self._sent_by(node_id) for node_id in (1, 2, 3)]
        return [now - then for now, then in zip(self._told, before, strict=True)]

    def _sent_by(self, node_id: int) -> float:
        url = f"{self.kafka.metrics_url}/metrics?broker={node_id}"
        with urllib.request.urlopen(url, timeout=10) as page:
            match = SENT.search(page.read().decode())
        return 0.0 if match is None else float(match[1])

    def check_one_sent_all(self, rack: str) -> None:
        sent = self.sent()
        assert [size > 0 for size in sent] == [each == rack for each in RACKS], sent
        assert sum(sent) >= COUNT * SIZE


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with EmbeddedKafka(
        brokers=3, racks=RACKS, metrics=True, topics={"t": 3}, settings=SETTINGS
    ) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
        for number in range(COUNT):
            producer.produce("t", b"x" * SIZE, partition=number % 3)
        assert producer.flush(20) == 0
        yield Cluster(kafka)


def read_by_librdkafka(cluster: Cluster, rack: str) -> int:
    consumer = Consumer(
        {"bootstrap.servers": cluster.servers, "group.id": f"group-{rack}",
         "auto.offset.reset": "earliest", "client.rack": rack}
    )  # fmt: skip
    with closing(consumer):
        consumer.subscribe(["t"])
        messages: list[Message] = []
        while some := consumer.consume(COUNT - len(messages), 10):
            messages += some
    assert all(each.error() is None for each in messages)
    return len(messages)


@pytest.mark.parametrize("rack", RACKS)
def test_librdkafka_reads_from_its_rack_alone(cluster: Cluster, rack: str) -> None:
    assert read_by_librdkafka(cluster, rack) == COUNT
    cluster.check_one_sent_all(rack)


def test_a_rack_of_nobodys_reads_from_the_leaders(cluster: Cluster) -> None:
    assert read_by_librdkafka(cluster, "elsewhere") == COUNT
    sent = cluster.sent()
    assert all(size >= COUNT * SIZE / 3 for size in sent), sent


@pytest.mark.parametrize("rack", [pytest.param("a", marks=pytest.mark.full), "c"])
def test_java_reads_from_its_rack_alone(
    cluster: Cluster, tools: JavaTools, rack: str
) -> None:
    said = tools.run(
        class_of("kafka-console-consumer"), "--bootstrap-server", cluster.servers,
        "--topic", "t", "--from-beginning", "--max-messages", str(COUNT), "--timeout-ms", "20000",
        "--consumer-property", f"client.rack={rack}",
    )  # fmt: skip
    assert said.count("x" * SIZE) == COUNT
    cluster.check_one_sent_all(rack)


def test_kcat_reads_from_its_rack_alone(cluster: Cluster) -> None:
    program, around = client_builds.kcat()
    words = ["-C", "-t", "t", "-e", "-q", "-X", "client.rack=b"]
    done = subprocess.run(
        [*program, "-b", cluster.servers, *words], capture_output=True, text=True,
        timeout=60, env={**os.environ, **around}, check=False,
    )  # fmt: skip
    assert done.stdout.count("x" * SIZE) == COUNT, done.stderr[-2000:]
    cluster.check_one_sent_all("b")
