"""What a test has a broker do wrong, as clients see it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.protocol.messages import FetchRequest, ProduceRequest
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.schedule import Step
from kafkalite.testing.where import Where
from tests.unit.log.making import batch
from tests.unit.testing.between import asked

TOPIC = "orders"


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={TOPIC: 1}) as kafka:
        yield kafka


def values(kafka: EmbeddedKafka) -> list[bytes]:
    consumer = KafkaConsumer(
        TOPIC, auto_offset_reset="earliest", consumer_timeout_ms=1000,
        **kafka.client_config("kafka-python"),
    )  # fmt: skip
    try:
        return [record.value for record in consumer]
    finally:
        consumer.close()


def send(kafka: EmbeddedKafka, value: bytes, **settings: object) -> None:
    producer = Producer({**kafka.client_config("confluent"), "linger.ms": 0, **settings})
    failed: list[object] = []
    producer.produce(TOPIC, value, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(15) == 0
    [failure] = failed
    if failure is not None:
        raise KafkaException(failure)


def test_a_refused_request_does_nothing_and_its_client_tries_again(kafka) -> None:
    fault = kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    send(kafka, b"one")
    assert fault.count == 2
    assert values(kafka) == [b"one"]


def test_an_error_for_good_reaches_the_application(kafka) -> None:
    fault = kafka.fail("produce", error="TOPIC_AUTHORIZATION_FAILED", times=None)
    with fault, pytest.raises(KafkaException, match="authorization"):
        send(kafka, b"one")
    send(kafka, b"two")
    assert values(kafka) == [b"two"]


def test_a_lost_acknowledgement_doubles_what_is_not_idempotent(kafka) -> None:
    with kafka.lose_reply("Produce") as fault:
        send(kafka, b"one", **{"enable.idempotence": False})
        assert fault.count == 1
    assert values(kafka) == [b"one", b"one"]


def test_a_lost_acknowledgement_doubles_nothing_that_is_idempotent(kafka) -> None:
    with kafka.lose_reply("Produce"):
        send(kafka, b"one", **{"enable.idempotence": True})
    assert values(kafka) == [b"one"]


def test_a_dropped_connection_did_nothing(kafka) -> None:
    with kafka.drop_connection("Produce") as fault:
        send(kafka, b"one", **{"enable.idempotence": False})
        assert fault.count == 1
    assert values(kafka) == [b"one"]


def test_when_picks_requests(kafka) -> None:
    kafka.create_topic("payments")
    with kafka.fail(
        "Produce", error="TOPIC_AUTHORIZATION_FAILED", times=None,
        when=lambda request: request.topic_data[0].partition_data[0].index == 5,
    ) as fault:  # fmt: skip
        send(kafka, b"one")
        assert fault.count == 0


def test_what_when_raises_is_told_to_the_test(kafka) -> None:
    fault = kafka.fail("Produce", error="UNKNOWN_SERVER_ERROR", when=lambda request: request.no)
    send(kafka, b"one")
    with pytest.raises(AttributeError):
        _ = fault.count


def test_a_reply_comes_later_and_the_work_is_done_at_once(kafka) -> None:
    kafka.delay("Produce", ms=700)
    began = time.monotonic()
    sending = threading.Thread(target=send, args=(kafka, b"one"))
    sending.start()
    while not values(kafka):
        assert time.monotonic() - began < 10
    assert sending.is_alive() or time.monotonic() - began >= 0.7
    sending.join(10)
    assert time.monotonic() - began >= 0.7


def test_a_throttled_client_is_told_and_not_heard(kafka) -> None:
    told: list[int] = []
    producer = Producer({
        **kafka.client_config("confluent"), "linger.ms": 0,
        "throttle_cb": lambda event: told.append(round(event.throttle_time * 1000)),
    })  # fmt: skip
    with kafka.throttle("Produce", ms=400) as fault:
        producer.produce(TOPIC, b"one")
        assert producer.flush(10) == 0
        assert fault.count == 1
    deadline = time.monotonic() + 10
    while not told and time.monotonic() < deadline:
        producer.poll(0.1)
    assert told[0] == 400


def test_held_requests_keep_their_order(kafka) -> None:
    producer = KafkaProducer(
        linger_ms=0, max_in_flight_requests_per_connection=5, enable_idempotence=False,
        **kafka.client_config("kafka-python"),
    )  # fmt: skip
    fault = kafka.hold("Produce")
    sent = []
    for number in range(3):
        sent.append(producer.send(TOPIC, str(number).encode()))
        time.sleep(0.05)
    assert fault.count == 1
    assert not any(each.is_done for each in sent)
    fault.release()
    assert [each.get(10).offset for each in sent] == [0, 1, 2]
    producer.close()
    assert values(kafka) == [b"0", b"1", b"2"]


def test_what_is_held_goes_on_when_its_rule_is_taken_back(kafka) -> None:
    sending = threading.Thread(target=send, args=(kafka, b"one"))
    with kafka.hold("Produce") as fault:
        sending.start()
        deadline = time.monotonic() + 10
        while fault.count < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
    sending.join(10)
    assert not sending.is_alive()
    assert values(kafka) == [b"one"]


def test_a_stop_does_not_wait_for_what_is_held() -> None:
    with EmbeddedKafka(topics={TOPIC: 1}) as kafka:
        fault = kafka.hold("Produce", times=None)
        producer = Producer({**kafka.client_config("confluent"), "message.timeout.ms": 3000})
        producer.produce(TOPIC, b"one")
        producer.poll(0.2)
        deadline = time.monotonic() + 10
        while fault.count < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 2
    producer.purge()


@pytest.mark.parametrize("api", ["Produces", "", 5, None])
def test_no_such_api(kafka, api) -> None:
    with pytest.raises(ValueError, match="no API of Kafka"):
        kafka.fail(api, error="NOT_CONTROLLER")


@pytest.mark.parametrize("error", ["NOT_LEADER", "", 4711, None])
def test_no_such_error(kafka, error) -> None:
    with pytest.raises(ValueError, match="no error of Kafka"):
        kafka.fail("Produce", error=error)


# --- looking on -----------------------------------------------------------------------------------


def test_what_was_said_is_kept_and_understood(kafka) -> None:
    kafka.keep_exchanges()
    with kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER"):
        send(kafka, b"one")
    produced = [each for each in kafka.exchanges if each.api == "Produce"]
    assert [[error.name for error in each.errors] for each in produced] == [
        ["NOT_LEADER_OR_FOLLOWER"], [],
    ]  # fmt: skip
    assert produced[1].response.responses[0].partition_responses[0].base_offset == 0
    assert "NOT_LEADER_OR_FOLLOWER" in str(produced[0])
    kafka.keep_exchanges(False)
    send(kafka, b"two")
    assert kafka.exchanges == []


def test_an_observer_hears_everything_and_harms_nobody(kafka) -> None:
    heard: list[str | None] = []

    def observer(exchange) -> None:
        heard.append(exchange.api)
        raise RuntimeError("the observer's own mistake")

    stop = kafka.observe(observer)
    send(kafka, b"one")
    assert {"ApiVersions", "Metadata", "Produce"} <= set(heard)
    stop()
    count = len(heard)
    send(kafka, b"two")
    assert len(heard) == count


def test_how_a_group_came_together_can_be_read(kafka) -> None:
    kafka.keep_exchanges()
    consumer = Consumer(
        {**kafka.client_config("confluent"), "group.id": "clerks", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    send(kafka, b"one")
    assert consumer.poll(10) is not None
    consumer.commit(asynchronous=False)
    consumer.close()
    shown = "\n".join(map(str, kafka.exchanges))
    for word in ("JoinGroup", "SyncGroup", "clerks", "OffsetCommit", "committed_offset=1"):
        assert word in shown


def test_what_was_fetched_is_told_also_when_its_file_has_gone(tmp_path) -> None:
    settings = {"log.segment.delete.delay.ms": 0}
    with EmbeddedKafka(tmp_path / "data", topics=["gone"], settings=settings) as kafka:
        kafka.produce("gone", *["x" * 1000] * 300)
        kafka.keep_exchanges()
        kafka.records("gone", count=300)
        admin = AdminClient(kafka.client_config("confluent"))
        [deleted] = admin.delete_topics(["gone"]).values()
        deleted.result(10)
        kafka.clock.advance(minutes=5)
        assert list((tmp_path / "data").glob("gone-0*")) == []
        fetches = [each for each in kafka.exchanges if each.api == "Fetch"]
        sizes = [
            len(each.response.responses[0].partitions[0].records or b"") for each in fetches
        ]
        assert max(sizes) > 200_000


# --- requests picked by what they name ------------------------------------------------------------


def sent(kafka: EmbeddedKafka, topic: str, partition: int = -1, **settings: object) -> str | None:
    """The error that a producer without patience gets."""
    producer = Producer({
        **kafka.client_config("confluent"), "linger.ms": 0, "message.timeout.ms": 5000, **settings
    })  # fmt: skip
    failed: list[object] = []
    producer.produce(topic, b"x", partition=partition, on_delivery=lambda e, _: failed.append(e))
    assert producer.flush(15) == 0
    return None if failed[0] is None else str(failed[0])


@pytest.mark.parametrize(
    ("where", "met"),
    [
        (Where(topic="payments"), ["payments 0", "payments 1"]),
        (Where(topic="payments", partition=1), ["payments 1"]),
        (Where(partition=0), ["payments 0", "orders 0"]),
        (Where(topic="orders", client_id="clerk"), []),
        (Where(client_id="app"), ["payments 0", "payments 1", "orders 0"]),
        (Where(group="clerks"), []),
        (Where(transactional_id="tx"), []),
        (Where(), ["payments 0", "payments 1", "orders 0"]),
    ],
)
def test_where_picks_requests_by_what_they_name(kafka, where, met) -> None:
    """confluent-kafka names topics by their ids when it produces."""
    kafka.create_topic("payments", 2)
    fault = kafka.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", times=None, when=where)
    found = []
    for topic, partition in (("payments", 0), ("payments", 1), (TOPIC, 0)):
        if sent(kafka, topic, partition, **{"client.id": "app"}) is not None:
            found.append(f"{topic} {partition}")
    assert found == met
    assert fault.count == len(met)


def test_where_knows_a_transactional_id(kafka) -> None:
    def begin(name: str) -> None:
        producer = Producer({**kafka.client_config("confluent"), "transactional.id": name})
        producer.init_transactions(10)

    wanted = Where(transactional_id="tx-1")
    fault = kafka.fail("InitProducerId", error="CONCURRENT_TRANSACTIONS", when=wanted)
    begin("tx-2")
    assert fault.count == 0
    begin("tx-1")
    assert fault.count == 1
    fault = kafka.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", when=wanted)
    begin("tx-2")
    assert fault.count == 0
    begin("tx-1")
    assert fault.count == 1


def test_where_knows_what_a_fetch_session_stands_for(kafka) -> None:
    """Later requests of a session name no partition any more."""
    consumer = KafkaConsumer(
        TOPIC, auto_offset_reset="earliest", **kafka.client_config("kafka-python")
    )
    kafka.keep_exchanges()
    deadline = time.monotonic() + 10
    while not any(each.api == "Fetch" and each.request.session_id for each in kafka.exchanges):
        consumer.poll(50)
        assert time.monotonic() < deadline
    elsewhere = kafka.delay("Fetch", ms=1, times=None, when=Where(topic="payments"))
    here = kafka.delay("Fetch", ms=1, times=None, when=Where(topic=TOPIC, partition=0))
    while here.count < 2:
        consumer.poll(50)
        assert time.monotonic() < deadline
    consumer.close()
    assert elsewhere.count == 0


def test_where_knows_a_group(kafka) -> None:
    mine = kafka.delay("*", ms=1, times=None, when=Where(group="clerks"))
    other = kafka.delay("*", ms=1, times=None, when=Where(group="cooks"))
    consumer = Consumer({**kafka.client_config("confluent"), "group.id": "clerks"})
    consumer.subscribe([TOPIC])
    kafka.keep_exchanges()
    deadline = time.monotonic() + 10
    while not any(each.api == "Heartbeat" for each in kafka.exchanges):
        consumer.poll(0.1)
        assert time.monotonic() < deadline
    consumer.close()
    assert mine.count >= 4  # FindCoordinator, JoinGroup, SyncGroup, Heartbeat
    assert other.count == 0


def test_what_waits_behind_a_held_request_is_let_go_by_nothing_else(kafka) -> None:
    """A fetch before it is answered meanwhile, and throttled: by what it was given, so later."""
    kafka.create_topic("later")
    produce = partial(asked, version=8)
    held = kafka.hold("Produce", times=1, when=Where(client_id="me"))
    with (
        kafka.explore(schedule=[Step(kind="throttle", api="Fetch")]) as explorer,
        socket.create_connection(("127.0.0.1", kafka.port), 10) as link,
    ):
        fetch = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
        link.sendall(asked(FetchRequest(
            replica_id=-1, max_wait_ms=9_000, min_bytes=1, max_bytes=10_000,
            topics=[FetchRequest.Topic(topic=TOPIC, partitions=[fetch])],
        ), 4))  # fmt: skip
        for value in (b"held", b"behind it"):
            part = ProduceRequest.PartitionData(index=0, records=batch([value]))
            data = ProduceRequest.TopicData(name="later", partition_data=[part])
            link.sendall(produce(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[data])))
        while not held.held:
            time.sleep(0.01)
        kafka.produce(TOPIC, "one")
        assert len(link.recv(10_000)) > 0
        time.sleep(0.3)
        assert len(explorer.schedule) == 1
        assert kafka.records("later", count=0) == []
        held.release()
        assert [each.text for each in kafka.records("later", count=2)] == ["held", "behind it"]


def test_taking_all_back_ends_what_is_explored(kafka) -> None:
    explorer = kafka.explore(1, rate=1, kinds=["delay"])
    kafka.no_faults()
    send(kafka, b"one")
    assert not explorer.schedule
