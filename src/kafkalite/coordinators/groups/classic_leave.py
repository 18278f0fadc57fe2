"""LeaveGroup of a classic group, for one member or many.

Owns only that. A member is named by its id, or by its instance id alone when an administrator
removes it. One refused member never fails the others.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.coordinators.groups.classic_join import (
    NO_MEMBER_ID,
    complete_if_all_joined,
    prepare,
)
from kafkalite.coordinators.groups.classic_sync import drop_requests
from kafkalite.coordinators.groups.classic_timers import session_key
from kafkalite.coordinators.groups.events import Leave
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import LeaveGroupRequest, LeaveGroupResponse


def leave(state: GroupsState, turn: Turn, event: Leave) -> Steps[None]:
    request = event.request
    group = state.classic_group(request.group_id)
    if group is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID)
    response = LeaveGroupResponse(error_code=Error.NONE, members=[])
    response.members = yield from in_steps(
        left(member, _leave_one(turn, group, member)) for member in request.members
    )
    turn.reply(response)
    if any(member.error_code == Error.NONE for member in response.members):
        _after_leaving(state, turn, group)


def left(member: LeaveGroupRequest.Member, code: int) -> LeaveGroupResponse.Member:
    return LeaveGroupResponse.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=code,
    )


def _leave_one(turn: Turn, group: ClassicGroup, leaver: LeaveGroupRequest.Member) -> int:
    member_id, instance_id = leaver.member_id, leaver.group_instance_id
    if member_id == NO_MEMBER_ID:
        holder = None if instance_id is None else group.static_members.get(instance_id)
        if holder is None:
            return Error.UNKNOWN_MEMBER_ID
        member_id = holder
    elif member_id in group.pending_join:
        group.remove(member_id)
        turn.cancel(session_key(group.group_id, member_id))
        return Error.NONE
    try:
        member = group.check_member(member_id, instance_id)
    except KafkaError as refusal:
        return refusal.code
    turn.cancel(session_key(group.group_id, member_id))
    drop_requests(turn, group, member)
    group.remove(member_id)
    return Error.NONE


def _after_leaving(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        prepare(state, turn, group)
    elif group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(state, turn, group)
