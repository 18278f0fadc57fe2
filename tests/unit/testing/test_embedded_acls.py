"""Brokers in a test's process with access rules from the beginning, as stock clients feel them."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka.errors import TopicAuthorizationFailedError

from kafkalite.testing.embedded import EmbeddedKafka

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "auto.create.topics.enable": False,
}


def test_rules_hold_from_the_start_for_all_brokers() -> None:
    acls = ["User:ANONYMOUS write topic orders", "User:ANONYMOUS describe topic secrets"]
    with EmbeddedKafka(
        topics=["orders", "secrets"], settings=AUTHORIZER, acls=acls, brokers=2
    ) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        told: list[object] = []
        for topic in ("orders", "secrets"):
            producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
            producer.flush(10)
        assert told[0] is None
        assert "TOPIC_AUTHORIZATION_FAILED" in repr(told[1])
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=kafka.bootstrap_servers, group_id=None,
            auto_offset_reset="earliest",
        )
        with pytest.raises(TopicAuthorizationFailedError):
            consumer.poll(10_000)
        consumer.close(autocommit=False)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        with pytest.raises(KafkaException, match="Authorization failed"):
            admin.create_topics([NewTopic("new", 1, 1)])["new"].result(10)


def test_rules_need_an_authorizer() -> None:
    with pytest.raises(ValueError, match=r"acls are kept by an authorizer"):
        EmbeddedKafka(acls=["User:alice read topic x"])
