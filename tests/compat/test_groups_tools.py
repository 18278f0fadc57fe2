"""Apache Kafka's own tools at work on groups, and its coordinator on the log that we wrote."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.coordinators.groups.topic_hash import hash_in_steps
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.env.slicing import finish
from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.group_peer import (
    ClassicPeer,
    GroupPeer,
    assignment,
    group_on,
    read_assignment,
    settle,
    subscription,
)
from tests.compat.java_tools import JavaTools
from tests.compat.waiting import PATIENCE_S, eventually

GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS_COMMAND = "org.apache.kafka.tools.GroupsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"

# One worker runs them, with one JVM for the tools.
pytestmark = pytest.mark.xdist_group("java-tools")


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


Command = Callable[..., str]


@pytest.fixture
def command(broker: Broker, tools: JavaTools) -> Command:
    """`kafka-consumer-groups` on the broker."""
    return lambda *words: tools.run(GROUP_COMMAND, "--bootstrap-server", broker.bootstrap, *words)


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


def member_of(group: GroupPeer, topic: str) -> ClassicPeer:
    """A member of the classic protocol that has both partitions."""
    ana = group.classic(protocols={"range": subscription([topic])}, session_ms=60_000)
    ana.join()
    ana.sync({ana.member_id: assignment({topic: [0, 1]})})
    return ana


def described_rows(command: Command, name: str, *words: str) -> list[list[str]]:
    """Asked again while there are none: the command gives up on all groups when one of them, of
    some other test, goes away under it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := rows(command("--describe", *words), name)):
        assert time.monotonic() < deadline, f"{name} is not described"
    return found


def test_classic_group_is_listed_and_described(
    group: GroupPeer, topic: str, command: Command
) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 5)
    ana = member_of(group, topic)
    assert ana.commit(topic, 0, 3) == ana.commit(topic, 1, 5)
    name = group.group_id
    assert name in command("--list").splitlines()
    assert rows(command("--list", "--state"), name) == [[name, "Stable"]]
    assert rows(command("--list", "--state", "stable"), name) == [[name, "Stable"]]
    assert rows(command("--list", "--state", "Empty,Dead"), name) == []
    assert rows(command("--list", "--type"), name) == [[name, "Classic"]]
    assert rows(command("--list", "--type", "consumer"), name) == []
    both = command("--list", "--type", "classic,consumer", "--state", "Stable")
    assert rows(both, name) == [[name, "Classic", "Stable"]]
    expected = [[topic, "0", "3", "5", "2"], [topic, "1", "5", "5", "0"]]
    for words in (["--group", name], ["--all-groups", "--offsets"]):
        described = described_rows(command, name, *words)
        assert [row[1:6] for row in described] == expected
        assert {row[6] for row in described} == {ana.member_id}
    verbose = rows(command("--describe", "--group", name, "--offsets", "--verbose"), name)
    assert [row[1:7] for row in verbose] == [[*row[:2], "-", *row[2:]] for row in expected]
    members = rows(command("--describe", "--group", name, "--members"), name)
    assert members == [[name, ana.member_id, "/127.0.0.1", "bench", "2"]]
    [told] = rows(command("--describe", "--group", name, "--members", "--verbose"), name)
    assert told[5:] == ["-", f"{topic}:0,1", "-", "-"]
    [state] = rows(command("--describe", "--group", name, "--state"), name)
    assert state[2:] == ["(1)", "range", "Stable", "1"]


def test_consumer_group_is_listed_and_described(
    group: GroupPeer, topic: str, command: Command
) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 5)
    name = group.group_id
    bob = group.consumer("bob", topics=[topic])
    settle(bob)
    assert bob.commit(topic, 0, 3) == 0
    assert rows(command("--list", "--type", "--state"), name) == [[name, "Consumer", "Stable"]]
    described = rows(command("--describe", "--group", name), name)
    assert [row[1:7] for row in described] == [
        [topic, "0", "3", "5", "2", "bob"], [topic, "1", "-", "5", "-", "bob"]
    ]
    [told] = rows(command("--describe", "--group", name, "--members", "--verbose"), name)
    epoch = str(bob.epoch)
    assert told[1] == "bob"
    assert told[5:] == [epoch, f"{topic}:0,1", epoch, f"{topic}:0,1"]
    [state] = rows(command("--describe", "--group", name, "--state", "--verbose"), name)
    assert state[2:] == ["(1)", "uniform", "Stable", epoch, epoch, "1"]


def test_groups_of_all_kinds_are_listed(
    group: GroupPeer, topic: str, tools: JavaTools, unique: Callable[[str], str]
) -> None:
    group.topic(topic, 2)
    classic = group.group_id
    member_of(group, topic)
    with group_on(group.broker, unique("new")) as new, group_on(group.broker, unique("no")) as no:
        settle(new.consumer("bob", topics=[topic]))
        no.commit(topic, 0, 1)
        all_three = {
            classic: [classic, "Classic", "consumer"],
            new.group_id: [new.group_id, "Consumer", "consumer"],
            no.group_id: [no.group_id, "Classic"],
        }

        def listed(*words: str) -> dict[str, list[str]]:
            server = ("--bootstrap-server", group.broker.bootstrap)
            said = tools.run(ALL_GROUPS_COMMAND, *server, "--list", *words)
            lines = (line.split() for line in said.splitlines())
            return {line[0]: line for line in lines if line and line[0] in all_three}

        assert listed() == listed("--consumer") == all_three
        assert set(listed("--group-type", "classic")) == {classic, no.group_id}
        assert set(listed("--group-type", "consumer")) == {new.group_id}
        assert set(listed("--protocol", "consumer")) == {classic, new.group_id}
        assert listed("--share") == listed("--streams") == {}


def reset(command: Command, group: GroupPeer, *words: str) -> list[list[str]]:
    """Topic, partition and new offset of every partition that the plan names, sorted."""
    output = command("--reset-offsets", "--group", group.group_id, *words)
    assert "Error" not in output, output
    return sorted(row[1:4] for row in rows(output, group.group_id))


def held(group: GroupPeer, topic: str) -> list[int]:
    return [group.fetch(topic, index)[1] for index in (0, 1)]


def test_offsets_are_reset_in_all_ways(group: GroupPeer, topic: str, command: Command) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 10)
    for partition in (0, 1):
        group.commit(topic, partition, 5)
    ways = {
        ("--to-earliest",): 0,
        ("--to-latest",): 10,
        ("--to-offset", "4"): 4,
        ("--shift-by", "-2"): 2,
        ("--shift-by", "3"): 5,
        ("--to-current",): 5,
        ("--to-offset", "99"): 10,  # no further than there are records
        ("--shift-by", "-99"): 0,
        ("--to-datetime", "1970-01-01T00:00:01.003"): 3,
        ("--to-datetime", "2999-01-01T00:00:00.000"): 10,
        ("--by-duration", "PT1H"): 10,
    }
    before = [5, 5]
    for way, offset in ways.items():
        words = ("--topic", topic, *way)
        expected = [[topic, "0", str(offset)], [topic, "1", str(offset)]]
        for trying in ((), ("--dry-run",)):
            assert reset(command, group, *words, *trying) == expected, way
            assert held(group, topic) == before
        assert reset(command, group, *words, "--execute") == expected, way
        assert held(group, topic) == [offset, offset]
        before = [offset, offset]


def test_offsets_are_reset_by_duration(group: GroupPeer, topic: str, command: Command) -> None:
    group.topic(topic, 2)
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": group.broker.bootstrap})
    for hours in (3, 2, 1):
        producer.produce(topic, b"", partition=0, timestamp=now_ms - hours * 3_600_000)
    assert producer.flush(20) == 0
    group.commit(topic, 0, 3)
    words = ("--topic", f"{topic}:0", "--by-duration", "PT2H30M", "--execute")
    assert reset(command, group, *words) == [[topic, "0", "1"]]


def test_offsets_of_some_partitions_or_of_all_topics_are_reset(
    group: GroupPeer, topic: str, command: Command, unique: Callable[[str], str]
) -> None:
    other = unique("other")
    for name in (topic, other):
        group.topic(name, 2)
        written(group.broker, name, 4)
        for partition in (0, 1):
            group.commit(name, partition, 4)
    words = ["--topic", f"{topic}:1", "--to-offset", "1", "--execute"]
    assert reset(command, group, *words) == [[topic, "1", "1"]]
    assert held(group, topic) == [4, 1]
    words = ["--topic", f"{topic}:0", "--topic", other, "--to-offset", "2", "--execute"]
    assert len(reset(command, group, *words)) == 3
    assert held(group, topic) + held(group, other) == [2, 1, 2, 2]
    assert len(reset(command, group, "--all-topics", "--to-earliest", "--execute")) == 4
    assert held(group, topic) + held(group, other) == [0, 0, 0, 0]


def test_offsets_are_exported_and_reset_from_a_file(
    group: GroupPeer, topic: str, command: Command, tmp_path: Path
) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 10)
    group.commit(topic, 0, 3)
    group.commit(topic, 1, 7)
    name = group.group_id
    words = ("--reset-offsets", "--group", name, "--all-topics", "--to-current", "--dry-run")
    plan = [line for line in command(*words, "--export").splitlines() if topic in line]
    assert sorted(plan) == [f'"{topic}",0,3', f'"{topic}",1,7'] or sorted(plan) == [
        f"{topic},0,3", f"{topic},1,7"
    ]
    file = tmp_path / "plan.csv"
    file.write_text("\n".join(plan).replace(",7", ",9") + "\n")
    moved = reset(command, group, "--from-file", str(file), "--execute")
    assert moved == [[topic, "0", "3"], [topic, "1", "9"]]
    assert held(group, topic) == [3, 9]


def test_offsets_under_members_are_not_reset(
    group: GroupPeer, topic: str, command: Command
) -> None:
    group.topic(topic, 2)
    written(group.broker, topic, 4)
    ana = member_of(group, topic)
    assert ana.commit(topic, 0, 2) == 0
    words = ("--group", group.group_id, "--topic", topic, "--to-earliest", "--execute")
    assert "inactive" in command("--reset-offsets", *words)
    assert held(group, topic) == [2, -1]


def test_groups_and_offsets_are_deleted(
    group: GroupPeer, topic: str, command: Command, unique: Callable[[str], str]
) -> None:
    group.topic(topic, 2)
    group.commit(topic, 0, 1)
    group.commit(topic, 1, 1)
    name = group.group_id
    gone = command("--delete-offsets", "--group", name, "--topic", f"{topic}:1")
    assert "Successful" in gone
    assert held(group, topic) == [1, -1]
    assert "Successful" in command("--delete-offsets", "--group", name, "--topic", topic)
    assert held(group, topic) == [-1, -1]
    group.commit(topic, 0, 1)
    with group_on(group.broker, unique("other")) as other:
        other.commit(topic, 0, 1)
        said = command("--delete", "--group", name, "--group", other.group_id)
        assert "was successful" in said
        assert other.listed() is None
    assert group.listed() is None
    assert "GroupIdNotFoundException" in command("--delete", "--group", name)
    said = command("--delete-offsets", "--group", name, "--topic", topic)
    assert "GroupIdNotFoundException" in said or "does not exist" in said, said


def test_what_members_use_is_not_deleted(group: GroupPeer, topic: str, command: Command) -> None:
    group.topic(topic, 2)
    ana = member_of(group, topic)
    assert ana.commit(topic, 0, 2) == 0
    name = group.group_id
    assert "GroupNotEmptyException" in command("--delete", "--group", name)
    said = command("--delete-offsets", "--group", name, "--topic", f"{topic}:0")
    assert "subscribed" in said, said
    assert held(group, topic) == [2, -1]


def test_our_offsets_log_is_read_by_apache_kafka(tmp_path: Path, tools: JavaTools) -> None:
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
            owned = {"bob": bob.partitions, "cat": cat.partitions}
            first = bob.partitions[0]
        with group_on(ours, "simple") as simple:
            simple.commit("orders", 2, 5, metadata="note")
    finally:
        ours.stop()
    logs = sorted((ours.folder / "data").glob("__consumer_offsets-*"))
    files = [file for log in logs for file in log.glob("*.log") if file.stat().st_size]
    _check_dump(tools, files)
    _check_served(tmp_path / "theirs", logs, owned, first)


def _check_dump(tools: JavaTools, files: list[Path]) -> None:
    names = ",".join(map(str, files))
    dumped = tools.run(DUMP, "--offsets-decoder", "--deep-iteration", "--files", names)
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', dumped))
    assert kinds == {"1", "2", "3", "5", "6", "7", "8"}
    versions = set(re.findall(r'key: \{"type":"(\d+)".*?payload: \{"version":"(\d+)"', dumped))
    assert {("1", "4"), ("2", "3"), ("5", "0"), ("8", "0")} <= versions
    assert not re.search(r"isvalid: false|exception|error", dumped, re.IGNORECASE), dumped[-3000:]


def _check_served(
    folder: Path, logs: list[Path], owned: dict[str, list[int]], first: int
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
            assert {one.member_id for one in found.members} == set(owned)
            assert modern.fetch("orders", first)[1] == 77
        with group_on(theirs, "simple") as simple:
            assert simple.fetch("orders", 2)[1:] == (5, "note")
        assert "ERROR" not in theirs.log(), theirs.log()[-3000:]
    finally:
        theirs.stop()


def test_their_offsets_log_is_read_by_us(tmp_path: Path, tools: JavaTools) -> None:
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
    with group_on(theirs, "any") as peer:
        orders = TopicView("orders", peer.topic_id("orders"), 4)
    theirs.stop()
    _check_hashes(tools, theirs, finish(hash_in_steps([orders])))
    ours = brokers.start(KAFKALITE, theirs.folder)
    try:
        for protocol in ("classic", "consumer"):
            with group_on(ours, f"{protocol}-group") as peer:
                assert peer.fetch("orders", 1)[:2] == (0, 9)
                assert peer.listed() == ("Empty", protocol, "consumer")
    finally:
        ours.stop()


def _check_hashes(tools: JavaTools, broker: Broker, ours: int) -> None:
    """By the same number a group goes on in its epoch when its coordinator is of the other kind."""
    logs = (broker.folder / "data").glob("__consumer_offsets-*/*.log")
    dumped = tools.run(DUMP, "--offsets-decoder", "--files", ",".join(map(str, logs)))
    hashes = {int(found) for found in re.findall(r'"metadataHash":(-?\d+)', dumped)}
    assert ours in hashes
    assert hashes <= {0, ours}
