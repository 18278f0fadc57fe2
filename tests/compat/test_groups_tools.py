"""Apache Kafka's own tools at work on groups, and its coordinator on the log that we wrote."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.jvm import jars, java
from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.group_peer import (
    GroupPeer,
    assignment,
    group_on,
    read_assignment,
    settle,
    subscription,
)
from tests.compat.waiting import eventually

GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CALL_TIMEOUT_S = 60

# One worker runs them: each call is a JVM, and two at once are slower than one after the other.
pytestmark = pytest.mark.xdist_group("java-tools")


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


def run(main_class: str, *words: str) -> str:
    call = java.command(jars.class_path("reference"), main_class, *words)
    call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=CALL_TIMEOUT_S, check=False)
    return done.stdout + done.stderr


def groups(group: GroupPeer, *words: str) -> str:
    return run(GROUP_COMMAND, "--bootstrap-server", group.broker.bootstrap, *words)


def rows(output: str, group_id: str) -> list[list[str]]:
    """Lines about the group, as words."""
    return [line.split() for line in output.splitlines() if line.startswith(group_id)]


def written(broker: Broker, topic: str, count: int) -> None:
    """`count` records in each of the topic's first two partitions."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for index in range(count):
        for partition in (0, 1):
            producer.produce(topic, b"%d" % index, partition=partition, timestamp=1_000 + index)
    assert producer.flush(20) == 0


def test_groups_are_listed_and_described(group: GroupPeer, topic: str) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 5)
    ana = group.classic(protocols={"range": subscription([topic])}, session_ms=60_000)
    ana.join()
    ana.sync({ana.member_id: assignment({topic: [0, 1]})})
    assert ana.commit(topic, 0, 3) == ana.commit(topic, 1, 5)
    name = group.group_id
    assert rows(groups(group, "--list", "--state"), name) == [[name, "Stable"]]
    described = rows(groups(group, "--describe", "--group", name), name)
    assert [row[1:6] for row in described] == [
        [topic, "0", "3", "5", "2"],
        [topic, "1", "5", "5", "0"],
    ]
    assert {row[6] for row in described} == {ana.member_id}
    members = rows(groups(group, "--describe", "--group", name, "--members", "--verbose"), name)
    assert members[0][1:4] == [ana.member_id, "/127.0.0.1", "bench"]
    assert f"{topic}:0,1" in " ".join(members[0]) or f"{topic}(0,1)" in " ".join(members[0])
    state = rows(groups(group, "--describe", "--group", name, "--state"), name)
    assert "Stable" in state[0]
    assert "range" in state[0]


def test_offsets_are_reset_in_all_ways(group: GroupPeer, topic: str) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 10)
    for partition in (0, 1):
        group.commit(topic, partition, 5)
    ways = {
        ("--to-earliest",): ["0", "0"],
        ("--to-latest",): ["10", "10"],
        ("--to-offset", "4"): ["4", "4"],
        ("--shift-by", "-2"): ["2", "2"],
        ("--to-datetime", "1970-01-01T00:00:01.003"): ["3", "3"],
        ("--by-duration", "PT1H"): ["10", "10"],
        ("--to-current",): ["10", "10"],
    }
    for way, expected in ways.items():
        output = groups(
            group, "--reset-offsets", "--group", group.group_id, "--topic", topic, *way, "--execute"
        )
        moved = sorted(row[2:4] for row in rows(output, group.group_id))
        assert moved == [["0", expected[0]], ["1", expected[1]]], (way, output)
        assert [str(group.fetch(topic, index)[1]) for index in (0, 1)] == expected


def test_groups_and_offsets_are_deleted(group: GroupPeer, topic: str) -> None:
    group.topic(topic, 2)
    group.commit(topic, 0, 1)
    group.commit(topic, 1, 1)
    name = group.group_id
    gone = groups(group, "--delete-offsets", "--group", name, "--topic", f"{topic}:1")
    assert "Successful" in gone
    assert [group.fetch(topic, index)[1] for index in (0, 1)] == [1, -1]
    assert "successful" in groups(group, "--delete", "--group", name)
    assert group.listed() is None
    assert "GroupIdNotFoundException" in groups(group, "--delete", "--group", name)


def test_our_offsets_log_is_read_by_apache_kafka(tmp_path: Path) -> None:
    """Dumped by its tool, and served by its coordinator, which goes on where ours stopped."""
    ours = brokers.start(KAFKALITE, tmp_path / "ours")
    try:
        with group_on(ours, "classic") as classic, group_on(ours, "modern") as modern:
            classic.topic("orders")
            ana = classic.classic(
                instance_id="one", protocols={"range": subscription(["orders"])}, session_ms=60_000
            )
            ana.join()
            ana.sync({ana.member_id: assignment({"orders": [0, 1, 2, 3]})})
            for number in range(50):
                ana.commit("orders", number % 4, number)
            bob, cat = (modern.consumer(name, topics=["orders"]) for name in ("bob", "cat"))
            assert bob.beat() == cat.beat()
            settle(bob, cat)
            assert bob.commit("orders", bob.partitions[0], 77) == 0
            held = {"bob": bob.partitions, "cat": cat.partitions}
            first = bob.partitions[0]
        with group_on(ours, "simple") as simple:
            simple.commit("orders", 2, 5, metadata="note")
    finally:
        ours.stop()
    logs = sorted((ours.folder / "data").glob("__consumer_offsets-*"))
    files = [file for log in logs for file in log.glob("*.log") if file.stat().st_size]
    _check_dump(files)
    _check_served(tmp_path / "theirs", logs, held, first)


def _check_dump(files: list[Path]) -> None:
    dumped = run(
        "org.apache.kafka.tools.DumpLogSegments",
        "--offsets-decoder",
        "--deep-iteration",
        "--files",
        ",".join(map(str, files)),
    )
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', dumped))
    assert kinds == {"1", "2", "3", "5", "6", "7", "8"}
    versions = set(re.findall(r'key: \{"type":"(\d+)".*?payload: \{"version":"(\d+)"', dumped))
    assert {("1", "4"), ("2", "3"), ("5", "0"), ("8", "0")} <= versions
    assert not re.search(r"isvalid: false|exception|error", dumped, re.IGNORECASE), dumped[-3000:]


def _check_served(
    folder: Path, logs: list[Path], held: dict[str, list[int]], first: int
) -> None:
    theirs = brokers.start(APACHE_KAFKA, folder)
    with group_on(theirs, "classic") as peer:
        peer.topic("orders")
    theirs.stop()
    for log in logs:
        target = folder / "data" / log.name
        for file in target.glob("0*"):
            file.unlink()
        for file in log.glob("0*"):
            shutil.copy(file, target / file.name)
    theirs = brokers.start(APACHE_KAFKA, folder)
    try:
        with group_on(theirs, "classic") as classic:
            # It lists what is below its high watermark, and that has yet to follow the log's end.
            eventually(theirs, lambda: classic.listed() is not None)
            assert classic.listed() == ("Stable", "classic", "consumer")
            assert [classic.fetch("orders", index)[1] for index in range(4)] == [48, 49, 46, 47]
            member = classic.describe().members[0]
            assert member.group_instance_id == "one"
            assert read_assignment(bytes(member.member_assignment)) == {"orders": [0, 1, 2, 3]}
        with group_on(theirs, "modern") as modern:
            found = modern.describe_consumers()
            assert {one.member_id for one in found.members} == set(held)
            assert modern.fetch("orders", first)[1] == 77
        with group_on(theirs, "simple") as simple:
            assert simple.fetch("orders", 2)[1:] == (5, "note")
        assert "ERROR" not in theirs.log(), theirs.log()[-3000:]
    finally:
        theirs.stop()


def test_their_offsets_log_is_read_by_us(tmp_path: Path) -> None:
    """Whatever Apache Kafka's coordinator wrote, ours goes on from it."""
    theirs = brokers.start(APACHE_KAFKA, tmp_path / "theirs")
    admin = AdminClient({"bootstrap.servers": theirs.bootstrap})
    admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result(20)
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {
                "bootstrap.servers": theirs.bootstrap,
                "group.id": f"{protocol}-group",
                "group.protocol": protocol,
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        for _ in range(100):
            consumer.poll(0.1)
            if consumer.assignment():
                break
        consumer.commit(offsets=[TopicPartition("orders", 1, 9)], asynchronous=False)
        consumer.close()
    theirs.stop()
    ours = brokers.start(KAFKALITE, tmp_path / "ours")
    with group_on(ours, "any") as peer:
        peer.topic("orders")
    ours.stop()
    for log in (theirs.folder / "data").glob("__consumer_offsets-*"):
        target = ours.folder / "data" / log.name
        for file in target.glob("0*"):
            file.unlink()
        for file in log.glob("0*"):
            shutil.copy(file, target / file.name)
    ours = brokers.start(KAFKALITE, ours.folder)
    try:
        for protocol in ("classic", "consumer"):
            with group_on(ours, f"{protocol}-group") as peer:
                assert peer.fetch("orders", 1)[:2] == (0, 9)
                assert peer.listed() == ("Empty", protocol, "consumer")
    finally:
        ours.stop()
