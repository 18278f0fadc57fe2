"""The broker inside a test's own process, as a stock client sees it."""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer, KafkaProducer

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
        return [record.value for record, _ in zip(consumer, range(count), strict=False)]
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


def test_two_brokers_do_not_share_a_directory(tmp_path) -> None:
    with (
        EmbeddedKafka(str(tmp_path)),
        pytest.raises(BrokerFailed, match="locked"),
        EmbeddedKafka(str(tmp_path)),
    ):
        pass


def test_brokers_are_apart(fresh_kafkalite: EmbeddedKafka) -> None:
    with EmbeddedKafka(topics={"here": 1}) as other:
        assert other.port != fresh_kafkalite.port
        produce(other, "here", b"x")
        assert produce(fresh_kafkalite, "here", b"y") == 0
