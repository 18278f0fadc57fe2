"""What each record of __consumer_offsets does to the state: the fold.

Owns the only writes to durable state. Total: every record we wrote or Apache Kafka wrote is
taken, in any order that compaction may leave. No clock, no chance, no effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import records
from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

NOT_WRITTEN = -1


def replay(state: GroupsState, record: Record) -> None:
    key_and_value = records.read(record)
    if key_and_value is None:
        return
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


def _restore_member(
    value: GroupMetadataValue, stored: GroupMetadataValue.Member
) -> ClassicMember:
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


_APPLY: dict[str, Callable[[GroupsState, Any, Any, Record], None]] = {
    "OffsetCommitKey": _offset_commit,
    "GroupMetadataKey": _group_metadata,
}
