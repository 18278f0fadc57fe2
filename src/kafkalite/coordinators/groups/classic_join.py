"""JoinGroup and the join phase of a classic group's rebalance.

Owns everything from a member's first word to the new generation: member ids (KIP-394), static
members (KIP-345), the initial delay, and who is dropped for not coming back. The assignment is
`classic_sync`'s. Volatile state changes here; what must last is written as a record.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import records
from kafkalite.coordinators.groups.classic_group import (
    ClassicGroup,
    ClassicMember,
    ClassicState,
    Step,
)
from kafkalite.coordinators.groups.classic_timers import (
    arm_session,
    join_key,
    session_key,
    sync_key,
)
from kafkalite.coordinators.groups.events import (
    InitialDelayExpired,
    Join,
    JoinPhaseExpired,
    StaticMemberStored,
    SyncPhaseExpired,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

# KIP-394: from this version on a member asks for its id first and joins with it.
MEMBER_ID_REQUIRED_SINCE = 4
# KIP-814: from this version on a returning static leader is told not to assign again.
SKIP_ASSIGNMENT_SINCE = 9
NO_MEMBER_ID = ""
# What a string of the protocol may have; a client's id and ours behind it may have more.
MAX_ID_BYTES = 32_767


def join_error(member_id: str, code: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def join(state: GroupsState, turn: Turn, event: Join) -> None:
    """A JoinGroup for a classic group or for no group at all."""
    request = event.request
    is_new_member = request.member_id == NO_MEMBER_ID
    group = state.classic_group(request.group_id)
    if group is None:
        if not is_new_member:
            turn.reply(join_error(request.member_id, Error.UNKNOWN_MEMBER_ID))
            return
        group = state.create_classic_group(request.group_id, turn.now_ms)
    if not group.accepts_joining(request.member_id, state.settings.max_size):
        group.remove(request.member_id)
        turn.reply(join_error(NO_MEMBER_ID, Error.GROUP_MAX_SIZE_REACHED))
    elif is_new_member:
        _join_new_member(state, turn, group, event)
    else:
        _join_existing_member(state, turn, group, event)


def _protocols(request: JoinGroupRequest) -> list[tuple[str, bytes]]:
    return [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]


def _join_new_member(state: GroupsState, turn: Turn, group: ClassicGroup, event: Join) -> None:
    request = event.request
    if not group.supports(request.protocol_type, _protocols(request)):
        turn.reply(join_error(NO_MEMBER_ID, Error.INCONSISTENT_GROUP_PROTOCOL))
        return
    instance_id = request.group_instance_id
    new_id = f"{event.client_id if instance_id is None else instance_id}-{state.new_uuid()}"
    if len(new_id.encode()) > MAX_ID_BYTES:
        turn.reply(join_error(NO_MEMBER_ID, Error.UNKNOWN_SERVER_ERROR))
        return
    if instance_id is not None and instance_id in group.static_members:
        _rejoin_static(state, turn, group, event, new_id)
    elif instance_id is None and event.version >= MEMBER_ID_REQUIRED_SINCE:
        group.touch()
        group.pending_join[new_id] = None
        arm_session(turn, group.group_id, new_id, request.session_timeout_ms)
        _gather(state, turn, group)
        turn.reply(join_error(new_id, Error.MEMBER_ID_REQUIRED))
    else:
        _add_member(state, turn, group, event, new_id)


def _join_existing_member(state: GroupsState, turn: Turn, group: ClassicGroup, event: Join) -> None:
    request = event.request
    if not group.supports(request.protocol_type, _protocols(request)):
        turn.reply(join_error(request.member_id, Error.INCONSISTENT_GROUP_PROTOCOL))
        return
    if request.member_id in group.pending_join:
        if request.group_instance_id is not None:
            # Ids are handed out to dynamic members only; this is what Apache Kafka says of it.
            turn.reply(join_error(NO_MEMBER_ID, Error.UNKNOWN_SERVER_ERROR))
            return
        _add_member(state, turn, group, event, request.member_id)
        return
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except KafkaError as refusal:
        turn.reply(join_error(request.member_id, refusal.code))
        return
    if group.is_empty:
        turn.reply(join_error(request.member_id, Error.UNKNOWN_MEMBER_ID))
    elif _must_rebalance(group, member, request):
        _update_member(turn, state, group, member, event)
        prepare_or_complete(state, turn, group)
    else:
        # A repeated join, or a follower with nothing new: the present generation is the answer.
        turn.reply(_joined(group, member))


def _must_rebalance(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
    if group.state is ClassicState.PREPARING_REBALANCE:
        return True
    has_changed = member.protocols != _protocols(request)
    if group.state is ClassicState.STABLE:
        # A leader's join means: something I assign by has changed.
        return has_changed or group.leader == member.member_id
    return has_changed


def _joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    is_leader = group.leader == member.member_id
    return JoinGroupResponse(
        error_code=Error.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=_members_for_leader(group) if is_leader else [],
    )


def _members_for_leader(group: ClassicGroup) -> list[JoinGroupResponse.Member]:
    assert group.protocol_name is not None
    return [
        JoinGroupResponse.Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def _add_member(
    state: GroupsState, turn: Turn, group: ClassicGroup, event: Join, member_id: str
) -> None:
    request = event.request
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        event.client_id,
        event.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        _protocols(request),
        join_ticket=state.next_ticket(),
        is_new=True,
    )
    assert member.join_ticket is not None
    turn.reply_later(member.join_ticket)
    group.touch()
    if group.is_in_first_rebalance:
        group.new_member_added = True
    group.add(member)
    _gather(state, turn, group)
    # A new member cannot heartbeat while its join is parked, and whether its connection lives
    # is not known; so it gets this long instead of its session timeout.
    timeout_ms = state.settings.new_member_join_timeout_ms
    arm_session(turn, group.group_id, member_id, timeout_ms)
    prepare_or_complete(state, turn, group)


def _update_member(
    turn: Turn, state: GroupsState, group: ClassicGroup, member: ClassicMember, event: Join
) -> None:
    request = event.request
    group.update(
        member, _protocols(request), request.rebalance_timeout_ms, request.session_timeout_ms
    )
    if member.join_ticket is not None:
        # The same member asks twice: only the newer request will be answered with the outcome.
        turn.answer(member.join_ticket, join_error(member.member_id, Error.REBALANCE_IN_PROGRESS))
    ticket = state.next_ticket()
    group.await_join(member, ticket)
    turn.reply_later(ticket)


# -- static members --------------------------------------------------------------------------


def _rejoin_static(
    state: GroupsState, turn: Turn, group: ClassicGroup, event: Join, new_id: str
) -> None:
    """A static member is back under a new id and takes the place of its former self."""
    request = event.request
    instance_id = request.group_instance_id
    assert instance_id is not None
    old_id = group.static_members[instance_id]
    former_leader = group.leader
    member = group.members[old_id]
    group.touch()
    _fence_requests(turn, group, member)
    group.pending_sync.pop(old_id, None)
    undo = StaticMemberStored(
        group.group_id, instance_id, old_id, new_id,
        member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms,
    )  # fmt: skip
    group.replace_static(instance_id, old_id, new_id)
    turn.cancel(session_key(group.group_id, old_id))
    arm_session(turn, group.group_id, new_id, member.session_timeout_ms)
    group.update(
        member, _protocols(request), request.rebalance_timeout_ms, request.session_timeout_ms
    )
    if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
        turn.write(records.group_metadata(group))
        turn.effects.on_failed = undo
        turn.reply(_rejoined_static(group, member, event.version, former_leader))
        return
    ticket = state.next_ticket()
    group.await_join(member, ticket)
    turn.reply_later(ticket)
    # In CompletingRebalance too: the leader may be assigning to the old id right now.
    prepare_or_complete(state, turn, group)


def _fence_requests(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    group.touch()
    code = Error.FENCED_INSTANCE_ID
    if member.join_ticket is not None:
        turn.answer(member.join_ticket, join_error(member.member_id, code))
        group.await_join(member, None)
    if member.sync_ticket is not None:
        turn.answer(member.sync_ticket, SyncGroupResponse(error_code=code))
        member.sync_ticket = None


def _rejoined_static(
    group: ClassicGroup, member: ClassicMember, version: int, former_leader: str | None
) -> JoinGroupResponse:
    response = _joined(group, member)
    if version >= SKIP_ASSIGNMENT_SINCE:
        response.skip_assignment = group.leader == member.member_id
    else:
        # An older client would assign again if it saw that it is the leader.
        response.members = []
        response.leader = former_leader or ""
    return response


def on_static_member_lost(
    state: GroupsState, turn: Turn, undo: StaticMemberStored, _: KafkaError
) -> None:
    """The new id could not be stored: the old one is valid again."""
    group = state.classic_group(undo.group_id)
    if group is None or group.static_members.get(undo.instance_id) != undo.new_id:
        return
    member = group.members[undo.new_id]
    _fence_requests(turn, group, member)
    group.update(
        member, undo.old_protocols, undo.old_rebalance_timeout_ms, undo.old_session_timeout_ms
    )
    group.replace_static(undo.instance_id, undo.new_id, undo.old_id)
    turn.cancel(session_key(undo.group_id, undo.new_id))
    arm_session(turn, undo.group_id, undo.old_id, member.session_timeout_ms)


# -- the join phase --------------------------------------------------------------------------


def prepare_or_complete(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    if group.can_prepare():
        prepare(state, turn, group)
    else:
        complete_if_all_joined(state, turn, group)


def complete_if_all_joined(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    """Ends the join phase early when nobody is missing; a first rebalance has its delay."""
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if group.is_in_first_rebalance or not group.has_all_joined:
        return
    complete_join(state, turn, group)


def prepare(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    """Begins a rebalance; every member has its rebalance timeout to join again."""
    group.touch()
    if group.state is ClassicState.COMPLETING_REBALANCE:
        reject_syncs(turn, group, Error.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    turn.cancel(sync_key(group.group_id))
    is_first = group.is_empty
    group.move(Step.PREPARE, turn.now_ms)
    if is_first and state.settings.gathering is not None:
        group.gathers_until_ms = turn.now_ms + state.settings.gathering.longest_ms
        _gather(state, turn, group)
    elif is_first:
        delay_ms = state.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        expiry = InitialDelayExpired(group.group_id, delay_ms, remaining_ms)
        turn.arm(join_key(group.group_id), delay_ms, expiry)
    elif group.has_all_joined:
        complete_join(state, turn, group)
    else:
        _arm_join_phase(turn, group)


def _gather(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    """Somebody has come while a new group waits for others: it waits a little longer."""
    gathering = state.settings.gathering
    if gathering is None or not group.is_in_first_rebalance:
        return
    come = len(group.members)
    # Whoever has been given an id is on the way.
    given_ids = come + len(group.pending_join)
    known = max(given_ids, state.look_ups.clients(group.group_id, turn.now_ms))
    delay_ms = gathering.delay_ms(come, known, group.gathers_until_ms - turn.now_ms)
    turn.arm(join_key(group.group_id), delay_ms, JoinPhaseExpired(group.group_id))


def reject_syncs(turn: Turn, group: ClassicGroup, code: int) -> None:
    """Whoever waits for an assignment will not get one in this generation."""
    group.touch()
    for member in group.members.values():
        member.assignment = b""
        if member.sync_ticket is not None:
            turn.answer(member.sync_ticket, SyncGroupResponse(error_code=code))
            member.sync_ticket = None
            arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)


def _arm_join_phase(turn: Turn, group: ClassicGroup) -> None:
    expiry = JoinPhaseExpired(group.group_id)
    turn.arm(join_key(group.group_id), group.rebalance_timeout_ms, expiry)


def on_initial_delay_expired(state: GroupsState, turn: Turn, event: InitialDelayExpired) -> None:
    """Waits on while new members keep coming, up to the rebalance timeout."""
    group = state.classic_group(event.group_id)
    if group is None or group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if not group.new_member_added or event.remaining_ms == 0:
        complete_join(state, turn, group)
        return
    group.touch()
    group.new_member_added = False
    delay_ms = min(state.settings.initial_rebalance_delay_ms, event.remaining_ms)
    remaining_ms = max(event.remaining_ms - event.delay_ms, 0)
    expiry = InitialDelayExpired(group.group_id, delay_ms, remaining_ms)
    turn.arm(join_key(group.group_id), delay_ms, expiry)


def on_join_phase_expired(state: GroupsState, turn: Turn, event: JoinPhaseExpired) -> None:
    group = state.classic_group(event.group_id)
    if group is None or group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if group.is_in_first_rebalance and turn.now_ms < group.gathers_until_ms:
        known = state.look_ups.clients(group.group_id, turn.now_ms)
        if known > len(group.members):  # somebody asked for the way since the last one came
            _gather(state, turn, group)
            return
    state.look_ups.forget(group.group_id)
    complete_join(state, turn, group)


def complete_join(state: GroupsState, turn: Turn, group: ClassicGroup) -> None:
    """Ends the join phase: drops who did not come, and starts the generation."""
    turn.cancel(join_key(group.group_id))
    missing = [
        member.member_id
        for member in group.members.values()
        if not member.is_awaiting_join and not member.is_static
    ]
    for member_id in missing:
        group.remove(member_id)
        turn.cancel(session_key(group.group_id, member_id))
    if group.members and not group.elect_joined_leader():
        # Only static members that are away: wait until their sessions end.
        _arm_join_phase(turn, group)
        return
    group.start_generation(turn.now_ms)
    if group.is_empty:
        turn.write(records.group_metadata(group))
        return
    for member in group.members.values():
        _announce_generation(turn, group, member)
    expiry = SyncPhaseExpired(group.group_id, group.generation)
    turn.arm(sync_key(group.group_id), group.rebalance_timeout_ms, expiry)


def _announce_generation(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    group.touch()
    if member.join_ticket is not None:
        turn.answer(member.join_ticket, _joined(group, member))
        group.await_join(member, None)
    arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
    member.is_new = False
    group.pending_sync[member.member_id] = None
