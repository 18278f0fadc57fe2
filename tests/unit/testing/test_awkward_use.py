"""Tests that use their broker in ways that nobody had in mind: one sentence each, and no wait."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kafkalite.client.cluster import ClientFailed, Unreachable
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.testing import observing
from kafkalite.testing.arguments import HIGHEST_MOMENT_MS
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from kafkalite.testing.outside import OutsideKafka
from tests.unit.testing.between import asked

TOPIC = "orders"
MOVED = "NOT_LEADER_OR_FOLLOWER"


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={TOPIC: 1}) as kafka:
        yield kafka


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [-1, 1.5, "2", True])
def test_how_often_is_a_whole_number(kafka, times) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^times=.*: expected .* None for always$"):
        kafka.fail("Produce", error=MOVED, times=times)


@pytest.mark.parametrize("ms", [-5, nan, inf, 1e12, 2**31, "5", None, True])
def test_how_long_is_what_a_reply_can_say(kafka, ms) -> None:
    for act in (kafka.delay, kafka.throttle):
        with pytest.raises((TypeError, ValueError), match=r"^ms=.*: expected "):
            act("Metadata", ms=ms)


@pytest.mark.parametrize("ms", [0, 0.4, Decimal(5), Fraction(1, 2)])
def test_how_long_is_any_number(kafka, ms) -> None:
    with kafka.throttle("Metadata", ms=ms) as throttled, kafka.delay("Produce", ms=ms) as delayed:
        kafka.produce(TOPIC, "one")
        assert (throttled.count, delayed.count) == (1, 1)


@pytest.mark.parametrize("error", ["NONE", "none", 0, True])
def test_no_error_is_no_error_to_fail_with(kafka, error) -> None:
    with pytest.raises(ValueError, match="is no error of Kafka's protocol"):
        kafka.fail("Produce", error=error)


def test_requests_that_when_keeps_stay_as_they_were(kafka) -> None:
    asked: list[Any] = []
    with kafka.fail("Produce", error=MOVED, when=lambda request: asked.append(request)):
        kafka.produce(TOPIC, "first")
        kafka.produce(TOPIC, "other")
    records = [bytes(each.topic_data[0].partition_data[0].records) for each in asked]
    assert b"first" in records[0]
    assert b"other" in records[1]


def test_what_when_does_to_its_request_changes_no_reply(kafka) -> None:
    def when(request: Any) -> bool:
        request.topic_data.clear()
        request.acks = 0
        return True

    with kafka.fail("Produce", error=MOVED, when=when) as fault:
        kafka.produce(TOPIC, "one")
        assert fault.count == 1
    kafka.records(TOPIC).one()


def test_a_when_that_has_pytest_fail_is_told_and_harms_nobody(kafka, caplog) -> None:
    fault = kafka.fail("Produce", error=MOVED, when=lambda _: pytest.fail("not so"))
    kafka.produce(TOPIC, "one")
    kafka.records(TOPIC).one()
    assert "so it is not for this Produce" in caplog.text
    with pytest.raises(pytest.fail.Exception, match="not so"):
        _ = fault.count


def test_an_observer_that_has_pytest_fail_harms_nobody(kafka, caplog) -> None:
    kafka.observe(lambda _: pytest.fail("not so"))
    kafka.produce(TOPIC, "one")
    kafka.records(TOPIC).one()
    assert "an observer of the broker failed" in caplog.text


WAITING: list[Callable[[EmbeddedKafka], object]] = [
    lambda kafka: kafka.clock.advance(seconds=1),
    lambda kafka: kafka.clock.freeze(),
    lambda kafka: kafka.quiesce(),
    lambda kafka: kafka.disconnect(),
    lambda kafka: kafka.create_topic("more"),
    lambda kafka: kafka.produce(TOPIC, "more"),
    lambda kafka: kafka.records(TOPIC),
    lambda kafka: kafka.lag("clerks"),
    lambda kafka: kafka.wait_for_group("clerks"),
]


@pytest.mark.parametrize("wait", WAITING)
def test_who_is_called_by_the_broker_cannot_wait_for_it(kafka, wait) -> None:
    said: list[str] = []

    def observer(exchange: Any) -> None:
        if exchange.api == "Produce":
            try:
                wait(kafka)
            except BrokerFailed as failure:
                said.append(str(failure))

    kafka.observe(observer)
    begun = time.monotonic()
    kafka.produce(TOPIC, "one")
    assert time.monotonic() - begun < 5
    assert [each.endswith("ask for it on another thread") for each in said] == [True]


def test_what_was_held_is_not_done_by_a_later_life(kafka) -> None:
    """Its broker has no business with the files any more."""
    held = kafka.hold("Produce")
    producer = Producer({**kafka.client_config("confluent"), "linger.ms": 0})
    producer.produce(TOPIC, b"old")
    wait_until(lambda: held.count == 1)
    [stage] = [each for stages in kafka._run.stages.values() for each in stages if each._lines]
    done: list[object] = []
    stage._service = type("Ended", (), {"answer": lambda *asked: done.append(asked)})()
    kafka.stop()
    producer.purge()
    kafka.start()
    held.release()
    kafka.produce(TOPIC, "new")
    assert done == []
    kafka.records(TOPIC).one()


def test_one_of_several_is_not_asked_for_what_was_held_when_it_stopped() -> None:
    with EmbeddedKafka(brokers=3, topics={TOPIC: 3}) as kafka:
        held = kafka.hold("Produce", times=None)
        producer = Producer({**kafka.client_config("confluent"), "linger.ms": 0})
        for partition in range(3):
            producer.produce(TOPIC, b"one", partition=partition)
        wait_until(lambda: held.count == 3)
        kafka.stop_broker(2)
        held.remove()
        kafka.start_broker(2)
        assert producer.flush(10) == 0
        assert len(kafka.records(TOPIC, count=3)) == 3


def test_rules_from_many_threads_are_all_there(kafka) -> None:
    faults: list[Any] = []

    def add() -> None:
        for _ in range(50):
            fault = kafka.fail("Fetch", error=MOVED)
            faults.append(fault)
            kafka.fail("Fetch", error=MOVED).remove()

    in_threads = [threading.Thread(target=add) for _ in range(8)]
    for each in in_threads:
        each.start()
    for each in in_threads:
        each.join()
    assert set(kafka._controls.faults._rules) == set(faults)


# --- what was said --------------------------------------------------------------------------------


def test_what_was_said_stays_when_its_files_have_gone(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "data", topics={TOPIC: 1}) as kafka:
        kafka.keep_exchanges()
        kafka.produce(TOPIC, "x" * 100_000)
        kafka.records(TOPIC)
        admin = AdminClient(kafka.client_config("confluent"))
        admin.delete_topics([TOPIC])[TOPIC].result()
        kafka.clock.advance(hours=1)
        [fetched] = [each for each in kafka.exchanges if each.api == "Fetch"]
        assert b"x" * 100_000 in bytes(fetched.response.responses[0].partitions[0].records)
        assert not [each for each in kafka.exchanges if not str(each)]


def test_one_that_is_too_much_stays_without_what_it_says(kafka, monkeypatch) -> None:
    monkeypatch.setattr(observing, "KEPT_BYTES", 100_000)
    kafka.keep_exchanges()
    kafka.produce(TOPIC, "small")
    kafka.produce(TOPIC, "x" * 200_000)
    small, large = [each for each in kafka.exchanges if each.api == "Produce"]
    assert small.response is not None
    assert large.request is None
    assert "bytes, which are too many to be kept" in str(large)


def test_what_is_kept_takes_no_more_memory_than_it_may(kafka, monkeypatch) -> None:
    """However small each is, and also when somebody has looked at all of it."""
    monkeypatch.setattr(observing, "KEPT_BYTES", 1_000_000)
    kafka.produce(TOPIC, "one")  # whatever is made once
    kafka.keep_exchanges()
    with socket.create_connection(("127.0.0.1", kafka.port), 10) as link:
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2_000):
            link.sendall(asked(MetadataRequest(topics=[]), 5))
            link.recv(1_000)
        assert not any(each.errors for each in kafka.exchanges)
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert taken < 1_500_000


def test_what_is_kept_is_counted_whatever_waits_meanwhile(kafka, monkeypatch) -> None:
    """A reply to what was forgotten before, or to what is too old, must count for nothing."""
    monkeypatch.setattr(observing, "KEPT_BYTES", 100_000)
    kafka.produce(TOPIC, "x" * 200_000)
    for forgets in (kafka.keep_exchanges, lambda: kafka.produce(TOPIC, "y" * 90_000)):
        kafka.keep_exchanges()
        with kafka.hold("Fetch") as held:
            reading = threading.Thread(target=kafka.records, args=(TOPIC,))
            reading.start()
            while not held.count:
                time.sleep(0.01)
            forgets()
        reading.join(10)
        observers = kafka._controls.observers
        assert observers._kept_bytes == sum(each.weight for each in kafka.exchanges)
        assert observers._kept_bytes <= 100_000
        kafka.produce(TOPIC, "z")
        assert [each for each in kafka.exchanges if each.api == "Produce"]


def test_an_observer_that_is_there_twice_hears_all_twice_until_it_ends_once(kafka) -> None:
    heard: list[Any] = []

    def observer(exchange: Any) -> None:
        heard.append(exchange)

    ends = [kafka.observe(observer), kafka.observe(observer)]
    ends[0]()
    ends[0]()
    kafka.produce(TOPIC, "one")
    assert len([each for each in heard if each.api == "Produce"]) == 1


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [
    {"days": nan}, {"days": inf}, {"days": 1e10}, {"hours": "1"}, {"seconds": None},
    {"days": True},
])  # fmt: skip
def test_a_length_of_time_is_one(kafka, wrong) -> None:
    [name] = wrong
    with pytest.raises((TypeError, ValueError), match=f"^{name}="):
        kafka.clock.advance(**wrong)


def test_time_ends_with_the_year_9999(kafka) -> None:
    kafka.clock.advance(days=365 * 5000)
    with pytest.raises(BrokerFailed, match="beyond the year 9999"):
        kafka.clock.advance(days=365 * 5000)
    assert 7000 < kafka.clock.now.year < 7100
    kafka.produce(TOPIC, "late")
    assert kafka.records(TOPIC).one().timestamp.year == kafka.clock.now.year


def test_time_passes_by_any_number(kafka) -> None:
    kafka.clock.freeze(datetime(2030, 1, 1, tzinfo=UTC))
    kafka.clock.advance(days=Decimal("0.5"), hours=Fraction(3, 2), seconds=0)
    assert kafka.clock.now == datetime(2030, 1, 1, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize("at", [-5, nan, inf, 1e20, HIGHEST_MOMENT_MS + 1])
def test_a_moment_is_one_that_can_be_shown(kafka, at) -> None:
    with pytest.raises(ValueError, match=r"^at=.*: expected a moment from 1970"):
        kafka.clock.freeze(at)


@pytest.mark.parametrize("at", [0, datetime(1999, 1, 1, tzinfo=UTC), HIGHEST_MOMENT_MS])
def test_what_is_written_has_the_time_of_the_broker(kafka, at) -> None:
    kafka.clock.freeze(at)
    kafka.produce(TOPIC, "one")
    assert kafka.records(TOPIC).one().timestamp == kafka.clock.now


def test_what_is_written_after_a_jump_is_new(kafka) -> None:
    kafka.clock.advance(days=30)
    kafka.produce(TOPIC, "new")
    kafka.clock.advance(hours=1)
    kafka.records(TOPIC, count=0).one()


def test_the_clock_is_set_back_to_what_it_would_be(kafka) -> None:
    kafka.clock.freeze(1000)
    kafka.clock.advance(days=2)
    kafka.clock.reset()
    ahead = kafka.clock.now - datetime.now(UTC)
    assert 1.99 < ahead.total_seconds() / 86_400 < 2.01


# --- life -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_s", [0, 0.001, 0.01, 0.05])
def test_a_block_that_is_cancelled_while_it_begins_leaves_no_broker(after_s) -> None:
    kafka = EmbeddedKafka(brokers=3)

    async def use() -> None:
        async with kafka:
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.ensure_future(use())
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not kafka.is_running


# --- what tests ask -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"a", bytearray(b"a"), memoryview(b"xax")[1:2], "a"])
def test_bytes_of_any_kind_are_written_as_they_are(kafka, value) -> None:
    kafka.produce(TOPIC, (value, value), headers={"h": value})
    record = kafka.records(TOPIC).one()
    assert (record.key, record.value, record.headers) == (b"a", b"a", {"h": b"a"})


@pytest.mark.parametrize("value", [
    datetime(2030, 1, 1, tzinfo=UTC), object(), nan, [inf], "\ud800", Decimal(1), ("a", "b", "c"),
])  # fmt: skip
def test_what_cannot_be_written_is_named_and_nothing_is_written(kafka, value) -> None:
    with pytest.raises((TypeError, ValueError), match=r"give bytes|a tuple is a key and a value"):
        kafka.produce(TOPIC, "one", value)
    assert kafka.records(TOPIC, count=0) == []


def test_headers_may_be_there_twice(kafka) -> None:
    given = [("a", "1"), ("b", None), ("a", "2")]
    kafka.produce(TOPIC, "one", headers=given)
    record = kafka.records(TOPIC).one()
    assert record.all_headers == (("a", b"1"), ("b", None), ("a", b"2"))
    assert record.headers == {"a": b"2", "b": None}
    with pytest.raises(TypeError, match="1 is no name of a header"):
        kafka.produce(TOPIC, "one", headers={1: "a"})


def test_a_broker_that_says_nothing_is_not_waited_for_longer_than_was_said(kafka) -> None:
    kafka.produce(TOPIC, "one")
    for api in ("Fetch", "Metadata", "ListOffsets"):
        begun = time.monotonic()
        held, ask = kafka.hold(api, times=None), lambda: kafka.records(TOPIC, timeout=1)
        with held, pytest.raises(AssertionError, match="no answer in time"):
            ask()
        assert time.monotonic() - begun < 8


def test_a_topic_that_cannot_be_is_not_waited_for(kafka) -> None:
    begun = time.monotonic()
    with pytest.raises(AssertionError, match="topic a b: INVALID_TOPIC_EXCEPTION"):
        kafka.records("a b", count=1)
    assert time.monotonic() - begun < 5


def test_lag_counts_what_is_there_to_be_read(kafka) -> None:
    kafka.create_topic("short", configs={"retention.ms": 1000})
    kafka.produce("short", *range(5))
    kafka.clock.advance(days=1)
    kafka.produce("short", *range(2))
    [lag] = kafka.lag("clerks", ["short"])
    assert (lag.beginning, lag.end, lag.records) == (5, 7, 2)
    with pytest.raises(TypeError, match=r"expected a list, \['short'\]"):
        kafka.lag("clerks", "short")


def test_a_kafka_that_is_down_says_where_to_look() -> None:
    outside = OutsideKafka("127.0.0.1:9")
    for ask in (lambda: outside.create_topic(TOPIC), lambda: outside.produce(TOPIC, "one")):
        with pytest.raises(Unreachable, match=r"127.0.0.1:9.*--kafkalite-url"):
            ask()


def test_what_the_broker_refuses_is_said(kafka) -> None:
    kafka.create_topic("small", configs={"max.message.bytes": 100})
    with pytest.raises(ClientFailed, match="MESSAGE_TOO_LARGE"):
        kafka.produce("small", "x" * 1000)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
