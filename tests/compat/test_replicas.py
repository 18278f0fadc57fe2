"""Brokers are killed, stopped and started while clients write: nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.replicas import (
    COPIERS,
    PARTITIONS,
    Ledger,
    check_ledger,
    committed_bytes,
    committed_epochs,
    everything,
    in_sync,
    read_all,
    run_of,
    writing,
)

SETTINGS = {"default.replication.factor": 3, "min.insync.replicas": 2}
INTERNAL = ("__consumer_offsets", "__transaction_state")


def wait_until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it is not so in time"
        time.sleep(0.05)


def check_replicas(kafka: EmbeddedKafka, *topics: str) -> None:
    """All of them have the same bytes and epochs, as far as these are committed."""
    wait_until(lambda: in_sync(kafka, *topics))
    brokers = run_of(kafka).brokers
    places = [
        (name, state)
        for name in topics
        for state in brokers[1].metadata.image.topics[name].partitions.values()
    ]

    def is_all_committed(name: str, index: int, replicas: tuple[int, ...]) -> bool:
        found = [brokers[each].partitions.find(name, index) for each in replicas]
        return len({one.high_watermark for one in found} | {found[0].log.log_end_offset}) == 1

    for name, state in places:
        wait_until(partial(is_all_committed, name, state.index, state.replicas))
        for told in (committed_bytes, committed_epochs):
            found = [told(kafka, each, name, state.index) for each in state.replicas]
            assert all(each == found[0] for each in found), f"{name}-{state.index} differs"


@pytest.mark.parametrize("is_killed", [True, False])
def test_nothing_acknowledged_is_lost_while_brokers_come_and_go(is_killed: bool) -> None:
    ledger = Ledger()
    with EmbeddedKafka(brokers=3, topics={"t": PARTITIONS}, settings=SETTINGS) as kafka:
        with writing(kafka.bootstrap_servers, "t", ledger):
            time.sleep(1)
            for node_id in (2, 3, 2):
                kafka.kill_broker(node_id) if is_killed else kafka.stop_broker(node_id)
                time.sleep(1.5)
                kafka.start_broker(node_id)
                wait_until(lambda: in_sync(kafka, "t"))
                time.sleep(0.5)
        check_ledger(ledger, everything(kafka.bootstrap_servers, "t"))
        assert all(len(numbers) > 100 for numbers in ledger.acknowledged.values())
        assert len(ledger.acknowledged) == PARTITIONS
        check_replicas(kafka, "t")


def test_what_is_written_is_on_every_disk_and_outlasts_a_kill_of_all(tmp_path) -> None:
    ledger = Ledger()
    kafka = EmbeddedKafka(tmp_path, brokers=3, topics={"t": PARTITIONS}, settings=SETTINGS)
    with kafka:
        with writing(kafka.bootstrap_servers, "t", ledger):
            time.sleep(1)
        kafka.stop(unclean=True)
        kafka.start()
        check_ledger(ledger, everything(kafka.bootstrap_servers, "t"))
        check_replicas(kafka, "t")
        kafka.restart()
        check_ledger(ledger, everything(kafka.bootstrap_servers, "t"))
        check_replicas(kafka, "t")


@pytest.mark.parametrize(
    "library", ["aiokafka", pytest.param("confluent", marks=pytest.mark.full)]
)
def test_groups_and_transactions_go_on_while_their_coordinators_die(library: str) -> None:
    """Each transaction takes records from one topic to another, with the offsets read."""
    with EmbeddedKafka(brokers=3, topics={"in": 1, "out": 1}, settings=SETTINGS) as kafka:
        servers = {"bootstrap.servers": kafka.bootstrap_servers}
        source = Producer({**servers, "enable.idempotence": True})
        for number in range(60):
            source.produce("in", str(number), partition=0)
        assert source.flush(20) == 0
        consumer = Consumer(
            {**servers, "group.id": "copying", "auto.offset.reset": "earliest",
             "enable.auto.commit": False, "session.timeout.ms": 10_000}
        )  # fmt: skip
        consumer.subscribe(["in"])
        copier = COPIERS[library](kafka.bootstrap_servers)
        copied = 0
        victims = iter((2, 3, 2, 3))
        while copied < 60:
            messages = consumer.consume(5, 20)
            assert messages, "nothing is read"
            assert all(message.error() is None for message in messages)
            copier.begin([message.value() for message in messages])
            copier.take_offset(messages[-1].offset() + 1, consumer)
            victim = next(victims, None) if copied % 15 == 0 else None
            if victim is not None:
                kafka.kill_broker(victim)
                time.sleep(0.3)  # aiokafka ends when its search for a coordinator is cut off
            copier.commit()
            copied += len(messages)
            if victim is not None:
                kafka.start_broker(victim)
                wait_until(lambda: in_sync(kafka, "in", "out", *INTERNAL))
                copier.coordinators_died()
        copier.close()
        consumer.close()
        assert values(kafka, "out") == [str(number).encode() for number in range(60)]
        [committed] = Consumer({**servers, "group.id": "copying"}).committed(
            [TopicPartition("in", 0)], 20
        )
        assert committed.offset == 60
        check_replicas(kafka, "in", "out", *INTERNAL)


def values(kafka: EmbeddedKafka, topic: str) -> list[bytes]:
    return list(read_all(kafka.bootstrap_servers, topic))


# --- what is promised: the table of docs/cluster.md -----------------------------------------------


def produce(kafka: EmbeddedKafka, topic: str, value: str, acks: int | str) -> str | None:
    """None when it is acknowledged, or the name of the error."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "acks": acks, "retries": 0,
         "message.timeout.ms": 8_000}
    )  # fmt: skip
    told: list[str | None] = []
    producer.produce(
        topic, value, partition=0,
        on_delivery=lambda error, _: told.append(None if error is None else error.name()),
    )  # fmt: skip
    assert producer.flush(20) == 0
    return told[0]


def leader_of(kafka: EmbeddedKafka, topic: str) -> int:
    state = run_of(kafka).brokers[1].metadata.image.partition(topic, 0)
    assert state is not None
    return state.leader


@pytest.mark.parametrize(
    ("acks", "min_isr", "alone"),
    [
        (1, 1, None),
        (1, 2, None),
        ("all", 1, None),
        ("all", 2, "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_each_row_of_what_is_promised(acks: int | str, min_isr: int, alone: str | None) -> None:
    """With all three in sync; with one of three away; with one alone; and after that one, too, is
    gone and another is back."""
    settings = {"default.replication.factor": 3}
    with EmbeddedKafka(brokers=3, settings=settings) as kafka:
        kafka.create_topic("t", 1, {"min.insync.replicas": min_isr})
        assert produce(kafka, "t", "three", acks) is None
        kafka.kill_broker(2)
        assert produce(kafka, "t", "two", acks) is None
        kafka.kill_broker(3)
        assert leader_of(kafka, "t") == 1
        assert produce(kafka, "t", "one", acks) == alone
        kafka.start_broker(2)
        kafka.start_broker(3)
        wait_until(lambda: in_sync(kafka, "t"))
        wanted = [b"three", b"two", *([b"one"] if alone is None else [])]
        if acks == 1:  # nobody promised that a second replica has it by now
            wait_until(lambda: values(kafka, "t") == wanted, 10)
        assert values(kafka, "t") == wanted
        check_replicas(kafka, "t")


def test_who_wants_no_acknowledgement_is_told_nothing() -> None:
    with EmbeddedKafka(brokers=3, settings=SETTINGS) as kafka:
        kafka.create_topic("t", 1)
        kafka.kill_broker(2)
        kafka.kill_broker(3)
        assert produce(kafka, "t", "one", 0) is None
        assert produce(kafka, "t", "one", "all") == "NOT_ENOUGH_REPLICAS"
