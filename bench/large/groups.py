"""Large requests about groups and transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.large.stage import Stage, commit, errors_in, row
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
)


@row("commit offsets of 5,000 partitions")
def commit_many(stage: Stage) -> Iterator[None]:
    topic, group = stage.large_topic(), stage.name("group")
    commit(stage, group, topic, range(1))
    yield
    commit(stage, group, topic, range(stage.sizes.partitions))
    yield


@row("fetch offsets of 5,000 partitions")
def offsets_of_many(stage: Stage) -> Iterator[None]:
    topic, group = stage.large_topic(), stage.name("group")
    commit(stage, group, topic, range(stage.sizes.partitions))
    yield
    (found,) = stage.ask(OffsetFetchRequest(group_id=group, topics=None), 7).topics
    assert len(found.partitions) == stage.sizes.partitions
    yield


@row("200,000 offsets that expire")
def expiring_offsets(stage: Stage) -> Iterator[None]:
    topic, at_once = stage.large_topic(), stage.sizes.partitions
    groups = [stage.name("expiring") for _ in range(stage.sizes.offsets // at_once)]
    for group in groups:
        commit(stage, group, topic, range(at_once), retention=1)
    yield
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = stage.ask(OffsetFetchRequest(group_id=groups[-1], topics=None), 7)
        if not found.topics:
            break
        time.sleep(0.2)
    time.sleep(1)
    yield


@row("list 5,000 groups")
def list_groups(stage: Stage) -> Iterator[None]:
    stage.many_groups()
    yield
    assert len(stage.ask(ListGroupsRequest(), 4).groups) >= stage.sizes.groups
    yield


@row("describe 5,000 groups")
def describe_groups(stage: Stage) -> Iterator[None]:
    groups = stage.many_groups()
    yield
    assert len(stage.ask(DescribeGroupsRequest(groups=groups), 5).groups) == len(groups)
    yield


@row("delete 5,000 groups")
def delete_groups(stage: Stage) -> Iterator[None]:
    groups = stage.many_groups()
    yield
    answer = stage.ask(DeleteGroupsRequest(groups_names=groups), 2)
    assert not errors_in(answer.results), errors_in(answer.results)[:3]
    yield
    for group in groups:
        del stage.made[group]


@row("coordinators of 10,000 groups")
def find_coordinators(stage: Stage) -> Iterator[None]:
    keys = [f"any-{number}" for number in range(stage.sizes.topics)]
    yield
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
    assert len(stage.ask(request, 4).coordinators) == len(keys)
    yield


@row("50 members of a group that subscribe by a pattern to 10,000 topics")
def subscribe_by_pattern(stage: Stage) -> Iterator[None]:
    group = stage.name("pattern")
    commit(stage, group, stage.many_topics()[0], range(1))
    yield
    for number in range(50):
        member = f"{number:022d}"
        answer = stage.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=member, member_epoch=0, rebalance_timeout_ms=60_000,
                subscribed_topic_regex="many-.*", topic_partitions=[],
            ), 1,
        )  # fmt: skip
        assert not answer.error_code, answer
    yield


@row("a transaction over 1,000 partitions and its end")
def large_transaction(stage: Stage) -> Iterator[None]:
    topic, name = stage.large_topic(), stage.name("transaction")
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    stage.find_coordinator(name, key_type=1)
    for _ in range(200):
        who = stage.ask(request, 4)
        if not who.error_code:
            break
        time.sleep(0.1)
    partitions = list(range(stage.sizes.segments))
    yield
    joined = stage.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who.producer_id,
            v3_and_below_producer_epoch=who.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.Topic(name=topic, partitions=partitions)
            ],
        ), 3,
    )  # fmt: skip
    assert not any(
        one.partition_error_code
        for each in joined.results_by_topic_v3_and_below
        for one in each.results_by_partition
    )
    ended = stage.ask(
        EndTxnRequest(
            transactional_id=name, producer_id=who.producer_id,
            producer_epoch=who.producer_epoch, committed=True,
        ), 3,
    )  # fmt: skip
    assert not ended.error_code, ended
    time.sleep(0.5)
    yield


@row("transactions by a pattern that explodes")
def exploding_pattern(stage: Stage) -> Iterator[None]:
    name = "a" * 40
    stage.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
    yield
    stage.ask(ListTransactionsRequest(transactional_id_pattern="(a+)+$b"), 2)
    yield
