"""Quotas of clients, on both brokers: the same limits give the same waits.

What is expected is reckoned with the project's own rates, which `tests/conformance/test_quotas.py`
compares with Apache Kafka's; each broker has to come within a tenth of it, so that the two are
within a fifth of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from statistics import mean
from typing import Any
from uuid import uuid4

import confluent_kafka
import pytest
from kafka import KafkaProducer

from bench import raw_client
from bench.raw_client import RawClient, decode_reply, frame_of, make_batch, make_topic
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkalite.quotas.rates import Rate, Window
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.native_tools import NativeTools
from tests.compat.waiting import PATIENCE_S

WINDOW = Window(3, 1_000)
PASSWORD = "of-tests-only"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
RATE, BATCH_BYTES = 64_000, 16_000
LATE_MS = 1_500
PRODUCED, FETCHED = "producer_byte_rate", "consumer_byte_rate"
TIME, MUTATIONS = "request_percentage", "controller_mutation_rate"

pytestmark = [
    pytest.mark.xdist_group("java-tools"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


class Place:
    """A broker with windows of three seconds, and a listener at which alice logs in."""

    def __init__(self, broker: Broker, secured_port: int) -> None:
        self.broker = broker
        self.secured = f"127.0.0.1:{secured_port}"
        self._connected: list[RawClient] = []

    def connect(self) -> RawClient:
        self._connected.append(RawClient(self.broker.host, self.broker.port))
        return self._connected[-1]

    def leave(self) -> None:
        """All clients that have connected go."""
        while self._connected:
            self._connected.pop().close()

    def limit(self, key: str, value: float | None, **entity: str | None) -> None:
        """None takes it away."""
        asked = AlterClientQuotasRequest
        entry = asked.Entry(
            entity=[
                asked.Entity(entity_type=kind.replace("_", "-"), entity_name=name)
                for kind, name in entity.items()
            ],
            ops=[asked.Op(key=key, value=value or 0.0, remove=value is None)],
        )
        client = self.connect()
        request = asked(entries=[entry], validate_only=False)
        (answer,) = client.call(request, 1, AlterClientQuotasResponse).entries
        assert answer.error_code == Error.NONE, answer
        client.close()
        self.settle()

    def settle(self) -> None:
        """Apache Kafka's broker follows its controller."""
        if not self.broker.is_kafkalite:
            time.sleep(0.5)


@pytest.fixture(autouse=True)
def of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test took counts for its client id alone."""
    monkeypatch.setattr(raw_client, "CLIENT_ID", f"bench-{uuid4()}")


@pytest.fixture(scope="module")
def place(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    plain, controller, port = brokers.free_ports(3)
    opened = f"PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{port}"
    settings = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{MODULE} user_alice="{PASSWORD}";',
        "quota.window.num": str(WINDOW.samples),
        "controller.quota.window.num": str(WINDOW.samples),
    }
    folder = tmp_path_factory.mktemp("quotas")
    broker = brokers.start(broker_kind, folder, settings, port=plain)
    yield Place(broker, port)
    broker.stop()


@pytest.fixture
def filled(place: Place, topic: str) -> str:
    """A topic, by a client that nobody limits."""
    client = place.connect()
    make_topic(client, topic)
    client.close()
    return topic


@pytest.fixture
def limited(place: Place) -> Iterator[Callable[..., None]]:
    """Limits that are gone after the test."""
    given: list[tuple[str, dict[str, str | None]]] = []

    def limit(key: str, value: float, **entity: str | None) -> None:
        given.append((key, entity))
        place.limit(key, value, **entity)

    yield limit
    place.leave()
    for key, entity in given:
        place.limit(key, None, **entity)
    time.sleep(WINDOW.duration_ms / 1_000)  # what was had is the next one's, too


def expected(sizes: list[int], limit: float) -> list[int]:
    """The wait after each of these, by who waits for no more than that."""
    rate, now_ms, waits = Rate(WINDOW), 0, []
    rate.limit = limit
    for size in sizes:
        rate.record(now_ms, size)
        waits.append(rate.wait_ms(now_ms))
        now_ms += waits[-1]
    return waits


def expected_reading(count: int, size: int, limit: float) -> float:
    """How long it takes to get so many replies, if each that is too much is empty and waited for;
    a mean, since a few milliseconds decide in which sample a reply lies."""
    took = []
    for seed in range(50):
        random, rate, now_ms, left = Random(seed), Rate(WINDOW), 0, count
        rate.limit = limit
        while left:
            now_ms += random.randrange(10)
            rate.record(now_ms, size)
            wait_ms = rate.wait_ms(now_ms)
            if wait_ms:
                rate.record(now_ms, -size)
            else:
                left -= 1
            now_ms += wait_ms
        took.append(now_ms)
    return mean(took)


def alike(measured: float, wanted: float, share: float = 0.1) -> bool:
    return abs(measured - wanted) <= share * wanted


def lasted(took_ms: float, wanted: float) -> bool:
    """Beside other tests a reply may be late; it is never early."""
    return 0.9 * wanted <= took_ms <= 1.1 * wanted + LATE_MS


def to_produce(topic: str, batch: bytes, acks: int = 1) -> ProduceRequest:
    partition = ProduceRequest.PartitionData(index=0, records=batch)
    data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data])


def to_fetch(topic: str, offset: int = 0, max_bytes: int = 1 << 20) -> FetchRequest:
    partition = FetchRequest.Partition(
        partition=0, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=[partition])],
    )  # fmt: skip


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.full  # it wants a machine that has nothing else to do
def test_a_producer_is_held_to_its_rate(place: Place, filled: str, limited: Any) -> None:
    batch, _ = make_batch(BATCH_BYTES, 1_000)
    request = to_produce(filled, batch)
    size = len(frame_of(request, 9, 0)) - 4
    limited(PRODUCED, RATE, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    began, told = time.monotonic(), 0
    for _ in range(24):
        answer = client.call(request, 9, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == Error.NONE
        told += answer.throttle_time_ms
    client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)  # heard when the last wait is over
    took_ms = (time.monotonic() - began) * 1_000
    wanted = sum(expected([size] * 24, RATE))
    assert wanted > 3_000
    assert alike(told, wanted), (told, wanted)
    assert alike(took_ms, wanted), (took_ms, wanted)
    client.close()


@pytest.mark.full  # it wants a machine that has nothing else to do
def test_a_reader_is_held_to_its_rate(place: Place, filled: str, limited: Any) -> None:
    batch, records = make_batch(BATCH_BYTES, 1_000)
    client = place.connect()
    for _ in range(64):
        client.call(to_produce(filled, batch), 9, ProduceResponse)
    limited(FETCHED, RATE, client_id=raw_client.CLIENT_ID)
    began, offset, told, size = time.monotonic(), 0, 0, 0
    while offset < 64 * records:
        answer = client.call(to_fetch(filled, offset, len(batch)), 12, FetchResponse)
        told += answer.throttle_time_ms
        if answer.throttle_time_ms:
            assert answer.responses == []
            continue
        size = len(answer.responses[0].partitions[0].records) + 100
        offset += records
    took_ms = (time.monotonic() - began) * 1_000
    wanted = expected_reading(64, size, RATE)
    assert alike(took_ms, wanted, 0.12), (took_ms, wanted)
    assert alike(told, took_ms), (told, took_ms)
    client.close()


def test_one_batch_larger_than_a_window(place: Place, filled: str, limited: Any) -> None:
    batch, _ = make_batch(600_000, 10_000)
    request = to_produce(filled, batch)
    limited(PRODUCED, RATE, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    began = time.monotonic()
    answer = client.call(request, 9, ProduceResponse)
    assert time.monotonic() - began < 2, "the reply goes first"
    (wanted,) = expected([len(frame_of(request, 9, 0)) - 4], RATE)
    assert alike(answer.throttle_time_ms, wanted), (answer.throttle_time_ms, wanted)
    client.close()


def test_nobody_answers_and_the_client_is_not_heard(
    place: Place, filled: str, limited: Any
) -> None:
    batch, _ = make_batch(250_000, 10_000)
    request = to_produce(filled, batch, acks=0)
    limited(PRODUCED, RATE, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    began = time.monotonic()
    client.send(frame_of(request, 9, 1))
    client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    took_ms = (time.monotonic() - began) * 1_000
    (wanted,) = expected([len(frame_of(request, 9, 0)) - 4], RATE)
    assert wanted > 1_500
    assert lasted(took_ms, wanted), (took_ms, wanted)
    client.close()


def test_a_limit_that_goes_while_its_client_waits(place: Place, filled: str) -> None:
    batch, _ = make_batch(250_000, 10_000)
    place.limit(PRODUCED, RATE, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    began = time.monotonic()
    told_ms = client.call(to_produce(filled, batch), 9, ProduceResponse).throttle_time_ms
    other = place.connect()
    place.limit(PRODUCED, None, client_id=raw_client.CLIENT_ID)
    assert other.call(to_produce(filled, batch), 9, ProduceResponse).throttle_time_ms == 0
    client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert lasted((time.monotonic() - began) * 1_000, told_ms)
    for each in (client, other):
        each.close()


def test_a_client_that_leaves_while_it_waits_may_come_again(
    place: Place, filled: str, limited: Any
) -> None:
    batch, _ = make_batch(250_000, 10_000)
    limited(PRODUCED, RATE, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    assert client.call(to_produce(filled, batch), 9, ProduceResponse).throttle_time_ms
    client.close()
    again = place.connect()
    began = time.monotonic()
    again.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert time.monotonic() - began < 1
    again.close()


# --- time -----------------------------------------------------------------------------------------


def test_a_client_that_takes_all_the_time_waits_a_second_at_most(
    place: Place, limited: Any
) -> None:
    limited(TIME, 1.0, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    frames = [frame_of(ApiVersionsRequest(), 2, number) for number in range(20)]
    told: list[int] = []
    ends = time.monotonic() + 20
    while len(told) < 3 and time.monotonic() < ends:
        client.send(b"".join(frames))
        for _ in frames:
            wait_ms = decode_reply(client.receive(), ApiVersionsResponse, 2).throttle_time_ms
            told += [wait_ms] if wait_ms else []
    assert len(told) >= 3
    assert all(0 < wait_ms <= 1_000 for wait_ms in told), told
    client.close()


# --- changes of topics ----------------------------------------------------------------------------


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_who_does_not_know_of_it_gets_its_topic_and_waits(
    place: Place, topic: str, limited: Any
) -> None:
    limited(MUTATIONS, 2.0, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    answer = client.call(creation(topic, 10), 5, CreateTopicsResponse)
    assert answer.topics[0].error_code == Error.NONE
    assert alike(answer.throttle_time_ms, 2_000), answer.throttle_time_ms
    began = time.monotonic()
    client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert lasted((time.monotonic() - began) * 1_000, 2_000)
    client.close()


def test_who_knows_of_it_is_refused(place: Place, topic: str, limited: Any) -> None:
    limited(MUTATIONS, 2.0, client_id=raw_client.CLIENT_ID)
    client = place.connect()
    done = client.call(creation(topic, 10), 6, CreateTopicsResponse)
    assert (done.topics[0].error_code, done.throttle_time_ms) == (Error.NONE, 0)
    more = CreatePartitionsRequest.Topic(name=topic, count=11, assignments=None)
    for request, version, cls, answers in (
        (creation(f"{topic}-2", 1), 6, CreateTopicsResponse, "topics"),
        (CreatePartitionsRequest(topics=[more], timeout_ms=9_000), 3, CreatePartitionsResponse,
         "results"),
        (DeleteTopicsRequest(topic_names=[topic], timeout_ms=9_000), 5, DeleteTopicsResponse,
         "responses"),
    ):  # fmt: skip
        other = place.connect()  # each is muted for it
        answer: Any = other.call(request, version, cls)
        (refusal,) = getattr(answer, answers)
        assert refusal.error_code == Error.THROTTLING_QUOTA_EXCEEDED
        assert refusal.error_message is None
        assert 1_000 <= answer.throttle_time_ms <= 2_000
        other.close()
    client.close()


# --- clients and tools ----------------------------------------------------------------------------


@pytest.mark.theirs_in_full
@pytest.mark.parametrize("is_ours", [False, True], ids=["theirs", "ours"])
def test_kafka_configs_limits_a_user_who_logs_in(
    place: Place, tools: JavaTools, filled: str, *, is_ours: bool
) -> None:
    run = (NativeTools(lambda: tools) if is_ours else tools).run
    words = ["--bootstrap-server", place.broker.bootstrap, "--alter", "--entity-type", "users"]
    words += ["--entity-name", "alice"]
    tool = "kafka.admin.ConfigCommand"
    said = run(tool, *words, "--add-config", f"{PRODUCED}={RATE}")
    assert "Completed updating config for user alice." in said
    place.settle()
    waits = confluent_waits(place, filled)
    run(tool, *words, "--delete-config", PRODUCED)
    place.settle()
    assert max(waits, default=0) > 500
    time.sleep(WINDOW.duration_ms / 1_000)
    assert confluent_waits(place, filled) == []


def confluent_waits(place: Place, topic: str) -> list[float]:
    """What librdkafka hears of, when alice writes three hundred thousand bytes."""
    heard: list[float] = []
    producer = confluent_kafka.Producer({
        "bootstrap.servers": place.secured, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORD,
        "linger.ms": 0, "batch.size": 20_000,
        "throttle_cb": lambda event: heard.append(event.throttle_time * 1_000),
    })  # fmt: skip
    for _ in range(30):
        producer.produce(topic, b"v" * 10_000)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    return [each for each in heard if each > 0]


def test_kafka_python_tells_of_its_waits(place: Place, filled: str, limited: Any) -> None:
    limited(PRODUCED, RATE, client_id="measured")
    producer = KafkaProducer(
        bootstrap_servers=place.broker.bootstrap, client_id="measured", batch_size=20_000,
    )
    began = time.monotonic()
    for _ in range(30):
        producer.send(filled, b"v" * 10_000).get(PATIENCE_S)
    took_ms = (time.monotonic() - began) * 1_000
    told = [group["throttle-time-max"] for group in producer.metrics().values()
            if "throttle-time-max" in group]
    producer.close()
    waits = expected([10_150] * 29, RATE)  # the last one's wait is nobody's
    assert alike(took_ms, sum(waits)), (took_ms, sum(waits))
    assert alike(max(told), max(waits)), (told, waits)
