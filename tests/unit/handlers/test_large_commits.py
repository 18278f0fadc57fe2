"""Offsets of thousands of partitions in one request: a slice per turn, and seen whole."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 4_000
LARGE = "large"
GROUP = "g"


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    broker = WholeBroker(clock=CountingClock())
    broker.create(LARGE, MANY)
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
    broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
    return broker


def commit(offset: int, partitions: int = MANY, **fields: Any) -> OffsetCommitRequest:
    places = [
        OffsetCommitRequest.Partition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        for index in range(partitions)
    ]
    topics = [OffsetCommitRequest.Topic(name=LARGE, partitions=places)]
    return OffsetCommitRequest(group_id=GROUP, topics=topics, **fields)


def deletion() -> OffsetDeleteRequest:
    places = [OffsetDeleteRequest.Partition(partition_index=index) for index in range(MANY)]
    topics = [OffsetDeleteRequest.Topic(name=LARGE, partitions=places)]
    return OffsetDeleteRequest(group_id=GROUP, topics=topics)


def codes(answer: Any) -> list[int]:
    return [one.error_code for topic in answer.topics for one in topic.partitions]


def offsets(answer: Any) -> list[int]:
    return [one.committed_offset for topic in answer.topics for one in topic.partitions]


def committed(broker: WholeBroker) -> list[int]:
    return offsets(broker.ask(OffsetFetchRequest(group_id=GROUP, topics=None), 7))


def on_another_connection(broker: WholeBroker, request: Any, version: int) -> Later[Any]:
    own = broker.connection
    broker.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000))
    came = broker.send(request, version)
    broker.connection = own
    return came


def test_a_commit(broker: WholeBroker) -> None:
    assert codes(asked(broker, commit(7), 7)) == [Error.NONE] * MANY
    assert committed(broker) == [7] * MANY


def test_a_commit_that_is_refused(broker: WholeBroker) -> None:
    broker.ask(commit(7), 7)  # a group that is not there knows no generation either
    request = commit(8, member_id="m", generation_id_or_member_epoch=1)
    assert codes(asked(broker, request, 7)) == [Error.UNKNOWN_MEMBER_ID] * MANY


def test_a_commit_of_partitions_that_are_not_there(broker: WholeBroker) -> None:
    answer = asked(broker, commit(9, 3 * MANY), 7)
    expected = {index: Error.NONE if index < MANY else Error.UNKNOWN_TOPIC_OR_PARTITION
                for index in range(3 * MANY)}  # fmt: skip
    (topic,) = answer.topics
    assert {one.partition_index: one.error_code for one in topic.partitions} == expected


def test_a_deletion(broker: WholeBroker) -> None:
    broker.ask(commit(7), 7)
    assert codes(asked(broker, deletion(), 0)) == [Error.NONE] * MANY
    broker.ask(commit(7), 7)
    assert committed(broker) == [7] * MANY
    came = begun(broker, deletion(), 0)
    broker.clock.advance(0)
    assert codes(came()) == [Error.NONE] * MANY
    assert committed(broker) == []


def test_a_transaction(broker: WholeBroker) -> None:
    begin = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    given = broker.ask(begin, 4)
    who = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    broker.ask(commit(1), 7)
    added = AddOffsetsToTxnRequest(transactional_id="t", group_id=GROUP, **who)
    assert broker.ask(added, 3).error_code == Error.NONE
    places = [
        TxnOffsetCommitRequest.Partition(
            partition_index=index, committed_offset=11, committed_metadata=""
        )
        for index in range(MANY)
    ]
    topics = [TxnOffsetCommitRequest.Topic(name=LARGE, partitions=places)]
    request = TxnOffsetCommitRequest(transactional_id="t", group_id=GROUP, topics=topics, **who)
    assert codes(asked(broker, request, 3)) == [Error.NONE] * MANY
    assert committed(broker) == [1] * MANY
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    clock.begin()
    came = begun(broker, EndTxnRequest(transactional_id="t", committed=True, **who), 3)
    clock.advance(0)
    assert came().error_code == Error.NONE
    assert clock.heaviest.calls < MOST_CALLS // 2, clock.heaviest
    assert committed(broker) == [11] * MANY


def test_nobody_sees_half_of_a_commit(broker: WholeBroker) -> None:
    broker.ask(commit(20), 7)
    seen: list[list[int]] = []

    def look() -> None:
        if len(looks) < 300:
            looks.append(len(broker.env.slices))
            fetch = OffsetFetchRequest(group_id=GROUP, topics=None)
            if len(looks) % 30 == 1:
                came = on_another_connection(broker, fetch, 7)
                came.then(lambda answer: seen.append(offsets(answer)))
            broker.clock.call_later(0, look)

    looks: list[int] = []
    came = broker.send(commit(21), 7)
    look()
    broker.clock.advance(0)
    assert came.is_resolved
    assert max(looks) > 0
    assert len(seen) == 10
    assert all(found in ([20] * MANY, [21] * MANY) for found in seen)
    assert [20] * MANY in seen
    assert [21] * MANY in seen


def test_other_groups_are_served_meanwhile(broker: WholeBroker) -> None:
    shards = broker.context.groups
    other = next(f"o-{n}" for n in range(99)
                 if shards.partition_for(f"o-{n}") != shards.partition_for(GROUP))  # fmt: skip
    came = broker.send(commit(30), 7)
    small = OffsetCommitRequest(group_id=other, topics=commit(1, 1).topics)
    answer = on_another_connection(broker, small, 7)
    assert [answer.is_resolved, came.is_resolved] == [True, False]
    broker.clock.advance(0)
    assert codes(came.value) == [Error.NONE] * MANY


def test_a_stop_in_the_middle_answers() -> None:
    broker = WholeBroker(clock=CountingClock())
    broker.create(LARGE, MANY)
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
    came = broker.send(commit(7), 7)
    was_open = not came.is_resolved
    broker.close()
    assert was_open
    assert came.is_resolved
    assert len(broker.env.slices) == 0
