"""What each record of __consumer_offsets does to the state: the fold.

Owns the only writes to durable state. Total: every record we wrote or Apache Kafka wrote is
taken, in any order that compaction may leave, and what is not ours is remembered as such. No
clock, no chance, no effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import (
    consumer_records,
    records,
    share_replaying,
    streams_replaying,
)
from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kafkalite.coordinators.groups.consumer_group import (
    LEFT_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
)
from kafkalite.coordinators.groups.state import GroupsState
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
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

NOT_WRITTEN = -1
NO_ASSIGNMENT = -1


def replay(state: GroupsState, record: Record) -> None:
    state.end_offset = record.offset + 1
    try:
        key_and_value = records.read(record)
    except records.UnreadableRecord:
        state.foreign.replay_newer(record)
        return
    if key_and_value is None:
        state.foreign.replay_other(state, record)
        return
    state.foreign.replay_ours(record)
    key, value = key_and_value
    apply = _APPLY.get(type(key).__name__)
    if apply is not None:
        apply(state, key, value, record)


def _offset_commit(
    state: GroupsState, key: OffsetCommitKey, value: OffsetCommitValue | None, record: Record
) -> None:
    if value is None:
        state.offsets.replay_tombstone(key.group, key.topic, key.partition)
        return
    group = state.groups.get(key.group)
    if group is None:
        # Offsets without a group: a simple one holds them, without a protocol type.
        group = state.groups[key.group] = ClassicGroup(key.group)
    if isinstance(group, ClassicGroup):
        group.is_stored = True
    state.offsets.replay_commit(
        key.group, key.topic, key.partition, value, record.offset, record.producer
    )


def _group_metadata(
    state: GroupsState, key: GroupMetadataKey, value: GroupMetadataValue | None, record: Record
) -> None:
    if value is None:
        if isinstance(state.groups.get(key.group), ClassicGroup):
            del state.groups[key.group]
        return
    live = state.classic_group(key.group)
    if state.is_loaded and live is not None:
        # The decision has already moved the group along; what the record adds is the assignment.
        live.is_stored = True
        for stored in value.members:
            live.members[stored.member_id].assignment = bytes(stored.assignment)
        return
    state.groups[key.group] = _restore(key.group, value)


def _restore(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(
        group_id,
        ClassicState.STABLE if value.members else ClassicState.EMPTY,
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        is_stored=True,
    )
    for stored in value.members:
        group.add(_restore_member(value, stored))
    group.refresh_subscribed_topics()
    return group


def _restore_member(value: GroupMetadataValue, stored: GroupMetadataValue.Member) -> ClassicMember:
    timeout_ms = stored.rebalance_timeout
    return ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout if timeout_ms == NOT_WRITTEN else timeout_ms,
        stored.session_timeout,
        value.protocol_type,
        [(value.protocol or "", bytes(stored.subscription))],
        bytes(stored.assignment),
    )


# -- consumer groups -------------------------------------------------------------------------


def _consumer_group(state: GroupsState, group_id: str) -> ConsumerGroup:
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    # A simple group stands for offsets only, and makes room.
    created = state.groups[group_id] = ConsumerGroup(group_id)
    return created


def _group_epoch(
    state: GroupsState,
    key: ConsumerGroupMetadataKey,
    value: ConsumerGroupMetadataValue | None,
    record: Record,
) -> None:
    if value is None:
        if state.consumer_group(key.group_id) is not None:
            del state.groups[key.group_id]
        return
    group = _consumer_group(state, key.group_id)
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _topic_metadata(
    state: GroupsState, key: ConsumerGroupPartitionMetadataKey, value: object, record: Record
) -> None:
    group = state.consumer_group(key.group_id)
    if value is not None:
        group = _consumer_group(state, key.group_id)
    if group is not None:
        group.has_topic_metadata_record = value is not None


def _member_metadata(
    state: GroupsState,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
    record: Record,
) -> None:
    if value is None:
        group = state.consumer_group(key.group_id)
        if group is not None:
            group.remove_member(key.member_id)
        return
    group = _consumer_group(state, key.group_id)
    old = group.members.get(key.member_id, ConsumerMember(key.member_id))
    group.put_member(consumer_records.read_member(old, value))


def _target_epoch(
    state: GroupsState,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
    record: Record,
) -> None:
    if value is None:
        existing = state.consumer_group(key.group_id)
        if existing is not None:
            existing.assignment_epoch = NO_ASSIGNMENT
            existing.assignment_timestamp_ms = 0
        return
    group = _consumer_group(state, key.group_id)
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _target_member(
    state: GroupsState,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
    record: Record,
) -> None:
    if value is None:
        existing = state.consumer_group(key.group_id)
        if existing is not None:
            existing.targets.pop(key.member_id, None)
        return
    group = _consumer_group(state, key.group_id)
    group.targets[key.member_id] = consumer_records.read_target(value)


def _current_assignment(
    state: GroupsState,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
    record: Record,
) -> None:
    if value is None:
        existing = state.consumer_group(key.group_id)
        member = None if existing is None else existing.members.get(key.member_id)
        if existing is not None and member is not None:
            existing.put_member(
                replace(
                    member,
                    member_epoch=LEFT_EPOCH,
                    previous_member_epoch=LEFT_EPOCH,
                    assigned={},
                    pending_revocation={},
                )
            )
        return
    group = _consumer_group(state, key.group_id)
    old = group.members.get(key.member_id, ConsumerMember(key.member_id))
    group.put_member(consumer_records.read_current(old, value))


def _regular_expression(
    state: GroupsState,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
    record: Record,
) -> None:
    expression = key.regular_expression
    if value is None:
        existing = state.consumer_group(key.group_id)
        if existing is not None:
            existing.regexes.pop(expression, None)
        return
    group = _consumer_group(state, key.group_id)
    group.regexes[expression] = ResolvedRegex(tuple(value.topics), value.timestamp)
    group.must_match = False


_APPLY: dict[str, Callable[[GroupsState, Any, Any, Record], None]] = {
    "OffsetCommitKey": _offset_commit,
    "GroupMetadataKey": _group_metadata,
    "ConsumerGroupMetadataKey": _group_epoch,
    "ConsumerGroupPartitionMetadataKey": _topic_metadata,
    "ConsumerGroupMemberMetadataKey": _member_metadata,
    "ConsumerGroupTargetAssignmentMetadataKey": _target_epoch,
    "ConsumerGroupTargetAssignmentMemberKey": _target_member,
    "ConsumerGroupCurrentMemberAssignmentKey": _current_assignment,
    "ConsumerGroupRegularExpressionKey": _regular_expression,
    **share_replaying.APPLY,
    **streams_replaying.APPLY,
}
