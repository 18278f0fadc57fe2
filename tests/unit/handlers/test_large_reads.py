"""Whoever asks for a lot does not hold up the others: work per turn, counted in calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafkalite.replication.waiting import Parked
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun
from tests.unit.handlers.whole_broker import WholeBroker

PARTITIONS = 3_000
TOPICS = 300
NAMES = 20_000
GROUPS = 600
LARGE = "large"


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    broker = WholeBroker(clock=CountingClock())
    broker.create(LARGE, PARTITIONS)
    topics = [
        CreateTopicsRequest.Topic(name=f"t-{number}", num_partitions=1, replication_factor=1)
        for number in range(TOPICS)
    ]
    broker.ask(CreateTopicsRequest(topics=topics), 7)
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    commit(broker, "g", PARTITIONS)
    for number in range(GROUPS):
        commit(broker, f"g-{number}", 1)
    return broker


def commit(broker: WholeBroker, group: str, partitions: int) -> None:
    asked = [
        OffsetCommitRequest.Partition(
            partition_index=index, committed_offset=index, committed_metadata=""
        )
        for index in range(partitions)
    ]
    topics = [OffsetCommitRequest.Topic(name=LARGE, partitions=asked)]
    answer = broker.ask(OffsetCommitRequest(group_id=group, topics=topics), 7)
    assert not any(one.error_code for topic in answer.topics for one in topic.partitions)


def partitions_of(cls: Any, **fields: Any) -> list[Any]:
    return [cls(partition=index, **fields) for index in range(PARTITIONS)]


def test_metadata_of_all_topics(broker: WholeBroker) -> None:
    found = asked(broker, MetadataRequest(topics=None), 12)
    assert len(found.topics) >= TOPICS + 1
    (large,) = [topic for topic in found.topics if topic.name == LARGE]
    assert [one.partition_index for one in large.partitions] == list(range(PARTITIONS))


def test_metadata_of_many_names_that_are_not_there(broker: WholeBroker) -> None:
    names = [MetadataRequest.Topic(name=f"no-{number}") for number in range(NAMES)]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    found = asked(broker, request, 12)
    assert [topic.name for topic in found.topics] == [f"no-{number}" for number in range(NAMES)]


def test_partitions_of_topics(broker: WholeBroker) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.Topic(name=LARGE)], response_partition_limit=2_000
    )
    (topic,) = asked(broker, request, 0).topics
    assert len(topic.partitions) == 2_000


def test_ends_of_many_partitions(broker: WholeBroker) -> None:
    partitions = [
        ListOffsetsRequest.Partition(partition_index=index, timestamp=-1)
        for index in range(PARTITIONS)
    ]
    topics = [ListOffsetsRequest.Topic(name=LARGE, partitions=partitions)]
    (topic,) = asked(broker, ListOffsetsRequest(replica_id=-1, topics=topics), 6).topics
    assert len(topic.partitions) == PARTITIONS
    assert {one.error_code for one in topic.partitions} == {0}


def test_ends_of_many_epochs(broker: WholeBroker) -> None:
    kind = OffsetForLeaderEpochRequest
    topics = [kind.Topic(topic=LARGE, partitions=partitions_of(kind.Partition, leader_epoch=0))]
    (topic,) = asked(broker, kind(replica_id=-1, topics=topics), 3).topics
    assert len(topic.partitions) == PARTITIONS


@pytest.mark.parametrize("version", [7, 8])
def test_all_offsets_of_a_group(broker: WholeBroker, version: int) -> None:
    group = OffsetFetchRequest.Group(group_id="g", topics=None)
    request = OffsetFetchRequest(group_id="g", topics=None, groups=[group])
    found = asked(broker, request, version)
    (topic,) = found.topics if version < 8 else found.groups[0].topics
    assert [one.committed_offset for one in topic.partitions] == list(range(PARTITIONS))


def test_offsets_are_those_of_one_moment(broker: WholeBroker) -> None:
    commit(broker, "moment", PARTITIONS)
    request = OffsetFetchRequest(group_id="moment", topics=None)
    came = begun(broker, request, 7)
    offset = OffsetCommitRequest.Partition(
        partition_index=PARTITIONS - 1, committed_offset=1_000_000, committed_metadata=""
    )
    topics = [OffsetCommitRequest.Topic(name=LARGE, partitions=[offset])]
    elsewhere = broker.connection
    broker.connection = type(elsewhere)("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000))
    broker.ask(OffsetCommitRequest(group_id="moment", topics=topics), 7)
    broker.connection = elsewhere
    broker.clock.advance(0)
    assert came().topics[0].partitions[-1].committed_offset == PARTITIONS - 1


def test_settings_of_many_topics(broker: WholeBroker) -> None:
    resources = [
        DescribeConfigsRequest.Resource(resource_type=2, resource_name=f"t-{number}")
        for number in range(TOPICS)
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    assert len(asked(broker, request, 4).results) == TOPICS


def test_many_groups(broker: WholeBroker) -> None:
    names = [f"g-{number}" for number in range(GROUPS)]
    described = asked(broker, DescribeGroupsRequest(groups=names), 5).groups
    assert sorted(group.group_id for group in described) == sorted(names)
    consumers = asked(broker, ConsumerGroupDescribeRequest(group_ids=names), 1).groups
    assert len(consumers) == GROUPS
    assert len(asked(broker, ListGroupsRequest(), 4).groups) >= GROUPS
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=names)
    assert len(asked(broker, request, 4).coordinators) == GROUPS


def test_producers_and_sizes_of_many_partitions(broker: WholeBroker) -> None:
    kind = DescribeProducersRequest
    topic = kind.Topic(name=LARGE, partition_indexes=list(range(PARTITIONS)))
    assert len(asked(broker, kind(topics=[topic]), 0).topics[0].partitions) == PARTITIONS
    (directory,) = asked(broker, DescribeLogDirsRequest(topics=None), 4).results
    assert sum(len(topic.partitions) for topic in directory.topics) >= PARTITIONS + TOPICS


def fetch_of_all(broker: WholeBroker, **fields: Any) -> FetchRequest:
    partitions = [
        FetchRequest.Partition(
            partition=index, partition_max_bytes=1 << 20,
            fetch_offset=broker.partition(LARGE, index).log.log_start_offset,
        )
        for index in range(PARTITIONS)
    ]  # fmt: skip
    return FetchRequest(
        max_bytes=1 << 20, session_epoch=-1,
        topics=[FetchRequest.Topic(topic=LARGE, partitions=partitions)],
        **fields,
    )  # fmt: skip


def test_a_fetch_of_many_partitions(broker: WholeBroker) -> None:
    (topic,) = asked(broker, fetch_of_all(broker, max_wait_ms=0, min_bytes=1), 12).responses
    assert [one.partition_index for one in topic.partitions] == list(range(PARTITIONS))


def test_a_fetch_of_many_partitions_that_waits(broker: WholeBroker) -> None:
    came = begun(broker, fetch_of_all(broker, max_wait_ms=500, min_bytes=1), 12)
    broker.clock.advance(100)
    broker.append(b"value", topic=LARGE, index=7)
    broker.clock.advance(0)
    (topic,) = came().responses
    assert [one.partition_index for one in topic.partitions if one.records] == [7]
    broker.partition(LARGE, 7).delete_records_before(-1)


def test_the_first_look_of_a_long_poll_is_a_slice_per_turn(broker: WholeBroker) -> None:
    request = fetch_of_all(broker, max_wait_ms=500, min_bytes=1)
    for _ in range(2):  # the first has code generated and modules imported
        broker.clock.advance(0)
        assert isinstance(broker.clock, CountingClock)
        broker.clock.begin()
        came = begun(broker, request, 12)
        broker.clock.advance(499)
        first = broker.clock.heaviest
        broker.clock.advance(1)
        assert len(came().responses[0].partitions) == PARTITIONS
    assert 500 < first.calls < MOST_CALLS, first


@pytest.mark.parametrize("index", [3, PARTITIONS - 3])
@pytest.mark.parametrize("turns", range(0, 24, 3))
def test_nothing_is_missed_that_comes_during_the_first_look(
    broker: WholeBroker, index: int, turns: int
) -> None:
    """Whether its partition was read already, or watched already, or neither."""

    def append(left: int) -> None:
        if left:
            broker.clock.call_later(0, lambda: append(left - 1))
        else:
            broker.append(b"value", topic=LARGE, index=index)

    came = begun(broker, fetch_of_all(broker, max_wait_ms=500, min_bytes=1), 12)
    append(turns)
    broker.clock.advance(0)
    (topic,) = came().responses
    assert [one.partition_index for one in topic.partitions if one.records] == [index]
    broker.partition(LARGE, index).delete_records_before(-1)


@pytest.mark.pure  # it takes the place of something compiled
@pytest.mark.parametrize("fails", [False, True])
def test_many_who_wait_for_one_append_are_answered_some_in_each_turn(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """In their order; also when one of them cannot be, by a mistake of ours."""
    broker.create("awaited")
    partitions = [FetchRequest.Partition(partition_max_bytes=1 << 20)]
    request = FetchRequest(
        max_wait_ms=5_000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1,
        topics=[FetchRequest.Topic(topic="awaited", partitions=partitions)],
    )  # fmt: skip
    clock, told = broker.clock, list[int]()
    assert isinstance(clock, CountingClock)
    frame = broker.frame(request, 12)

    def tell(number: int, _: Any) -> None:
        told.append(number)

    for number in range(1_000):
        answer = broker.broker.dispatcher.answer(frame, broker.connection)
        assert isinstance(answer, Later)
        answer.then(partial(tell, number))
    failing = iter([RuntimeError("a planted mistake")] if fails else [])
    retry = Parked.retry

    def fail_once(parked: Parked) -> None:
        retry(parked)
        for error in failing:
            raise error

    monkeypatch.setattr(Parked, "retry", fail_once)
    clock.begin()
    broker.append(b"value", topic="awaited")
    if fails:
        with pytest.raises(RuntimeError, match="planted"):
            clock.advance(0)
    clock.advance(0)
    assert told == list(range(1_000))
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    broker.delete("awaited")


def test_a_connection_is_answered_in_order_whatever_is_large(broker: WholeBroker) -> None:
    """The small one that follows is not even looked at before the large one is done."""
    names = [MetadataRequest.Topic(name=f"no-{number}") for number in range(NAMES)]
    large = begun(broker, MetadataRequest(topics=names, allow_auto_topic_creation=False), 12)
    small = begun(broker, ApiVersionsRequest(), 2)
    assert broker.context.long_work.connections == {id(broker.connection): 2}
    broker.clock.advance(0)
    assert small().api_keys
    assert len(large().topics) == NAMES


def test_nobody_works_for_a_client_that_has_gone(broker: WholeBroker) -> None:
    names = [MetadataRequest.Topic(name=f"no-{number}") for number in range(NAMES)]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    frame = broker.frame(request, 12)
    gone = type(broker.connection)("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.7", 40_000))
    answer = broker.broker.dispatcher.answer(frame, gone)
    gone.has_ended = True
    broker.clock.advance(0)
    assert isinstance(answer, Later)
    assert isinstance(answer.value, CloseConnection)
    assert len(broker.env.slices) == 0
    assert not broker.context.long_work.connections
