"""Brokers of one process ask each other over links, as those of several machines would."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.client.wire import Wire, decode_response, request_frame
from kafkalite.peers.channel import Channel
from kafkalite.protocol.messages import FindCoordinatorRequest
from kafkalite.testing.embedded import EmbeddedKafka

PARTITIONS = 6


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What brokers asked of others, by request."""
    found: Counter[str] = Counter()
    ask = Channel.ask

    def counted(channel: Channel, request: Any, versions: range) -> Any:
        found[type(request).__name__] += 1
        return ask(channel, request, versions)

    monkeypatch.setattr(Channel, "ask", counted)
    return found


def begun(kafka: EmbeddedKafka, name: str = "over-all", patience_s: float = 20) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(patience_s)
    producer.begin_transaction()
    for index in range(PARTITIONS):
        producer.produce("spread", b"value", partition=index)
    assert producer.flush(patience_s) == 0
    return producer


def committed(kafka: EmbeddedKafka, patience_s: float = 15) -> int:
    """How many records a reader of committed ones finds before it comes to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["spread"])
    try:
        count = 0
        while (message := consumer.poll(2 if count else patience_s)) is not None:
            assert message.error() is None, message.error()
            count += 1
        return count
    finally:
        consumer.close()


def test_a_transaction_over_several_brokers_is_ended_over_the_wire(asked: Counter[str]) -> None:
    with EmbeddedKafka(brokers=3, topics={"spread": PARTITIONS}) as kafka:
        begun(kafka).commit_transaction(20)
        assert committed(kafka) == PARTITIONS
        # Two of the brokers are not the coordinator: they ask it, and are told of the end.
        assert asked["AddPartitionsToTxnRequest"] >= 2
        assert asked["WriteTxnMarkersRequest"] >= 2
        begun(kafka).abort_transaction(20)
        assert committed(kafka, 3) == 0


def test_markers_wait_for_a_leader_that_is_away(asked: Counter[str]) -> None:
    with EmbeddedKafka(brokers=3, topics={"spread": PARTITIONS}) as kafka:
        producer = begun(kafka)
        coordinator = _coordinator(kafka, "over-all")
        away = next(node for node in (2, 3) if node != coordinator)
        kafka.stop_broker(away)
        producer.commit_transaction(20)  # it counts, whoever has heard of it
        kafka.start_broker(away)
        assert committed(kafka) == PARTITIONS
        assert asked["WriteTxnMarkersRequest"] >= 2


def _coordinator(kafka: EmbeddedKafka, transactional_id: str) -> int:
    wire = Wire("127.0.0.1", kafka.port)
    request = FindCoordinatorRequest(key=transactional_id, key_type=1)
    wire.send(request_frame(request, 2, 1, None))
    frame = wire.receive(10)
    wire.close()
    assert isinstance(frame, bytes)
    return int(decode_response(frame, request.API_KEY, 2).node_id)


WITHIN = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,WITHIN:PLAINTEXT",
    "inter.broker.listener.name": "within",
}


@pytest.mark.parametrize(
    ("host", "settings"),
    [
        ("::1", {}),
        ("::", {}),
        ("127.0.0.2", {}),
        ("localhost", {}),
        ("127.0.0.1", {**WITHIN, "listeners": "PLAINTEXT://127.0.0.1:0,WITHIN://[::1]:0"}),
        ("127.0.0.1", {"advertised.listeners": "PLAINTEXT://localhost:0"}),
    ],
)
def test_brokers_find_each_other_wherever_they_listen(host: str, settings: dict[str, str]) -> None:
    kafka = EmbeddedKafka(brokers=3, topics={"spread": PARTITIONS}, host=host, settings=settings)
    with kafka:
        begun(kafka, patience_s=5).commit_transaction(5)
