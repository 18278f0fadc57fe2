"""Whoever waits is answered, also when what it waits for fails by a mistake of ours later on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.handlers.fetch_arrivals import Arrivals
from kafkalite.handlers.produce_entry import Entry
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    FetchRequest,
    ListTransactionsRequest,
    ProduceRequest,
)
from kafkalite.replication.partition import Partition
from tests.unit.broker.turns import creation
from tests.unit.handlers.whole_broker import WholeBroker, records


@pytest.fixture
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker()
    broker.ask(creation(1, "t"), 7)
    yield broker
    broker.close()


def fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a planted mistake")


def fail_in_steps(*_: Any, **__: Any) -> Any:
    yield
    raise ZeroDivisionError("a planted mistake")


def produce(broker: WholeBroker, values: list[bytes], acks: int = -1) -> ProduceRequest:
    batch = records(values, timestamp=broker.now_ms)
    partition = ProduceRequest.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name="t", partition_data=[partition])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def long_poll(wait_ms: int = 60_000) -> FetchRequest:
    partition = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.Topic(topic="t", partitions=[partition])
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1 << 19, max_bytes=1 << 20, session_epoch=-1, topics=[topic]
    )


def told(came: Later[Any], caplog: pytest.LogCaptureFixture, name: str) -> Any:
    """The answer; the log has the mistake with its stack and whose request it was."""
    assert came.is_resolved, "nobody is answered"
    [line] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert line.exc_info is not None
    assert name in line.getMessage()
    return came.value


@pytest.mark.parametrize("wake", ["an append", "the deadline"])
def test_a_long_poll_whose_next_look_fails(
    broker: WholeBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wake: str,
) -> None:
    came = broker.send(long_poll(), 12)
    assert not came.is_resolved
    if wake == "an append":
        monkeypatch.setattr(Arrivals, "is_enough", fail)
        broker.ask(produce(broker, [b"x"], acks=1), 9)
    else:
        monkeypatch.setattr("kafkalite.handlers.fetch._Attempt._read", fail)
        broker.clock.advance(60_000)
    answer = told(came, caplog, "Fetch")
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
    monkeypatch.undo()
    assert not broker.context.waiting.parked


def test_an_append_that_is_waited_for(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A producer is not told of an unknown error, or it would send its batch twice."""
    monkeypatch.setattr(Entry, "is_waiting", lambda entry: True)
    came = broker.send(produce(broker, [b"x"]), 9)
    assert not came.is_resolved
    monkeypatch.setattr(Entry, "is_waiting", fail)
    broker.clock.advance(30_000)
    told(came, caplog, "Produce")


@pytest.mark.parametrize(
    ("what", "planted"), [("examine", fail_in_steps), ("write", fail)], ids=["look", "append"]
)
def test_a_batch_that_is_looked_at_in_slices(
    broker: WholeBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
    planted: Callable[..., Any],
) -> None:
    if what == "examine":
        # Not at the first look, which is taken before anybody waits.
        def late(*_: Any, **__: Any) -> Any:
            for _number in range(1_000):
                yield
            raise ZeroDivisionError("a planted mistake")

        planted = late
    monkeypatch.setattr(Partition, what, planted)
    came = broker.send(produce(broker, [b"x" * (n % 3) for n in range(20_000)]), 9)
    assert not came.is_resolved
    broker.clock.advance(0)
    told(came, caplog, "Produce")


def test_a_list_that_takes_turns(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafkalite.handlers.list_transactions._respond", fail_in_steps)
    came = broker.send(ListTransactionsRequest(), 0)
    broker.clock.advance(0)
    assert told(came, caplog, "ListTransactions").error_code == Error.UNKNOWN_SERVER_ERROR


def test_a_decision_of_the_controller(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafkalite.coordinators.cluster.create_topics._create_topic", fail_in_steps)
    came = broker.send(creation(1, "u"), 7)
    broker.clock.advance(0)
    answer = told(came, caplog, "CreateTopics")
    assert answer.topics[0].error_code == Error.UNKNOWN_SERVER_ERROR
    assert isinstance(broker.clock, ManualClock)
