"""Fetches that wait: for what, how long, and at what cost to whoever appends meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteTopicsRequest, FetchRequest
from kafkalite.replication.partition import Partition
from tests.unit.handlers.test_fetch import LARGE, fetch, only, request, values
from tests.unit.handlers.whole_broker import WholeBroker


def test_an_append_wakes_who_waits(broker: WholeBroker) -> None:
    came = broker.send(request(max_wait_ms=500), 12)
    broker.clock.advance(100)
    assert not came.is_resolved
    broker.append(b"a")
    broker.clock.advance(0)
    assert values(only(came.value)) == [b"a"]


def test_waiting_ends_with_what_there_is(broker: WholeBroker) -> None:
    broker.append(b"a")
    came = broker.send(request(max_wait_ms=500, min_bytes=LARGE), 12)
    broker.clock.advance(499)
    assert not came.is_resolved
    broker.clock.advance(1)
    assert values(only(came.value)) == [b"a"]


def test_bytes_are_waited_for_over_all_partitions(broker: WholeBroker) -> None:
    broker.create("u")
    came = broker.send(request(topics=["t", "u"], max_wait_ms=500, min_bytes=200), 12)
    broker.append(b"a" * 100)
    broker.clock.advance(0)
    assert not came.is_resolved
    broker.append(b"b" * 100, topic="u")
    broker.clock.advance(0)
    assert [len(values(topic.partitions[0])) for topic in came.value.responses] == [1, 1]


def test_more_than_may_come_is_not_waited_for(broker: WholeBroker) -> None:
    broker.append(b"a" * 100)
    assert values(fetch(broker, max_wait_ms=500, min_bytes=1_000, max_bytes=50)) == [b"a" * 100]


def test_an_error_does_not_wait(broker: WholeBroker) -> None:
    answer = fetch(broker, 99, max_wait_ms=500)
    assert answer.error_code == Error.OFFSET_OUT_OF_RANGE
    answer = fetch(broker, topics=["no"], max_wait_ms=500)
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_not_there_does_not_keep_the_rest_from_waiting(broker: WholeBroker) -> None:
    came = broker.send(request(topics=["t", "no"], max_wait_ms=500), 12)
    broker.clock.advance(499)
    assert not came.is_resolved
    broker.clock.advance(1)
    codes = [topic.partitions[0].error_code for topic in came.value.responses]
    assert codes == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_end_of_an_old_segment_is_not_waited_at(broker: WholeBroker) -> None:
    """More never comes there, since a read does not go on into the next file."""
    broker.create("rolled", segment_bytes="1048576")
    for _ in range(8):
        broker.append(b"a" * 400_000, topic="rolled")
    assert len(broker.partition("rolled").log.segments) == 4
    asked: dict[str, Any] = {"topics": ["rolled"], "max_wait_ms": 500, "min_bytes": 2 * LARGE}
    assert len(values(fetch(broker, 0, **asked))) == 2
    assert len(values(fetch(broker, 4, **asked))) == 2
    assert not broker.send(request(6, **asked), 12).is_resolved


def test_a_segment_that_is_begun_while_one_waits_ends_the_waiting(broker: WholeBroker) -> None:
    broker.create("rolled", segment_bytes="1048576")
    broker.append(b"a" * 400_000, topic="rolled")
    came = broker.send(
        request(topics=["rolled"], max_wait_ms=500, min_bytes=2 * LARGE), 12
    )
    broker.append(b"b" * 400_000, topic="rolled")
    broker.clock.advance(0)
    assert not came.is_resolved
    broker.append(b"c" * 400_000, topic="rolled")
    broker.clock.advance(0)
    assert len(values(only(came.value))) == 2


@pytest.mark.pure  # it takes the place of something compiled
def test_waiting_reads_nothing_before_there_is_enough(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("many", partitions=20)
    partitions = [FetchRequest.Partition(partition=i, partition_max_bytes=LARGE) for i in range(20)]
    topic = FetchRequest.Topic(topic="many", partitions=partitions)
    came = broker.send(FetchRequest(max_wait_ms=500, min_bytes=1_000, topics=[topic]), 12)
    reads = 0
    real = Partition.read

    def counted(*args: Any, **fields: Any) -> Any:
        nonlocal reads
        reads += 1
        return real(*args, **fields)

    monkeypatch.setattr(Partition, "read", counted)
    for number in range(5):
        broker.append(b"a" * 100, topic="many", index=number)
        broker.clock.advance(0)
    assert reads == 0
    broker.append(b"a" * 400, topic="many", index=7)
    broker.clock.advance(0)
    assert reads == 20
    assert came.is_resolved


def test_what_one_partition_may_bring_counts_no_further(broker: WholeBroker) -> None:
    came = broker.send(request(max_wait_ms=500, min_bytes=600, partition_max_bytes=300), 12)
    for _ in range(5):
        broker.append(b"a" * 200)
        broker.clock.advance(0)
    assert not came.is_resolved


def test_a_topic_that_is_made_again_while_one_waits_ends_the_waiting(broker: WholeBroker) -> None:
    came = broker.send(request(max_wait_ms=500), 12)
    broker.send(DeleteTopicsRequest(topic_names=["t"]), 5)
    broker.create("t")
    broker.clock.advance(0)
    assert only(came.value).error_code == Error.NONE


def test_a_client_that_has_gone_waits_no_longer(broker: WholeBroker) -> None:
    came = broker.send(request(max_wait_ms=60_000), 12)
    broker.connection.has_gone()
    assert came.is_resolved
    assert not broker.partition()._watchers
    broker.ask(request(max_wait_ms=0), 12)


def test_nothing_asked_for_is_answered_at_once(broker: WholeBroker) -> None:
    response = broker.ask(FetchRequest(max_wait_ms=500, min_bytes=1), 12)
    assert (response.error_code, response.responses) == (0, [])


def test_a_topic_that_goes_ends_the_waiting(broker: WholeBroker) -> None:
    came = broker.send(request(max_wait_ms=500), 12)
    broker.delete("t")
    broker.clock.advance(0)
    assert only(came.value).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("version", "epoch", "error"),
    [
        (10, -1, Error.NOT_LEADER_OR_FOLLOWER),
        (12, 0, Error.FENCED_LEADER_EPOCH),
        (12, -1, Error.NONE),  # any replica serves it
    ],
)
def test_a_leader_that_goes_ends_the_waiting(
    broker: WholeBroker, version: int, epoch: int, error: Error
) -> None:
    came = broker.send(request(max_wait_ms=500, epochs=(epoch, -1)), version)
    broker.stop_leading()
    broker.clock.advance(0)
    assert only(came.value).error_code == error
