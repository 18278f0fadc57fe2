"""The explorer finds bugs of clients that were planted, and nothing in the same programs without.

Each program is given whether it is the wrong one; it raises AssertionError when what it did is not
what its users expect.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Assigned
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.explorer import Failure, check
from tests.sampled import sampled

SENT = [f"order {number}" for number in range(6)]
PATIENCE_SECONDS = 40  # for a machine that has much to do
RUNS = 6
HEARTBEAT_MS = 100
COUNTED_TOGETHER = 3
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    several = {"default.replication.factor": 2, "min.insync.replicas": 2}
    topics = {"orders": 1, "bills": 1}
    with EmbeddedKafka(brokers=2, topics=topics, settings=several) as kafka:
        yield kafka


def written(kafka: EmbeddedKafka, topic: str) -> Counter[str]:
    return Counter(record.text or "" for record in kafka.records(topic, count=0))


def until(is_done: Callable[[], bool]) -> Iterator[None]:
    """Again and again; AssertionError when it takes too long."""
    began = time.monotonic()
    while not is_done():
        assert time.monotonic() - began < PATIENCE_SECONDS, "it comes to no end"
        yield


# --- the programs ---------------------------------------------------------------------------------


def bill(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    """Every order is billed, also when a worker breaks down and another one takes its place. The
    wrong one commits before it has written the bill."""
    kafka.produce("orders", *SENT)
    work_on(lambda: bill_what_is_left(kafka, is_wrong))
    assert set(SENT) <= set(written(kafka, "bills"))


def work_on(work: Callable[[], None]) -> None:
    through: list[bool] = []
    for _ in until(lambda: any(through)):
        with suppress(KafkaError, KafkaException):
            work()
            through.append(True)


def bill_what_is_left(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    config = {"retry_backoff_ms": 20, **kafka.client_config("kafka-python")}
    with (
        KafkaConsumer(
            group_id="clerks", client_id="clerk", auto_offset_reset="earliest",
            enable_auto_commit=False, max_poll_records=1, **config,
        ) as orders,
        KafkaProducer(
            client_id="biller", retries=0, enable_idempotence=False, linger_ms=0, **config
        ) as bills,
    ):  # fmt: skip
        orders.assign([ORDERS])
        read = Counter(orders=orders.committed(ORDERS) or 0)
        for _ in until(lambda: read["orders"] == len(SENT)):
            for records in orders.poll(100).values():
                if is_wrong:
                    orders.commit()
                bills.send("bills", records[0].value).get(10)
                if not is_wrong:
                    orders.commit()
                read["orders"] = records[0].offset + 1


def bill_once(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    """The same with another client, and no order is billed twice: what fails here was not written.
    The wrong one commits the offset of what it has read, not of what is next."""
    kafka.produce("orders", *SENT)
    work_on(lambda: bill_what_is_next(kafka, is_wrong))
    assert written(kafka, "bills") == Counter(SENT)


def bill_what_is_next(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    config = kafka.client_config("confluent")
    orders = Consumer({
        **config, "group.id": "clerks", "client.id": "clerk", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "enable.partition.eof": True,
    })  # fmt: skip
    bills = Producer({
        **config, "client.id": "biller", "retries": 0, "linger.ms": 0, "acks": "all",
    })  # fmt: skip
    try:
        orders.assign([Assigned("orders", 0)])
        [committed] = orders.committed([Assigned("orders", 0)], PATIENCE_SECONDS)
        read = Counter(orders=max(0, committed.offset))
        for _ in until(lambda: read["orders"] == len(SENT)):
            order = orders.poll(0.1)
            if order is not None and order.error() is None:
                write(bills, order.value())
                read["orders"] = order.offset() + 1
                next_one = order.offset() if is_wrong else order.offset() + 1
                orders.commit(offsets=[Assigned("orders", 0, next_one)], asynchronous=False)
    finally:
        orders.close()


def write(bills: Producer, value: bytes) -> None:
    failed: list[Any] = []
    bills.produce("bills", value, on_delivery=lambda error, _: failed.append(error))
    assert bills.flush(PATIENCE_SECONDS) == 0
    if failed[0] is not None:
        raise KafkaException(failed[0])


def order(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    """Every order is written. The wrong one tries once, and looks away when that fails."""
    retries = {"retries": 0, "enable.idempotence": False} if is_wrong else {}
    producer = Producer({
        **kafka.client_config("confluent"), "client.id": "shop", "linger.ms": 0, "acks": "all",
        "retry.backoff.ms": 20, "retry.backoff.max.ms": 50, **retries,
    })  # fmt: skip
    for each in SENT:
        producer.produce("orders", each)
        producer.flush(PATIENCE_SECONDS)
    assert set(written(kafka, "orders")) == set(SENT)


async def order_once(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    """Every order is written once. The wrong one is not idempotent."""
    producer = AIOKafkaProducer(
        client_id="shop", acks="all", retry_backoff_ms=20, enable_idempotence=not is_wrong,
        **kafka.client_config("aiokafka"),
    )  # fmt: skip
    async with producer:
        for each in SENT:
            await producer.send_and_wait("orders", each.encode())
    found = await asyncio.to_thread(written, kafka, "orders")
    assert found == Counter(SENT)


def count(kafka: EmbeddedKafka, is_wrong: bool) -> None:
    """Orders are counted in memory, and written together before they are committed. The wrong one
    keeps what it has counted of partitions that are taken from it. The last order comes when the
    group is at rest."""
    kafka.produce("orders", *SENT[:-1])
    counting = Counting(kafka, is_wrong)
    for _ in until(lambda: counting.has_seen(SENT[:-1])):
        counting.poll()
    for _ in until(lambda: is_at_rest(kafka) and counting.has_seen(SENT[:-1])):
        counting.poll()
    kafka.produce("orders", SENT[-1])
    for _ in until(lambda: counting.has_seen(SENT)):
        counting.poll()
    counting.consumer.close()
    assert Counter(counting.written + counting.counted) == Counter(SENT)


class Counting:
    def __init__(self, kafka: EmbeddedKafka, is_wrong: bool) -> None:
        self.counted: list[str] = []
        self.written: list[str] = []
        self._is_wrong = is_wrong
        self.consumer = Consumer({
            **kafka.client_config("confluent"), "group.id": "counters", "client.id": "counter",
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        })  # fmt: skip
        self.consumer.subscribe(["orders"], on_revoke=self._revoked)

    def _revoked(self, *_: object) -> None:
        if not self._is_wrong:
            self.counted.clear()

    def has_seen(self, orders: list[str]) -> bool:
        return set(orders) <= {*self.written, *self.counted}

    def poll(self) -> None:
        order = self.consumer.poll(0.05)
        if order is None or order.error() is not None:
            return
        self.counted.append(order.value().decode())
        if len(self.counted) >= COUNTED_TOGETHER:
            self.written += self.counted
            self.counted.clear()
            self.consumer.commit(order, asynchronous=False)


def is_at_rest(kafka: EmbeddedKafka) -> bool:
    try:
        kafka.wait_for_group("counters", state="Stable", members=1, timeout=0.01)
    except AssertionError:
        return False
    return True


# --- what finds them ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bug:
    program: Callable[[EmbeddedKafka, bool], Any]
    kinds: tuple[str, ...]
    by: frozenset[str]  # what brings it to light
    rate: float = 0.3


NOT_WRITTEN = ("moved-leader", "not-enough-replicas")
WRITTEN = ("lost-acknowledgement", "timed-out-after-append", "not-enough-replicas-after-append")
SLOW = ("delay", "throttle", "short-fetch", "empty-fetch")
BUGS = {
    "commits before it processes": Bug(bill, (*NOT_WRITTEN, *SLOW), frozenset(NOT_WRITTEN)),
    "drops what a leader refused": Bug(
        order, (*NOT_WRITTEN, *WRITTEN, "disconnect", *SLOW),
        frozenset({*NOT_WRITTEN, "disconnect"}),
    ),
    "writes twice what was not acknowledged": Bug(
        order_once, (*NOT_WRITTEN, *WRITTEN, *SLOW), frozenset(WRITTEN)
    ),
    "commits the offset of what it has read": Bug(
        bill_once, (*NOT_WRITTEN, *SLOW), frozenset(NOT_WRITTEN)
    ),
    "keeps state of what was revoked": Bug(
        count, ("rebalance", "short-fetch"), frozenset({"rebalance"}), rate=0.5
    ),
}  # fmt: skip


# Of the others `make simulate` has its turn.
SAMPLE = ("drops what a leader refused", "commits the offset of what it has read")


@pytest.mark.parametrize("name", sampled(BUGS, *SAMPLE))
def test_a_planted_bug_is_found(kafka: EmbeddedKafka, name: str) -> None:
    bug = BUGS[name]
    with pytest.raises(AssertionError) as raised:
        check(kafka, lambda it: bug.program(it, True), runs=RUNS, kinds=bug.kinds, rate=bug.rate)
    failure: Failure = raised.value.kafkalite_failure  # type: ignore[attr-defined]
    assert any(step.kind in bug.by for step in failure.schedule)
    assert len(failure.schedule) <= 3
    assert f"seed {failure.seed}" in raised.value.__notes__[0]


@pytest.mark.parametrize("name", sampled(BUGS, *SAMPLE))
def test_the_same_program_without_it_stands_the_same_seeds(kafka: EmbeddedKafka, name: str) -> None:
    bug = BUGS[name]
    check(kafka, lambda it: bug.program(it, False), runs=RUNS, kinds=bug.kinds, rate=bug.rate)
