"""The records of share groups (KIP-932), both ways.

Owns their layout and the order that Apache Kafka insists on when it loads them. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups.consumer_group import Target
from kafkalite.coordinators.groups.records import make
from kafkalite.coordinators.groups.share_group import (
    STABLE,
    Shared,
    SharedTopic,
    SharedTopics,
    ShareGroup,
    ShareMember,
)
from kafkalite.protocol.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

P = TypeVar("P")


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return make(
        ShareGroupMetadataKey(group_id=group_id),
        ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member(group_id: str, one: ShareMember) -> Record:
    value = ShareGroupMemberMetadataValue(
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=sorted(one.subscribed_topics),
    )
    return make(ShareGroupMemberMetadataKey(group_id=group_id, member_id=one.member_id), value)


def read_member(old: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        old,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=tuple(sorted(value.subscribed_topic_names)),
    )


def target(group_id: str, member_id: str, partitions: Target) -> Record:
    kind = ShareGroupTargetAssignmentMemberValue
    value = kind(topic_partitions=_written(kind.TopicPartition, partitions))
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return make(key, value)


def read_target(value: ShareGroupTargetAssignmentMemberValue) -> Target:
    return {bytes(one.topic_id): tuple(sorted(one.partitions)) for one in value.topic_partitions}


def target_epoch(group_id: str, epoch: int, now_ms: int) -> Record:
    return make(
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def current(group_id: str, one: ShareMember) -> Record:
    kind = ShareGroupCurrentMemberAssignmentValue
    value = kind(
        member_epoch=one.member_epoch,
        previous_member_epoch=one.previous_member_epoch,
        state=STABLE,
        assigned_partitions=_written(kind.TopicPartitions, one.assigned),
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.member_id)
    return make(key, value)


def read_current(old: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    return replace(
        old,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        assigned={
            bytes(one.topic_id): tuple(sorted(one.partitions))
            for one in value.assigned_partitions
        },
    )


def _written(kind: Callable[..., P], partitions: Target) -> list[P]:
    return [
        kind(topic_id=topic_id, partitions=list(indexes))
        for topic_id, indexes in partitions.items()
    ]


# -- which partitions are shared -------------------------------------------------------------------


def shared(group_id: str, what: Shared) -> Record:
    kind = ShareGroupStatePartitionMetadataValue
    value = kind(
        initializing_topics=_topics(kind.InitializingTopic, what.initializing),
        initialized_topics=_topics(kind.InitializingTopic, what.initialized),
        deleting_topics=[
            kind.TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in what.deleting.items()
        ],
    )
    return make(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _topics(kind: Callable[..., P], topics: SharedTopics) -> list[P]:
    return [
        kind(topic_id=topic_id, topic_name=one.name, partitions=sorted(one.partitions))
        for topic_id, one in topics.items()
    ]


def read_shared(value: ShareGroupStatePartitionMetadataValue) -> Shared:
    return Shared(
        _read_topics(value.initializing_topics),
        _read_topics(value.initialized_topics),
        {bytes(one.topic_id): one.topic_name for one in value.deleting_topics},
    )


def _read_topics(
    topics: Iterable[ShareGroupStatePartitionMetadataValue.InitializingTopic],
) -> SharedTopics:
    return {
        bytes(one.topic_id): SharedTopic(one.topic_name, frozenset(one.partitions))
        for one in topics
    }


# -- the end ---------------------------------------------------------------------------------------


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        make(ShareGroupCurrentMemberAssignmentKey(**names), None),
        make(ShareGroupTargetAssignmentMemberKey(**names), None),
        make(ShareGroupMemberMetadataKey(**names), None),
    ]


def group_tombstones(group: ShareGroup) -> list[Record]:
    """Of a group without members, in the order in which Apache Kafka deletes it."""
    return [
        make(ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id), None),
        make(ShareGroupStatePartitionMetadataKey(group_id=group.group_id), None),
        make(ShareGroupMetadataKey(group_id=group.group_id), None),
    ]
