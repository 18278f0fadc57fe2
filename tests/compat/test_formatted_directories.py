"""Directories that Apache Kafka's tool or ours formatted, in each way and for each
release: both brokers serve them in turn, through clean stops and kills, and each finds what the
other wrote.

These tests are of files, so they do not run twice: they name the brokers they start.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.jvm import jars, java
from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, APACHE_KAFKA_3, CLUSTER_ID, KAFKALITE

pytestmark = pytest.mark.compat

DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
RELEASES = ("3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3")
VOTERS = {
    # Voters by the settings alone (kraft.version 0), and by the log (kraft.version 1).
    "static": (),
    "standalone": ("--standalone",),
    "initial": ("--initial-controllers", f"1@127.0.0.1:{{port}}:{DIRECTORY_ID}"),
}
RECORDS = 20


@dataclass(frozen=True)
class Formatting:
    """One way to format the directories of a broker."""

    voters: str
    release: str
    features: tuple[str, ...] = ()
    count: int = 1
    # Who serves it first: what Apache Kafka left at a clean stop is otherwise never seen alone.
    begins: str = KAFKALITE
    peer: str = APACHE_KAFKA
    tool: str = APACHE_KAFKA

    def __str__(self) -> str:
        parts = [self.voters, self.release, str(self.count), *self.features, self.begins]
        parts += [f"by-{self.tool}"] * (self.tool != APACHE_KAFKA)
        return "-".join(parts if self.peer == APACHE_KAFKA else [*parts, self.peer])


SAMPLE = [
    Formatting("standalone", "4.2", count=3),
    Formatting("static", "3.7"),
    Formatting("initial", "4.3", ("eligible.leader.replicas.version=0",), begins=APACHE_KAFKA),
    Formatting("standalone", "4.3", begins=APACHE_KAFKA, tool=KAFKALITE),
]
# Dynamic voters came with 3.9; formatted for an older release they are refused.
REST = [
    Formatting(voters, release, (), count, begins)
    for voters in VOTERS
    for release in RELEASES
    for count in (1, 3)
    for begins in (KAFKALITE, APACHE_KAFKA)
    if voters == "static" or release >= "3.9"
]
REST += [
    Formatting("standalone", "4.3", (f"{feature}=0",), 1, begins)
    for feature in ("eligible.leader.replicas.version", "transaction.version", "group.version")
    for begins in (KAFKALITE, APACHE_KAFKA)
]
REST += [
    Formatting(voters, release, (), 2, begins, tool=KAFKALITE)
    for voters in VOTERS
    for release in ("3.9", "4.3")
    for begins in (KAFKALITE, APACHE_KAFKA)
]
# A cluster that is rolled back, since nobody has finalized the newer level yet.
REST += [
    Formatting(voters, "3.9", (), 1, begins, APACHE_KAFKA_3)
    for voters in VOTERS
    for begins in (KAFKALITE, APACHE_KAFKA_3)
]


@dataclass
class Served:
    """Directories, and what both brokers have written into them so far."""

    folder: Path
    formatting: Formatting
    topics: list[str] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, str]:
        names = ["data", "second", "third"][: self.formatting.count]
        settings = {
            "log.dirs": ",".join(str(self.folder / name) for name in names),
            # A broker that was killed is waited for before another comes in its place.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
        }
        if self.formatting.voters != "static":
            settings["controller.quorum.voters"] = ""
            settings["controller.quorum.bootstrap.servers"] = "127.0.0.1:9"
        return settings

    def format(self) -> None:
        self.folder.mkdir()
        (port,) = brokers.free_ports(1)
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            **self.settings,
        }
        path = self.folder / "format.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        options = [option.format(port=port) for option in VOTERS[self.formatting.voters]]
        options += ["--release-version", self.formatting.release]
        for feature in self.formatting.features:
            options += ["--feature", feature]
        words = ["format", "-t", CLUSTER_ID, "-c", str(path), *options]
        call = [sys.executable, "-m", "kafkalite.tools", "kafka-storage", *words]
        if self.formatting.tool == APACHE_KAFKA:
            classes = jars.class_path("reference")
            call = java.command(classes, "kafka.tools.StorageTool", *words, heap="128M")
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def serve(self, kind: str, how: signal.Signals) -> None:
        """One broker on the directories: it finds everything, and adds a topic of its own."""
        broker = brokers.start(kind, self.folder, self.settings)
        for topic in self.topics:
            check(broker.bootstrap, topic)
        self.topics.append(f"topic-{len(self.topics)}")
        write(broker.bootstrap, self.topics[-1])
        brokers.end(self.folder, how)


def write(bootstrap: str, topic: str) -> None:
    """A topic, records in it, and a group that has read half of them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        done.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"group-of-{topic}"})
    consumer.commit(offsets=[TopicPartition(topic, 0, RECORDS // 4)], asynchronous=False)
    consumer.close()


def check(bootstrap: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
    found = consumer.consume(RECORDS, 30)
    consumer.close()
    assert sorted(int(each.value() or b"-1") for each in found) == list(range(RECORDS))
    group = f"group-of-{topic}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    (answer,) = admin.list_consumer_group_offsets([asked])[group].result(30).topic_partitions
    assert answer.offset == RECORDS // 4


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "broker"
    brokers.end(tmp_path / "broker", signal.SIGTERM)


def turns(formatting: Formatting) -> Iterator[tuple[str, signal.Signals]]:
    """Who serves next and how it ends."""
    if formatting.begins != KAFKALITE:
        yield formatting.begins, signal.SIGTERM
    yield KAFKALITE, signal.SIGTERM
    yield KAFKALITE, signal.SIGKILL
    yield formatting.peer, signal.SIGTERM
    yield KAFKALITE, signal.SIGTERM
    yield formatting.peer, signal.SIGKILL


@pytest.mark.parametrize(
    "formatting",
    [*SAMPLE, *(pytest.param(each, marks=pytest.mark.full) for each in REST)],
    ids=str,
)
def test_both_brokers_serve_it_in_turn(folder: Path, formatting: Formatting) -> None:
    served = Served(folder, formatting)
    served.format()
    for kind, how in turns(formatting):
        served.serve(kind, how)
