"""Leaving a streams group, and being fenced from it (KIP-1071).

Owns the removal of members, by their own word or by a timer.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import streams_records
from kafkalite.coordinators.groups.classic_timers import session_key
from kafkalite.coordinators.groups.consumer_leave import rebalance_key
from kafkalite.coordinators.groups.events import RebalanceExpired, SessionExpired, StreamsBeat
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_group import StreamsGroup, StreamsMember
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


def leave_streams(state: GroupsState, turn: Turn, request: StreamsGroupHeartbeatRequest) -> None:
    group = state.streams_group(request.group_id)
    if group is None:
        what = "is not a streams group" if request.group_id in state.groups else "not found"
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
    if request.shutdown_application and group.shutdown_by is None:
        group.shutdown_by = request.member_id
    fence_streams(turn, group, group.member(request.member_id))
    response = StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    turn.reply(StreamsBeat(response))


def fence_streams(turn: Turn, group: StreamsGroup, member: StreamsMember) -> None:
    """Removes a member; the group gets a new epoch, and its next heartbeat a new assignment."""
    group_id = group.group_id
    turn.cancel(session_key(group_id, member.member_id))
    turn.cancel(rebalance_key(group_id, member.member_id))
    turn.write(*streams_records.member_tombstones(group_id, member.member_id))
    turn.write(
        streams_records.group_epoch(
            group, group.epoch + 1, group.metadata_hash, group.validated_topology_epoch,
            group.assignment_configs,
        )
    )  # fmt: skip


def on_streams_session_expired(turn: Turn, group: StreamsGroup, event: SessionExpired) -> None:
    member = group.members.get(event.member_id)
    if member is not None:
        fence_streams(turn, group, member)


def on_streams_rebalance_expired(turn: Turn, group: StreamsGroup, event: RebalanceExpired) -> None:
    member = group.members.get(event.member_id)
    if member is not None and member.member_epoch == event.member_epoch:
        fence_streams(turn, group, member)
