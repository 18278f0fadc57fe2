"""Requests that read all that a conversation can have left behind, on either broker."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FetchRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from tests.differential.batches import TIMESTAMP
from tests.differential.generating import Step
from tests.differential.memory import Memory

TOPICS = ("apples-RUN", "pears-RUN", "plums-RUN")
GROUPS = ("readers-RUN", "clerks-RUN")
TRANSACTIONS = ("till-RUN", "bank-RUN")
INDEXES = range(3)
TIMES = (-1, -2, -3, TIMESTAMP, TIMESTAMP + 6000, TIMESTAMP + 30_000)
MOST_BYTES = 1 << 22


def everything(memory: Memory) -> Iterator[Step]:
    yield Step(MetadataRequest(topics=[MetadataRequest.Topic(name=each) for each in TOPICS],
                               allow_auto_topic_creation=False), 13)
    yield from _of_logs()
    yield from _of_coordinators()
    users = [DescribeUserScramCredentialsRequest.User(name=each)
             for each in ("alice-RUN", "bob-RUN")]
    yield Step(DescribeUserScramCredentialsRequest(users=users), 0)
    yield Step(DescribeClientQuotasRequest(components=[]), 1)
    yield Step(DescribeAclsRequest(resource_type_filter=2, pattern_type_filter=1, operation=1,
                                   permission_type=1), 3)


def _of_logs() -> Iterator[Step]:
    names = [DescribeTopicPartitionsRequest.Topic(name=each) for each in TOPICS]
    yield Step(DescribeTopicPartitionsRequest(topics=names), 0)
    resources = [DescribeConfigsRequest.Resource(resource_type=2, resource_name=each)
                 for each in TOPICS]
    yield Step(DescribeConfigsRequest(resources=resources), 4)
    for timestamp in TIMES:
        yield Step(ListOffsetsRequest(replica_id=-1, topics=[
            ListOffsetsRequest.Topic(name=name, partitions=[
                ListOffsetsRequest.Partition(partition_index=each, timestamp=timestamp)
                for each in INDEXES
            ])
            for name in TOPICS
        ]), 9)
    for level in (0, 1):
        yield from (_fetch(level, offset) for offset in (0, 1, 3))
    epochs = [
        OffsetForLeaderEpochRequest.Topic(topic=name, partitions=[
            OffsetForLeaderEpochRequest.Partition(partition=each, leader_epoch=0)
            for each in INDEXES
        ])
        for name in TOPICS
    ]  # fmt: skip
    yield Step(OffsetForLeaderEpochRequest(replica_id=-1, topics=epochs), 4)
    producers = [DescribeProducersRequest.Topic(name=each, partition_indexes=list(INDEXES))
                 for each in TOPICS]
    yield Step(DescribeProducersRequest(topics=producers), 0)


def _fetch(level: int, offset: int) -> Step:
    partitions = [
        FetchRequest.Partition(partition=each, fetch_offset=offset, partition_max_bytes=MOST_BYTES)
        for each in INDEXES
    ]
    topics = [FetchRequest.Topic(topic=each, partitions=partitions) for each in TOPICS]
    request = FetchRequest(
        session_id=0, session_epoch=-1, max_bytes=MOST_BYTES, isolation_level=level, topics=topics
    )
    return Step(request, 11)


def _of_coordinators() -> Iterator[Step]:
    yield Step(ListGroupsRequest(), 5)
    yield Step(DescribeGroupsRequest(groups=list(GROUPS)), 6)
    yield Step(ConsumerGroupDescribeRequest(group_ids=list(GROUPS)), 1)
    groups = [OffsetFetchRequest.Group(group_id=each, topics=None) for each in GROUPS]
    yield Step(OffsetFetchRequest(groups=groups), 8)
    yield Step(DescribeTransactionsRequest(transactional_ids=list(TRANSACTIONS)), 0)
    yield Step(ListTransactionsRequest(), 1)
