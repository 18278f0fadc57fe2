"""Brokers that go on with other data, and the clients that stay connected meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from kafkalite.testing.schedule import Step


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 2}) as kafka:
        yield kafka


def texts(kafka: EmbeddedKafka, topic: str = "orders") -> list[str]:
    return [record.text for record in kafka.records(topic, count=0)]


def test_what_was_there_is_there_again_and_nothing_else(kafka) -> None:
    kafka.produce("orders", "one", partition=0)
    then = kafka.snapshot()
    assert texts(kafka) == ["one"]
    kafka.produce("orders", "two", partition=0)
    kafka.produce("more", "three")
    kafka.restore(then)
    assert texts(kafka) == ["one"]
    with pytest.raises(AssertionError, match="no topic more"):
        kafka.records("more", timeout=0.1)
    kafka.produce("orders", "four", partition=0)
    assert [each.offset for each in kafka.records("orders", count=2)] == [0, 1]
    kafka.restore(then)
    assert texts(kafka) == ["one"]


def test_reset_leaves_the_topics_that_it_began_with(kafka) -> None:
    kafka.produce("orders", "one")
    kafka.create_topic("more")
    kafka.reset()
    assert texts(kafka) == []
    kafka.produce("orders", "two")
    assert kafka.records("orders").one().text == "two"
    with pytest.raises(AssertionError, match="no topic more"):
        kafka.records("more", timeout=0.1)


def connections(kafka: EmbeddedKafka) -> int:
    run = kafka._running()
    return len(next(iter(run.brokers.values())).server._connections)


@pytest.mark.parametrize("renew", ["reset", "restore"])
def test_connections_stay(kafka, renew) -> None:
    """Of a producer that is idle and a consumer that waits for more."""
    config = kafka.client_config("kafka-python")
    producer = KafkaProducer(**config, linger_ms=0)
    consumer = KafkaConsumer(
        "orders", auto_offset_reset="earliest", fetch_max_wait_ms=500, **config
    )
    producer.send("orders", b"one", partition=0).get(10)
    assert next(consumer).value == b"one"
    then = kafka.snapshot()
    seen = connections(kafka)
    assert seen >= 2
    kafka.restore(then) if renew == "restore" else kafka.reset()
    assert connections(kafka) == seen
    sent = [producer.send("orders", b"two", partition=0).get(10).offset for _ in range(2)]
    assert sent == ([1, 2] if renew == "restore" else [0, 1])  # the consumer stands at 1
    values = []
    deadline = time.monotonic() + 15
    while b"two" not in values and time.monotonic() < deadline:
        values += [each.value for some in consumer.poll(200).values() for each in some]
    assert b"two" in values
    producer.close()
    consumer.close()


def test_a_group_is_where_it_was(kafka) -> None:
    kafka.produce("orders", *"abcde", partition=0)
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert consumer.poll(10) is not None
    consumer.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    then = kafka.snapshot()
    consumer.commit(offsets=[TopicPartition("orders", 0, 5)], asynchronous=False)
    kafka.assert_lag("clerks", 0)
    kafka.restore(then)
    kafka.assert_lag("clerks", 3)
    consumer.close()


def test_an_open_transaction_is_open_again(kafka) -> None:
    producer = Producer({**kafka.client_config("confluent"), "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", "open", partition=0)
    producer.flush(10)
    then = kafka.snapshot()
    producer.commit_transaction(10)
    assert texts(kafka) == ["open"]
    kafka.restore(then)
    assert texts(kafka) == []
    uncommitted = kafka.records("orders", committed=False)
    assert uncommitted.one().text == "open"
    after = Producer({**kafka.client_config("confluent"), "transactional.id": "t"})
    after.init_transactions(10)
    assert texts(kafka) == []


def test_another_broker_begins_with_a_snapshot(kafka) -> None:
    kafka.produce("orders", "one")
    then = kafka.snapshot()
    with EmbeddedKafka.from_snapshot(then) as other:
        assert texts(other) == ["one"]
        other.produce("orders", "two")
        assert len(texts(other)) == 2
    assert texts(kafka) == ["one"]
    with EmbeddedKafka.from_snapshot(then, settings={"num.partitions": 3}) as other:
        assert texts(other) == ["one"]


def test_three_brokers_together() -> None:
    with EmbeddedKafka(brokers=3, topics={"orders": 6}) as kafka:
        kafka.produce("orders", *map(str, range(12)))
        then = kafka.snapshot()
        kafka.produce("orders", "more")
        kafka.restore(then)
        assert sorted(texts(kafka)) == sorted(map(str, range(12)))
        kafka.reset()
        assert texts(kafka) == []
        kafka.stop_broker(2)
        with pytest.raises(BrokerFailed, match="broker 2 is stopped"):
            kafka.snapshot()


def test_what_lies_in_a_directory_is_copied_there(tmp_path) -> None:
    with EmbeddedKafka(tmp_path) as kafka:
        for act in (kafka.snapshot, kafka.reset):
            with pytest.raises(BrokerFailed, match=str(tmp_path)):
                act()
        kafka.produce("orders", "goes on")


def test_a_snapshot_of_as_many_brokers(kafka) -> None:
    with EmbeddedKafka(brokers=2) as two, pytest.raises(ValueError, match="of 1 brokers"):
        two.restore(kafka.snapshot())


def test_it_costs_the_same_however_much_it_is(kafka) -> None:
    """In memory: the bytes are shared."""
    import tracemalloc

    kafka.produce("orders", *[bytes(100_000)] * 500)
    tracemalloc.start()
    try:
        then = kafka.snapshot()
        kafka.restore(then)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    assert len(texts(kafka)) == 500


def test_a_restart_goes_on_with_what_was_restored(kafka) -> None:
    then = kafka.snapshot()
    kafka.produce("orders", "one")
    kafka.restore(then)
    kafka.restart()
    assert texts(kafka) == []
    port = kafka.port
    kafka.reset()
    assert kafka.port == port


def test_many_times(kafka) -> None:
    then = kafka.snapshot()
    for number in range(30):
        kafka.produce("orders", str(number))
        kafka.restore(then) if number % 2 else kafka.reset()
    assert texts(kafka) == []


def test_ports_stay_of_listeners_that_settings_name() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with EmbeddedKafka(settings=settings) as kafka:
        before = kafka.listeners
        assert list(before) == ["PLAINTEXT", "INSIDE"]
        assert len(set(before.values())) == 2
        kafka.reset()
        assert kafka.listeners == before
        kafka.restore(kafka.snapshot())
        assert kafka.listeners == before


def test_reset_makes_topics_with_their_configs_again() -> None:
    with EmbeddedKafka(topics={"short": (2, {"retention.ms": 1000})}) as kafka:
        for _ in range(2):
            admin = AdminClient(kafka.client_config("confluent"))
            short = ConfigResource(ConfigResource.Type.TOPIC, "short")
            [described] = admin.describe_configs([short]).values()
            assert described.result(10)["retention.ms"].value == "1000"
            kafka.reset()


@pytest.mark.parametrize("renew", ["reset", "restore", "snapshot", "restart"])
def test_what_is_held_ends_with_its_broker_and_is_not_counted_any_more(kafka, renew) -> None:
    """Neither the broker that has made way for another one does it, nor that one."""
    then = kafka.snapshot()
    faults = [kafka.hold(api, times=None) for api in ("Produce", "CreateTopics")]
    admin = AdminClient(kafka.client_config("confluent"))
    admin.create_topics([NewTopic("late", 1, 1)])
    producer = Producer({**kafka.client_config("confluent"), "linger.ms": 0})
    producer.produce("orders", b"old", partition=0)
    wait_until(lambda: [each.held for each in faults] == [1, 1])
    for fault in faults:
        fault._faults.remove(fault)  # whoever comes again is not held
    kafka.restore(then) if renew == "restore" else getattr(kafka, renew)()
    assert [each.held for each in faults] == [0, 0]
    producer.purge()
    for fault in faults:
        fault.release()
    assert [each.held for each in faults] == [0, 0]


def wait_until(is_so) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_members_whose_clients_are_connected_outlive_a_jump_behind_a_snapshot(kafka) -> None:
    """The broker that goes on has not heard of them yet."""
    kafka.produce("orders", "one")
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 3000, "session.timeout.ms": 10_000,
    })  # fmt: skip
    consumer.subscribe(["orders"])
    assert consumer.poll(20) is not None
    before = kafka.wait_for_group("clerks", members=1)
    kafka.snapshot()
    kafka.clock.advance(hours=1)
    after = kafka.wait_for_group("clerks", state=None, timeout=1)
    assert [each.member_id for each in after.members] == [
        each.member_id for each in before.members
    ]
    consumer.close()


def test_a_restore_that_fails_says_so() -> None:
    with EmbeddedKafka(settings={"broker.id": 5}) as other:
        then = other.snapshot()
    with EmbeddedKafka() as kafka:
        with pytest.raises(BrokerFailed, match=r"could not restore a snapshot: .*5"):
            kafka.restore(then)
        wait_until(lambda: not kafka.is_running)


@pytest.mark.parametrize("renew", ["reset", "restore"])
def test_a_connected_client_believes_the_leader_that_it_is_told_of(kafka, renew) -> None:
    """It takes no epoch that is earlier than one that it has heard of."""
    then = kafka.snapshot()
    kafka.produce("orders", "one", partition=0)
    consumer = Consumer({
        **kafka.client_config("confluent"), "group.id": "clerks", "auto.offset.reset": "earliest"
    })  # fmt: skip
    moves = [Step(kind="moved-leader", number=number, api="Fetch") for number in (1, 2, 3)]
    with kafka.explore(schedule=moves) as explorer:
        consumer.assign([TopicPartition("orders", 0, 0)])
        assert consumer.poll(20) is not None
        assert len(explorer.schedule) == 3
    kafka.restore(then) if renew == "restore" else kafka.reset()
    kafka.produce("orders", "two", "three", partition=0)
    message = consumer.poll(20)
    assert message is not None
    assert message.error() is None
    consumer.close()


def test_time_passes_for_a_member_whose_group_is_gone(kafka) -> None:
    consumer = Consumer({**kafka.client_config("confluent"), "group.id": "clerks"})
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment())
    kafka.reset()
    kafka.clock.advance(hours=1)
    consumer.close()
