"""The coordinators' own logs are compacted like any other: what was decided outlasts it."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.groups.front import OFFSETS_TOPIC
from kafkalite.coordinators.transactions.front import TRANSACTIONS_TOPIC
from kafkalite.env.slicing import finish
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kafkalite.sim.disk import CrashDisk
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

GROUP = "readers"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.min.cleanable.ratio": "0.0",
}


def begun() -> WholeBroker:
    broker = WholeBroker(SETTINGS, disk=CrashDisk())
    broker.create("t", 2)
    broker.ask(FindCoordinatorRequest(key=GROUP, key_type=0), 1)
    return broker


def commit_in(producer: Writer, offset: int) -> None:
    """Offsets of the group as part of the producer's transaction."""
    identity: dict[str, Any] = {
        "transactional_id": producer.id, "group_id": GROUP,
        "producer_id": producer.producer_id, "producer_epoch": producer.epoch,
    }  # fmt: skip
    if producer.version < 2:
        answer = producer.broker.ask(AddOffsetsToTxnRequest(**identity), 3)
        assert answer.error_code == Error.NONE
    partition = TxnOffsetCommitRequest.Partition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topics = [TxnOffsetCommitRequest.Topic(name="t", partitions=[partition])]
    request = TxnOffsetCommitRequest(**identity, topics=topics)
    answer = producer.broker.ask(request, 5 if producer.version >= 2 else 4)
    assert answer.topics[0].partitions[0].error_code == Error.NONE


def commit(broker: WholeBroker, offset: int, index: int = 0) -> None:
    partition = OffsetCommitRequest.Partition(partition_index=index, committed_offset=offset)
    topics = [OffsetCommitRequest.Topic(name="t", partitions=[partition])]
    answer = broker.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 6)
    assert answer.topics[0].partitions[0].error_code == Error.NONE


def offset_of(broker: WholeBroker) -> int:
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=[0])
    answer = broker.ask(OffsetFetchRequest(group_id=GROUP, topics=[topic]), 5)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def compact(broker: WholeBroker) -> None:
    """Closes the coordinators' segments and has them compacted."""
    for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        broker.partition(topic).log.roll()
    cleaner = broker.broker.logs.periodic.cleaner
    broker.clock.advance(100)
    assert finish(cleaner.choose()) is None
    assert not cleaner.is_running


def started_again(broker: WholeBroker, *, clean: bool) -> WholeBroker:
    if clean:
        broker.close()
        after = broker.started_again()
    else:
        disk = broker.env.disk
        assert isinstance(disk, CrashDisk)
        after = WholeBroker(SETTINGS, disk=disk.stopped())
    after.clock.advance(100)
    return after


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("clean", [True, False])
def test_an_offset_of_a_transaction_outlasts_compaction(version: int, clean: bool) -> None:
    broker = begun()
    producer = writer(broker, version=version)
    commit_in(producer, 10)
    assert producer.end() is Error.NONE
    commit_in(producer, 15)
    assert producer.end(commit=False) is Error.NONE
    compact(broker)
    commit_in(producer, 20)
    assert producer.end() is Error.NONE
    for _ in range(2):
        commit(broker, 5, index=1)
        compact(broker)
    assert offset_of(broker) == 20
    after = started_again(broker, clean=clean)
    assert offset_of(after) == 20
    again = writer(after, version=version)
    assert again.producer_id == producer.producer_id
    assert again.epoch > producer.epoch or version == 2
    commit_in(again, 30)
    assert again.end() is Error.NONE
    assert offset_of(after) == 30
    after.close()


def test_a_plain_offset_outlasts_an_open_transaction_that_is_aborted() -> None:
    broker = begun()
    commit(broker, 7)
    broker.partition(OFFSETS_TOPIC).log.roll()
    commit(broker, 1, index=1)  # the transaction begins behind it, in the middle of a segment
    producer = writer(broker)
    commit_in(producer, 90)
    compact(broker)
    assert producer.end(commit=False) is Error.NONE
    compact(broker)
    after = started_again(broker, clean=True)
    assert offset_of(after) == 7
    after.close()
