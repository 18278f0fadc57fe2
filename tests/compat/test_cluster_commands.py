"""`kafkalite topic` and `kafkalite group` on both brokers: what they say and do is what the admin
client of librdkafka sees."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from kafkalite.cli.group import BEHIND
from kafkalite.cli.main import main
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.waiting import eventually

PATIENCE_S = 30
RECORDS = 20

Run = Callable[..., Result]


@pytest.fixture
def run(broker: Broker) -> Run:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "-b", broker.bootstrap])

    return run


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def rows(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def filled(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, f"value {number}", partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0


def read(broker: Broker, topic: str, group: str, count: int) -> Consumer:
    """A member that has read and committed so many, and stays."""
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": group,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    consumer.subscribe([topic])
    for _ in range(count):
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "nothing came"
        assert message.error() is None
        consumer.commit(message, asynchronous=False)
    return consumer


# --- topics ---------------------------------------------------------------------------------------


def test_a_topics_life(broker: Broker, run: Run, admin: AdminClient) -> None:
    name = f"life-{uuid4()}"
    tried = run("topic", "create", name, "-p", "3", "--dry-run")
    assert tried.stdout == f"{name}: would be done\n"
    assert name not in admin.list_topics(timeout=PATIENCE_S).topics

    made = run("topic", "create", name, "-p", "3", "-r", "1", "-c", "retention.ms=1234567")
    assert (made.exit_code, made.stdout) == (0, f"{name}: is there\n")
    again = run("topic", "create", name)
    assert again.exit_code == 1
    assert f"topic {name} is not created: TOPIC_ALREADY_EXISTS" in again.stderr
    assert run("topic", "create", name, "--if-not-exists").exit_code == 0

    assert run("topic", "add-partitions", name, "--to", "5").exit_code == 0
    fewer = run("topic", "add-partitions", name, "--to", "2")
    assert (fewer.exit_code, "INVALID_PARTITIONS" in fewer.stderr) == (1, True)

    changed = run("topic", "alter", name, "--set", "segment.bytes=2000000",
                  "--unset", "retention.ms")  # fmt: skip
    assert changed.exit_code == 0, changed.output
    resource = ConfigResource(ResourceType.TOPIC, name)

    def is_changed() -> bool:
        [asked] = admin.describe_configs([resource]).values()
        settings = asked.result(PATIENCE_S)
        is_set = settings["segment.bytes"].value == "2000000"
        return is_set and bool(settings["retention.ms"].is_default)

    eventually(broker, is_changed)
    refused = run("topic", "alter", name, "--set", "retention.ms=soon", "--dry-run")
    assert (refused.exit_code, "INVALID_CONFIG" in refused.stderr) == (1, True)

    deleted = run("topic", "delete", name, "no-such-topic", "--yes")
    assert deleted.exit_code == 1
    assert deleted.stdout == f"{name}: is not there any more\n"
    assert "topic no-such-topic is not deleted: UNKNOWN_TOPIC_OR_PARTITION" in deleted.stderr
    assert run("topic", "delete", "no-such-topic", "--yes", "--if-exists").exit_code == 0


def test_lists_and_descriptions(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    filled(broker, topic)
    [listed] = rows(run("topic", "list", f"{topic[:-2]}*", "-o", "json"))
    size = listed.pop("bytes")
    assert isinstance(size, int)
    assert size > RECORDS * len("value 1")
    assert listed == {
        "topic": topic, "partitions": 2, "replicas": 1, "records": RECORDS,
        "cleanup_policy": "delete", "is_internal": False,
    }  # fmt: skip
    described = rows(run("topic", "describe", topic, "-o", "json"))
    assert [each["partition"] for each in described] == [0, 1]
    assert [(each["begins"], each["ends"]) for each in described] == [(0, RECORDS // 2)] * 2
    assert run("topic", "list", topic, "-o", "name").stdout == f"{topic}\n"
    table = run("topic", "describe", topic).stdout.splitlines()
    assert table[0].split() == "TOPIC PARTITION LEADER REPLICAS IN SYNC BEGINS ENDS BYTES".split()
    absent = run("topic", "describe", topic, "no-such-topic")
    assert (absent.exit_code, absent.stderr.count("no-such-topic")) == (1, 1)


def test_trimming(
    broker: Broker, run: Run, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    filled(broker, topic)
    assert run("topic", "trim", topic, "-p", "0:4", "--yes").exit_code == 0
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    asked = admin.list_offsets({place: OffsetSpec.earliest() for place in places})
    assert [each.result(PATIENCE_S).offset for each in asked.values()] == [4, 0]
    beyond = run("topic", "trim", topic, "-p", "1:999", "--yes")
    assert (beyond.exit_code, "OFFSET_OUT_OF_RANGE" in beyond.stderr) == (1, True)
    other = run("topic", "trim", topic, "-p", "7:1", "--yes")
    assert (other.exit_code, "has no partition 7" in other.stderr) == (1, True)
    assert run("topic", "trim", topic, "--all", "--yes").exit_code == 0
    assert {each["begins"] for each in rows(run("topic", "describe", topic, "-o", "json"))} == {
        RECORDS // 2
    }


# --- groups ---------------------------------------------------------------------------------------


def test_a_groups_life(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic, group = make_topic(2), f"commands-{uuid4()}"
    filled(broker, topic)
    member = read(broker, topic, group, 5)
    try:
        [listed] = rows(run("group", "list", group, "-o", "json"))
        assert (listed["state"], listed["members"], listed["topics"]) == ("Stable", 1, 1)
        [described] = rows(run("group", "describe", group, "-o", "json"))
        partitions = {each["partition"]: each for each in described["partitions"]}  # type: ignore[attr-defined]
        assert {each["member"] for each in partitions.values()} == {"rdkafka"}
        told = member.committed([TopicPartition(topic, index) for index in (0, 1)], PATIENCE_S)
        for each in told:
            committed = None if each.offset < 0 else each.offset
            assert partitions[each.partition]["committed"] == committed
            assert partitions[each.partition]["ends"] == RECORDS // 2
        assert run("group", "lag", group, "--above", "1").exit_code == BEHIND
        assert run("group", "lag", group, "--above", "1000").exit_code == 0
        taken = run("group", "reset", group, "-t", topic, "--to", "end")
        assert (taken.exit_code, "has members" in taken.stderr) == (1, True)
        alive = run("group", "delete", group, "--yes")
        assert (alive.exit_code, "NON_EMPTY_GROUP" in alive.stderr) == (1, True)
    finally:
        member.close()


@pytest.mark.parametrize(
    ("where", "after"),
    [("beginning", [0, 0]), ("end", [10, 10]), ("3", [3, 3]), ("-2", [8, 8]), ("@0", [0, 0])],
)
def test_a_group_goes_on_from_elsewhere(
    broker: Broker, run: Run, admin: AdminClient, make_topic: MakeTopic,
    where: str, after: list[int],
) -> None:  # fmt: skip
    topic, group = make_topic(2), f"commands-{uuid4()}"
    filled(broker, topic)
    read(broker, topic, group, RECORDS).close()
    tried = run("group", "reset", group, "-t", topic, "--to", where, "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert committed(admin, group) == [10, 10]
    done = run("group", "reset", group, "-t", topic, "--to", where)
    assert done.exit_code == 0, done.output
    assert done.stdout == tried.stdout
    assert committed(admin, group) == after
    assert run("group", "delete", group, "--yes").stdout == f"{group}: is not there any more\n"
    gone = run("group", "describe", group)
    assert (gone.exit_code, f"there is no group {group}" in gone.stderr) == (1, True)


def committed(admin: AdminClient, group: str) -> list[int]:
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(PATIENCE_S).topic_partitions
    return [each.offset for each in sorted(found, key=lambda each: int(each.partition))]


def test_what_destroys_asks_first(run: Run) -> None:
    for words in (
        ("topic", "delete", "a"), ("topic", "trim", "a", "--all"), ("group", "delete", "a"),
    ):  # fmt: skip
        asked = run(*words)
        assert (asked.exit_code, "--yes" in asked.output) == (2, True)


def test_how_groups_do(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, f"value {number}", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    done, stopped, stalling = (f"{topic}-{word}" for word in ("done", "stopped", "stalling"))
    commit(broker, done, topic, RECORDS)
    commit(broker, stopped, topic, 3)
    is_over = threading.Event()
    committing = threading.Thread(target=commit_again, args=(broker, stalling, topic, is_over))
    committing.start()
    try:
        time.sleep(3)
        watched = run("group", "watch", f"{topic}-*", "-n", "1", "--every", "3", "-o", "json")
    finally:
        is_over.set()
        committing.join()
    assert watched.exit_code == BEHIND, watched.output
    found = {each["group"]: each for each in json.loads(watched.stdout)["groups"]}
    assert {name: (each["status"], each["worst_status"], each["lag"])
            for name, each in found.items()} == {
        done: ("OK", "OK", 0), stopped: ("ERR", "STOP", RECORDS - 3),
        stalling: ("ERR", "STALL", RECORDS - 5),
    }  # fmt: skip
    well = run("group", "watch", done, "-n", "1", "--every", "1")
    assert (well.exit_code, well.stdout.splitlines()[1].split()[:2]) == (0, ["GROUP", "STATUS"])
    assert well.stdout.splitlines()[2].split()[:3] == [done, "OK", "0"]


def commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def commit_again(broker: Broker, group: str, topic: str, is_over: threading.Event) -> None:
    """The same offset; commits within a second would count as one."""
    while not is_over.wait(1.1):
        commit(broker, group, topic, 5)
