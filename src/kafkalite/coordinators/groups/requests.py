"""Requests of the classic protocol, to whichever kind of group they meet (KIP-848).

Owns that choice only: a classic group answers itself, a consumer group has its classic members
looked after by `classic_members`, and a deserted consumer group makes room for a classic one.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import (
    classic_join,
    classic_leave,
    classic_members,
    classic_sync,
    consumer_leave,
    consumer_records,
    records,
)
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.events import (
    Heartbeat,
    Join,
    Leave,
    SessionExpired,
    Sync,
    TopicsChanged,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error


def join(state: GroupsState, turn: Turn, event: Join) -> None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        classic_join.join(state, turn, event)
    elif group.is_empty:
        # Its offsets stay, so there must be a group that they belong to.
        turn.write(*consumer_records.group_tombstones(group))
        classic = ClassicGroup(group.group_id, state_timestamp_ms=turn.now_ms)
        turn.write(records.group_metadata(classic))
        if event.request.member_id:
            error = classic_join.join_error(event.request.member_id, Error.UNKNOWN_MEMBER_ID)
            turn.reply(error)
        else:
            turn.decide_next(event)
    else:
        classic_members.join(state, turn, group, event)


def sync(state: GroupsState, turn: Turn, event: Sync) -> None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        classic_sync.sync(state, turn, event)
    else:
        classic_members.sync(state, turn, group, event)


def heartbeat(state: GroupsState, turn: Turn, event: Heartbeat) -> None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        classic_sync.heartbeat(state, turn, event)
    else:
        classic_members.heartbeat(turn, group, event)


def leave(state: GroupsState, turn: Turn, event: Leave) -> None:
    group = state.consumer_group(event.request.group_id)
    if group is None:
        classic_leave.leave(state, turn, event)
    else:
        classic_members.leave(state, turn, group, event)


def on_session_expired(state: GroupsState, turn: Turn, event: SessionExpired) -> None:
    if state.consumer_group(event.group_id) is None:
        classic_sync.on_session_expired(state, turn, event)
    else:
        consumer_leave.on_consumer_session_expired(state, turn, event)


def on_topics_changed(state: GroupsState, turn: Turn, event: TopicsChanged) -> None:
    """Consumer groups look at their topics with the next heartbeat."""
    names = set(event.names)
    for group in state.groups.values():
        if isinstance(group, ConsumerGroup) and (
            group.regexes or any(group.is_subscribed_to(name) for name in names)
        ):
            group.must_refresh = True
    turn.reply(None)
