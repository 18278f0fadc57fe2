"""Applications of the Python clients, recorded before each broker; the recording is sent to a fresh
kafkalite and a fresh Apache Kafka, which must answer it alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafkalite.testing.comparison.replaying import Exchange, Replay
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.recording import trace
from kafkalite.testing.recording.recorder import Recorder
from kafkalite.testing.recording.trace import Said
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.compat.polls import LONG_POLL_MS
from tests.compat.transactional_clients import CLIENTS

# All recordings are sent to the same two brokers, one after the other.
pytestmark = pytest.mark.xdist_group("recorded applications")

COUNT = 3
DEADLINE_S = 20
POLL_MS = 200


def consume_with_kafka_python(bootstrap: str, topic: str, group: str) -> int:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
        isolation_level="read_committed", enable_auto_commit=False,
    )
    found, deadline = 0, time.monotonic() + DEADLINE_S
    while found < COUNT and time.monotonic() < deadline:
        found += sum(map(len, consumer.poll(LONG_POLL_MS).values()))
    consumer.commit()
    consumer.close()
    return found


def consume_with_aiokafka(bootstrap: str, topic: str, group: str) -> int:
    async def consume() -> int:
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
            isolation_level="read_committed", enable_auto_commit=False,
        )
        found, deadline = 0, time.monotonic() + DEADLINE_S
        async with consumer:
            while found < COUNT and time.monotonic() < deadline:
                polled = await consumer.getmany(timeout_ms=POLL_MS)
                found += sum(map(len, polled.values()))
            await consumer.commit()
        return found

    return asyncio.run(consume())


def consume_with_confluent(bootstrap: str, topic: str, group: str) -> int:
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "enable.auto.commit": False,
    })
    consumer.subscribe([topic])
    found, deadline = 0, time.monotonic() + DEADLINE_S
    while found < COUNT and time.monotonic() < deadline:
        found += len(consumer.consume(COUNT, POLL_MS / 1000))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


CONSUME: dict[str, Callable[[str, str, str], int]] = {
    "kafka-python": consume_with_kafka_python,
    "aiokafka": consume_with_aiokafka,
    "confluent": consume_with_confluent,
}


def application(client: str, bootstrap: str, unique: Callable[[str], str]) -> None:
    """Transactions that commit, abort and carry offsets; then a group that reads and commits."""
    topic, group = unique("orders"), unique("clerks")
    producer = CLIENTS[client].producer(bootstrap, unique("till"), 60_000)
    producer.init()
    for number in range(COUNT + 1):
        producer.begin()
        producer.send(topic, b"order %d" % number)
        if number == COUNT:
            producer.abort()
        else:
            producer.send_offsets(topic, number, unique("others"))
            producer.commit()
    producer.close()
    assert CONSUME[client](bootstrap, topic, group) == COUNT


@pytest.fixture(scope="module")
def fresh(run_folder: Path) -> list[Broker]:
    """Kafkalite and Apache Kafka, where nothing but these recordings happens."""
    return [brokers.shared(kind, run_folder / "replay") for kind in brokers.BROKERS]


def replayed(said: list[Said], pair: list[Broker]) -> list[Exchange]:
    """Through the file's lines, as a user does it."""
    lines = [trace.to_json(each) for each in said]
    ours, theirs = (Side(each.host, each.port) for each in pair)
    try:
        return list(Replay(ours, theirs, list(trace.read(lines))).run())
    finally:
        ours.close()
        theirs.close()


def differences(exchanges: list[Exchange]) -> list[str]:
    return [str(each) for exchange in exchanges for each in exchange.differences]


@pytest.mark.parametrize("client", list(CONSUME))
def test_recorded_application_is_answered_alike(
    broker: Broker, client: str, unique: Callable[[str], str], fresh: list[Broker]
) -> None:
    with Recorder(broker.bootstrap) as recorder:
        application(client, recorder.bootstrap_servers, unique)
    exchanges = replayed(recorder.said, fresh)
    assert differences(exchanges) == []
    compared = {each.api for each in exchanges if each.frames}
    assert {"Produce", "Fetch", "EndTxn", "JoinGroup", "SyncGroup", "OffsetCommit"} <= compared


def test_planted_difference_is_found(
    broker: Broker, unique: Callable[[str], str], fresh: list[Broker]
) -> None:
    """The broker in question has a record more in a topic than the other."""
    topic = unique("orders")
    producer = kafka.KafkaProducer(bootstrap_servers=fresh[0].bootstrap)
    producer.send(topic, b"an order that the other does not have").get(DEADLINE_S)
    producer.close()
    with Recorder(broker.bootstrap) as recorder:
        producer = kafka.KafkaProducer(bootstrap_servers=recorder.bootstrap_servers)
        producer.send(topic, b"order").get(DEADLINE_S)
        producer.close()
    assert any("base_offset" in each for each in differences(replayed(recorder.said, fresh)))
