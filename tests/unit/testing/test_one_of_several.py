"""One broker of three is stopped and comes back; clients go on."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

PARTITIONS = 6


def leaders(kafka: EmbeddedKafka, topic: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def produce(producer: Producer, topic: str, partitions: list[int], value: str) -> None:
    failed: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    for partition in partitions:
        producer.produce(topic, value, partition=partition, on_delivery=told)
    assert producer.flush(20) == 0
    assert failed == []


def values(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )  # fmt: skip
    try:
        return sorted(record.value for _, record in zip(range(count), consumer, strict=False))
    finally:
        consumer.close()


def test_one_of_three_is_stopped_and_comes_back_while_clients_go_on(tmp_path) -> None:
    with EmbeddedKafka(tmp_path, brokers=3) as kafka:
        kafka.create_topic("spread", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        led = leaders(kafka, "spread")
        all_of_it, of_others = (
            list(range(PARTITIONS)),
            [i for i in range(PARTITIONS) if led[i] != 2],
        )
        produce(producer, "spread", all_of_it, "before")
        ports = kafka.ports

        kafka.stop_broker(2)
        kafka.stop_broker(2)  # once is as good as twice
        assert leaders(kafka, "spread") == [-1 if each == 2 else each for each in led]
        produce(producer, "spread", of_others, "meanwhile")
        kafka.create_topic("made-meanwhile", 4)

        kafka.start_broker(2)
        kafka.start_broker(2)
        assert kafka.ports == ports
        assert leaders(kafka, "spread") == led
        produce(producer, "spread", all_of_it, "after")
        found = values(kafka, "spread", 2 * PARTITIONS + len(of_others))
        assert found.count(b"before") == found.count(b"after") == PARTITIONS
        assert found.count(b"meanwhile") == len(of_others)


def test_what_waits_for_a_stopped_broker_gets_through_when_it_is_back() -> None:
    with EmbeddedKafka(brokers=3) as kafka:
        kafka.create_topic("spread", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        kafka.stop_broker(3)
        for partition in range(PARTITIONS):
            producer.produce("spread", b"kept", partition=partition)
        producer.flush(0.5)
        kafka.start_broker(3)
        assert producer.flush(20) == 0
        assert values(kafka, "spread", PARTITIONS) == [b"kept"] * PARTITIONS


def test_brokers_come_and_go_many_times_and_the_cluster_stops_with_some_away() -> None:
    kafka = EmbeddedKafka(brokers=3, topics={"spread": 3}).start()
    for number in range(10):
        kafka.stop_broker(2 + number % 2)
        kafka.start_broker(2 + number % 2)
    kafka.stop_broker(2)
    kafka.restart()
    assert -1 not in leaders(kafka, "spread")
    kafka.stop()


def test_the_controller_ends_with_all_of_them() -> None:
    with (
        EmbeddedKafka(brokers=3) as kafka,
        pytest.raises(BrokerFailed, match="broker 1 is the controller, which the others cannot"),
    ):
        kafka.stop_broker(1)


@pytest.mark.parametrize("node_id", [0, 4, "2"])
def test_there_are_only_so_many(node_id) -> None:
    with (
        EmbeddedKafka(brokers=3) as kafka,
        pytest.raises(ValueError, match="their ids are 1 to 3"),
    ):
        kafka.stop_broker(node_id)


def test_a_cluster_that_could_not_start_starts_on_the_same_folder(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        kafka = EmbeddedKafka(tmp_path, brokers=3, port=port)
        for _ in range(2):
            with pytest.raises(BrokerFailed, match=r"broker 1 of 3 .*in use"):
                kafka.start()
    with kafka:
        kafka.create_topic("t", 3)
        assert set(leaders(kafka, "t")) == {1, 2, 3}
