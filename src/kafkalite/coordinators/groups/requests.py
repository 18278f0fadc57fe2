"""Requests of the classic protocol, to whichever kind of group they meet (KIP-848).

Owns that choice only: a classic group answers itself, a consumer group has its classic members
looked after by `classic_members`, and a deserted consumer or streams group makes room for a
classic one. A group of another kind keeps its id.
"""

from __future__ import annotations

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import (
    classic_join,
    classic_leave,
    classic_members,
    classic_sync,
    consumer_leave,
    consumer_records,
    records,
    streams_records,
)
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafkalite.coordinators.groups.events import (
    Heartbeat,
    Join,
    Leave,
    RebalanceExpired,
    SessionExpired,
    Sync,
    TopicsChanged,
)
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.share_group import ShareGroup, ShareMember
from kafkalite.coordinators.groups.share_heartbeat import on_share_session_expired
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.streams_leave import (
    on_streams_rebalance_expired,
    on_streams_session_expired,
)
from kafkalite.coordinators.groups.streams_target import end_delay
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, Steps
from kafkalite.protocol.errors import Error, KafkaError


def join(state: GroupsState, turn: Turn, event: Join) -> Steps[None] | None:
    group = state.groups.get(event.request.group_id)
    if isinstance(group, (ForeignGroup, ShareGroup, StreamsGroup)):
        if isinstance(group, StreamsGroup) and group.is_empty:
            end_delay(state, turn, group.group_id)
            _make_room(turn, event, streams_records.group_tombstones(group.group_id))
        else:
            code = Error.INCONSISTENT_GROUP_PROTOCOL
            turn.reply(classic_join.join_error(classic_join.NO_MEMBER_ID, code))
    elif not isinstance(group, ConsumerGroup):
        classic_join.join(state, turn, event)
    elif group.is_empty:
        _make_room(turn, event, consumer_records.group_tombstones(group))
    else:
        return classic_members.join(state, turn, group, event)
    return None


def _make_room(turn: Turn, event: Join, tombstones: list[Record]) -> None:
    """A deserted group becomes a classic one, to which its offsets belong from now on.

    Not for somebody who is refused: a refusal changes nothing.
    """
    member_id = event.request.member_id
    if member_id:
        turn.reply(classic_join.join_error(member_id, Error.UNKNOWN_MEMBER_ID))
        return
    turn.write(*tombstones)
    classic = ClassicGroup(event.request.group_id, state_timestamp_ms=turn.now_ms)
    turn.write(records.group_metadata(classic))
    turn.decide_next(event)


def sync(state: GroupsState, turn: Turn, event: Sync) -> Steps[None] | None:
    group = state.groups.get(event.request.group_id)
    if isinstance(group, (ForeignGroup, ShareGroup, StreamsGroup)):
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(group, ConsumerGroup):
        return classic_members.sync(state, turn, group, event)
    classic_sync.sync(state, turn, event)
    return None


def heartbeat(state: GroupsState, turn: Turn, event: Heartbeat) -> None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        classic_sync.heartbeat(state, turn, event)
    else:
        classic_members.heartbeat(turn, group, event)


def leave(state: GroupsState, turn: Turn, event: Leave) -> Steps[None] | None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        return classic_leave.leave(state, turn, event)
    return classic_members.leave(state, turn, group, event)


def on_session_expired(
    state: GroupsState, turn: Turn, event: SessionExpired
) -> Steps[None] | None:
    streams = state.streams_group(event.group_id)
    if streams is not None:
        on_streams_session_expired(turn, streams, event)
        return None
    shared = state.share_group(event.group_id)
    if shared is not None:
        return on_share_session_expired(state, turn, shared, event)
    if state.consumer_group(event.group_id) is None:
        classic_sync.on_session_expired(state, turn, event)
        return None
    return consumer_leave.on_consumer_session_expired(state, turn, event)


def on_rebalance_expired(
    state: GroupsState, turn: Turn, event: RebalanceExpired
) -> Steps[None] | None:
    streams = state.streams_group(event.group_id)
    if streams is None:
        return consumer_leave.on_rebalance_expired(state, turn, event)
    on_streams_rebalance_expired(turn, streams, event)
    return None


def on_topics_changed(state: GroupsState, turn: Turn, event: TopicsChanged) -> Steps[None]:
    """Groups that the coordinator assigns look at their topics with the next heartbeat."""
    names = set(event.names)
    are_there = any(map(state.topics.id_of, names))
    for number, group in enumerate(list(state.groups.values()), 1):
        if isinstance(group, StreamsGroup):
            group.must_refresh = group.must_refresh or group.needs_any(names)
        elif isinstance(group, (ConsumerGroup, ShareGroup)) and (yield from _reads(group, names)):
            group.must_refresh = True
            if isinstance(group, ConsumerGroup) and are_there:
                group.must_match = True  # not when they only go
        if number % ELEMENTS_PER_STEP == 0:
            yield
    turn.reply(None)


def _reads(group: ConsumerGroup | ShareGroup, names: set[str]) -> Steps[bool]:
    """Whether the group subscribes to one of them, or may by its patterns."""
    if isinstance(group, ConsumerGroup) and group.regexes:
        return True
    looked = 0
    members: list[ConsumerMember | ShareMember] = [*group.members.values()]
    for member in members:
        if not names.isdisjoint(member.subscribed_topics):
            return True
        looked += 1 + len(member.subscribed_topics)
        if looked >= LOOKS_PER_STEP:
            looked = 0
            yield
    return False
