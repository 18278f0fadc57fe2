"""The brokers' time in the hands of a test, and ends that are not clean."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from tests.compat.polls import LONG_POLL_MS

TOPIC = "orders"


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    settings = {"log.retention.check.interval.ms": 60_000, "log.segment.delete.delay.ms": 0}
    with EmbeddedKafka(topics={TOPIC: 1}, settings=settings) as kafka:
        yield kafka


def send(kafka: EmbeddedKafka, value: bytes, topic: str = TOPIC) -> Any:
    producer = KafkaProducer(**kafka.client_config("kafka-python"))
    try:
        return producer.send(topic, value).get(10)
    finally:
        producer.close()


def start_offset(kafka: EmbeddedKafka, topic: str = TOPIC) -> int:
    consumer = Consumer({**kafka.client_config("confluent"), "group.id": "looks"})
    try:
        from confluent_kafka import TopicPartition

        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
        return int(low)
    finally:
        consumer.close()


def test_a_week_passes_at_once_and_retention_follows(kafka) -> None:
    send(kafka, b"old")
    kafka.clock.advance(days=8)
    assert start_offset(kafka) == 1
    kafka.clock.advance(days=1)
    assert send(kafka, b"new").offset == 1


def test_records_are_stamped_with_the_frozen_time(kafka) -> None:
    kafka.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    moment = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    kafka.clock.freeze(moment)
    assert kafka.clock.now == moment
    assert send(kafka, b"one", "stamped").timestamp == moment.timestamp() * 1000
    time.sleep(0.05)
    kafka.clock.advance(minutes=1)
    assert send(kafka, b"two", "stamped").timestamp == (moment.timestamp() + 60) * 1000
    kafka.clock.unfreeze()
    time.sleep(0.02)
    later = kafka.clock.now
    assert moment + timedelta(minutes=1) < later < moment + timedelta(minutes=2)


def test_time_goes_on_where_it_was_after_a_restart(kafka) -> None:
    kafka.clock.advance(days=30)
    kafka.restart()
    assert kafka.clock.now > datetime.now(UTC) + timedelta(days=29)


def member_count(kafka: EmbeddedKafka, group: str) -> int:
    admin = AdminClient(kafka.client_config("confluent"))
    described = admin.describe_consumer_groups([group])[group].result(10)
    return len(described.members)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_are_connected_stay(kafka, protocol) -> None:
    consumer = Consumer(
        {**kafka.client_config("confluent"), "group.id": "clerks", "group.protocol": protocol}
    )
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.05)
    kafka.clock.advance(hours=1)
    assert member_count(kafka, "clerks") == 1
    kafka.clock.advance(hours=1, expire_members=True)
    assert member_count(kafka, "clerks") == 0
    consumer.close()


def test_members_whose_connections_have_gone_expire(kafka) -> None:
    consumer = KafkaConsumer(
        TOPIC, group_id="clerks", session_timeout_ms=45_000, **kafka.client_config("kafka-python")
    )
    while not consumer.assignment():
        consumer.poll(LONG_POLL_MS)
    kafka.hold("JoinGroup", times=None)
    consumer._client.close()
    kafka.clock.advance(seconds=46)
    assert member_count(kafka, "clerks") == 0


def test_an_open_transaction_runs_out_of_time(kafka) -> None:
    producer = Producer({**kafka.client_config("confluent"), "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(TOPIC, b"never")
    producer.flush(10)
    kafka.clock.advance(minutes=2)
    consumer = KafkaConsumer(
        TOPIC, auto_offset_reset="earliest", isolation_level="read_committed",
        consumer_timeout_ms=2_000, **kafka.client_config("kafka-python"),
    )  # fmt: skip
    send(kafka, b"after")
    assert next(consumer).value == b"after"
    consumer.close()
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(10)


def test_connections_outlive_a_jump(kafka) -> None:
    producer = KafkaProducer(**kafka.client_config("kafka-python"))
    producer.send(TOPIC, b"one").get(10)
    ended = []
    kafka.observe(lambda exchange: ended.append(exchange.number))
    producer.send(TOPIC, b"two").get(10)
    kafka.clock.advance(days=1)
    time.sleep(1.2)  # a sweep over the connections
    producer.send(TOPIC, b"three").get(10)
    assert len(set(ended)) == 1
    producer.close()


@pytest.mark.parametrize("wrong", [{"days": -1}, {"hours": 1, "minutes": -61}])
def test_time_never_goes_back(kafka, wrong) -> None:
    with pytest.raises(ValueError, match="never goes back"):
        kafka.clock.advance(**wrong)


def test_time_ends_where_dates_do(kafka) -> None:
    with pytest.raises(BrokerFailed, match="year 9999"):
        kafka.clock.advance(days=365 * 9000)
    assert kafka.clock.now.year < 2100


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("noon", TypeError),
        (True, TypeError),
        (-1, ValueError),
        (10**18, ValueError),
        (datetime(2030, 1, 1), ValueError),  # noqa: DTZ001 - that is what is wrong with it
    ],
)
def test_a_moment_is_one(kafka, wrong, error) -> None:
    with pytest.raises(error, match="at="):
        kafka.clock.freeze(wrong)


# --- at once --------------------------------------------------------------------------------------


def test_compaction_runs_when_it_is_told_to(kafka) -> None:
    kafka.create_topic("table", configs={"cleanup.policy": "compact"})
    kafka.produce("table", ("a", "1"), ("b", "1"), ("a", "2"), ("a", None), ("b", "2"))
    kafka.run_compaction()
    kept = [(record.key, record.value) for record in kafka.records("table")]
    assert kept == [(b"a", None), (b"b", b"2")]
    kafka.clock.advance(days=2)  # delete.retention.ms
    kafka.produce("table", ("c", "1"))
    kafka.run_compaction()
    kafka.clock.advance(days=2)
    kafka.produce("table", ("c", "2"))
    kafka.run_compaction()
    assert [record.key for record in kafka.records("table")] == [b"b", b"c"]


def test_retention_runs_when_it_is_told_to(kafka) -> None:
    kafka.create_topic("short", configs={"retention.ms": 1})
    kafka.produce("short", "one")
    time.sleep(0.01)
    kafka.run_retention()
    assert kafka.records("short", count=0) == []


# --- ends -----------------------------------------------------------------------------------------


def test_an_unclean_stop_loses_nothing_that_was_acknowledged(tmp_path) -> None:
    with EmbeddedKafka(tmp_path, topics={TOPIC: 1}) as kafka:
        port = kafka.port
        assert send(kafka, b"one").offset == 0
        kafka.stop(unclean=True)
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        kafka.start()
        assert kafka.port == port
        assert send(kafka, b"two").offset == 1


def test_an_unclean_stop_in_memory(kafka) -> None:
    assert send(kafka, b"one").offset == 0
    kafka.stop(unclean=True)
    kafka.start()
    assert send(kafka, b"two").offset == 1


def test_disconnected_clients_come_again(kafka) -> None:
    producer = KafkaProducer(**kafka.client_config("kafka-python"))
    assert producer.send(TOPIC, b"one").get(10).offset == 0
    kafka.disconnect()
    assert producer.send(TOPIC, b"two").get(10).offset == 1
    producer.close()


def test_async_with_holds_no_loop_up() -> None:
    async def main() -> int:
        async with EmbeddedKafka(topics=[TOPIC]) as kafka:
            assert kafka.is_running
            return kafka.port

    assert asyncio.run(main()) > 0


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "confluent", "java", "spark"])
def test_clients_are_told_in_their_own_words(kafka, library) -> None:
    assert list(kafka.client_config(library).values()) == [kafka.bootstrap_servers]


def test_no_such_client(kafka) -> None:
    with pytest.raises(ValueError, match="expected one of kafka-python"):
        kafka.client_config("sarama")
