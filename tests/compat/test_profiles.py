"""Python's clients against brokers with the versions of other releases: they fall back, and all
that they do works: produce, groups, transactions where the release has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafkalite.testing import asking, profiles
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.transactional_clients import CLIENTS

RELEASES = ("0.10.0", "0.11.0", "1.0", "2.0", "2.4", "2.8", "3.5", "4.0")
WITH_TRANSACTIONS = RELEASES[1:]
OFTEN = ("0.10.0", "0.11.0", "2.8", "4.0")
PATIENCE_S = 20
VALUES = [b"one", b"two", b"three"]
GROUP = "clerks"

Application = Callable[[str], list[bytes]]


def of_kafka_python(bootstrap: str) -> list[bytes]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for value in VALUES:
        producer.send("orders", value).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )  # fmt: skip
    found = [next(consumer).value for _ in VALUES]
    consumer.commit()
    consumer.close()
    return found


def of_confluent(bootstrap: str) -> list[bytes]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for value in VALUES:
        producer.produce("orders", value)
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest",
        "log_level": 0,
    })  # fmt: skip
    consumer.subscribe(["orders"])
    found = [consumer.poll(PATIENCE_S) for _ in VALUES]
    consumer.commit(asynchronous=False)
    consumer.close()
    return [message.value() for message in found if message is not None]


def of_aiokafka(bootstrap: str) -> list[bytes]:
    async def running() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for value in VALUES:
                await producer.send_and_wait("orders", value)
        async with aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest"
        ) as consumer:
            found = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit()
        return found

    return asyncio.run(asyncio.wait_for(running(), 2 * PATIENCE_S))


def some(wanted: tuple[str, ...]) -> list[Any]:
    """All of them, of which `make test` has time for a few."""
    more = [pytest.param(each, marks=pytest.mark.full) for each in wanted if each not in OFTEN]
    return [*(each for each in wanted if each in OFTEN), *more]


APPLICATIONS: dict[str, Application] = {
    "kafka-python": of_kafka_python,
    "confluent": of_confluent,
    "aiokafka": of_aiokafka,
}


@pytest.fixture
def broker(release: str) -> Iterator[EmbeddedKafka]:
    topics = ["orders", "bills"]
    with EmbeddedKafka(profile=f"kafka-{release}", topics=topics) as broker:
        broker.keep_exchanges()
        yield broker


def versions_used(broker: EmbeddedKafka, release: str) -> dict[str, set[int]]:
    """By API; none was beyond the release, but for the first greeting, which cannot know."""
    answered = profiles.named(f"kafka-{release}").answered
    used: dict[str, set[int]] = {}
    for each in broker.exchanges:
        if each.client_id == asking.CLIENT_ID:
            continue
        assert each.api is not None
        assert each.version is not None
        is_known = each.version in answered.get(profiles.keys()[each.api], ())
        assert is_known or each.api == "ApiVersions", str(each)
        if is_known:
            used.setdefault(each.api, set()).add(each.version)
    return used


@pytest.mark.parametrize("release", some(RELEASES))
@pytest.mark.parametrize("library", APPLICATIONS)
def test_records_and_groups(broker: EmbeddedKafka, release: str, library: str) -> None:
    assert APPLICATIONS[library](broker.bootstrap_servers) == VALUES
    broker.assert_lag(GROUP, 0)
    used = versions_used(broker, release)
    assert {"ApiVersions", "Metadata", "Produce", "Fetch", "JoinGroup", "OffsetCommit"} <= set(used)


@pytest.mark.parametrize("release", some(WITH_TRANSACTIONS))
@pytest.mark.parametrize("library", CLIENTS)
def test_transactions(broker: EmbeddedKafka, release: str, library: str) -> None:
    client = CLIENTS[library]
    producer = client.producer(broker.bootstrap_servers, "over-all", PATIENCE_S * 1000)
    producer.init()
    for value, is_kept in ((b"kept", True), (b"given up", False)):
        producer.begin()
        producer.send("bills", value)
        if is_kept:
            producer.send_offsets("orders", 0, GROUP)
        (producer.commit if is_kept else producer.abort)()
    producer.close()
    assert client.read(broker.bootstrap_servers, "bills", "read_committed", 1) == [b"kept"]
    used = versions_used(broker, release)
    assert {"InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"} <= set(used)
