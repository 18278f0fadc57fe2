"""ConsumerGroupHeartbeat: joining, living and reconciling in a consumer group (KIP-848).

Owns one heartbeat from its checks to its answer: the member, its subscription, the group's
target, the member's next step. Leaving and fencing are `consumer_leave`'s. Everything that
changes is a record; only the timers are not.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from kafkalite.coordinators.groups import consumer_records, migration, records
from kafkalite.coordinators.groups.assignors import ASSIGNORS
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.classic_timers import arm_session
from kafkalite.coordinators.groups.consumer_group import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    LEFT_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kafkalite.coordinators.groups.consumer_leave import leave, rebalance_key
from kafkalite.coordinators.groups.events import ConsumerHeartbeat, GatheringOver, RebalanceExpired
from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.reconciliation import Goal, Owned, reconcile
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.state import Arrival, Arrivals, GroupsState
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.subscriptions import change_subscription
from kafkalite.coordinators.groups.target import (
    Draft,
    retarget,
    topic_ids,
)
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

# From this version on the client makes up its member id.
CLIENT_MEMBER_ID_SINCE = 1
NOT_GIVEN = -1


def consumer_heartbeat(state: GroupsState, turn: Turn, event: ConsumerHeartbeat) -> Steps[None]:
    request = event.request
    turn.may_see = event.may_see or turn.may_see
    _check_request(state, event)
    if request.member_epoch in (LEFT_EPOCH, AWAY_EPOCH):
        yield from leave(state, turn, request)
        return
    is_joining = request.member_epoch == JOINING_EPOCH
    if is_joining and (yield from migration.upgrade(state, turn, event)):
        return  # the classic group becomes a consumer group, and then this is decided again
    group = _group(state, turn, request, is_joining)
    _check_size(state, group, request.member_id)
    member_id = request.member_id or state.new_uuid()
    draft = Draft.of(group)
    old = yield from _find_member(turn, group, draft, request, member_id)
    new = _updated(old, event)
    has_changed = yield from change_subscription(state, turn, group, draft, old, new)
    timeout_ms = state.settings.session_timeout_ms(group.group_id)
    arm_session(turn, group.group_id, member_id, timeout_ms)
    if is_joining and _gather(state, turn, group, request, member_id):
        return
    yield from retarget(state, turn, draft)
    moved = yield from _reconcile(state, turn, draft, new, request, has_changed)
    turn.reply(_answer(state, request, old, moved))


# -- those who start in the same moment ---------------------------------------------------------


def _gather(
    state: GroupsState,
    turn: Turn,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
) -> bool:
    """Lets the first heartbeats to a new group wait for each other: each of them would otherwise
    be given what the next one then waits for. A group with an interval between its assignments
    answers at once."""
    gathering, arrivals = state.settings.gathering, state.arrivals.get(group.group_id)
    is_paced = state.settings.assignment_interval_ms(group.group_id) > 0
    if gathering is None or (arrivals is None and (is_paced or not group.is_empty)):
        return False
    if arrivals is None:
        arrivals = Arrivals(turn.now_ms + gathering.longest_ms)
        state.arrivals[group.group_id] = arrivals
    ticket = state.next_ticket()
    arrivals.waiting.append(Arrival(ticket, request, member_id))
    turn.reply_later(ticket)
    _wait(state, turn, gathering, group.group_id, arrivals)
    return True


def _wait(
    state: GroupsState, turn: Turn, gathering: Gathering, group_id: str, arrivals: Arrivals
) -> None:
    known = state.look_ups.clients(group_id, turn.now_ms)
    left_ms = arrivals.until_ms - turn.now_ms
    delay_ms = gathering.delay_ms(len(arrivals.waiting), known, left_ms)
    turn.arm(gathering_key(group_id), delay_ms, GatheringOver(group_id))


def gathering_key(group_id: str) -> Hashable:
    return ("gathering", group_id)


def on_gathering_over(state: GroupsState, turn: Turn, event: GatheringOver) -> Steps[None]:
    """One assignment for all who have come; whoever has left again is told to join anew."""
    gathering, arrivals = state.settings.gathering, state.arrivals.get(event.group_id)
    if gathering is not None and arrivals is not None and turn.now_ms < arrivals.until_ms:
        known = state.look_ups.clients(event.group_id, turn.now_ms)
        if known > len(arrivals.waiting):  # somebody asked for the way since the last one came
            _wait(state, turn, gathering, event.group_id, arrivals)
            return
    state.arrivals.pop(event.group_id, None)
    state.look_ups.forget(event.group_id)
    group = state.consumer_group(event.group_id)
    draft = None if group is None else Draft.of(group)
    if draft is not None:
        yield from retarget(state, turn, draft)
    for arrival in [] if arrivals is None else arrivals.waiting:
        member = None if group is None else group.members.get(arrival.member_id)
        if draft is None or member is None:
            turn.answer(arrival.ticket, KafkaError(Error.UNKNOWN_MEMBER_ID))
            continue
        moved = yield from _reconcile(state, turn, draft, member, arrival.request, True)
        turn.answer(arrival.ticket, _answer(state, arrival.request, member, moved))


# -- checks ----------------------------------------------------------------------------------


def _check_request(state: GroupsState, event: ConsumerHeartbeat) -> None:
    request = event.request
    must_have_id = (
        event.version >= CLIENT_MEMBER_ID_SINCE
        or request.member_epoch > JOINING_EPOCH
        or request.member_epoch == LEFT_EPOCH
    )
    if must_have_id:
        _check_given(request.member_id, "MemberId can't be empty.")
    _check_given(request.group_id, "GroupId can't be empty.")
    _check_given(request.instance_id, "InstanceId can't be empty.")
    _check_given(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        _check_first_request(request)
    elif request.member_epoch == AWAY_EPOCH and request.instance_id is None:
        raise KafkaError(Error.INVALID_REQUEST, "InstanceId can't be null.")
    elif request.member_epoch < AWAY_EPOCH:
        raise KafkaError(Error.INVALID_REQUEST, "MemberEpoch is invalid.")
    known = [name for name in state.settings.consumer_assignors if name in ASSIGNORS]
    if request.server_assignor is not None and request.server_assignor not in known:
        raise KafkaError(
            Error.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported."
            f" Supported assignors: {', '.join(known)}.",
        )


def _check_given(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise KafkaError(Error.INVALID_REQUEST, message)


def _check_first_request(request: ConsumerGroupHeartbeatRequest) -> None:
    wrong = None
    if request.rebalance_timeout_ms == NOT_GIVEN:
        wrong = "RebalanceTimeoutMs must be provided in first request."
    elif request.topic_partitions is None or request.topic_partitions:
        wrong = "TopicPartitions must be empty when (re-)joining."
    elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        wrong = (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )
    if wrong is not None:
        raise KafkaError(Error.INVALID_REQUEST, wrong)


def _check_size(state: GroupsState, group: ConsumerGroup, member_id: str) -> None:
    limit = state.settings.consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise KafkaError(
            Error.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _group(
    state: GroupsState, turn: Turn, request: ConsumerGroupHeartbeatRequest, is_joining: bool
) -> ConsumerGroup:
    """The group, or a new one that the records will make."""
    group = state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if isinstance(group, (ForeignGroup, ShareGroup, StreamsGroup)):
        raise group.refusal()
    if not is_joining:
        wrong = f"Group {request.group_id} is not a consumer group."
        if group is None:
            wrong = f"Consumer group {request.group_id} not found."
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, wrong)
    if isinstance(group, ClassicGroup):
        assert group.is_empty, "a classic group with members is upgraded first"
        if group.is_stored:
            turn.write(records.group_tombstone(group.group_id))
    return ConsumerGroup(request.group_id)


# -- the member ------------------------------------------------------------------------------


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return {one.topic_id: one.partitions for one in request.topic_partitions}


def _find_member(
    turn: Turn,
    group: ConsumerGroup,
    draft: Draft,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
) -> Steps[ConsumerMember]:
    instance_id = request.instance_id
    is_joining = request.member_epoch == JOINING_EPOCH
    holder = None if instance_id is None else group.static_member(instance_id)
    if instance_id is None:
        if is_joining:
            return group.members.get(member_id, ConsumerMember(member_id))
        member = group.member(member_id)
    elif is_joining:
        if holder is None:
            return group.members.get(member_id, ConsumerMember(member_id))
        return (yield from _take_over(turn, draft, holder, request, member_id))
    else:
        member = _check_instance(holder, instance_id, member_id)
    _check_epoch(member, request)
    return member


def _check_instance(
    holder: ConsumerMember | None, instance_id: str, member_id: str
) -> ConsumerMember:
    if holder is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise KafkaError(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {holder.member_id}.",
        )
    return holder


def _take_over(
    turn: Turn,
    draft: Draft,
    holder: ConsumerMember,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
) -> Steps[ConsumerMember]:
    """A static member is back, and gets what its former self had, if that one has let go."""
    if holder.classic is None and holder.member_epoch != AWAY_EPOCH:
        raise KafkaError(
            Error.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {request.instance_id} cannot join the"
            f" group because the instance id is owned by {holder.member_id} member.",
        )
    return (yield from replace_member(turn, draft, holder, member_id))


def replace_member(
    turn: Turn, draft: Draft, holder: ConsumerMember, member_id: str
) -> Steps[ConsumerMember]:
    """The same member under another id, from its first epoch on."""
    newcomer = replace(
        holder,
        member_id=member_id,
        member_epoch=JOINING_EPOCH,
        previous_member_epoch=JOINING_EPOCH,
    )
    target = draft.targets.get(holder.member_id, {})
    group_id = draft.group_id
    turn.write(*consumer_records.member_tombstones(group_id, holder.member_id))
    turn.write(consumer_records.member(group_id, newcomer))
    turn.write((yield from consumer_records.target(group_id, member_id, target)))
    turn.write((yield from consumer_records.current(group_id, newcomer)))
    draft.drop([holder.member_id])
    draft.put(newcomer)
    draft.targets = {**draft.targets, member_id: target}
    draft.former_ids[member_id] = holder.member_id
    return newcomer


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """The epoch must be the member's, or the one before if its answer may have been lost."""
    epoch, known = request.member_epoch, member.member_epoch
    if epoch == known:
        return
    is_retry = epoch < known and epoch == member.previous_member_epoch
    if is_retry and _is_within(_owned(request), member):
        return
    size = "greater" if epoch > known else "smaller"
    raise KafkaError(
        Error.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by"
        f" the group coordinator ({known})."
        " The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(
        index in member.assigned.get(topic_id, {})
        for topic_id, indexes in owned.items()
        for index in indexes
    )


def _updated(old: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerMember:
    """What a request leaves out stays as it was."""
    request = event.request
    topics, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        old,
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        server_assignor=request.server_assignor or old.server_assignor,
        subscribed_topics=old.subscribed_topics if topics is None else tuple(sorted(set(topics))),
        subscribed_regex=old.subscribed_regex if regex is None else regex,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )


# -- reconciliation --------------------------------------------------------------------------


def _reconcile(
    state: GroupsState,
    turn: Turn,
    draft: Draft,
    member: ConsumerMember,
    request: ConsumerGroupHeartbeatRequest,
    has_subscription_changed: bool,
) -> Steps[ConsumerMember]:
    if not has_subscription_changed and member.is_reconciled_to(draft.assignment_epoch):
        return member
    goal = yield from goal_for(state, draft, member, _owned(request), has_subscription_changed)
    moved = yield from reconcile(member, goal)
    if moved == member:
        return member
    turn.write((yield from consumer_records.current(draft.group_id, moved)))
    key = rebalance_key(draft.group_id, moved.member_id)
    if moved.state is MemberState.UNREVOKED_PARTITIONS:
        expiry = RebalanceExpired(draft.group_id, moved.member_id, moved.member_epoch)
        turn.arm(key, moved.rebalance_timeout_ms, expiry)
    else:
        turn.cancel(key)
    return moved


def goal_for(
    state: GroupsState,
    draft: Draft,
    member: ConsumerMember,
    owned: Owned,
    has_subscription_changed: bool,
) -> Steps[Goal]:
    ids = yield from topic_ids(state, draft, member)
    return Goal(
        draft.assignment_epoch,
        draft.targets.get(member.member_id, {}),
        ids,
        has_subscription_changed,
        owned,
        lambda topic_id, partition: draft.is_taken(member.member_id, topic_id, partition),
    )


def _answer(
    state: GroupsState,
    request: ConsumerGroupHeartbeatRequest,
    old: ConsumerMember,
    new: ConsumerMember,
) -> ConsumerGroupHeartbeatResponse:
    """The assignment is told when it has changed, and to a member that tells everything."""
    response = ConsumerGroupHeartbeatResponse(
        member_id=new.member_id,
        member_epoch=new.member_epoch,
        heartbeat_interval_ms=state.settings.heartbeat_interval_ms(request.group_id),
    )
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    is_full = (
        request.rebalance_timeout_ms != NOT_GIVEN
        and (names is not None or regex is not None)
        and request.topic_partitions is not None
    )
    if request.member_epoch == JOINING_EPOCH or is_full or old.assigned != new.assigned:
        response.assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(
                    topic_id=topic_id, partitions=list(epochs)
                )
                for topic_id, epochs in new.assigned.items()
            ]
        )
    return response
