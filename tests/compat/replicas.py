"""Producers that keep a ledger of what was acknowledged, and what is held against it afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaProducer

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.running import Run

PARTITIONS = 6
PATIENCE_S = 60


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


def everything(servers: str, topic: str) -> dict[str, list[int]]:
    """By writer, in the order of the log."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "unused", "enable.partition.eof": True,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: dict[str, list[int]] = defaultdict(list)
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(20)
        assert message is not None, "nothing comes, not even an end"
        error = message.error()
        if error is not None:  # the client tells of brokers that it lost, too, and goes on
            ends += error.code() == KafkaError._PARTITION_EOF
            continue
        writer, number = message.value().decode().split()
        found[writer].append(int(number))
    consumer.close()
    return found


def check_ledger(ledger: Ledger, found: dict[str, list[int]]) -> None:
    """Nothing acknowledged is lost or doubled, and all of it is in order."""
    assert ledger.failures == []
    for writer, numbers in ledger.acknowledged.items():
        assert found[writer] == sorted(set(found[writer])), f"{writer}: doubled, or out of order"
        assert set(numbers) <= set(found[writer]), f"{writer}: acknowledged, and lost"
        assert found[writer] == list(range(len(found[writer]))), f"{writer}: a gap"


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
    log, found = partition.log, bytearray()
    offset = log.log_start_offset
    while offset < log.high_watermark:
        read = log.read(offset, 1 << 20, log.high_watermark)
        assert read.range is not None
        found += read.range.read()
        offset = read.end_offset
    return bytes(found)


def committed_epochs(kafka: EmbeddedKafka, node_id: int, topic: str, index: int) -> object:
    partition = run_of(kafka).brokers[node_id].partitions.get(topic, index)
    assert partition is not None
    log = partition.log
    return [each for each in log.epochs.entries() if each[1] < log.high_watermark]
