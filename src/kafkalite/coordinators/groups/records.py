"""The records of __consumer_offsets, in the versions that Apache Kafka 4.3.1 writes.

Owns keys and values on disk, both ways. It decides nothing. Types that nobody here knows decode to
None, and `foreign` sees to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkalite.coordinators.effects import Record
from kafkalite.env.slicing import Steps
from kafkalite.protocol import codec, messages
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicMember
    from kafkalite.coordinators.groups.offsets import CommittedOffset

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_EXPIRING_VERSION = 1

_NAMES = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}


class UnreadableRecord(Exception):
    """A value that we cannot read; in a version we do not know, it is of a newer broker."""


def make(key: Any, value: object, version: int = 0) -> Record:
    """A record; a value of None is a tombstone."""
    key_bytes = key.TYPE.to_bytes(2, "big") + codec.encode(key, 0)
    if value is None:
        return Record(key_bytes, None, (key, None))
    value_bytes = version.to_bytes(2, "big") + codec.encode(value, version)
    return Record(key_bytes, value_bytes, (key, value))


def make_in_steps(key: Any, value: object) -> Steps[Record]:
    """The same of a large value in version 0, some elements at a time."""
    parts: list[bytes] = [b"\0\0"]
    yield from codec.encoder_in_steps(type(value), 0)(value, parts)
    return Record(key.TYPE.to_bytes(2, "big") + codec.encode(key, 0), b"".join(parts), (key, value))


def read(record: Record) -> tuple[object, object] | None:
    """Key and value of a record; None for a type that is not ours."""
    if record.decoded is not None:
        key_and_value: tuple[object, object] = record.decoded
        return key_and_value
    assert record.key is not None, "a record of __consumer_offsets has a key"
    name = _NAMES.get(int.from_bytes(record.key[:2], "big", signed=True))
    if name is None:
        return None
    key = codec.decode(getattr(messages, name + "Key"), 0, record.key, 2)
    value = None if record.value is None else _read_value(name, record.value)
    if isinstance(key, LegacyOffsetCommitKey):
        return _modern(key, value)
    return key, value


def _read_value(name: str, data: bytes) -> Any:
    value_class = getattr(messages, name + "Value")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version not in value_class.SPEC.versions:
        raise UnreadableRecord(f"{value_class.__name__} in version {version}")
    try:
        return codec.decode(value_class, version, data, 2)
    except MalformedFrame as error:
        raise UnreadableRecord(str(error)) from error


def _modern(
    key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    new_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        return new_key, None
    return new_key, OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )


def offset_commit(group_id: str, topic: str, partition: int, offset: CommittedOffset) -> Record:
    is_expiring = offset.expire_timestamp_ms >= 0
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
        topic_id=offset.topic_id,
    )
    return make(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        value,
        OFFSET_COMMIT_EXPIRING_VERSION if is_expiring else OFFSET_COMMIT_VERSION,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    return make(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_metadata(group: ClassicGroup, assignments: dict[str, bytes] | None = None) -> Record:
    """The group as it is; with `assignments`, as it will be once they are given out."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_timestamp_ms,
        members=[_stored_member(group, member, assignments) for member in group.members.values()],
    )
    return make(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def _stored_member(
    group: ClassicGroup, member: ClassicMember, assignments: dict[str, bytes] | None
) -> GroupMetadataValue.Member:
    assert group.protocol_name is not None, "a group with members has a protocol"
    assignment = member.assignment
    if assignments is not None:
        assignment = assignments.get(member.member_id, b"")
    return GroupMetadataValue.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(group.protocol_name),
        assignment=assignment,
    )


def group_tombstone(group_id: str) -> Record:
    return make(GroupMetadataKey(group=group_id), None)
