"""A group changes its protocol while its members live: classic to consumer, and back (KIP-848).

Owns the two conversions, as records: everything of the one kind goes, everything of the other
comes, in one batch. Whether a group may change is `group.consumer.migration.policy`'s to say.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import consumer_protocol, consumer_records, records
from kafkalite.coordinators.groups.classic_group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    ClassicMember,
    ClassicState,
)
from kafkalite.coordinators.groups.classic_timers import arm_session, join_key, sync_key
from kafkalite.coordinators.groups.consumer_group import (
    Assigned,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    Target,
)
from kafkalite.coordinators.groups.events import ConsumerHeartbeat, Downgraded
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import NAMES_PER_STEP, metadata_hash
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import JoinGroupResponse, SyncGroupResponse

# -- classic to consumer ---------------------------------------------------------------------


def upgrade(state: GroupsState, turn: Turn, event: ConsumerHeartbeat) -> Steps[bool]:
    """A consumer member joins a classic group with members: the group becomes a consumer group.

    True when it does; then the heartbeat is decided once the records are replayed.
    """
    group = state.groups.get(event.request.group_id)
    if not isinstance(group, ClassicGroup) or group.is_empty:
        return False
    _check_upgrade(state, group)
    converted = yield from _as_consumer(state, group)
    turn.write(records.group_tombstone(group.group_id))
    turn.write(*(yield from consumer_records.whole_group(converted)))
    _send_back(turn, group)
    turn.cancel(join_key(group.group_id))
    turn.cancel(sync_key(group.group_id))
    for member in group.members.values():
        arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
    turn.decide_next(event)
    return True


def _check_upgrade(state: GroupsState, group: ClassicGroup) -> None:
    wrong = None
    if not state.settings.consumer_migration_policy.allows_upgrade:
        wrong = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        wrong = "the group does not use the consumer embedded protocol"
    elif len(group.members) > state.settings.consumer_max_size:
        wrong = "the group size exceeds the consumer group maximum size"
    if wrong is not None:
        raise _cannot_upgrade(group, wrong)


def _cannot_upgrade(group: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        Error.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}.",
    )


def _send_back(turn: Turn, group: ClassicGroup) -> None:
    """Whoever waits in a rebalance of the classic group joins again, into the other one."""
    for member in group.members.values():
        code = Error.REBALANCE_IN_PROGRESS
        if member.join_ticket is not None:
            answer = JoinGroupResponse(error_code=code, member_id=member.member_id)
            turn.answer(member.join_ticket, answer)
        if member.sync_ticket is not None:
            turn.answer(member.sync_ticket, SyncGroupResponse(error_code=code))


def _as_consumer(state: GroupsState, group: ClassicGroup) -> Steps[ConsumerGroup]:
    """The group as records will make it, but for who owns what."""
    converted = ConsumerGroup(
        group.group_id, epoch=group.generation, assignment_epoch=group.generation
    )
    names: set[str] = set()
    for classic in group.members.values():
        member = yield from _as_consumer_member(state, group, classic)
        converted.members[member.member_id] = member
        target = converted.targets[member.member_id] = Target()
        for topic_id, epochs in member.assigned.items():
            target[topic_id] = tuple(epochs)
            if len(target) % NAMES_PER_STEP == 0:
                yield
        names.update(member.subscribed_topics)
        if len(converted.members) % consumer_records.MEMBERS_PER_STEP == 0:
            yield
    if group.state is ClassicState.STABLE:
        converted.metadata_hash = yield from metadata_hash(state, names)
    # Else a rebalance is cut short, and the assignments are older than the group: not to know its
    # topics yet makes the next heartbeat begin an epoch, also that of a member which brings nothing
    # new, a static one or one without a subscription.
    return converted


def _as_consumer_member(
    state: GroupsState, group: ClassicGroup, classic: ClassicMember
) -> Steps[ConsumerMember]:
    # A group that never finished its first rebalance has members and no protocol yet.
    protocol = group.protocol_name or classic.protocols[0][0]
    if protocol not in dict(classic.protocols):
        # It waits to join with others only; what it subscribes to by the present one is unknown.
        raise KafkaError(
            Error.UNKNOWN_SERVER_ERROR, f"Member {classic.member_id} does not support {protocol}."
        )
    subscription = yield from consumer_protocol.read_subscription(classic.metadata(protocol))
    if subscription is None:
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed")
    return ConsumerMember(
        classic.member_id,
        classic.group_instance_id,
        subscription.rack_id,
        classic.client_id,
        classic.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        classic=ClassicSide(classic.session_timeout_ms, classic.protocols),
        member_epoch=group.generation,
        previous_member_epoch=group.generation,
        assigned=(yield from _assigned_of(state, group, classic)),
    )


def _assigned_of(
    state: GroupsState, group: ClassicGroup, classic: ClassicMember
) -> Steps[Assigned]:
    if not classic.assignment:
        return {}
    read = yield from consumer_protocol.read_assignment_in_steps(classic.assignment)
    if read is None:
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed")
    if read.user_data:
        raise _cannot_upgrade(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or"
            " switch to a default assignor before re-attempting the upgrade",
        )
    assigned: Assigned = {}
    for count, topic in enumerate(read.assigned_partitions, 1):
        if count % NAMES_PER_STEP == 0:
            yield
        view = state.topics.by_name(topic.topic)
        if view is not None:
            assigned[view.topic_id] = dict.fromkeys(topic.partitions, group.generation)
    return assigned


# -- consumer to classic ---------------------------------------------------------------------


def must_downgrade(
    state: GroupsState, group: ConsumerGroup, gone: set[str], *, is_replaced: bool = False
) -> bool:
    """Whether only classic members remain once these are gone, and they may go their way."""
    remaining = [one for one in group.members.values() if one.member_id not in gone]
    return (
        (bool(remaining) or is_replaced)
        and all(one.classic is not None for one in remaining)
        and any(one.classic is None for one in group.members.values())
        and state.settings.consumer_migration_policy.allows_downgrade
        and len(remaining) <= state.settings.max_size
    )


def downgrade(
    state: GroupsState,
    turn: Turn,
    group: ConsumerGroup,
    gone: set[str],
    reply: object,
    *,
    must_rebalance: bool,
) -> Steps[None]:
    """The group's remaining members go on as a classic group, with what they were to have."""
    members = [one for one in group.members.values() if one.member_id not in gone]
    classic = yield from as_classic(
        state, turn.now_ms, group.group_id, group.epoch, members, group.targets
    )
    for member in members:
        for name in ("rebalance", "classic-join", "classic-sync"):
            turn.cancel((name, group.group_id, member.member_id))
    turn.write(*consumer_records.group_tombstones(group))
    turn.write(records.group_metadata(classic))
    turn.decide_next(Downgraded(group.group_id, must_rebalance, reply))


def as_classic(
    state: GroupsState,
    now_ms: int,
    group_id: str,
    generation: int,
    members: list[ConsumerMember],
    targets: dict[str, Target],
) -> Steps[ClassicGroup]:
    classic = ClassicGroup(
        group_id,
        ClassicState.STABLE,
        generation,
        CONSUMER_PROTOCOL_TYPE,
        state_timestamp_ms=now_ms,
    )
    for member in members:
        target = targets.get(member.member_id, {})
        classic.add((yield from _as_classic_member(state, member, target)))
        if len(classic.members) % consumer_records.MEMBERS_PER_STEP == 0:
            yield
    classic.protocol_name = classic.select_protocol()
    return classic


def _as_classic_member(
    state: GroupsState, member: ConsumerMember, target: Target
) -> Steps[ClassicMember]:
    side = member.classic
    assert side is not None, "only members that speak the classic protocol go on"
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        side.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        side.protocols,
        (yield from embedded_assignment(state, side, target)),
    )


def embedded_assignment(
    state: GroupsState, side: ClassicSide, partitions: Target | Assigned
) -> Steps[bytes]:
    """An assignment as a classic client reads it, in the version of its own subscription."""
    named: dict[str, list[int]] = {}
    for count, (topic_id, indexes) in enumerate(partitions.items(), 1):
        if count % NAMES_PER_STEP == 0:
            yield
        view = state.topics.by_id(topic_id)
        if view is not None:
            named[view.name] = list(indexes)
    version = consumer_protocol.read_version(side.protocols[0][1]) or 0
    return (yield from consumer_protocol.write_assignment_in_steps(named, version))
