"""`kafkalite serve --brokers 3`: processes, and clients that go on while one of them is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from kafkalite.config import parse_properties
from kafkalite.jvm import jars, java
from tests.compat.brokers import APACHE_KAFKA, JAR_GROUPS, ports_in_a_row

PATIENCE_S = 60
BATCH = 300
SETTINGS = {
    "broker.heartbeat.interval.ms": "200", "leader.imbalance.check.interval.seconds": "1",
    "offsets.topic.num.partitions": "2",
}


class Cluster:
    def __init__(self, folder: Path, count: int, session_ms: int) -> None:
        self.port, self.folder = ports_in_a_row(count + 2, range(28_500, 31_000)), folder
        folder.mkdir(exist_ok=True)
        settings = {
            **SETTINGS, "default.replication.factor": count,
            "min.insync.replicas": min(2, count), "broker.session.timeout.ms": session_ms,
        }  # fmt: skip
        self.servers = ",".join(f"127.0.0.1:{self.port + number}" for number in range(count))
        pairs = [f"{name}={value}" for name, value in settings.items()]
        overrides = [word for pair in pairs for word in ("--override", pair)]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kafkalite", "serve", "--brokers", str(count),
             "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(folder / "data"),
             "--port-file", str(folder / "port"), "--topic", "t:3", *overrides],
            stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.until(lambda: (folder / "port").exists(), "the cluster serves")

    def until(self, is_so: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self.process.poll() is None, self.text
            assert time.monotonic() < end, f"{what}: not in time\n{self.text}"
            time.sleep(0.1)

    @property
    def text(self) -> str:
        return (self.folder / "log").read_text()

    def broker(self, number: int) -> psutil.Process:
        file = str(self.folder / "data" / str(number) / "server.properties")
        own = psutil.Process(self.process.pid).children()
        return next(each for each in own if file in each.cmdline())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(folder: Path, count: int, session_ms: int) -> Iterator[Cluster]:
    made = Cluster(folder, count, session_ms)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()  # its brokers end with it
            made.process.wait(PATIENCE_S)
        made.log.close()


@contextmanager
def apache_kafka(cluster: Cluster, folder: Path, node_id: int) -> Iterator[subprocess.Popen[bytes]]:
    """A broker of Apache Kafka that belongs to our cluster, behind our controller's port."""
    port = cluster.port + 2
    (folder / "data").mkdir(parents=True)
    known = parse_properties((cluster.folder / "data/controller/meta.properties").read_text())
    formatted = f"version=1\ncluster.id={known['cluster.id']}\nnode.id={node_id}\n"
    (folder / "data/meta.properties").write_text(formatted)
    settings = {
        "process.roles": "broker", "node.id": node_id, "log.dirs": folder / "data",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}", "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"3000@127.0.0.1:{cluster.port + 1}",
    }  # fmt: skip
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    class_path = jars.class_path(JAR_GROUPS[APACHE_KAFKA])
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            java.command(class_path, "kafka.Kafka", str(file), heap="384M"), stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path, 3, 1_500) as made:
        yield made


def in_sync(servers: str) -> list[list[int]]:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        [topic] = admin.describe_topics(["t"])
        return [sorted(each["isr_nodes"]) for each in topic["partitions"]]
    finally:
        admin.close()


def are_preferred(servers: str) -> bool:
    """Whether each partition is led by its first replica."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        [topic] = admin.describe_topics(["t"])
        return all(each["leader_id"] == each["replica_nodes"][0] for each in topic["partitions"])
    finally:
        admin.close()


def test_nothing_acknowledged_is_lost_when_a_broker_process_is_killed(cluster: Cluster) -> None:
    cluster.until(lambda: in_sync(cluster.servers) == [[1, 2, 3]] * 3, "all are in sync")
    python = KafkaProducer(bootstrap_servers=cluster.servers, acks="all", enable_idempotence=True)
    confluent = Producer(
        {"bootstrap.servers": cluster.servers, "acks": "all", "enable.idempotence": True}
    )
    failed: list[object] = []

    def write(first: int) -> list[Any]:
        futures = [
            python.send("t", f"python {first + number}".encode(), partition=number % 3)
            for number in range(BATCH)
        ]
        for number in range(BATCH):
            confluent.produce(
                "t", f"confluent {first + number}".encode(), partition=number % 3,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )  # fmt: skip
        return futures

    sent = write(0)
    victim = cluster.broker(2)
    victim.kill()
    sent += write(BATCH)
    python.flush(PATIENCE_S)
    assert confluent.flush(PATIENCE_S) == 0
    for future in sent:
        future.get(PATIENCE_S)
    assert failed == []
    python.close()
    cluster.until(lambda: in_sync(cluster.servers) == [[1, 2, 3]] * 3, "the killed one is back")
    assert "[broker 2] ended with -9" in cluster.text
    cluster.until(lambda: are_preferred(cluster.servers), "leaders return by themselves")
    consumer = KafkaConsumer(
        "t", bootstrap_servers=cluster.servers, group_id="g", auto_offset_reset="earliest",
        consumer_timeout_ms=3_000,
    )  # fmt: skip
    found = [record.value.decode() for record in consumer]
    consumer.close()
    expected = [f"{who} {n}" for who in ("python", "confluent") for n in range(2 * BATCH)]
    assert sorted(found) == sorted(expected)
    assert cluster.stop() == 0, cluster.text


def placed(admin: KafkaAdminClient, name: str) -> list[tuple[int, list[int]]]:
    [topic] = admin.describe_topics([name])
    return [(each["leader_id"], sorted(each["isr_nodes"])) for each in topic["partitions"]]


@pytest.mark.full
def test_a_broker_of_apache_kafka_enters_serves_and_is_let_go(tmp_path: Path) -> None:
    ours, theirs = 1, 7
    with running(tmp_path / "ours", 1, 9_000) as cluster, \
            apache_kafka(cluster, tmp_path / "theirs", theirs) as process:  # fmt: skip
        admin = KafkaAdminClient(bootstrap_servers=cluster.servers)

        def live() -> list[int]:
            found = admin.describe_cluster()["brokers"]
            return [each["broker_id"] for each in found if not each["is_fenced"]]

        cluster.until(lambda: live() == [ours, theirs], "it is let in")
        replicas = {0: [ours, theirs], 1: [theirs, ours]}
        admin.create_topics([NewTopic("pair", -1, -1, replica_assignments=replicas)])
        both = [(ours, [ours, theirs]), (theirs, [ours, theirs])]
        cluster.until(lambda: placed(admin, "pair") == both, "both are in sync")
        producer = KafkaProducer(bootstrap_servers=cluster.servers, acks="all")
        sent = [producer.send("pair", str(n).encode(), partition=n % 2) for n in range(BATCH)]
        for future in sent:
            future.get(PATIENCE_S)
        producer.close()
        process.terminate()  # it hands over first
        assert process.wait(PATIENCE_S) in (0, 143)
        cluster.until(lambda: live() == [ours], "it is let go")
        assert placed(admin, "pair") == [(ours, [ours])] * 2
        consumer = KafkaConsumer(
            "pair", bootstrap_servers=cluster.servers, auto_offset_reset="earliest",
            consumer_timeout_ms=5_000,
        )  # fmt: skip
        assert sorted(int(each.value) for each in consumer) == list(range(BATCH))
        consumer.close()
        admin.close()
