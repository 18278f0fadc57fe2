"""One line each: write some records, read them, wait for a group; on any Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.outside import NotOurs, OutsideKafka


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 1}) as kafka:
        yield kafka


def test_what_is_written_is_read(kafka) -> None:
    values = (b"bytes", "text", {"a": [1, None]}, None, ("key", 5))
    kafka.produce("orders", *values, headers={"h": "v"})
    found = kafka.records("orders", count=5)
    assert found.values == [b"bytes", b"text", b'{"a": [1, null]}', None, b"5"]
    assert found[2].json() == {"a": [1, None]}
    assert found[4].key == b"key"
    assert found[0].headers == {"h": b"v"}
    assert [each.offset for each in found] == [0, 1, 2, 3, 4]


def test_records_wait_for_those_that_come(kafka) -> None:
    writing = threading.Timer(0.3, kafka.produce, ("orders", {"id": 7}))
    writing.start()
    assert kafka.records("orders").one().json() == {"id": 7}
    writing.join()


def test_records_that_do_not_come_are_told(kafka) -> None:
    kafka.produce("orders", "only")
    with pytest.raises(AssertionError, match="orders has 1 records and not 2: orders-0@0 b'only'"):
        kafka.records("orders", count=2, timeout=0.1)
    with pytest.raises(AssertionError, match="no topic nowhere"):
        kafka.records("nowhere", timeout=0.1)
    kafka.produce("orders", "another")
    with pytest.raises(AssertionError, match="expected one record, and there are 2"):
        kafka.records("orders").one()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_waited_for_and_its_lag_is_told(kafka, protocol) -> None:
    from confluent_kafka import Consumer

    kafka.produce("orders", *map(str, range(5)))
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "group.protocol": protocol,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    with pytest.raises(AssertionError, match="group clerks is Dead and of 0, not Stable and of 1"):
        kafka.wait_for_group("clerks", members=1, timeout=0.1)
    consumer.subscribe(["orders"])
    seen = [consumer.poll(5) for _ in range(3)]
    assert kafka.wait_for_group("clerks", members=1).members[0].client_id == "rdkafka"
    kafka.assert_lag("clerks", 5, topics=["orders"])
    consumer.commit(message=seen[-1], asynchronous=False)
    kafka.assert_lag("clerks", 2)
    with pytest.raises(AssertionError, match=r"2 records behind, not 0 \(orders-0: 2\)"):
        kafka.assert_lag("clerks", 0, timeout=0.1)
    consumer.close()
    kafka.wait_for_group("clerks", state="Empty", members=0)


def test_a_kafka_elsewhere_is_asked_in_the_same_words(kafka) -> None:
    outside = OutsideKafka(kafka.bootstrap_servers)
    outside.create_topic("payments", 2, {"retention.ms": 1000})
    outside.produce("payments", "one")
    assert outside.records("payments").one().text == "one"
    assert outside.client_config("java") == {"bootstrap.servers": kafka.bootstrap_servers}
    consumer = KafkaConsumer("payments", group_id="g", **outside.client_config("kafka-python"))
    consumer.poll(100)
    outside.wait_for_group("g", members=1)
    consumer.close()


@pytest.mark.parametrize("name", ["clock", "fail", "stop", "restart", "exchanges", "quiesce"])
def test_what_needs_control_of_it_says_so(name) -> None:
    with pytest.raises(NotOurs, match=f"`{name}` needs a broker in this process"):
        getattr(OutsideKafka("localhost:9092"), name)


def test_what_nobody_has_is_an_ordinary_mistake() -> None:
    with pytest.raises(AttributeError):
        _ = OutsideKafka("localhost:9092").nothing


@pytest.mark.parametrize("wrong", ["", "localhost", ":9092", "a:b", "host:99999", "host:²"])
def test_an_address_is_one(wrong) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        OutsideKafka(wrong)


def test_quiesce_waits_for_what_is_under_way(kafka) -> None:
    kafka.create_topic("many", 500)
    kafka.quiesce()
    began = time.monotonic()
    kafka.quiesce()
    assert time.monotonic() - began < 1
