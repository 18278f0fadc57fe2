"""What each record of a streams group does to the state: the fold.

As `replaying`, for their kind: total, in any order that compaction may leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import streams_records
from kafkalite.coordinators.groups.consumer_group import LEFT_EPOCH
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_group import NOTHING_HELD, StreamsGroup, StreamsMember
from kafkalite.coordinators.groups.streams_topology import Topology
from kafkalite.protocol.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

NO_ASSIGNMENT = -1


def _group(state: GroupsState, group_id: str) -> StreamsGroup:
    group = state.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        return group
    created = state.groups[group_id] = StreamsGroup(group_id)
    return created


def _epoch(
    state: GroupsState,
    key: StreamsGroupMetadataKey,
    value: StreamsGroupMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        if state.streams_group(key.group_id) is not None:
            del state.groups[key.group_id]
        return
    group = _group(state, key.group_id)
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {one.key: one.value for one in value.last_assignment_configs or ()}


def _topology(
    state: GroupsState,
    key: StreamsGroupTopologyKey,
    value: StreamsGroupTopologyValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.streams_group(key.group_id)
        if known is not None:
            known.topology = None
        return
    _group(state, key.group_id).topology = Topology.of(value)


def _member(
    state: GroupsState,
    key: StreamsGroupMemberMetadataKey,
    value: StreamsGroupMemberMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.streams_group(key.group_id)
        if known is not None:
            known.remove_member(key.member_id)
        return
    group = _group(state, key.group_id)
    old = group.members.get(key.member_id, StreamsMember(key.member_id))
    group.put_member(streams_records.read_member(old, value))


def _target_epoch(
    state: GroupsState,
    key: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.streams_group(key.group_id)
        if known is not None:
            known.assignment_epoch, known.assignment_timestamp_ms = NO_ASSIGNMENT, 0
        return
    group = _group(state, key.group_id)
    group.assignment_epoch = value.assignment_epoch
    group.assignment_timestamp_ms = value.assignment_timestamp


def _target(
    state: GroupsState,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.streams_group(key.group_id)
        if known is not None:
            known.targets.pop(key.member_id, None)
        return
    _group(state, key.group_id).targets[key.member_id] = streams_records.read_target(value)


def _current(
    state: GroupsState,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
    _: Record,
) -> None:
    if value is None:
        known = state.streams_group(key.group_id)
        member = None if known is None else known.members.get(key.member_id)
        if known is not None and member is not None:
            known.put_member(
                replace(
                    member,
                    member_epoch=LEFT_EPOCH,
                    previous_member_epoch=LEFT_EPOCH,
                    assigned=NOTHING_HELD,
                    pending_revocation=NOTHING_HELD,
                )
            )
        return
    group = _group(state, key.group_id)
    old = group.members.get(key.member_id, StreamsMember(key.member_id))
    group.put_member(streams_records.read_current(old, value))


APPLY: dict[str, Callable[..., None]] = {
    "StreamsGroupMetadataKey": _epoch,
    "StreamsGroupTopologyKey": _topology,
    "StreamsGroupMemberMetadataKey": _member,
    "StreamsGroupTargetAssignmentMetadataKey": _target_epoch,
    "StreamsGroupTargetAssignmentMemberKey": _target,
    "StreamsGroupCurrentMemberAssignmentKey": _current,
}
