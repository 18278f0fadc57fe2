"""Requests that name many topics, groups or users, each with little: work per turn, in calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterUserScramCredentialsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kafkalite.sim.effort import CountingClock
from tests.unit.handlers.counted import asked
from tests.unit.handlers.whole_broker import WholeBroker

NAMES = [f"no-{number}" for number in range(4_000)]
USERS = 2_000
UNKNOWN = Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(scope="module")
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(clock=CountingClock())
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


def test_offsets_of_many_groups(broker: WholeBroker) -> None:
    groups = [OffsetFetchRequest.Group(group_id=name, topics=None) for name in NAMES]
    found = asked(broker, OffsetFetchRequest(groups=groups), 8)
    assert [group.group_id for group in found.groups] == NAMES


def test_many_transactions(broker: WholeBroker) -> None:
    found = asked(broker, DescribeTransactionsRequest(transactional_ids=NAMES), 0)
    states = [(one.transactional_id, one.error_code) for one in found.transaction_states]
    assert states == [(name, Error.TRANSACTIONAL_ID_NOT_FOUND) for name in NAMES]


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
