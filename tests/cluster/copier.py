"""`python -m tests.cluster.copier LIBRARY SERVERS SOURCE TARGET`: copies in transactions, one of
which in five is taken back, until its standard input ends.

A process of its own, which may be killed: librdkafka's `send_offsets_to_transaction` may wait for
ever (docs/cluster.md), and whoever dies in a transaction leaves it to the broker. Each line that it
prints is of a commit that it was told of: partition:offset, what was committed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.structs import OffsetAndMetadata

from tests.cluster.history import copy_of

GROUP = "copier"
MOST, PATIENCE_S = 40, 30
TRANSACTION_MS = 15_000
SESSION_MS = 6_000
TAKEN_BACK = 5
COPIES = 3

Ends = dict[int, int]  # by partition


class Library(Protocol):
    """One way to do it; what fails is raised, and ends the process."""

    def take(self) -> list[tuple[int, int]]:
        """Partitions and offsets of some records that were not taken yet."""
        ...

    def send(self, values: Iterable[tuple[int, bytes]], ends: Ends) -> None:
        """Within a transaction: to these partitions, with the offsets behind what was taken."""
        ...

    def commit(self) -> None: ...

    def take_back(self, first: Ends) -> None:
        """And takes the same records again."""
        ...

    def close(self) -> None: ...


class WithConfluent:
    def __init__(self, servers: str, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.producer = Producer(
            {
                "bootstrap.servers": servers, "transactional.id": f"copier-{source}",
                "transaction.timeout.ms": TRANSACTION_MS,
            }
        )  # fmt: skip
        self.producer.init_transactions(PATIENCE_S)
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers, "group.id": GROUP, "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "isolation.level": "read_committed",
                "session.timeout.ms": SESSION_MS,
            }
        )  # fmt: skip
        self.consumer.subscribe([source])

    def take(self) -> list[tuple[int, int]]:
        found = self.consumer.consume(MOST, 0.5)
        return [(each.partition(), each.offset()) for each in found if each.error() is None]

    def send(self, values: Iterable[tuple[int, bytes]], ends: Ends) -> None:
        self.producer.begin_transaction()
        for index, value in values:
            self.producer.produce(self.target, value, partition=index)
        places = [TopicPartition(self.source, index, offset) for index, offset in ends.items()]
        metadata = self.consumer.consumer_group_metadata()
        self.producer.send_offsets_to_transaction(places, metadata, PATIENCE_S)

    def commit(self) -> None:
        self.producer.commit_transaction(PATIENCE_S)

    def take_back(self, first: Ends) -> None:
        self.producer.abort_transaction(PATIENCE_S)
        for index, offset in first.items():
            self.consumer.seek(TopicPartition(self.source, index, offset))

    def close(self) -> None:
        self.consumer.close()


class WithKafkaPython:
    def __init__(self, servers: str, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.producer = KafkaProducer(
            bootstrap_servers=servers.split(","), transactional_id=f"copier-{source}",
            transaction_timeout_ms=TRANSACTION_MS, max_block_ms=PATIENCE_S * 1_000,
        )  # fmt: skip
        self.producer.init_transactions()
        self.consumer = KafkaConsumer(
            source, bootstrap_servers=servers.split(","), group_id=GROUP, enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed",
            session_timeout_ms=SESSION_MS, heartbeat_interval_ms=SESSION_MS // 4,
            max_poll_records=MOST,
        )  # fmt: skip

    def take(self) -> list[tuple[int, int]]:
        found = self.consumer.poll(500)
        return [(each.partition, each.offset) for some in found.values() for each in some]

    def send(self, values: Iterable[tuple[int, bytes]], ends: Ends) -> None:
        self.producer.begin_transaction()
        for index, value in values:
            self.producer.send(self.target, value, partition=index)
        offsets = {
            PythonPartition(self.source, index): OffsetAndMetadata(offset)
            for index, offset in ends.items()
        }
        self.producer.send_offsets_to_transaction(offsets, self.consumer.group_metadata())

    def commit(self) -> None:
        self.producer.commit_transaction()

    def take_back(self, first: Ends) -> None:
        self.producer.abort_transaction()
        for index, offset in first.items():
            self.consumer.seek(PythonPartition(self.source, index), offset)

    def close(self) -> None:
        self.consumer.close()
        self.producer.close()


LIBRARIES: dict[str, type[WithConfluent | WithKafkaPython]] = {
    "confluent": WithConfluent, "kafka-python": WithKafkaPython
}  # fmt: skip


def main(library: str, servers: str, source: str, target: str) -> None:
    is_over = threading.Event()
    threading.Thread(target=_wait_for_end, args=(is_over,), daemon=True).start()
    with_it: Library = LIBRARIES[library](servers, source, target)
    count = 0
    while not is_over.is_set():
        taken = with_it.take()
        if taken:
            count += 1
            copy(with_it, source, taken, takes_back=count % TAKEN_BACK == 0)
    with_it.close()


def copy(with_it: Library, source: str, taken: list[tuple[int, int]], *, takes_back: bool) -> None:
    first: Ends = {}
    ends: Ends = {}
    for index, offset in taken:
        first.setdefault(index, offset)
        ends[index] = offset + 1
    values = [(index % COPIES, copy_of((source, index), offset)) for index, offset in taken]
    with_it.send(values, ends)
    if takes_back:
        with_it.take_back(first)
    else:
        with_it.commit()
        print(" ".join(f"{index}:{offset}" for index, offset in ends.items()), flush=True)


def _wait_for_end(is_over: threading.Event) -> None:
    sys.stdin.buffer.read()
    is_over.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
