"""What is asked about groups: which there are, how they are, what they have committed.

Owns which request tells it: a group is one of the consumer protocol, or else a classic one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.groups.consumer_protocol import read_assignment
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeClusterRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
)
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, execution, illegal_argument, refused
from kafkalite.tools.java_maps import TopicPartition, in_map_order, partitions_in_map_order

CLASSIC, CONSUMER = "Classic", "Consumer"
_DESCRIBE = "describeConsumerGroups"
_OF_CONSUMERS = ("", "consumer")  # protocols
_IS_CONSUMER = 1  # of the types of members
_NO_TYPE = -1


@dataclass(slots=True)
class Member:
    """Who is in a group; what only the consumer protocol has is None in a classic group."""

    member_id: str
    instance_id: str
    client_id: str
    host: str
    partitions: list[TopicPartition]
    target: list[TopicPartition] = field(default_factory=list)
    epoch: int | None = None
    is_upgraded: bool | None = None


@dataclass(slots=True)
class Group:
    group_id: str
    state: str
    assignor: str
    members: list[Member]
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(slots=True)
class Committed:
    offset: int
    leader_epoch: int | None


def list_groups(
    asking: Asking, states: Collection[str] = (), types: Collection[str] = ()
) -> list[Any]:
    """Those of all brokers, in the order in which Apache Kafka's client has them."""
    found: dict[str, Any] = {}
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    for broker in _brokers(asking):
        answer = asking.broker("listGroups", broker, request)
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code)
        found.update((each.group_id, each) for each in answer.groups)
    return [found[group_id] for group_id in in_map_order(found)]


def _brokers(asking: Asking) -> list[int]:
    try:
        answer = asking.any("findAllBrokers", DescribeClusterRequest())
    except Failure as failure:
        message = "Failed to find brokers to send ListGroups"
        raise Failure("org.apache.kafka.common.KafkaException", message, failure) from None
    return [each.broker_id for each in answer.brokers]


def list_consumer_groups(
    asking: Asking, states: Collection[str] = (), types: Collection[str] = ()
) -> list[Any]:
    """Those of consumers, of whatever protocol, and of committed offsets alone."""
    groups = list_groups(asking, states, types)
    return [each for each in groups if each.protocol_type in _OF_CONSUMERS]


def describe(asking: Asking, group_ids: Iterable[str]) -> list[Group]:
    """The first that cannot be described is the failure of all."""
    found = []
    for group_id in in_map_order(group_ids):
        try:
            found.append(describe_one(asking, group_id))
        except Failure as failure:
            raise execution(failure) from None
    return found


def describe_one(asking: Asking, group_id: str) -> Group:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    [answer] = asking.coordinator(_DESCRIBE, group_id, request, _codes_of_groups).groups
    if answer.error_code == Error.NONE:
        return _of_consumers(answer)
    if answer.error_code not in (Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION):
        raise refused(answer.error_code, answer.error_message)
    older = DescribeGroupsRequest(groups=[group_id])
    [answer] = asking.coordinator(_DESCRIBE, group_id, older, _codes_of_groups).groups
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code, answer.error_message)
    if answer.protocol_type not in _OF_CONSUMERS:
        raise illegal_argument(
            f"GroupId {group_id} is not a consumer group ({answer.protocol_type})."
        )
    return _classic(answer)


def _codes_of_groups(answer: Any) -> list[int]:
    return [each.error_code for each in answer.groups]


def _of_consumers(answer: Any) -> Group:
    members = [
        Member(
            each.member_id, each.instance_id or "", each.client_id, each.client_host,
            _partitions(each.assignment), _partitions(each.target_assignment), each.member_epoch,
            None if each.member_type == _NO_TYPE else each.member_type == _IS_CONSUMER,
        )
        for each in answer.members
    ]  # fmt: skip
    return Group(
        answer.group_id, answer.group_state, answer.assignor_name, members, answer.group_epoch,
        answer.assignment_epoch,
    )  # fmt: skip


def _partitions(assignment: Any) -> list[TopicPartition]:
    return [
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    ]


def _classic(answer: Any) -> Group:
    members = [
        Member(
            each.member_id, each.group_instance_id or "", each.client_id, each.client_host,
            _assigned(each.member_assignment),
        )
        for each in answer.members
    ]  # fmt: skip
    return Group(answer.group_id, answer.group_state, answer.protocol_data, members)


def _assigned(data: bytes) -> list[TopicPartition]:
    assignment = read_assignment(data) if data else None
    if assignment is None:
        return []
    return [
        (topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    ]


def committed(asking: Asking, group_id: str) -> dict[TopicPartition, Committed | None]:
    """None where something is known of a partition, but no offset."""
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    answer = asking.coordinator(
        "offsetFetch", group_id, request, lambda answer: [answer.error_code]
    )
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code)
    found = {
        (topic.name, each.partition_index): _committed(each)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code == Error.NONE
    }
    return {each: found[each] for each in partitions_in_map_order(found)}


def _committed(partition: Any) -> Committed | None:
    if partition.committed_offset < 0:
        return None
    epoch = partition.committed_leader_epoch
    return Committed(partition.committed_offset, epoch if epoch >= 0 else None)
