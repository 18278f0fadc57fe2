"""A test has another broker lead a partition, and clients find it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.protocol.errors import Error
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

REPLICATED = {"default.replication.factor": 3}


def write(producer: Producer, value: str) -> None:
    producer.produce("orders", value)
    assert producer.flush(20) == 0


def led_by(kafka: EmbeddedKafka) -> int:
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    leader: int = Producer(config).list_topics("orders", 10).topics["orders"].partitions[0].leader
    return leader


def refused(kafka: EmbeddedKafka, broker: int) -> str:
    """Why it does not lead the partition; empty when it does."""
    try:
        kafka.move_leader("orders", 0, to=broker)
    except BrokerFailed as refusal:
        return str(refusal)
    return ""


def test_a_leader_begins_anew_and_clients_learn_of_it() -> None:
    with EmbeddedKafka(topics=["orders"]) as kafka:
        kafka.keep_exchanges()
        config = {"bootstrap.servers": kafka.bootstrap_servers}
        consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        producer = Producer(config)
        write(producer, "before")
        assert consumer.poll(20).value() == b"before"

        kafka.move_leader("orders", to=1)
        write(producer, "after")
        assert consumer.poll(20).value() == b"after"
        consumer.close()
        fetches = [each for each in kafka.exchanges if each.api == "Fetch"]
        assert Error.FENCED_LEADER_EPOCH in {error for each in fetches for error in each.errors}


def test_no_record_is_lost_wherever_the_leader_goes() -> None:
    """Who does not hold the records is refused; whoever leads has all of them."""
    with EmbeddedKafka(brokers=3, topics=["orders"], settings=REPLICATED) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number, broker in enumerate((2, 3, 1)):
            write(producer, f"{number}")
            before = led_by(kafka)
            refusal = refused(kafka, broker)
            assert refusal == "" or "does not hold its records" in refusal
            assert led_by(kafka) == (before if refusal else broker)
        found = kafka.records("orders", count=3)
        assert [each.text for each in found] == ["0", "1", "2"]


def test_what_cannot_lead_is_named() -> None:
    with EmbeddedKafka(brokers=3, topics=["orders"]) as kafka:
        [other, *_] = {1, 2, 3} - {led_by(kafka)}
        with pytest.raises(BrokerFailed, match=f"broker {other} has no replica of it"):
            kafka.move_leader("orders", to=other)
        with pytest.raises(ValueError, match="no broker 4: their ids are 1 to 3"):
            kafka.move_leader("orders", to=4)
        with pytest.raises(BrokerFailed, match="there is no partition orders-9"):
            kafka.move_leader("orders", 9, to=1)
