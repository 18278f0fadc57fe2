"""Clients that work while brokers come and go, and write down what they were told.

Each is a thread, and shares no code with the broker: confluent-kafka and kafka-python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaError as PythonError

from tests.cluster.history import History, Seen, Written

PARTITIONS = 6
# Longer than any round keeps brokers away: what is not acknowledged by then never will be.
DELIVERY_S = 120
PAUSE_S = 0.005
COMMIT_EVERY = 100
QUIET = {"log_level": 0}  # that brokers are away is what is done here


class Client(threading.Thread):
    """Works until it is told that all is over."""

    def __init__(
        self, name: str, servers: str, topic: str, work: Callable[[Client], None]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.servers, self.topic, self.work = servers, topic, work
        self.is_over = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.work(self)
        except BaseException as error:  # noqa: BLE001 - told where it is waited for
            self.failure = error

    def end(self) -> list[str]:
        self.is_over.set()
        self.join(DELIVERY_S)
        if self.is_alive():
            return [f"{self.name} does not end"]
        return [] if self.failure is None else [f"{self.name}: {self.failure!r}"]


# --- who writes -----------------------------------------------------------------------------------


@dataclass(slots=True)
class ConfluentWriter:
    written: Written

    def __call__(self, client: Client) -> None:
        producer = Producer(
            {
                "bootstrap.servers": client.servers, "acks": "all", "linger.ms": 5,
                "enable.idempotence": True, "message.timeout.ms": DELIVERY_S * 1_000, **QUIET,
            }
        )  # fmt: skip
        number = 0
        while not client.is_over.wait(PAUSE_S):
            value = f"{client.name} {number}"
            with suppress(BufferError):
                producer.produce(
                    client.topic, value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            producer.poll(0)
        producer.flush(DELIVERY_S)

    def _delivered(self, error: object, message: Message) -> None:
        value = message.value().decode()
        if error is None:
            place = (message.topic(), message.partition())
            self.written.acknowledged[value] = (place, message.offset())
        else:
            self.written.failures.append(f"{value}: {error}")


@dataclass(slots=True)
class PythonWriter:
    """Idempotent, or plain: then it tries nothing twice, so that nothing can be there twice.
    (librdkafka tries again after NOT_LEADER_OR_FOLLOWER, whatever it is told.)"""

    written: Written
    is_plain: bool = False

    def __call__(self, client: Client) -> None:
        own = (
            {"retries": 0, "max_in_flight_requests_per_connection": 1, "enable_idempotence": False}
            if self.is_plain
            else {"enable_idempotence": True}
        )
        producer = KafkaProducer(
            bootstrap_servers=client.servers.split(","), acks="all", linger_ms=5,
            delivery_timeout_ms=DELIVERY_S * 1_000, max_block_ms=DELIVERY_S * 1_000, **own,
        )  # fmt: skip
        number, sent = 0, []
        while not client.is_over.wait(PAUSE_S):
            value = f"{client.name} {number}"
            future = producer.send(
                client.topic, value.encode(), key=value.encode(), partition=number % PARTITIONS
            )
            sent.append((value, future))
            number += 1
        with suppress(PythonError):
            producer.flush(DELIVERY_S)
        for value, future in sent:
            try:
                told = future.get(1)
                place = (told.topic, told.partition)
                self.written.acknowledged[value] = (place, told.offset)
            except Exception as error:  # noqa: BLE001 - held against it
                self.written.failures.append(f"{value}: {error!r}")
        producer.close()


# --- who reads ------------------------------------------------------------------------------------


@dataclass(slots=True)
class GroupReader:
    """The one member of a group, which commits now and then."""

    seen: Seen

    def __call__(self, client: Client) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": client.servers, "group.id": client.name,
                "enable.auto.commit": False, "auto.offset.reset": "earliest",
                "isolation.level": "read_committed", "session.timeout.ms": 6_000,
                **QUIET,
            }
        )  # fmt: skip
        begun: set[tuple[str, int]] = set()
        consumer.subscribe([client.topic], on_assign=lambda *_: begun.clear())
        count = 0
        while not client.is_over.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            place = (message.topic(), message.partition())
            if place not in begun:
                begun.add(place)
                self.seen.begins(place, message.offset())
            self.seen.give(place, message.offset(), message.value())
            count += 1
            if count % COMMIT_EVERY == 0:
                self._commit(consumer)
        self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        """What fails may have happened or not."""
        with suppress(KafkaException):
            for each in consumer.commit(asynchronous=False) or []:
                if each.error is None and each.offset >= 0:
                    self.seen.commits((each.topic, each.partition), each.offset)


@dataclass(slots=True)
class PythonReader:
    """In no group: from the beginning to wherever it comes."""

    seen: Seen

    def __call__(self, client: Client) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=client.servers.split(","), isolation_level="read_committed",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        places = [PythonPartition(client.topic, index) for index in range(PARTITIONS)]
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        while not client.is_over.is_set():
            with suppress(PythonError):
                for place, records in consumer.poll(200).items():
                    for record in records:
                        self.seen.give((place.topic, place.partition), record.offset, record.value)
        consumer.close()


def clients(history: History, servers: str, topic: str) -> list[Client]:
    written, seen = history.writer, history.reader
    plain = PythonWriter(written("plain", may_fail=True), is_plain=True)
    kinds: dict[str, Callable[[Client], None]] = {
        "plain": plain,
        "confluent": ConfluentWriter(written("confluent")),
        "python": PythonWriter(written("python")),
        "group": GroupReader(seen("group")),
        "reader": PythonReader(seen("reader")),
    }
    return [Client(name, servers, topic, work) for name, work in kinds.items()]


@contextmanager
def working(found: list[Client], wrong: list[str]) -> Iterator[None]:
    """Writers end before readers, so that these see what was written last."""
    for each in found:
        each.start()
    try:
        yield
    finally:
        for each in found:
            wrong += each.end()


# --- what is there in the end ---------------------------------------------------------------------


def committed_offsets(
    servers: str, group: str, topic: str, timeout_s: float = 60
) -> dict[tuple[str, int], int]:
    """Once no transaction over them is open any more."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **QUIET})
    try:
        asked = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        found = consumer.committed(asked, timeout_s)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
    finally:
        consumer.close()
