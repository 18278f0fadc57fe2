"""The way of one member from the tasks it has to those it should have (KIP-1071).

Owns the rules: first give back, then take what is free, and only then the new epoch. An active task
is free when no process has it active, nor this one a copy; a copy when this process has the task in
no other way. Pure: a member goes in, a member comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafkalite.coordinators.groups.assignors import Rest
from kafkalite.coordinators.groups.streams_group import (
    NOT_KEPT,
    NOTHING_HELD,
    Held,
    HeldTasks,
    Places,
    StreamsGroup,
    StreamsMember,
    StreamsMemberState,
    Tasks,
)
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

# A subtopology takes as long as so many of its tasks.
LOOKS = 6

IsTaken = Callable[[tuple[str, int]], bool]


@dataclass(slots=True)
class TaskGoal:
    """Where the member is to go, and what it says of itself."""

    epoch: int
    target: Tasks
    owned: Tasks | None  # None when it does not say
    group: StreamsGroup


@dataclass(slots=True)
class _Difference:
    """Of one kind of tasks: what stays, what goes, what comes, and whether more is to come."""

    kept: Held = field(default_factory=dict)
    revoked: Held = field(default_factory=dict)
    added: Held = field(default_factory=dict)
    is_waiting: bool = False


def reconcile_tasks(member: StreamsMember, goal: TaskGoal) -> Steps[StreamsMember]:
    """The member after one heartbeat; itself when there is nothing to do."""
    if member.state is StreamsMemberState.STABLE:
        if member.member_epoch == goal.epoch:
            return member
        return (yield from _advance(member, goal, member.member_epoch))
    if member.state is StreamsMemberState.UNREVOKED_TASKS:
        if goal.owned is None or _owns_any(goal.owned, member.pending_revocation):
            return member
        return (yield from _advance(member, goal, member.member_epoch + 1))
    if member.state is StreamsMemberState.UNRELEASED_TASKS:
        return (yield from _advance(member, goal, member.member_epoch))
    if goal.owned is None or any(goal.owned):
        raise KafkaError(
            Error.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state."
            " The member must abandon all its tasks and rejoin.",
        )
    return (yield from _advance(member, goal, goal.epoch))


def _owns_any(owned: Tasks, tasks: HeldTasks) -> bool:
    return any(
        not held.get(name, {}).keys().isdisjoint(indexes)
        for has, held in zip(owned, tasks, strict=True)
        for name, indexes in has.items()
    )


def _advance(member: StreamsMember, goal: TaskGoal, epoch: int) -> Steps[StreamsMember]:
    """One step towards the target."""
    has, target = member.assigned, goal.target
    is_active_taken, is_copy_taken = _takers(member.process_id, goal.group)
    active = yield from _compare(has.active, target.active, goal.epoch, is_active_taken)
    standby = yield from _compare(has.standby, target.standby, NOT_KEPT, is_copy_taken)
    warmup = yield from _compare(has.warmup, target.warmup, NOT_KEPT, is_copy_taken)
    all_kinds = (active, standby, warmup)
    revoked = HeldTasks(*(one.revoked for one in all_kinds))
    kept = HeldTasks(*(one.kept for one in all_kinds))
    if any(revoked) and (goal.owned is None or _owns_any(goal.owned, revoked)):
        return _move(member, StreamsMemberState.UNREVOKED_TASKS, epoch, kept, revoked)
    is_waiting = any(one.is_waiting for one in all_kinds)
    state = StreamsMemberState.UNRELEASED_TASKS if is_waiting else StreamsMemberState.STABLE
    assigned = HeldTasks(*(_merged(one) for one in all_kinds))
    return _move(member, state, goal.epoch, assigned, NOTHING_HELD)


def _takers(process_id: str, group: StreamsGroup) -> tuple[IsTaken, IsTaken]:
    """Whether an active task, and whether a copy, cannot be had yet."""

    def has_copy(task: tuple[str, int]) -> bool:
        return process_id in group.standby.get(task, ()) or process_id in group.warmup.get(task, ())

    return (
        lambda task: task in group.active or has_copy(task),
        lambda task: group.active.get(task) == process_id or has_copy(task),
    )


def _compare(has: Held, target: Places, epoch: int, is_taken: IsTaken) -> Steps[_Difference]:
    found, rest = _Difference(), Rest()
    for name in dict.fromkeys((*target, *has)):
        now, wanted = has.get(name, {}), frozenset(target.get(name, ()))
        keep = {index: at for index, at in now.items() if index in wanted}
        give_back = {index: at for index, at in now.items() if index not in wanted}
        missing = sorted(wanted - keep.keys())
        free = [index for index in missing if not is_taken((name, index))]
        found.is_waiting = found.is_waiting or len(free) < len(missing)
        for tasks, into in (
            (keep, found.kept), (give_back, found.revoked),
            (dict.fromkeys(free, epoch), found.added),
        ):  # fmt: skip
            if tasks:
                into[name] = tasks
        if rest.after(LOOKS + len(now) + len(wanted)):
            yield
    return found


def _merged(one: _Difference) -> Held:
    merged = dict(one.kept)
    for name, tasks in one.added.items():
        merged[name] = {**merged.get(name, {}), **tasks}
    return merged


def _move(
    member: StreamsMember,
    state: StreamsMemberState,
    epoch: int,
    assigned: HeldTasks,
    pending_revocation: HeldTasks,
) -> StreamsMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
