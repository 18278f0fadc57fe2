"""The records of consumer groups (KIP-848), both ways.

Owns their layout and the order that Apache Kafka insists on when it loads them: a member's
current assignment goes before its target, and both before the member. Decides nothing.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups.consumer_group import (
    Assigned,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    ResolvedRegex,
    Target,
)
from kafkalite.coordinators.groups.records import make, make_in_steps
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

# Of an assignment, written in one step.
TOPICS_PER_STEP = 64
# Of a group that changes its protocol.
MEMBERS_PER_STEP = 16


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return make(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def topic_metadata_tombstone(group_id: str) -> Record:
    return make(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def regex(group_id: str, expression: str, resolved: ResolvedRegex | None) -> Record:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    if resolved is None:
        return make(key, None)
    value = ConsumerGroupRegularExpressionValue(
        topics=list(resolved.topics), version=0, timestamp=resolved.timestamp_ms
    )
    return make(key, value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> Record:
    return make(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def target(group_id: str, member_id: str, partitions: Target) -> Steps[Record]:
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=[])
    for topic_id, indexes in partitions.items():
        value.topic_partitions.append(
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(
                topic_id=topic_id, partitions=list(indexes)
            )
        )
        if len(value.topic_partitions) % TOPICS_PER_STEP == 0:
            yield
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if len(partitions) < TOPICS_PER_STEP:
        return make(key, value)
    return (yield from make_in_steps(key, value))


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    return {one.topic_id: tuple(one.partitions) for one in value.topic_partitions}


def member(group_id: str, one: ConsumerMember) -> Record:
    return make(_member_key(group_id, one), _member_value(one))


def _member_key(group_id: str, one: ConsumerMember) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=one.member_id)


def _member_value(one: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=sorted(one.subscribed_topics),
        subscribed_topic_regex=one.subscribed_regex,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        server_assignor=one.server_assignor,
        classic_member_metadata=_classic_metadata(one.classic),
    )


def _classic_metadata(
    classic: ClassicSide | None,
) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ConsumerGroupMemberMetadataValue.SupportedProtocol(name=name, metadata=metadata)
            for name, metadata in classic.protocols
        ],
    )


def read_member(old: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = value.classic_member_metadata
    return replace(
        old,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=tuple(value.subscribed_topic_names),
        subscribed_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicSide(
            classic.session_timeout_ms,
            [(one.name, bytes(one.metadata)) for one in classic.supported_protocols],
        ),
    )


def current(group_id: str, one: ConsumerMember) -> Steps[Record]:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=one.member_epoch,
        previous_member_epoch=one.previous_member_epoch,
        state=one.state,
        assigned_partitions=(yield from _write_assigned(one.assigned)),
        partitions_pending_revocation=(yield from _write_assigned(one.pending_revocation)),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.member_id)
    if len(one.assigned) + len(one.pending_revocation) < TOPICS_PER_STEP:
        return make(key, value)
    return (yield from make_in_steps(key, value))


def _write_assigned(
    partitions: Assigned,
) -> Steps[list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]]:
    written = []
    for topic_id, epochs in partitions.items():
        topic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic_id,
            partitions=list(epochs),
            assignment_epochs=list(epochs.values()),
        )
        written.append(topic)
        if len(written) % TOPICS_PER_STEP == 0:
            yield
    return written


def read_current(
    old: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    known = value.state in MemberState.__members__.values()
    return replace(
        old,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read_assigned(value.assigned_partitions, value.member_epoch),
        pending_revocation=_read_assigned(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_assigned(
    topics: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> Assigned:
    """Without epochs of their own (before 4.3) partitions count as assigned in the member's."""
    assigned: Assigned = {}
    for one in topics:
        epochs = one.assignment_epochs
        if not epochs or len(epochs) != len(one.partitions):
            epochs = [max(member_epoch, 0)] * len(one.partitions)
        assigned[one.topic_id] = dict(zip(one.partitions, epochs, strict=True))
    return assigned


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        make(ConsumerGroupCurrentMemberAssignmentKey(**names), None),
        make(ConsumerGroupTargetAssignmentMemberKey(**names), None),
        make(ConsumerGroupMemberMetadataKey(**names), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[Record]:
    """Everything of a group, in the order in which Apache Kafka deletes it."""
    group_id = group.group_id
    names = [{"group_id": group_id, "member_id": one} for one in group.members]
    return [
        *(make(ConsumerGroupCurrentMemberAssignmentKey(**name), None) for name in names),
        *(make(ConsumerGroupTargetAssignmentMemberKey(**name), None) for name in names),
        make(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(make(ConsumerGroupMemberMetadataKey(**name), None) for name in names),
        *(regex(group_id, expression, None) for expression in group.regexes),
        topic_metadata_tombstone(group_id),
        make(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def whole_group(group: ConsumerGroup) -> Steps[list[Record]]:
    """Everything of a group that is made at once, out of a classic one."""
    group_id, members, made = group.group_id, group.members.values(), list[Record]()
    for one in members:
        value = _member_value(one)
        made.append((yield from make_in_steps(_member_key(group_id, one), value)))
        if len(made) % MEMBERS_PER_STEP == 0:
            yield
    made.append(group_epoch(group_id, group.epoch, group.metadata_hash))
    for member_id, partitions in group.targets.items():
        made.append((yield from target(group_id, member_id, partitions)))
        if len(made) % MEMBERS_PER_STEP == 0:
            yield
    made.append(target_epoch(group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    for one in members:
        made.append((yield from current(group_id, one)))
        if len(made) % MEMBERS_PER_STEP == 0:
            yield
    return made
