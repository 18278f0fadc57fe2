"""Large requests that change topics, logs and transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.large.stage import TIMEOUT_MS, Stage, errors_in, row
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    WriteTxnMarkersRequest,
)

NOBODY = 7  # a producer id that nobody was given


def _topics(names: list[str]) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)


@row("create 5,000 topics")
def create_topics(stage: Stage) -> Iterator[None]:
    request = _topics([stage.name("single") for _ in range(stage.sizes.partitions)])
    yield
    assert not errors_in(stage.ask(request, 7).topics)
    yield


@row("delete 5,000 topics")
def delete_topics(stage: Stage) -> Iterator[None]:
    names = [stage.name("single") for _ in range(stage.sizes.partitions)]
    assert not errors_in(stage.ask(_topics(names), 7).topics)
    stage.wait_for(names[-1])
    yield
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=TIMEOUT_MS)
    assert not errors_in(stage.ask(request, 5).responses)
    time.sleep(1)
    yield


@row("create a topic of 5,000 partitions by hand")
def create_by_hand(stage: Stage) -> Iterator[None]:
    assignments = [
        CreateTopicsRequest.Assignment(partition_index=index, broker_ids=[1])
        for index in range(stage.sizes.partitions)
    ]
    topic = CreateTopicsRequest.Topic(
        name=stage.name("placed"), num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    yield
    answer = stage.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 7)
    assert not errors_in(answer.topics), answer
    yield


@row("place 5,000 partitions anew")
def reassign(stage: Stage) -> Iterator[None]:
    asked = AlterPartitionReassignmentsRequest
    partitions = [
        asked.Partition(partition_index=index, replicas=[1])
        for index in range(stage.sizes.partitions)
    ]
    topic = asked.Topic(name=stage.large_topic(), partitions=partitions)
    yield
    assert not stage.ask(asked(topics=[topic], timeout_ms=TIMEOUT_MS), 0).error_code
    yield


@row("elect the leaders of all partitions")
def elect(stage: Stage) -> Iterator[None]:
    stage.large_topic()
    yield
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)
    assert not stage.ask(request, 2).error_code
    yield


@row("5,000 partitions in one transaction, and its end")
def add_partitions(stage: Stage) -> Iterator[None]:
    topic, name = stage.large_topic(), stage.name("transaction")
    stage.find_coordinator(name, key_type=1)
    begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    begun = stage.ask(begin, 4)
    while begun.error_code:
        time.sleep(0.05)
        begun = stage.ask(begin, 4)
    yield
    added = AddPartitionsToTxnRequest.Topic(
        name=topic, partitions=list(range(stage.sizes.partitions))
    )
    stage.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[added],
        ), 3,
    )  # fmt: skip
    end = EndTxnRequest(
        transactional_id=name,
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
        committed=True,
    )
    assert not stage.ask(end, 3).error_code
    time.sleep(2)
    yield


@row("markers for 5,000 partitions")
def write_markers(stage: Stage) -> Iterator[None]:
    asked = WriteTxnMarkersRequest
    topic = asked.Topic(
        name=stage.large_topic(), partition_indexes=list(range(stage.sizes.partitions))
    )
    marker = asked.Marker(
        producer_id=NOBODY, producer_epoch=0, transaction_result=True, coordinator_epoch=0,
        topics=[topic],
    )  # fmt: skip
    yield
    assert stage.ask(asked(markers=[marker]), 1).markers
    yield
