"""The way of one member from what it has to what it should have (KIP-848).

Owns the rules: first give back, then take what is free, and only then the new epoch. Pure: a
member goes in, a member comes out. Invariant: a partition that somebody else still holds is
never handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kafkalite.coordinators.groups.consumer_group import (
    Assigned,
    ConsumerMember,
    MemberState,
    Target,
)
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

PARTITIONS_PER_STEP = 32

# Partitions by topic id, as a member reports what it owns; None when it does not say.
Owned = dict[bytes, list[int]] | None


@dataclass(slots=True)
class Goal:
    """Where the member is to go, and what stands in its way."""

    epoch: int
    target: Target
    subscribed_topic_ids: frozenset[bytes]
    has_subscription_changed: bool
    owned: Owned
    # Whether a partition is held by somebody else.
    is_taken: Callable[[bytes, int], bool]


def reconcile(member: ConsumerMember, goal: Goal) -> Steps[ConsumerMember]:
    """The member after one heartbeat; itself when there is nothing to do."""
    if member.state is MemberState.STABLE:
        if member.member_epoch != goal.epoch:
            return (yield from _advance(member, goal, member.member_epoch))
        return _shrink(member, goal) if goal.has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(goal.owned, member.pending_revocation):
            return _shrink(member, goal) if goal.has_subscription_changed else member
        return (yield from _advance(member, goal, member.member_epoch))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return (yield from _advance(member, goal, member.member_epoch))
    if goal.owned is None or goal.owned:
        raise KafkaError(
            Error.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state."
            " The member must abandon all its partitions and rejoin.",
        )
    return (yield from _advance(member, goal, goal.epoch))


def _owns_any(owned: Owned, partitions: Assigned) -> bool:
    """A member that does not say what it owns may own everything."""
    if owned is None:
        return True
    return any(
        index in partitions.get(topic_id, {})
        for topic_id, indexes in owned.items()
        for index in indexes
    )


def _move(
    member: ConsumerMember,
    state: MemberState,
    epoch: int,
    assigned: Assigned,
    pending_revocation: Assigned,
) -> ConsumerMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )


def _shrink(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """Takes away what the member no longer subscribes to, before there is a new target."""
    assigned = dict(member.assigned)
    pending = {topic_id: dict(epochs) for topic_id, epochs in member.pending_revocation.items()}
    for topic_id, epochs in member.assigned.items():
        if topic_id not in goal.subscribed_topic_ids:
            del assigned[topic_id]
            pending.setdefault(topic_id, {}).update(epochs)
    if len(assigned) == len(member.assigned):
        return member
    if _owns_any(goal.owned, pending):
        state = MemberState.UNREVOKED_PARTITIONS
        return _move(member, state, member.member_epoch, assigned, pending)
    return replace(member, previous_member_epoch=member.member_epoch, assigned=assigned)


def _advance(member: ConsumerMember, goal: Goal, epoch: int) -> Steps[ConsumerMember]:
    """One step towards the target."""
    kept: Assigned = {}
    revoked: Assigned = {}
    added: dict[bytes, list[int]] = {}
    is_waiting = False
    looked_at = 0
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        looked_at += 1 + len(goal.target.get(topic_id, ()))
        if looked_at >= PARTITIONS_PER_STEP:
            looked_at = 0
            yield
        wanted = set(goal.target.get(topic_id, ()))
        if topic_id not in goal.subscribed_topic_ids:
            wanted.clear()
        has = member.assigned.get(topic_id, {})
        keep = {index: at for index, at in has.items() if index in wanted}
        give_back = {index: at for index, at in has.items() if index not in wanted}
        missing = sorted(wanted - keep.keys())
        free = [index for index in missing if not goal.is_taken(topic_id, index)]
        is_waiting = is_waiting or len(free) < len(missing)
        for partitions, into in ((keep, kept), (give_back, revoked)):
            if partitions:
                into[topic_id] = partitions
        if free:
            added[topic_id] = free
    if revoked and _owns_any(goal.owned, revoked):
        return _move(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoked)
    for topic_id, indexes in added.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(indexes, goal.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _move(member, state, goal.epoch, kept, {})
