"""ShareGroupHeartbeat: joining, living and leaving in a share group (KIP-932).

Owns one heartbeat from its checks to its answer: the member, its subscription, the group's target,
what the member is given of it, and which partitions are yet to be initialized. Everything that
changes is a record; only the timers are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kafkalite.coordinators.groups import share_records
from kafkalite.coordinators.groups.classic_timers import arm_session, session_key
from kafkalite.coordinators.groups.consumer_group import JOINING_EPOCH, LEFT_EPOCH, Target
from kafkalite.coordinators.groups.events import SessionExpired, ShareHeartbeat
from kafkalite.coordinators.groups.share_assignor import assign_simple
from kafkalite.coordinators.groups.share_group import ShareGroup, ShareMember
from kafkalite.coordinators.groups.share_states import initialize_missing
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.target import is_young, metadata_hash
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


@dataclass(slots=True)
class _Draft:
    """The group as it will be once the records before are replayed."""

    group: ShareGroup
    epoch: int
    members: dict[str, ShareMember]
    assignment_epoch: int
    targets: dict[str, Target]

    def names(self) -> set[str]:
        return {name for member in self.members.values() for name in member.subscribed_topics}


def share_heartbeat(state: GroupsState, turn: Turn, event: ShareHeartbeat) -> Steps[None]:
    request = event.request
    _check_request(request)
    if request.member_epoch == LEFT_EPOCH:
        yield from _leave(state, turn, request)
        return
    is_joining = request.member_epoch == JOINING_EPOCH
    group = _group(state, request.group_id, is_joining=is_joining)
    _check_size(state, group, request.member_id)
    old = _find_member(group, request, is_joining=is_joining)
    new = _updated(old, event)
    draft = _Draft(
        group, group.epoch, {**group.members, new.member_id: new}, group.assignment_epoch,
        group.targets,
    )  # fmt: skip
    has_changed = yield from _change(state, turn, draft, old, new)
    yield from _retarget(state, turn, draft)
    moved = _reconciled(state, turn, draft, new, has_changed)
    timeout_ms = state.settings.share_session_timeout_ms(group.group_id)
    arm_session(turn, group.group_id, new.member_id, timeout_ms)
    turn.reply(_answer(state, request, old, moved))
    initialize_missing(state, turn, group, draft.names(), draft.epoch)


# -- checks ----------------------------------------------------------------------------------------


def _check_request(request: ShareGroupHeartbeatRequest) -> None:
    for text, name in (
        (request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")
    ):  # fmt: skip
        if text is not None and not text.strip():
            raise KafkaError(Error.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOINING_EPOCH and not request.subscribed_topic_names:
        why = "SubscribedTopicNames must be set in first request."
        raise KafkaError(Error.INVALID_REQUEST, why)
    if request.member_epoch < LEFT_EPOCH:
        raise KafkaError(Error.INVALID_REQUEST, "MemberEpoch is invalid.")


def _group(state: GroupsState, group_id: str, *, is_joining: bool) -> ShareGroup:
    """The group, or a new one that the records will make."""
    group = state.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if not is_joining:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id)


def _check_size(state: GroupsState, group: ShareGroup, member_id: str) -> None:
    limit = state.settings.share_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise KafkaError(
            Error.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {limit} members.",
        )


def _find_member(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, *, is_joining: bool
) -> ShareMember:
    if is_joining:
        return group.members.get(request.member_id, ShareMember(request.member_id))
    member = group.member(request.member_id)
    epoch, known, previous = request.member_epoch, member.member_epoch, member.previous_member_epoch
    if epoch > known:
        raise KafkaError(
            Error.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by"
            f" the group coordinator ({known})."
            " The member must abandon all its partitions and rejoin.",
        )
    if epoch < known and epoch != previous:
        raise KafkaError(
            Error.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by"
            f" the group coordinator ({known}), and it does not match the previous member epoch"
            f" ({previous}). The member must abandon all its partitions and rejoin.",
        )
    return member


def _updated(old: ShareMember, event: ShareHeartbeat) -> ShareMember:
    """What a request leaves out stays as it was."""
    request = event.request
    topics = request.subscribed_topic_names
    return replace(
        old,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topics=old.subscribed_topics if topics is None else tuple(sorted(set(topics))),
        client_id=event.client_id,
        client_host=event.client_host,
    )


# -- the group -------------------------------------------------------------------------------------


def _change(
    state: GroupsState, turn: Turn, draft: _Draft, old: ShareMember, new: ShareMember
) -> Steps[bool]:
    """Writes what changed of the member, and a new epoch of the group where that is due; true if
    it is."""
    group = draft.group
    if new != old or old.member_id not in group.members:
        turn.write(share_records.member(group.group_id, new))
    must_bump = new.subscribed_topics != old.subscribed_topics
    if group.assignment_epoch >= group.epoch:
        must_bump = must_bump or _has_unassigned(group)
    if must_bump or group.must_refresh:
        hashed = yield from metadata_hash(state, sorted(draft.names()))
        must_bump = must_bump or hashed != group.metadata_hash
        # Only a look that found nothing is sure to be the last: an append may yet fail.
        group.must_refresh = must_bump
        if must_bump:
            draft.epoch += 1
            turn.write(share_records.group_epoch(group.group_id, draft.epoch, hashed))
    return must_bump


def _has_unassigned(group: ShareGroup) -> bool:
    """Whether partitions were initialized that nobody has yet."""
    if group.shared is None:
        return False
    names = group.subscribed_topics()
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, indexes in target.items():
            assigned.setdefault(topic_id, set()).update(indexes)
    return any(
        topic.name in names and assigned.get(topic_id, set()) != set(topic.partitions)
        for topic_id, topic in group.shared.initialized.items()
    )


def _retarget(state: GroupsState, turn: Turn, draft: _Draft) -> Steps[None]:
    """Computes the target assignment, if it is older than the group and not too young."""
    group = draft.group
    interval_ms = state.settings.share_assignment_interval_ms(group.group_id)
    is_too_soon = is_young(group.assignment_timestamp_ms, interval_ms, turn.now_ms)
    if group.assignment_epoch >= draft.epoch or is_too_soon:
        return
    shared = {} if group.shared is None else group.shared.initialized
    subscribed = {
        member.member_id: _topic_ids(state, member.subscribed_topics)
        for member in draft.members.values()
    }
    assignable = {topic_id: sorted(one.partitions) for topic_id, one in shared.items()}
    targets = yield from assign_simple(subscribed, group.targets, assignable)
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            turn.write(share_records.target(group.group_id, member_id, target))
    draft.targets, draft.assignment_epoch = targets, draft.epoch
    turn.write(share_records.target_epoch(group.group_id, draft.epoch, turn.now_ms))


def _topic_ids(state: GroupsState, names: Iterable[str]) -> frozenset[bytes]:
    found = (state.topics.id_of(name) for name in names)
    return frozenset(topic_id for topic_id in found if topic_id is not None)


def _reconciled(
    state: GroupsState, turn: Turn, draft: _Draft, member: ShareMember, has_changed: bool
) -> ShareMember:
    """The member with what it is to have, which it is given at once: nobody has to let go."""
    is_new_epoch = member.member_epoch != draft.assignment_epoch
    if not is_new_epoch and not has_changed:
        return member
    subscribed = _topic_ids(state, member.subscribed_topics)
    target = draft.targets.get(member.member_id, {})
    moved = replace(
        member, assigned={each: target[each] for each in target if each in subscribed}
    )
    if is_new_epoch:
        moved = replace(
            moved, member_epoch=draft.assignment_epoch, previous_member_epoch=member.member_epoch
        )
    if moved != member:
        turn.write(share_records.current(draft.group.group_id, moved))
    return moved


def _answer(
    state: GroupsState, request: ShareGroupHeartbeatRequest, old: ShareMember, new: ShareMember
) -> ShareGroupHeartbeatResponse:
    """The assignment is told when it has changed, and to a member that tells everything."""
    response = ShareGroupHeartbeatResponse(
        member_id=new.member_id,
        member_epoch=new.member_epoch,
        heartbeat_interval_ms=state.settings.share_heartbeat_interval_ms(request.group_id),
    )
    is_full = request.member_epoch == JOINING_EPOCH or request.subscribed_topic_names is not None
    if is_full or old.assigned != new.assigned:
        kind = ShareGroupHeartbeatResponse
        response.assignment = kind.Assignment(
            topic_partitions=[
                kind.TopicPartitions(topic_id=topic_id, partitions=list(indexes))
                for topic_id, indexes in new.assigned.items()
            ]
        )
    return response


# -- leaving ---------------------------------------------------------------------------------------


def _leave(
    state: GroupsState, turn: Turn, request: ShareGroupHeartbeatRequest
) -> Steps[None]:
    group = share_group(state, request.group_id)
    member = group.member(request.member_id)
    turn.reply(
        ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
    )
    yield from _fence(state, turn, group, member)


def share_group(state: GroupsState, group_id: str) -> ShareGroup:
    """One that is there, or GROUP_ID_NOT_FOUND."""
    group = state.share_group(group_id)
    if group is None:
        what = "is not a share group" if group_id in state.groups else "not found"
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
    return group


def _fence(
    state: GroupsState, turn: Turn, group: ShareGroup, member: ShareMember
) -> Steps[None]:
    group_id = group.group_id
    turn.cancel(session_key(group_id, member.member_id))
    turn.write(*share_records.member_tombstones(group_id, member.member_id))
    names = {
        name
        for each in group.members.values()
        if each is not member
        for name in each.subscribed_topics
    }
    hashed = yield from metadata_hash(state, sorted(names))
    turn.write(share_records.group_epoch(group_id, group.epoch + 1, hashed))


def on_share_session_expired(
    state: GroupsState, turn: Turn, group: ShareGroup, event: SessionExpired
) -> Steps[None]:
    member = group.members.get(event.member_id)
    if member is not None:
        yield from _fence(state, turn, group, member)


def resume(state: GroupsState, turn: Turn, group: ShareGroup) -> None:
    """After a restart every member has a session to show up."""
    timeout_ms = state.settings.share_session_timeout_ms(group.group_id)
    for member_id in group.members:
        arm_session(turn, group.group_id, member_id, timeout_ms)
