"""What the members of a streams group should run: when a new assignment is due, and its records.

Owns the step from a group in a new epoch to its target: not while a new group waits for more
members, nor too soon after the last one. Works on a `StreamsDraft`, the group as it will be once
the records before are replayed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from kafkalite.coordinators.groups import streams_records
from kafkalite.coordinators.groups.events import StreamsDelayOver
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_assignor import StreamsCandidate, assign_sticky
from kafkalite.coordinators.groups.streams_group import (
    NO_TASKS,
    StreamsGroup,
    StreamsMember,
    Tasks,
)
from kafkalite.coordinators.groups.streams_topology import Configured, Status
from kafkalite.coordinators.groups.target import is_young
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps

STANDBY_REPLICAS = "num.standby.replicas"


@dataclass(slots=True)
class StreamsDraft:
    """A streams group in the middle of a decision."""

    group: StreamsGroup
    epoch: int
    members: dict[str, StreamsMember]
    configured: Configured
    configs: dict[str, str]
    assignment_epoch: int
    targets: dict[str, Tasks]
    # What the member is told beside its assignment.
    statuses: list[tuple[Status, str]] = field(default_factory=list)


def delay_key(group_id: str) -> Hashable:
    return ("streams-delay", group_id)


def begin_delay(state: GroupsState, turn: Turn, group: StreamsGroup) -> None:
    """Has a group without members wait for more of them than the first."""
    group_id = group.group_id
    delay_ms = state.settings.streams_initial_rebalance_delay_ms(group_id)
    if group.is_empty and delay_ms > 0 and not _is_delayed(state, turn, group_id):
        state.streams_delays[group_id] = turn.now_ms + delay_ms
        turn.arm(delay_key(group_id), delay_ms, StreamsDelayOver(group_id))


def end_delay(state: GroupsState, turn: Turn, group_id: str) -> None:
    if state.streams_delays.pop(group_id, None) is not None:
        turn.cancel(delay_key(group_id))


def _is_delayed(state: GroupsState, turn: Turn, group_id: str) -> bool:
    return turn.now_ms < state.streams_delays.get(group_id, 0)


def on_delay_over(state: GroupsState, turn: Turn, event: StreamsDelayOver) -> Steps[None]:
    """One assignment for all who have come."""
    state.streams_delays.pop(event.group_id, None)
    group = state.streams_group(event.group_id)
    if group is None or group.is_empty or group.configured is None:
        return  # who comes next is given one
    draft = StreamsDraft(
        group, group.epoch, group.members, group.configured, group.assignment_configs,
        group.assignment_epoch, group.targets,
    )  # fmt: skip
    yield from retarget_streams(state, turn, draft)


def retarget_streams(state: GroupsState, turn: Turn, draft: StreamsDraft) -> Steps[None]:
    """Computes the target assignment, if it is older than the group and may be made now."""
    group_id = draft.group.group_id
    if _is_delayed(state, turn, group_id):
        why = "Assignment delayed due to the configured initial rebalance delay."
        draft.statuses.append((Status.ASSIGNMENT_DELAYED, why))
        draft.targets = {}
        return
    if draft.assignment_epoch >= draft.epoch:
        return
    interval_ms = state.settings.streams_assignment_interval_ms(group_id)
    if is_young(draft.group.assignment_timestamp_ms, interval_ms, turn.now_ms):
        why = "Assignment delayed due to the configured assignment interval."
        draft.statuses.append((Status.ASSIGNMENT_DELAYED, why))
        return
    targets = yield from _assigned(draft)
    for member_id, tasks in targets.items():
        if draft.targets.get(member_id) != tasks:
            turn.write((yield from streams_records.target(group_id, member_id, tasks)))
    draft.targets, draft.assignment_epoch = targets, draft.epoch
    turn.write(streams_records.target_epoch(group_id, draft.epoch, turn.now_ms))


def _assigned(draft: StreamsDraft) -> Steps[dict[str, Tasks]]:
    """Nobody has anything to do while there are no topics for it."""
    if not draft.configured.is_ready:
        return dict.fromkeys(draft.members, NO_TASKS)
    candidates = [
        StreamsCandidate(name, one.process_id, draft.targets.get(name, NO_TASKS))
        for name, one in draft.members.items()
    ]
    replicas = int(draft.configs.get(STANDBY_REPLICAS, "0"))
    return (yield from assign_sticky(candidates, draft.configured.subtopologies, replicas))
