"""The broker inside a test's own process, as a stock client sees it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.sim.disk import CrashDisk
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka


def produce(kafka: EmbeddedKafka, topic: str, value: bytes) -> int:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    try:
        return int(producer.send(topic, value).get(10).offset)
    finally:
        producer.close()


def values(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    try:
        return [record.value for _, record in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()


def test_what_is_in_memory_outlives_a_restart() -> None:
    with EmbeddedKafka(topics={"orders": 1}) as kafka:
        port = kafka.port
        assert produce(kafka, "orders", b"first") == 0
        kafka.restart()
        assert kafka.port == port
        assert produce(kafka, "orders", b"second") == 1
        assert values(kafka, "orders", 2) == [b"first", b"second"]


def test_what_is_in_a_directory_is_there_for_the_next_broker(tmp_path) -> None:
    with EmbeddedKafka(str(tmp_path)) as kafka:
        kafka.create_topic("kept", 1, {"retention.ms": "-1"})
        produce(kafka, "kept", b"value")
    with EmbeddedKafka(str(tmp_path)) as kafka:
        assert values(kafka, "kept", 1) == [b"value"]


def test_a_failed_disk_ends_the_broker_and_not_its_process() -> None:
    def fail(kind: str, path: str, size: int) -> None:
        raise OSError("the disk is broken")

    kafka = EmbeddedKafka()
    kafka._disk = disk = CrashDisk()
    with kafka:
        port = kafka.port
        kafka.create_topic("kept")
        disk.before_operation = fail
        for name in ("lost", "never-tried"):
            with pytest.raises(BrokerFailed, match=r"the disk is broken|is offline"):
                kafka.create_topic(name)
        disk.before_operation = None
        wait_until(lambda: not kafka.is_running)
        kafka.start()
        assert kafka.port == port
        assert produce(kafka, "kept", b"value") == 0


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("failing", [2, 1])
def test_a_failed_disk_of_one_of_three(failing: int) -> None:
    """Its broker ends and can be started again; with the controller all do."""
    is_broken = True

    def fail(kind: str, path: str, size: int) -> None:
        if is_broken and f"/{failing}/" in path:
            raise OSError("the disk is broken")

    kafka = EmbeddedKafka(brokers=3, topics={"spread": 3})
    kafka._disk = disk = CrashDisk()
    with kafka:
        disk.before_operation = fail
        with suppress(BrokerFailed):
            kafka.create_topic("meets-it", 3)
        if failing == 1:
            wait_until(lambda: not kafka.is_running)
            with pytest.raises(BrokerFailed, match=r"because it ended .*the disk is broken"):
                kafka.create_topic("too-late")
        else:
            wait_until(lambda: kafka.stopped_brokers == [failing])
            with pytest.raises(BrokerFailed, match="broker 2 of 3 could not start"):
                kafka.start_broker(failing)
        is_broken = False
        kafka.start() if failing == 1 else kafka.start_broker(failing)
        assert kafka.stopped_brokers == []
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        partitions = admin.list_topics("spread", timeout=10).topics["spread"].partitions
        assert sorted(each.leader for each in partitions.values()) == [1, 2, 3]


def test_two_brokers_do_not_share_a_directory(tmp_path) -> None:
    with (
        EmbeddedKafka(str(tmp_path)),
        pytest.raises(BrokerFailed, match="locked"),
        EmbeddedKafka(str(tmp_path)),
    ):
        pass


@pytest.mark.parametrize(("first", "second"), [(3, 1), (1, 3), (3, 2)])
def test_a_folder_is_served_by_as_many_brokers_as_began_it(tmp_path, first, second) -> None:
    """They would find none of its data, and begin an empty cluster beside it."""
    with EmbeddedKafka(str(tmp_path), brokers=first, topics={"kept": 1}) as kafka:
        produce(kafka, "kept", b"value")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(BrokerFailed, match=f"start it with brokers={first}, or on a new folder"):
        EmbeddedKafka(str(tmp_path), brokers=second).start()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    with EmbeddedKafka(str(tmp_path), brokers=first) as kafka:
        assert produce(kafka, "kept", b"value") == 1


def test_brokers_are_apart(fresh_kafkalite: EmbeddedKafka) -> None:
    with EmbeddedKafka(topics={"here": 1}) as other:
        assert other.port != fresh_kafkalite.port
        produce(other, "here", b"x")
        assert produce(fresh_kafkalite, "here", b"y") == 0


def test_three_brokers_share_the_leaders() -> None:
    with EmbeddedKafka(brokers=3, settings={"default.replication.factor": "3"}) as kafka:
        kafka.create_topic("spread", 6)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        found = admin.list_topics("spread", timeout=10)
        assert sorted(found.brokers) == [1, 2, 3]
        partitions = found.topics["spread"].partitions.values()
        assert sorted(partition.leader for partition in partitions) == [1, 1, 2, 2, 3, 3]
        assert all(sorted(partition.replicas) == [1, 2, 3] for partition in partitions)
        check_transaction_over(kafka, "spread", 6)
        kafka.restart()
        assert len(values_of_group(kafka, "spread", 6)) == 6


def check_transaction_over(kafka: EmbeddedKafka, topic: str, partitions: int) -> None:
    """One transaction with a record in every partition, and one that is aborted."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "over-all"}
    )
    producer.init_transactions(10)
    for is_commit in (True, False):
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce(topic, b"kept" if is_commit else b"aborted", partition=partition)
        producer.commit_transaction(10) if is_commit else producer.abort_transaction(10)
    assert values_of_group(kafka, topic, partitions) == [b"kept"] * partitions


def values_of_group(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes]:
    """What a group of one reads with read_committed, and that nothing follows."""
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": f"readers-{uuid.uuid4()}",
        "auto.offset.reset": "earliest", "isolation.level": "read_committed",
    })
    consumer.subscribe([topic])
    try:
        found = [message.value() for message in consumer.consume(count, 15)]
        assert consumer.consume(1, 0.5) == []
        return found
    finally:
        consumer.close()
