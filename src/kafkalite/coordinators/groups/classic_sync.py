"""SyncGroup, Heartbeat and the ends of a classic member's session.

Owns the sync phase (the leader's assignment becomes a record, and the record's commit hands it
to everyone) and who is still alive. Joining is `classic_join`'s. A member that misses its
session or its sync is removed here.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import records
from kafkalite.coordinators.groups.classic_group import (
    ClassicGroup,
    ClassicMember,
    ClassicState,
    Step,
)
from kafkalite.coordinators.groups.classic_join import (
    NO_MEMBER_ID,
    complete_join,
    join_error,
    prepare,
    prepare_or_complete,
    reject_syncs,
)
from kafkalite.coordinators.groups.classic_timers import arm_session, session_key, sync_key
from kafkalite.coordinators.groups.events import (
    AssignmentStored,
    Heartbeat,
    SessionExpired,
    Sync,
    SyncPhaseExpired,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import HeartbeatResponse, SyncGroupRequest, SyncGroupResponse


def sync(state: GroupsState, turn: Turn, event: Sync) -> None:
    request = event.request
    group = state.classic_group(request.group_id)
    if group is None or group.is_empty:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(Error.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise KafkaError(Error.REBALANCE_IN_PROGRESS)
    _note_sync(turn, group, member)
    if group.state is ClassicState.STABLE:
        turn.reply(_assigned(group, member))
        return
    _await_sync(state, turn, member)
    if group.leader == member.member_id:
        _store_assignment(turn, group, request)


def _differs(asked: str | None, actual: str | None) -> bool:
    """Older clients do not say; then nothing differs."""
    return asked is not None and actual is not None and asked != actual


def _note_sync(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    if member.member_id in group.pending_sync:
        group.touch()
        del group.pending_sync[member.member_id]
    if not group.pending_sync:
        turn.cancel(sync_key(group.group_id))


def _await_sync(state: GroupsState, turn: Turn, member: ClassicMember) -> None:
    if member.sync_ticket is not None:
        # The same member asks twice: only the newer request will be answered with the outcome.
        turn.answer(member.sync_ticket, SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS))
    member.sync_ticket = state.next_ticket()
    turn.reply_later(member.sync_ticket)


def _store_assignment(turn: Turn, group: ClassicGroup, request: SyncGroupRequest) -> None:
    assignments = {one.member_id: bytes(one.assignment) for one in request.assignments}
    outcome = AssignmentStored(group.group_id, group.generation)
    turn.write(records.group_metadata(group, assignments))
    turn.effects.on_committed = outcome
    turn.effects.on_failed = outcome


def _assigned(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=Error.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def on_assignment_stored(state: GroupsState, turn: Turn, event: AssignmentStored) -> None:
    """The assignment is committed: everyone who waits gets theirs, and the group is stable."""
    group = _still_completing(state, event)
    if group is None:
        return
    group.move(Step.ASSIGN, turn.now_ms)
    for member in group.members.values():
        if member.sync_ticket is None:
            continue
        turn.answer(member.sync_ticket, _assigned(group, member))
        member.sync_ticket = None
        arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)


def on_assignment_lost(
    state: GroupsState, turn: Turn, event: AssignmentStored, error: KafkaError
) -> None:
    """The assignment could not be stored: everyone hears why and the group rebalances."""
    group = _still_completing(state, event)
    if group is None:
        return
    reject_syncs(turn, group, error.code)
    prepare_or_complete(state, turn, group)


def _still_completing(state: GroupsState, event: AssignmentStored) -> ClassicGroup | None:
    """None when a member joined or left while the record was on its way."""
    group = state.classic_group(event.group_id)
    if group is None or group.state is not ClassicState.COMPLETING_REBALANCE:
        return None
    return group if group.generation == event.generation else None


# -- signs of life ---------------------------------------------------------------------------


def heartbeat(state: GroupsState, turn: Turn, event: Heartbeat) -> None:
    request = event.request
    group = state.classic_group(request.group_id)
    if group is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(Error.ILLEGAL_GENERATION)
    arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
    is_preparing = group.state is ClassicState.PREPARING_REBALANCE
    code = Error.REBALANCE_IN_PROGRESS if is_preparing else Error.NONE
    turn.reply(HeartbeatResponse(error_code=code))


def on_session_expired(state: GroupsState, turn: Turn, event: SessionExpired) -> None:
    group = state.classic_group(event.group_id)
    if group is None:
        return
    if event.member_id in group.pending_join:
        remove_pending(state, turn, group, event.member_id)
        return
    member = group.members.get(event.member_id)
    if member is None or member.has_satisfied_heartbeat():
        return
    drop_requests(turn, group, member)
    group.remove(member.member_id)
    after_removal(state, turn, group)


def remove_pending(state: GroupsState, turn: Turn, group: ClassicGroup, member_id: str) -> None:
    group.remove(member_id)
    turn.cancel(session_key(group.group_id, member_id))
    if group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(state, turn, group)


def drop_requests(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    """A member that is removed while it waits is told to come back as a new one."""
    group.touch()
    if member.join_ticket is not None:
        turn.answer(member.join_ticket, join_error(NO_MEMBER_ID, Error.UNKNOWN_MEMBER_ID))
        group.await_join(member, None)
    if member.sync_ticket is not None:
        turn.answer(member.sync_ticket, SyncGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))
        member.sync_ticket = None


def after_removal(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        prepare(state, turn, group)
    elif group.state is ClassicState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(state, turn, group)


def on_sync_phase_expired(state: GroupsState, turn: Turn, event: SyncPhaseExpired) -> None:
    """Members that joined and never synced are removed, and the others rebalance."""
    group = state.classic_group(event.group_id)
    if group is None or group.generation != event.generation or not group.pending_sync:
        return
    if group.state not in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        return
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        turn.cancel(session_key(group.group_id, member_id))
    prepare(state, turn, group)
