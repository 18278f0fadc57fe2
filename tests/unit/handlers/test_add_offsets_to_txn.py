"""AddOffsetsToTxn: the partition of a group's offsets joins a transaction and is ended with it."""

from __future__ import annotations

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

GROUP = "readers"


def add(who: Writer, version: int = 4, group_id: str = GROUP) -> Error:
    request = AddOffsetsToTxnRequest(
        transactional_id=who.id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        group_id=group_id,
    )
    return Error(who.broker.ask(request, version).error_code)


def commit(who: Writer, offset: int, version: int = 4) -> Error:
    partition = TxnOffsetCommitRequest.Partition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id=who.id,
        group_id=GROUP,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        topics=[TxnOffsetCommitRequest.Topic(name="t", partitions=[partition])],
    )
    (topic,) = who.broker.ask(request, version).topics
    return Error(topic.partitions[0].error_code)


def committed(broker: WholeBroker) -> int:
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=[0])
    answer = broker.ask(OffsetFetchRequest(group_id=GROUP, topics=[topic]), 5)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@pytest.fixture
def who(broker: WholeBroker) -> Writer:
    """A producer of the first version, and a coordinator for its group."""
    broker.ask(FindCoordinatorRequest(key=GROUP, key_type=0), 1)
    return writer(broker, version=1)


@pytest.mark.parametrize("version", range(5))
def test_offsets_count_once_the_transaction_commits(
    broker: WholeBroker, who: Writer, version: int
) -> None:
    assert add(who, version) is Error.NONE
    assert commit(who, 5) is Error.NONE
    assert committed(broker) == -1
    assert who.end(commit=True) is Error.NONE
    assert committed(broker) == 5


def test_offsets_of_an_aborted_transaction_never_count(broker: WholeBroker, who: Writer) -> None:
    add(who)
    commit(who, 5)
    assert who.end(commit=False) is Error.NONE
    assert committed(broker) == -1


def test_offsets_that_were_not_added_are_refused(broker: WholeBroker, who: Writer) -> None:
    assert commit(who, 5, version=3) is Error.INVALID_TXN_STATE
    assert commit(who, 5, version=4) is Error.TRANSACTION_ABORTABLE


def test_the_groups_own_partition_is_added(broker: WholeBroker, who: Writer) -> None:
    add(who)
    request = DescribeTransactionsRequest(transactional_ids=[who.id])
    (state,) = broker.ask(request, 0).transaction_states
    index = broker.context.groups.partition_for(GROUP)
    assert [(one.topic, one.partitions) for one in state.topics] == [
        ("__consumer_offsets", [index])
    ]


@pytest.mark.parametrize(
    ("version", "code"), [(1, Error.INVALID_PRODUCER_EPOCH), (2, Error.PRODUCER_FENCED)]
)
def test_a_producer_that_was_replaced(
    broker: WholeBroker, who: Writer, version: int, code: Error
) -> None:
    writer(broker, version=1)
    assert add(who, version) is code


def test_who_is_not_known(broker: WholeBroker, who: Writer) -> None:
    stranger = Writer(broker, "stranger", producer_id=1, epoch=0)
    assert add(stranger) is Error.INVALID_PRODUCER_ID_MAPPING
    stranger.id = ""
    assert add(stranger) is Error.INVALID_REQUEST
