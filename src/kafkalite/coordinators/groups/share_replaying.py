"""What each record of a share group does to the state: the fold.

As `replaying`, for their kind: total, in any order that compaction may leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import share_records
from kafkalite.coordinators.groups.share_group import ShareGroup, ShareMember
from kafkalite.coordinators.groups.state import GroupsState
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

LEFT_EPOCH = -1
NO_ASSIGNMENT = -1


def _group(state: GroupsState, group_id: str) -> ShareGroup:
    group = state.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    created = state.groups[group_id] = ShareGroup(group_id)
    return created


def _epoch(
    state: GroupsState, key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None, _: Record
) -> None:
    if value is None:
        if state.share_group(key.group_id) is not None:
            del state.groups[key.group_id]
        return
    group = _group(state, key.group_id)
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _member(
    state: GroupsState,
    key: ShareGroupMemberMetadataKey,
    value: ShareGroupMemberMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.share_group(key.group_id)
        if known is not None:
            known.members.pop(key.member_id, None)
        return
    group = _group(state, key.group_id)
    old = group.members.get(key.member_id, ShareMember(key.member_id))
    group.members[key.member_id] = share_records.read_member(old, value)


def _target_epoch(
    state: GroupsState,
    key: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.share_group(key.group_id)
        if known is not None:
            known.assignment_epoch, known.assignment_timestamp_ms = NO_ASSIGNMENT, 0
        return
    group = _group(state, key.group_id)
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _target(
    state: GroupsState,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.share_group(key.group_id)
        if known is not None:
            known.targets.pop(key.member_id, None)
        return
    _group(state, key.group_id).targets[key.member_id] = share_records.read_target(value)


def _current(
    state: GroupsState,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.share_group(key.group_id)
        member = None if known is None else known.members.get(key.member_id)
        if known is not None and member is not None:
            known.members[key.member_id] = replace(
                member, member_epoch=LEFT_EPOCH, previous_member_epoch=LEFT_EPOCH, assigned={}
            )
        return
    group = _group(state, key.group_id)
    old = group.members.get(key.member_id, ShareMember(key.member_id))
    group.members[key.member_id] = share_records.read_current(old, value)


def _shared(
    state: GroupsState,
    key: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.share_group(key.group_id)
        if known is not None:
            known.shared = None
        return
    _group(state, key.group_id).shared = share_records.read_shared(value)


APPLY: dict[str, Callable[[GroupsState, Any, Any, Record], None]] = {
    "ShareGroupMetadataKey": _epoch,
    "ShareGroupMemberMetadataKey": _member,
    "ShareGroupTargetAssignmentMetadataKey": _target_epoch,
    "ShareGroupTargetAssignmentMemberKey": _target,
    "ShareGroupCurrentMemberAssignmentKey": _current,
    "ShareGroupStatePartitionMetadataKey": _shared,
}
