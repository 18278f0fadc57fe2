"""Producers that keep a ledger of what was acknowledged, and what is held against it afterwards."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from kafka import KafkaProducer

from kafkalite.sim.contents import bytes_until, epochs_until
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.running import Run

PARTITIONS = 6
PATIENCE_S = 60
# Answers about a partition's end after which Java's client asks again by itself: nobody leads yet,
# somebody else does now, or the leader does not know yet.
ASKED_AGAIN = (5, 6, 74, 75, 78)

T = TypeVar("T")


class Ledger:
    """What each writer was told is written, in the order in which it wrote."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, list[int]] = defaultdict(list)
        self.failures: list[object] = []

    def told(self, writer: str, number: int, error: object = None) -> None:
        if error is None:
            self.acknowledged[writer].append(number)
        else:
            self.failures.append(error)


class Writer(threading.Thread):
    """Writes numbers to one partition until it is stopped."""

    def __init__(self, name: str, servers: str, topic: str, partition: int, ledger: Ledger):
        super().__init__(name=name, daemon=True)
        self.servers, self.topic, self.partition, self.ledger = servers, topic, partition, ledger
        self.is_over = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.write()
        except BaseException as error:  # noqa: BLE001 - told where it is waited for
            self.failure = error

    def write(self) -> None:
        raise NotImplementedError

    def value(self, number: int) -> bytes:
        return f"{self.name} {number}".encode()

    def end(self) -> None:
        self.is_over.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), f"{self.name} does not end"
        if self.failure is not None:
            raise self.failure


class ConfluentWriter(Writer):
    def write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.servers, "enable.idempotence": True, "linger.ms": 5,
                "message.timeout.ms": PATIENCE_S * 1_000,
            }
        )  # fmt: skip
        number = 0
        while not self.is_over.wait(0.002):
            producer.produce(
                self.topic, self.value(number), partition=self.partition,
                on_delivery=lambda error, _, number=number: self.ledger.told(
                    self.name, number, error
                ),
            )  # fmt: skip
            producer.poll(0)
            number += 1
        assert producer.flush(PATIENCE_S) == 0


class KafkaPythonWriter(Writer):
    def write(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.servers, acks="all", enable_idempotence=True, linger_ms=5,
            delivery_timeout_ms=PATIENCE_S * 1_000,
        )  # fmt: skip
        number, waiting = 0, []
        while not self.is_over.wait(0.002):
            sent = producer.send(self.topic, self.value(number), partition=self.partition)
            waiting.append((number, sent))
            number += 1
        producer.flush(PATIENCE_S)
        for number, sent in waiting:
            try:
                sent.get(1)
                self.ledger.told(self.name, number)
            except Exception as error:  # noqa: BLE001 - held against the ledger
                self.ledger.told(self.name, number, error)
        producer.close()


class AiokafkaWriter(Writer):
    def write(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.servers, acks="all", enable_idempotence=True, linger_ms=5,
            request_timeout_ms=PATIENCE_S * 1_000,
        )  # fmt: skip
        await producer.start()
        number, waiting = 0, []
        while not self.is_over.is_set():
            sent = await producer.send(
                self.topic, self.value(number), partition=self.partition
            )
            waiting.append((number, sent))
            number += 1
            await asyncio.sleep(0.002)
        for number, sent in waiting:
            try:
                await asyncio.wait_for(sent, PATIENCE_S)
                self.ledger.told(self.name, number)
            except Exception as error:  # noqa: BLE001 - held against the ledger
                self.ledger.told(self.name, number, error)
        await producer.stop()


KINDS = {
    "confluent": ConfluentWriter,
    "kafka-python": KafkaPythonWriter,
    "aiokafka": AiokafkaWriter,
}


@contextmanager
def writing(servers: str, topic: str, ledger: Ledger) -> Iterator[None]:
    """Each library twice, each writer to a partition of its own."""
    writers = [
        kind(f"{name}-{number}", servers, topic, 2 * place + number, ledger)
        for place, (name, kind) in enumerate(KINDS.items())
        for number in range(2)
    ]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        for writer in writers:
            writer.end()


def read_all(servers: str, topic: str, partitions: int = 1) -> Iterator[bytes]:
    """The values of all that is committed."""
    for message in read_messages(servers, topic, partitions):
        yield message.value()


def read_messages(servers: str, topic: str, partitions: int) -> Iterator[Message]:
    """All that is committed, up to where the partitions end as ListOffsets says it. The end that a
    Fetch tells may be lower for a moment, when all replicas were killed together."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "unused", "enable.partition.eof": True,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    left = {index: end_of(consumer, topic, index) for index in range(partitions)}
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "nothing comes, not even an end"
        error = message.error()
        if error is None:
            yield message
            continue
        index = message.partition()
        is_end = error.code() == KafkaError._PARTITION_EOF  # or of brokers that the client lost
        if is_end and message.offset() >= left.get(index, 0):
            left.pop(index, None)
    consumer.close()


def end_of(consumer: Consumer, topic: str, index: int) -> int:
    """As soon as its leader knows it: Java's client tries again by itself (KIP-207)."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, index), PATIENCE_S)[1]
        except KafkaException as refused:
            is_final = refused.args[0].code() not in ASKED_AGAIN
            if is_final or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def everything(servers: str, topic: str) -> dict[str, list[int]]:
    """By writer, in the order of the log."""
    found: dict[str, list[int]] = defaultdict(list)
    for value in read_all(servers, topic, PARTITIONS):
        writer, number = value.decode().split()
        found[writer].append(int(number))
    return found


def check_ledger(ledger: Ledger, found: dict[str, list[int]]) -> None:
    """Nothing acknowledged is lost or doubled, and all of it is in order."""
    assert ledger.failures == []
    for writer, numbers in ledger.acknowledged.items():
        assert found[writer] == sorted(set(found[writer])), f"{writer}: doubled, or out of order"
        assert set(numbers) <= set(found[writer]), f"{writer}: acknowledged, and lost"
        assert found[writer] == list(range(len(found[writer]))), f"{writer}: a gap"


# --- who takes records from one topic to another in transactions ----------------------------------


class ConfluentCopier:
    """A new client each time that a coordinator was killed: the old one waits for ever for the
    coordinator of a group that was out of the metadata once, see docs/cluster.md."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.coordinators_died()

    def coordinators_died(self) -> None:
        self.producer = Producer(
            {"bootstrap.servers": self.servers, "transactional.id": "copying"}
        )
        self.producer.init_transactions(30)

    def begin(self, values: list[bytes]) -> None:
        self.producer.begin_transaction()
        for value in values:
            self.producer.produce("out", value, partition=0)

    def take_offset(self, offset: int, consumer: Consumer) -> None:
        self.producer.send_offsets_to_transaction(
            [TopicPartition("in", 0, offset)], consumer.consumer_group_metadata(), 30
        )

    def commit(self) -> None:
        self.producer.commit_transaction(40)

    def close(self) -> None:
        """Nothing is left to be sent."""


class AiokafkaCopier:
    """The same client from the beginning to the end, on a loop of its own."""

    def __init__(self, servers: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.producer = self._wait(self._made(servers))
        self._wait(self.producer.start())

    async def _made(self, servers: str) -> AIOKafkaProducer:
        return AIOKafkaProducer(bootstrap_servers=servers, transactional_id="copying")

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def coordinators_died(self) -> None:
        """It finds them by itself."""

    def begin(self, values: list[bytes]) -> None:
        self._wait(self.producer.begin_transaction())
        for value in values:
            self._wait(self.producer.send("out", value, partition=0))

    def take_offset(self, offset: int, consumer: Consumer) -> None:
        place = AiokafkaPartition("in", 0)
        self._wait(self.producer.send_offsets_to_transaction({place: offset}, "copying"))

    def commit(self) -> None:
        self._wait(self.producer.commit_transaction())

    def close(self) -> None:
        self._wait(self.producer.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE_S)
        self.loop.close()


COPIERS: dict[str, type[ConfluentCopier | AiokafkaCopier]] = {
    "confluent": ConfluentCopier, "aiokafka": AiokafkaCopier
}  # fmt: skip


# --- the replicas of an EmbeddedKafka -------------------------------------------------------------


def run_of(kafka: EmbeddedKafka) -> Run:
    run = kafka._run  # what no client sees: its replicas
    assert run is not None
    return run


def in_sync(kafka: EmbeddedKafka, *topics: str) -> bool:
    image = next(iter(run_of(kafka).brokers.values())).metadata.image
    return all(
        len(state.isr) == len(state.replicas) and state.leader != -1
        for topic in topics
        for state in image.topics[topic].partitions.values()
    )


def committed_bytes(kafka: EmbeddedKafka, node_id: int, topic: str, index: int) -> bytes:
    partition = run_of(kafka).brokers[node_id].partitions.get(topic, index)
    assert partition is not None
    return bytes_until(partition.log, partition.log.high_watermark)


def committed_epochs(kafka: EmbeddedKafka, node_id: int, topic: str, index: int) -> object:
    partition = run_of(kafka).brokers[node_id].partitions.get(topic, index)
    assert partition is not None
    return epochs_until(partition.log, partition.log.high_watermark)
