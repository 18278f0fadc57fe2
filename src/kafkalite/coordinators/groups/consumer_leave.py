"""Leaving a consumer group, and being fenced from it (KIP-848).

Owns the removal of members, whatever protocol they speak, by their own word or by a timer. When
only classic members remain the group becomes a classic one, if the policy says so.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from kafkalite.coordinators.groups import consumer_records, migration
from kafkalite.coordinators.groups.classic_timers import arm_session, session_key
from kafkalite.coordinators.groups.consumer_group import (
    AWAY_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kafkalite.coordinators.groups.events import (
    ClassicStepExpired,
    RebalanceExpired,
    SessionExpired,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import Draft, metadata_hash
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def rebalance_key(group_id: str, member_id: str) -> Hashable:
    return ("rebalance", group_id, member_id)


def classic_join_key(group_id: str, member_id: str) -> Hashable:
    """Until when a classic member of a consumer group has to join again."""
    return ("classic-join", group_id, member_id)


def classic_sync_key(group_id: str, member_id: str) -> Hashable:
    return ("classic-sync", group_id, member_id)


def leave(
    state: GroupsState, turn: Turn, request: ConsumerGroupHeartbeatRequest
) -> Steps[None]:
    group = state.consumer_group(request.group_id)
    if group is None:
        what = "is not a consumer group" if request.group_id in state.groups else "not found"
        message = f"Group {request.group_id} {what}."
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, message)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = static_member(group, request.instance_id, request.member_id)
    reply = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == AWAY_EPOCH:
        yield from _go_away(turn, group, member)
        turn.reply(reply)
    else:
        yield from fence(state, turn, group, [member], reply)


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {member.member_id}.",
        )
    return member


def _go_away(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> Steps[None]:
    """A static member will be back: its partitions wait for it, until its session ends."""
    away = replace(
        member,
        member_epoch=AWAY_EPOCH,
        pending_revocation={},
        assigned={
            topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()
        },
    )
    turn.write((yield from consumer_records.current(group.group_id, away)))


def fence(
    state: GroupsState,
    turn: Turn,
    group: ConsumerGroup,
    members: list[ConsumerMember],
    reply: object,
) -> Steps[None]:
    """Removes members; the group gets a new epoch, and its next heartbeat a new assignment."""
    if not members:
        turn.reply(reply)
        return
    group_id = group.group_id
    for number, member in enumerate(members):
        if number and number % ELEMENTS_PER_STEP == 0:
            yield
        _cancel_timers(turn, group_id, member.member_id)
    gone = {member.member_id for member in members}
    if migration.must_downgrade(state, group, gone):
        yield from migration.downgrade(state, turn, group, gone, reply, must_rebalance=True)
        return
    draft = Draft.of(group)
    draft.drop(gone)
    tombstones = yield from in_steps(
        record
        for member in members
        for record in consumer_records.member_tombstones(group_id, member.member_id)
    )
    turn.write(*tombstones)
    _forget_regexes(turn, draft)
    hashed = yield from metadata_hash(state, draft.subscribed_topics())
    turn.write(consumer_records.group_epoch(group_id, group.epoch + 1, hashed))
    turn.reply(reply)


def _forget_regexes(turn: Turn, draft: Draft) -> None:
    subscribed = {member.subscribed_regex for member in draft.members.values()}
    for expression in draft.regexes:
        if expression not in subscribed:
            turn.write(consumer_records.regex(draft.group_id, expression, None))


def _cancel_timers(turn: Turn, group_id: str, member_id: str) -> None:
    for key in (session_key, rebalance_key, classic_join_key, classic_sync_key):
        turn.cancel(key(group_id, member_id))


def resume(state: GroupsState, turn: Turn, group: ConsumerGroup) -> None:
    """After a restart every member has a session to show up, and a rebalance to finish."""
    group_id = group.group_id
    group.must_match = True
    for member in group.members.values():
        side = member.classic
        timeout_ms = state.settings.session_timeout_ms(group_id)
        if side is not None:
            timeout_ms = side.session_timeout_ms
        arm_session(turn, group_id, member.member_id, timeout_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS and side is None:
            expiry = RebalanceExpired(group_id, member.member_id, member.member_epoch)
            key = rebalance_key(group_id, member.member_id)
            turn.arm(key, member.rebalance_timeout_ms, expiry)


def on_consumer_session_expired(
    state: GroupsState, turn: Turn, event: SessionExpired
) -> Steps[None]:
    return _fence_if_present(state, turn, event.group_id, event.member_id)


def on_classic_step_expired(
    state: GroupsState, turn: Turn, event: ClassicStepExpired
) -> Steps[None]:
    return _fence_if_present(state, turn, event.group_id, event.member_id)


def on_rebalance_expired(
    state: GroupsState, turn: Turn, event: RebalanceExpired
) -> Steps[None]:
    group = state.consumer_group(event.group_id)
    member = None if group is None else group.members.get(event.member_id)
    if member is not None and member.member_epoch == event.member_epoch:
        yield from _fence_if_present(state, turn, event.group_id, event.member_id)


def _fence_if_present(
    state: GroupsState, turn: Turn, group_id: str, member_id: str
) -> Steps[None]:
    group = state.consumer_group(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is not None and member is not None:
        yield from fence(state, turn, group, [member], None)
