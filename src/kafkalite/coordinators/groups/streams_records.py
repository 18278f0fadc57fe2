"""The records of streams groups (KIP-1071), both ways.

Owns their layout and the order that Apache Kafka insists on when it loads them. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups.records import make, make_in_steps
from kafkalite.coordinators.groups.streams_group import (
    NOT_KEPT,
    Held,
    HeldTasks,
    Places,
    StreamsGroup,
    StreamsMember,
    StreamsMemberState,
    Tasks,
)
from kafkalite.env.slicing import Steps
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

T = TypeVar("T")


def group_epoch(
    group: StreamsGroup, epoch: int, metadata_hash: int, validated: int, configs: Mapping[str, str]
) -> Record:
    kind = StreamsGroupMetadataValue
    value = kind(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated,
        last_assignment_configs=[
            kind.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
    )
    return make(StreamsGroupMetadataKey(group_id=group.group_id), value)


def topology(group_id: str, value: StreamsGroupTopologyValue) -> Steps[Record]:
    return make_in_steps(StreamsGroupTopologyKey(group_id=group_id), value)


def member(group_id: str, one: StreamsMember) -> Record:
    kind = StreamsGroupMemberMetadataValue
    endpoint = None
    if one.endpoint is not None:
        endpoint = kind.Endpoint(host=one.endpoint[0], port=one.endpoint[1])
    value = kind(
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        topology_epoch=one.topology_epoch,
        process_id=one.process_id,
        user_endpoint=endpoint,
        client_tags=[
            kind.KeyValue(key=key, value=one.client_tags[key]) for key in sorted(one.client_tags)
        ],
    )
    return make(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=one.member_id), value)


def read_member(old: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return replace(
        old,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={one.key: one.value for one in value.client_tags},
    )


def target_epoch(group_id: str, epoch: int, now_ms: int) -> Record:
    return make(
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def target(group_id: str, member_id: str, tasks: Tasks) -> Steps[Record]:
    kind = StreamsGroupTargetAssignmentMemberValue
    value = kind(
        active_tasks=_places(kind.TaskIds, tasks.active),
        standby_tasks=_places(kind.TaskIds, tasks.standby),
        warmup_tasks=_places(kind.TaskIds, tasks.warmup),
    )
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return make_in_steps(key, value)


def _places(kind: Callable[..., T], places: Places) -> list[T]:
    return [
        kind(subtopology_id=each, partitions=sorted(places[each])) for each in sorted(places)
    ]


def read_target(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(
        _read_places(value.active_tasks),
        _read_places(value.standby_tasks),
        _read_places(value.warmup_tasks),
    )


def _read_places(tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]) -> Places:
    return {one.subtopology_id: tuple(sorted(one.partitions)) for one in tasks}


def current(group_id: str, one: StreamsMember) -> Steps[Record]:
    kept, pending = one.assigned, one.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=one.member_epoch,
        previous_member_epoch=one.previous_member_epoch,
        state=one.state,
        active_tasks=_held(kept.active, has_epochs=True),
        standby_tasks=_held(kept.standby),
        warmup_tasks=_held(kept.warmup),
        active_tasks_pending_revocation=_held(pending.active, has_epochs=True),
        standby_tasks_pending_revocation=_held(pending.standby),
        warmup_tasks_pending_revocation=_held(pending.warmup),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.member_id)
    return make_in_steps(key, value)


def _held(
    tasks: Held, *, has_epochs: bool = False
) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    written = []
    for subtopology_id in sorted(tasks):
        epochs = tasks[subtopology_id]
        partitions = sorted(epochs)
        written.append(
            StreamsGroupCurrentMemberAssignmentValue.TaskIds(
                subtopology_id=subtopology_id,
                partitions=partitions,
                assignment_epochs=[epochs[each] for each in partitions] if has_epochs else None,
            )
        )
    return written


def read_current(
    old: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue
) -> StreamsMember:
    known = value.state in StreamsMemberState.__members__.values()
    epoch = value.member_epoch
    return replace(
        old,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=StreamsMemberState(value.state) if known else StreamsMemberState.UNKNOWN,
        assigned=HeldTasks(
            _read_active(value.active_tasks, epoch),
            _read_held(value.standby_tasks),
            _read_held(value.warmup_tasks),
        ),
        pending_revocation=HeldTasks(
            _read_active(value.active_tasks_pending_revocation, epoch),
            _read_held(value.standby_tasks_pending_revocation),
            _read_held(value.warmup_tasks_pending_revocation),
        ),
    )


def _read_active(
    tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds], member_epoch: int
) -> Held:
    """Without epochs of their own tasks count as assigned in the member's."""
    held: Held = {}
    for one in tasks:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [member_epoch] * len(one.partitions)
        held[one.subtopology_id] = dict(zip(one.partitions, epochs, strict=True))
    return held


def _read_held(tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]) -> Held:
    return {one.subtopology_id: dict.fromkeys(one.partitions, NOT_KEPT) for one in tasks}


# -- the end ---------------------------------------------------------------------------------------


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        make(StreamsGroupCurrentMemberAssignmentKey(**names), None),
        make(StreamsGroupTargetAssignmentMemberKey(**names), None),
        make(StreamsGroupMemberMetadataKey(**names), None),
    ]


def group_tombstones(group_id: str) -> list[Record]:
    """Of a group without members, in the order in which Apache Kafka deletes it."""
    return [
        make(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        make(StreamsGroupMetadataKey(group_id=group_id), None),
        make(StreamsGroupTopologyKey(group_id=group_id), None),
    ]
