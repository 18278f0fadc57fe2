"""Requests that name many topics, groups or users, each with little: work per turn, in calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.coordinators.groups.classic_group import ClassicMember, ClassicState
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.transactions.events import InitProducerId
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupDescribeRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeQuorumRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun
from tests.unit.handlers.whole_broker import WholeBroker

NAMES = [f"no-{number}" for number in range(4_000)]
MANY_NAMES = [f"no-{number}" for number in range(8_000)]
USERS = 2_000
MANY_FILTERS = [f"no-{number}" for number in range(20_000)]
UNKNOWN = Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(scope="module")
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(clock=CountingClock())
    broker.create("t")
    for key_type in (0, 1):
        broker.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
    yield broker
    broker.close()


def test_ends_of_many_topics(broker: WholeBroker) -> None:
    kind = ListOffsetsRequest
    topics = [
        kind.Topic(name=name, partitions=[kind.Partition(partition_index=0, timestamp=-1)])
        for name in NAMES
    ]
    found = asked(broker, kind(replica_id=-1, topics=topics), 6)
    assert [topic.partitions[0].error_code for topic in found.topics] == [UNKNOWN] * len(NAMES)


def test_many_filters_of_groups(broker: WholeBroker) -> None:
    for filters in ({"states_filter": MANY_FILTERS}, {"types_filter": MANY_FILTERS}):
        found = asked(broker, ListGroupsRequest(**filters), 5)
        assert (found.error_code, found.groups) == (Error.NONE, [])


def test_many_filters_of_many_transactions() -> None:
    clock = CountingClock()
    broker = WholeBroker(clock=clock)
    broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["g"]), 4)
    ids = [f"a-transaction-{number}" for number in range(USERS // 2)]
    for name in ids:
        given = broker.context.transactions.submit(name, InitProducerId(name, 60_000))
        clock.advance(0)
        assert not isinstance(given.value, KafkaError)
    found = broker.ask(ListTransactionsRequest(transactional_id_pattern="a-.*-7"), 2)
    assert [one.transactional_id for one in found.transaction_states] == ["a-transaction-7"]
    states = [*MANY_FILTERS, "Empty"]
    found = asked(broker, ListTransactionsRequest(state_filters=states), 2)
    assert found.unknown_state_filters == MANY_FILTERS
    assert {one.transactional_id for one in found.transaction_states} == set(ids)
    ours = found.transaction_states[0].producer_id
    producers = [ours, *range(-1, -20_000, -1)]
    found = asked(broker, ListTransactionsRequest(producer_id_filters=producers), 2)
    assert [one.producer_id for one in found.transaction_states] == [ours]
    broker.close()


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_fetch_of_many_topics(broker: WholeBroker, epoch: int) -> None:
    kind = FetchRequest
    topics = [
        kind.Topic(topic=name, partitions=[kind.Partition(partition=0)]) for name in MANY_NAMES
    ]
    found = asked(broker, kind(session_epoch=epoch, max_bytes=1 << 20, topics=topics), 12)
    assert [(one.topic, one.partitions[0].error_code) for one in found.responses] == [
        (name, UNKNOWN) for name in MANY_NAMES
    ]
    assert bool(found.session_id) == (epoch == 0)
    if epoch == 0:
        again = kind(session_id=found.session_id, session_epoch=1, max_bytes=1 << 20)
        assert len(broker.ask(again, 12).responses) == len(MANY_NAMES)


def test_a_commit_for_many_topics(broker: WholeBroker) -> None:
    kind = OffsetCommitRequest
    one = kind.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [kind.Topic(name=name, partitions=[one]) for name in NAMES]
    found = asked(broker, kind(group_id="g", topics=topics), 7)
    assert [topic.partitions[0].error_code for topic in found.topics] == [UNKNOWN] * len(NAMES)


def test_a_commit_for_many_topics_in_a_transaction(broker: WholeBroker) -> None:
    kind = TxnOffsetCommitRequest
    one = kind.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [kind.Topic(name=name, partitions=[one]) for name in NAMES]
    found = asked(broker, kind(transactional_id="g", group_id="g", topics=topics), 3)
    assert [topic.partitions[0].error_code for topic in found.topics] == [UNKNOWN] * len(NAMES)


def test_a_deletion_for_many_topics(broker: WholeBroker) -> None:
    kind = OffsetDeleteRequest
    one = kind.Partition(partition_index=0)
    topics = [kind.Topic(name=name, partitions=[one]) for name in NAMES]
    found = asked(broker, kind(group_id="g", topics=topics), 0)
    assert found.error_code == Error.GROUP_ID_NOT_FOUND


def test_many_topics_for_a_transaction(broker: WholeBroker) -> None:
    kind = AddPartitionsToTxnRequest
    topics = [kind.Topic(name=name, partitions=[0]) for name in NAMES]
    found = asked(broker, kind(v3_and_below_transactional_id="g", v3_and_below_topics=topics), 3)
    codes = [
        topic.results_by_partition[0].partition_error_code
        for topic in found.results_by_topic_v3_and_below
    ]
    assert codes == [UNKNOWN] * len(NAMES)


def test_offsets_of_many_topics(broker: WholeBroker) -> None:
    topics = [OffsetFetchRequest.Topic(name=name, partition_indexes=[0]) for name in NAMES]
    found = asked(broker, OffsetFetchRequest(group_id="g", topics=topics), 7)
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in found.topics] == [
        (name, -1) for name in NAMES
    ]


def test_offsets_of_many_groups(broker: WholeBroker) -> None:
    groups = [OffsetFetchRequest.Group(group_id=name, topics=None) for name in NAMES]
    found = asked(broker, OffsetFetchRequest(groups=groups), 8)
    assert [group.group_id for group in found.groups] == NAMES


def test_many_transactions(broker: WholeBroker) -> None:
    found = asked(broker, DescribeTransactionsRequest(transactional_ids=NAMES), 0)
    states = [(one.transactional_id, one.error_code) for one in found.transaction_states]
    assert states == [(name, Error.TRANSACTIONAL_ID_NOT_FOUND) for name in NAMES]


@pytest.mark.parametrize("request_type", [DescribeGroupsRequest, ConsumerGroupDescribeRequest])
def test_descriptions_of_many_groups(broker: WholeBroker, request_type: Any) -> None:
    field = "groups" if request_type is DescribeGroupsRequest else "group_ids"
    found = asked(broker, request_type(**{field: MANY_NAMES}), 1).groups
    assert sorted(group.group_id for group in found) == sorted(MANY_NAMES)


def test_deletions_of_many_groups(broker: WholeBroker) -> None:
    ids = MANY_NAMES + MANY_NAMES[:5]
    found = asked(broker, DeleteGroupsRequest(groups_names=ids), 2, within_ms=100).results
    assert sorted(result.group_id for result in found) == sorted(MANY_NAMES)
    assert {result.error_code for result in found} == {Error.GROUP_ID_NOT_FOUND}


def commit(broker: WholeBroker, group_id: str) -> None:
    kind = OffsetCommitRequest
    one = kind.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    broker.ask(kind(group_id=group_id, topics=[kind.Topic(name="t", partitions=[one])]), 7)


def test_deletions_of_many_groups_that_have_offsets(broker: WholeBroker) -> None:
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    for ids in (["first"], [f"has-{number}" for number in range(2_000)]):  # code is generated once
        for group_id in ids:
            commit(broker, group_id)
        clock.begin()
        came = begun(broker, DeleteGroupsRequest(groups_names=ids), 2)
        clock.advance(200)
        assert {result.error_code for result in came().results} == {Error.NONE}
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_many_who_leave(broker: WholeBroker) -> None:
    commit(broker, "left")
    members = [LeaveGroupRequest.Member(member_id=name) for name in MANY_NAMES]
    found = asked(broker, LeaveGroupRequest(group_id="left", members=members), 4).members
    assert [(member.member_id, member.error_code) for member in found] == [
        (name, Error.UNKNOWN_MEMBER_ID) for name in MANY_NAMES
    ]


def with_members(
    broker: WholeBroker, group_id: str, names: list[str], *, is_classic: bool
) -> None:
    """Puts a group with these members where the coordinator would have it."""
    shards = broker.context.groups
    shard = shards.runtimes[shards.partition_for(group_id)].shard
    assert isinstance(shard, GroupShard)
    state = shard.state
    if is_classic:
        group = state.create_classic_group(group_id, 0)
        for name in names:
            protocols = [("range", b"m")]
            group.add(ClassicMember(name, None, "c", "h", 1, 1, "consumer", protocols, b"a"))
        group.state, group.protocol_name = ClassicState.STABLE, "range"
    else:
        state.groups[group_id] = other = ConsumerGroup(group_id, assignment_epoch=1)
        for name in names:
            other.put_member(ConsumerMember(name, member_epoch=1))


@pytest.mark.parametrize(("is_classic", "count"), [(True, 1_000), (False, 600)])
def test_a_group_of_many_members(broker: WholeBroker, is_classic: bool, count: int) -> None:
    clock, names = broker.clock, NAMES[:count]
    assert isinstance(clock, CountingClock)
    for group_id in ("before", "crowd"):  # the first has code generated
        with_members(broker, group_id, names, is_classic=is_classic)
        clock.begin()
        if is_classic:
            came = begun(broker, DescribeGroupsRequest(groups=[group_id]), 5)
        else:
            came = begun(broker, ConsumerGroupDescribeRequest(group_ids=[group_id]), 1)
        clock.advance(0)
        (group,) = came().groups
        assert (group.group_state, [one.member_id for one in group.members]) == ("Stable", names)
        members = [LeaveGroupRequest.Member(member_id=name) for name in names]
        came = begun(broker, LeaveGroupRequest(group_id=group_id, members=members), 4)
        clock.advance(0)
        assert [(one.member_id, one.error_code) for one in came().members] == [
            (name, Error.NONE) for name in names
        ]
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_more_partitions_for_many_topics(broker: WholeBroker) -> None:
    kind = CreatePartitionsRequest
    topics = [kind.Topic(name=name, count=2, assignments=None) for name in MANY_NAMES]
    found = asked(broker, kind(timeout_ms=1_000, topics=topics), 3).results
    assert [(one.name, one.error_code) for one in found] == [(n, UNKNOWN) for n in MANY_NAMES]


def test_deletions_of_many_topics(broker: WholeBroker) -> None:
    kind = DeleteTopicsRequest
    found = asked(broker, kind(topic_names=MANY_NAMES, timeout_ms=1_000), 5).responses
    assert [(one.name, one.error_code) for one in found] == [(n, UNKNOWN) for n in MANY_NAMES]
    topics = [kind.Topic(name=name) for name in MANY_NAMES]
    also = asked(broker, kind(topics=topics, timeout_ms=1_000), 6).responses
    assert [(one.name, one.error_code) for one in also] == [(n, UNKNOWN) for n in MANY_NAMES]


def test_ends_of_many_transactions(broker: WholeBroker) -> None:
    kind = WriteTxnMarkersRequest
    own = [kind.Topic(name=NAMES[0], partition_indexes=[0])]
    others = [kind.Topic(name=name, partition_indexes=[0]) for name in NAMES]
    markers = [
        kind.Marker(
            producer_id=number, producer_epoch=0, coordinator_epoch=0, transaction_result=True,
            topics=own if number else others,
        )
        for number in range(len(NAMES))
    ]  # fmt: skip
    first, *rest = asked(broker, kind(markers=markers), 1).markers
    assert [(one.name, one.partitions[0].error_code) for one in first.topics] == [
        (name, UNKNOWN) for name in NAMES
    ]
    assert [marker.producer_id for marker in rest] == list(range(1, len(NAMES)))
    assert {marker.topics[0].partitions[0].error_code for marker in rest} == {UNKNOWN}


def test_many_quorums(broker: WholeBroker) -> None:
    kind = DescribeQuorumRequest
    topics = [
        kind.Topic(
            topic_name=name,
            partitions=[kind.Partition(partition_index=index) for index in range(number % 3)],
        )
        for number, name in enumerate(MANY_NAMES)
    ]
    found = asked(broker, kind(topics=topics), 1).topics
    assert [(one.topic_name, len(one.partitions)) for one in found] == [
        (name, number % 3) for number, name in enumerate(MANY_NAMES)
    ]
    assert {one.error_code for topic in found for one in topic.partitions} == {UNKNOWN}


def test_moves_of_many_partitions(broker: WholeBroker) -> None:
    kind = ListPartitionReassignmentsRequest
    topics = [kind.Topic(name="t", partition_indexes=[0]) for _ in MANY_NAMES]
    found = asked(broker, kind(timeout_ms=1_000, topics=topics), 0)
    assert (found.error_code, found.topics) == (Error.NONE, [])


def test_names_of_many_topics(broker: WholeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"topic-{number:05}" for number in range(30_000)]
    monkeypatch.setattr(broker.context.metadata.image, "topics", dict.fromkeys(names))
    request = ListConfigResourcesRequest(resource_types=[2])
    found = asked(broker, request, 1).config_resources
    assert [resource.resource_name for resource in found] == names


def test_credentials_of_many_users(broker: WholeBroker) -> None:
    kind = AlterUserScramCredentialsRequest
    names = [f"changed-{number}" for number in range(USERS)]
    upsertions = [
        kind.Upsertion(name=name, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
        for name in (*names, names[0])
    ]
    found = asked(broker, kind(upsertions=upsertions), 0).results
    codes = {one.user: one.error_code for one in found}
    assert codes.pop(names[0]) == Error.DUPLICATE_RESOURCE
    assert codes == dict.fromkeys(names[1:], 0)
    deletions = [kind.Deletion(name=name, mechanism=1) for name in names[1:]]
    asked(broker, kind(deletions=deletions), 0)
    assert {name for name, _ in broker.context.metadata.image.scram}.isdisjoint(names)


def test_many_users(broker: WholeBroker) -> None:
    kind = AlterUserScramCredentialsRequest
    names = [f"u-{number}" for number in range(USERS)]
    for mechanism in (2, 1):
        upsertions = [
            kind.Upsertion(
                name=name, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p"
            )
            for name in names
        ]
        answer = broker.ask(kind(upsertions=upsertions), 0)
        assert {one.error_code for one in answer.results} == {0}, answer.results[0]
    found = asked(broker, DescribeUserScramCredentialsRequest(users=None), 0).results
    assert [one.user for one in found] == names
    assert {tuple(info.mechanism for info in one.credential_infos) for one in found} == {(1, 2)}
