"""Classic members inside a consumer group: their joins, syncs and heartbeats (KIP-848).

Owns the translation: a join is a heartbeat that tells everything, its generation is the member's
epoch, a sync fetches what the member was given, and REBALANCE_IN_PROGRESS says that it should
join again. Nobody leads; the assignment is the coordinator's.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.coordinators.groups import consumer_protocol, consumer_records, migration
from kafkalite.coordinators.groups.classic_group import CONSUMER_PROTOCOL_TYPE, Protocols
from kafkalite.coordinators.groups.classic_join import MEMBER_ID_REQUIRED_SINCE, join_error, prepare
from kafkalite.coordinators.groups.classic_leave import left
from kafkalite.coordinators.groups.classic_timers import arm_session
from kafkalite.coordinators.groups.consumer_group import (
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kafkalite.coordinators.groups.consumer_heartbeat import (
    goal_for,
    replace_member,
)
from kafkalite.coordinators.groups.consumer_leave import (
    classic_join_key,
    classic_sync_key,
    fence,
    static_member,
)
from kafkalite.coordinators.groups.events import (
    ClassicStepExpired,
    Downgraded,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from kafkalite.coordinators.groups.reconciliation import Owned, reconcile
from kafkalite.coordinators.groups.settings import MigrationPolicy
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.subscriptions import change_subscription
from kafkalite.coordinators.groups.target import NAMES_PER_STEP, Draft, retarget
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupResponse,
)

NO_MEMBER_ID = ""


def join(
    state: GroupsState, turn: Turn, group: ConsumerGroup, event: Join
) -> Steps[None]:
    request = event.request
    protocols = [(one.name, bytes(one.metadata)) for one in request.protocols]
    _check_join(state, group, event, protocols)
    is_new = request.member_id == NO_MEMBER_ID
    member_id = request.member_id or state.new_uuid()
    if is_new and request.group_instance_id is None and event.version >= MEMBER_ID_REQUIRED_SINCE:
        turn.reply(join_error(member_id, Error.MEMBER_ID_REQUIRED))
        return
    subscription = yield from consumer_protocol.read_subscription(protocols[0][1])
    if subscription is None:
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
    draft = Draft.of(group)
    holder_ids = _holder_of_other_protocol(group, event)
    old = yield from _find_member(turn, group, draft, event, member_id)
    new = _updated(old, event, subscription, protocols)
    has_changed = yield from change_subscription(state, turn, group, draft, old, new)
    if holder_ids and migration.must_downgrade(state, group, holder_ids, is_replaced=True):
        yield from _downgrade(state, turn, group, draft, new)
        return
    yield from retarget(state, turn, draft)
    owned = yield from _owned(state, subscription)
    goal = yield from goal_for(state, draft, new, owned, has_changed)
    moved = new
    if has_changed or not new.is_reconciled_to(draft.assignment_epoch):
        moved = yield from reconcile(new, goal)
    if moved != new:
        turn.write((yield from consumer_records.current(group.group_id, moved)))
    turn.cancel(classic_join_key(group.group_id, member_id))
    arm_session(turn, group.group_id, member_id, request.session_timeout_ms)
    turn.arm(
        classic_sync_key(group.group_id, member_id),
        request.rebalance_timeout_ms,
        ClassicStepExpired(group.group_id, member_id),
    )
    turn.reply(_joined(moved))


def _check_join(
    state: GroupsState, group: ConsumerGroup, event: Join, protocols: Protocols
) -> None:
    if state.settings.consumer_migration_policy is MigrationPolicy.DISABLED:
        raise KafkaError(
            Error.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because"
            " the group migration is disabled.",
        )
    is_member = event.request.member_id in group.members
    if len(group.members) >= state.settings.consumer_max_size and not is_member:
        raise KafkaError(Error.GROUP_MAX_SIZE_REACHED)
    everyone = [
        {name for name, _ in member.classic.protocols}
        for member in group.classic_members
        if member.classic is not None
    ]
    is_common = any(all(name in names for names in everyone) for name, _ in protocols)
    if event.request.protocol_type != CONSUMER_PROTOCOL_TYPE or not is_common:
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)


def _holder_of_other_protocol(group: ConsumerGroup, event: Join) -> set[str]:
    """The consumer-protocol self that a static member is about to replace, if any."""
    instance_id = event.request.group_instance_id
    holder = None if instance_id is None else group.static_member(instance_id)
    if holder is None or holder.classic is not None:
        return set()
    return {holder.member_id}


def _find_member(
    turn: Turn, group: ConsumerGroup, draft: Draft, event: Join, member_id: str
) -> Steps[ConsumerMember]:
    request = event.request
    if request.group_instance_id is None:
        return group.members.get(member_id, ConsumerMember(member_id))
    if request.member_id != NO_MEMBER_ID:
        return static_member(group, request.group_instance_id, member_id)
    holder = group.static_member(request.group_instance_id)
    if holder is None:
        return ConsumerMember(member_id)
    return (yield from replace_member(turn, draft, holder, member_id))


def _updated(
    old: ConsumerMember,
    event: Join,
    subscription: ConsumerProtocolSubscription,
    protocols: Protocols,
) -> ConsumerMember:
    request = event.request
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        old,
        instance_id=old.instance_id or request.group_instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
        subscribed_topics=tuple(sorted(set(subscription.topics))),
        subscribed_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicSide(request.session_timeout_ms, protocols),
    )


def _owned(state: GroupsState, subscription: ConsumerProtocolSubscription) -> Steps[Owned]:
    owned: dict[bytes, list[int]] = {}
    for count, topic in enumerate(subscription.owned_partitions, 1):
        if count % NAMES_PER_STEP == 0:
            yield
        view = state.topics.by_name(topic.topic)
        if view is not None:
            owned[view.topic_id] = topic.partitions
    return owned


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        error_code=Error.NONE,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
        member_id=member.member_id,
    )


def _downgrade(
    state: GroupsState, turn: Turn, group: ConsumerGroup, draft: Draft, new: ConsumerMember
) -> Steps[None]:
    """A static member came back with the classic protocol, and it was the last without it."""
    # The generation is the epoch that the present assignment is of, though the subscription may
    # be another already: the rebalance that follows makes the next one.
    after = ConsumerGroup(group.group_id, epoch=group.epoch)
    after.members = {**draft.members, new.member_id: new}
    after.targets = draft.targets
    after.regexes = draft.regexes
    must_rebalance = draft.assignment_epoch < draft.epoch
    reply = _joined(new)
    if not must_rebalance:
        reply.generation_id = group.epoch
    steps = migration.downgrade(state, turn, after, set(), reply, must_rebalance=must_rebalance)
    yield from steps


def on_downgraded(state: GroupsState, turn: Turn, event: Downgraded) -> None:
    """The group is a classic one now; what its members were to have counts until they join."""
    group = state.classic_group(event.group_id)
    assert group is not None, "the records of a downgrade make a classic group"
    for member in group.members.values():
        arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
    if event.must_rebalance:
        prepare(state, turn, group)
    turn.reply(event.reply)


# -- sync, heartbeat, leave ------------------------------------------------------------------


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicSide]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = static_member(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID)
    return member, member.classic


def _arm_join(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    turn.arm_if_absent(
        classic_join_key(group.group_id, member.member_id),
        member.rebalance_timeout_ms,
        ClassicStepExpired(group.group_id, member.member_id),
    )


def sync(state: GroupsState, turn: Turn, group: ConsumerGroup, event: Sync) -> Steps[None]:
    request = event.request
    member, side = _classic_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != member.member_epoch:
        raise KafkaError(Error.ILLEGAL_GENERATION)
    is_other_type = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
    if is_other_type or request.protocol_name not in (None, side.protocols[0][0]):
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
    is_behind = group.assignment_epoch > member.member_epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        # A refusal that also starts a timer, so it is a reply and not an exception.
        _arm_join(turn, group, member)
        turn.reply(SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS))
        return
    turn.cancel(classic_sync_key(group.group_id, member.member_id))
    arm_session(turn, group.group_id, member.member_id, side.session_timeout_ms)
    assignment = yield from migration.embedded_assignment(state, side, member.assigned)
    turn.reply(
        SyncGroupResponse(
            error_code=Error.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment,
        )
    )


def heartbeat(turn: Turn, group: ConsumerGroup, event: Heartbeat) -> None:
    request = event.request
    member, side = _classic_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != member.member_epoch:
        raise KafkaError(Error.ILLEGAL_GENERATION)
    arm_session(turn, group.group_id, member.member_id, side.session_timeout_ms)
    code = Error.NONE
    if _should_rejoin(group, member):
        code = Error.REBALANCE_IN_PROGRESS
        _arm_join(turn, group, member)
    turn.reply(HeartbeatResponse(error_code=code))


def _should_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch:
        return True
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _is_waiting(group, member)


def _is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether something the member is to get is still held by somebody."""
    target = group.targets.get(member.member_id, {})
    return any(
        index not in member.assigned.get(topic_id, {}) and (topic_id, index) in group.owners
        for topic_id, indexes in target.items()
        for index in indexes
    )


def leave(
    state: GroupsState, turn: Turn, group: ConsumerGroup, event: Leave
) -> Steps[None]:
    response = LeaveGroupResponse(error_code=Error.NONE)
    leaving: dict[str, ConsumerMember] = {}

    def leave_one(leaver: LeaveGroupRequest.Member) -> int:
        try:
            member = _leaver(group, leaver)
        except KafkaError as refusal:
            return refusal.code
        leaving[member.member_id] = member
        return Error.NONE

    response.members = yield from in_steps(
        left(leaver, leave_one(leaver)) for leaver in event.request.members
    )
    yield from fence(state, turn, group, list(leaving.values()), response)


def _leaver(group: ConsumerGroup, leaver: LeaveGroupRequest.Member) -> ConsumerMember:
    if leaver.group_instance_id is None:
        return group.member(leaver.member_id)
    if leaver.member_id != NO_MEMBER_ID:
        return static_member(group, leaver.group_instance_id, leaver.member_id)
    member = group.static_member(leaver.group_instance_id)
    if member is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID)
    return member
