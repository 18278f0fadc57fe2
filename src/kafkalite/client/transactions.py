"""Transactions as their coordinators tell of them, and the end of one that hangs.

Owns which brokers are asked: every broker has its own transactional ids, and a partition's leader
knows which transactions are open in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafkalite.client.admin import Admin, check
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.protocol.messages import (
    DescribeClusterRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)

TRANSACTION = 1  # of the kinds of keys that have coordinators


@dataclass(slots=True)
class Listed:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(slots=True)
class Described:
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    began_ms: int  # -1: none is under way
    partitions: list[tuple[str, int]]


@dataclass(slots=True)
class Open:
    """A transaction that is open in a partition, as its log has it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    begins: int


def listed(admin: Admin, cluster: Cluster) -> Iterator[Listed]:
    """Of all coordinators; ClientFailed when one of them does not answer."""
    brokers = admin.ask(DescribeClusterRequest()).brokers
    for broker in sorted(brokers, key=lambda each: int(each.broker_id)):
        cluster.learn(broker.broker_id, (broker.host, broker.port))
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        answer = admin.ask_broker(broker.broker_id, request)
        check(f"the transactions at broker {broker.broker_id}", answer)
        for each in answer.transaction_states:
            yield Listed(
                each.transactional_id, broker.broker_id, each.producer_id, each.transaction_state
            )


def described(admin: Admin, transactional_id: str) -> Described:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = admin.ask_coordinator(
        transactional_id, request,
        lambda answer: [each.error_code for each in answer.transaction_states], TRANSACTION,
    )  # fmt: skip
    [found] = answer.transaction_states
    check(f"transactional id {transactional_id}", found)
    return Described(
        transactional_id, found.transaction_state, found.producer_id, found.producer_epoch,
        found.transaction_timeout_ms, found.transaction_start_time_ms,
        [(topic.topic, index) for topic in found.topics for index in topic.partitions],
    )  # fmt: skip


def open_in(admin: Admin, cluster: Cluster, topic: str, partition: int) -> list[Open]:
    """Those that keep readers of committed records from what is behind them."""
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.Topic(name=topic, partition_indexes=[partition])]
    )
    answer = admin.ask_broker(_leader(cluster, topic, partition), request)
    found = answer.topics[0].partitions[0]
    check(f"the producers of {topic}-{partition}", found)
    return [
        Open(each.producer_id, each.producer_epoch, each.coordinator_epoch,
             each.current_txn_start_offset)
        for each in found.active_producers
        if each.current_txn_start_offset >= 0
    ]  # fmt: skip


def abort(admin: Admin, cluster: Cluster, topic: str, partition: int, which: Open) -> None:
    """Writes the marker that its coordinator never will."""
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=which.producer_id, producer_epoch=which.producer_epoch,
        transaction_result=False, coordinator_epoch=max(which.coordinator_epoch, 0),
        topics=[WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=[partition])],
    )  # fmt: skip
    request = WriteTxnMarkersRequest(markers=[marker])
    answer = admin.ask_broker(_leader(cluster, topic, partition), request)
    [found] = answer.markers[0].topics[0].partitions
    check(f"the transaction in {topic}-{partition} is not aborted", found)


def _leader(cluster: Cluster, topic: str, partition: int) -> int:
    leaders = cluster.topic(topic, may_create=False).leaders
    if partition not in leaders:
        raise ClientFailed(f"topic {topic} has no partition {partition}")
    return leaders[partition]
