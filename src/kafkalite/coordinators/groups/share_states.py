"""Which of a share group's partitions have their state kept by a share coordinator (KIP-932).

Owns the steps of a partition from being subscribed to, through its initialization, to its deletion:
each is a record, and an errand that is sent once the record is committed, whose outcome comes back
as an event. Offsets of share groups are altered and deleted so, too. What a crash cuts short is
begun again by the next heartbeat, or by whoever asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafkalite.coordinators.groups import share_records
from kafkalite.coordinators.groups.events import (
    AlterShareOffsets,
    BeginShareDeletion,
    DeleteShareOffsets,
    InitializeShares,
    ListShared,
    ShareOffsetsDeleted,
    SharesInitialized,
    SharesNotInitialized,
)
from kafkalite.coordinators.groups.share_group import (
    Shared,
    SharedTopic,
    SharedTopics,
    ShareGroup,
)
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.errors import Error, KafkaError

UNINITIALIZED = -1
UNKNOWN_NAME = "<UNKNOWN>"

Places = dict[bytes, tuple[int, ...]]


# -- initialization --------------------------------------------------------------------------------


def initialize_missing(
    state: GroupsState, turn: Turn, group: ShareGroup, names: Iterable[str], epoch: int
) -> None:
    """Has the partitions of subscribed topics initialized that are not yet, nor were asked for a
    while ago."""
    shared = group.shared or Shared()
    missing: SharedTopics = {}
    for name in sorted(names):
        view = state.topics.by_name(name)
        if view is None:
            continue
        known = _partitions(shared.initialized, view.topic_id)
        if state.was_asked_of_late(group.group_id, view.topic_id, turn.now_ms):
            known |= _partitions(shared.initializing, view.topic_id)
        if len(known) < view.partition_count:
            wanted = frozenset(range(view.partition_count)) - known
            missing[view.topic_id] = SharedTopic(view.name, wanted)
    if missing:
        _begin(turn, group, missing)
        starts = dict.fromkeys(_places(missing), UNINITIALIZED)
        turn.effects.sends.append(InitializeShares(group.group_id, starts, epoch))


def _begin(turn: Turn, group: ShareGroup, topics: SharedTopics) -> None:
    shared = group.shared or Shared()
    deleting = {each: name for each, name in shared.deleting.items() if each not in topics}
    changed = replace(
        shared, initializing=_united(shared.initializing, topics), deleting=deleting
    )
    turn.write(share_records.shared(group.group_id, changed))


def on_initialized(state: GroupsState, turn: Turn, event: SharesInitialized) -> None:
    """The share coordinators have them: members may be given them from now on."""
    turn.reply(None)
    state.answered(event.group_id, event.partitions)
    group = state.share_group(event.group_id)
    if group is None:
        return
    shared, done = group.shared or Shared(), _named(state, event.partitions)
    changed = replace(
        shared,
        initializing=_without(shared.initializing, event.partitions),
        initialized=_united(shared.initialized, done),
    )
    turn.write(share_records.shared(group.group_id, changed))


def on_not_initialized(state: GroupsState, turn: Turn, event: SharesNotInitialized) -> None:
    turn.reply(None)
    state.answered(event.group_id, event.partitions)
    group = state.share_group(event.group_id)
    if group is not None and group.shared is not None and group.shared.initializing:
        left = _without(group.shared.initializing, event.partitions)
        turn.write(share_records.shared(group.group_id, replace(group.shared, initializing=left)))


# -- offsets ---------------------------------------------------------------------------------------


def list_shared(state: GroupsState, turn: Turn, event: ListShared) -> None:
    group = state.share_group(event.group_id)
    shared = Shared() if group is None or group.shared is None else group.shared
    turn.reply({each: tuple(sorted(one.partitions)) for each, one in shared.initialized.items()})


def alter_offsets(state: GroupsState, turn: Turn, event: AlterShareOffsets) -> None:
    """The partitions are initialized anew, from the offsets that are given; answered with the epoch
    in which that is to be done."""
    found = state.groups.get(event.group_id)
    if found is not None and not isinstance(found, ShareGroup):
        why = f"Group {event.group_id} is not a share group."
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, why)
    group = found or ShareGroup(event.group_id)
    group.check_delete()
    topics = _named(state, event.partitions)
    if topics:
        _begin(turn, group, topics)
    turn.reply(group.epoch)


def delete_offsets(state: GroupsState, turn: Turn, event: DeleteShareOffsets) -> None:
    """Answered with the partitions whose state is to be deleted, by topic."""
    group = _empty(state, event.group_id)
    shared = group.shared
    if shared is None:
        turn.reply(None)
        return
    initialized, deleting = dict(shared.initialized), dict(shared.deleting)
    places: Places = {}
    for topic_id, name in event.topics.items():
        known = initialized.pop(topic_id, None)
        if known is not None:
            places[topic_id] = tuple(sorted(known.partitions))
            deleting[topic_id] = name
        elif topic_id in deleting:
            places[topic_id] = _all_of(state, topic_id)
    changed = replace(shared, initialized=initialized, deleting=deleting)
    turn.write(share_records.shared(group.group_id, changed))
    turn.reply(places)


def on_offsets_deleted(state: GroupsState, turn: Turn, event: ShareOffsetsDeleted) -> None:
    turn.reply(None)
    group = state.share_group(event.group_id)
    if group is not None and group.shared is not None:
        deleting = group.shared.deleting
        left = {each: name for each, name in deleting.items() if each not in event.topic_ids}
        changed = replace(group.shared, deleting=left)
        turn.write(share_records.shared(group.group_id, changed))


# -- the end of groups and topics ------------------------------------------------------------------


def begin_deletion(state: GroupsState, turn: Turn, event: BeginShareDeletion) -> None:
    """Answered with all partitions whose state is to be deleted before the group can be."""
    group = _empty(state, event.group_id)
    shared = group.shared
    if shared is None:
        turn.reply({})
        return
    topics = _united(shared.initialized, shared.initializing)
    for topic_id, name in shared.deleting.items():
        indexes = _all_of(state, topic_id)
        if indexes:
            topics = _united(topics, {topic_id: SharedTopic(name, frozenset(indexes))})
    deleting = {topic_id: one.name for topic_id, one in topics.items()}
    turn.write(share_records.shared(group.group_id, Shared(deleting=deleting)))
    turn.reply({each: tuple(sorted(one.partitions)) for each, one in topics.items()})


def forget_topics(state: GroupsState, turn: Turn, topic_ids: frozenset[bytes]) -> None:
    """Of topics that are gone nothing is kept; the share coordinators hear of it themselves."""
    for group in state.groups.values():
        shared = group.shared if isinstance(group, ShareGroup) else None
        if shared is None:
            continue
        known = {*shared.initializing, *shared.initialized, *shared.deleting}
        if known & topic_ids:
            left = Shared(
                {each: one for each, one in shared.initializing.items() if each not in topic_ids},
                {each: one for each, one in shared.initialized.items() if each not in topic_ids},
                {each: name for each, name in shared.deleting.items() if each not in topic_ids},
            )
            turn.write(share_records.shared(group.group_id, left))


def _empty(state: GroupsState, group_id: str) -> ShareGroup:
    group = state.share_group(group_id)
    if group is None:
        what = "is not a share group" if group_id in state.groups else "not found"
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
    group.check_delete()
    return group


# -- sets of partitions ----------------------------------------------------------------------------


def _partitions(topics: SharedTopics, topic_id: bytes) -> frozenset[int]:
    known = topics.get(topic_id)
    return frozenset() if known is None else known.partitions


def _places(topics: SharedTopics) -> Iterable[tuple[bytes, int]]:
    return (
        (topic_id, index) for topic_id, one in topics.items() for index in sorted(one.partitions)
    )


def _united(some: SharedTopics, more: SharedTopics) -> SharedTopics:
    united = dict(some)
    for topic_id, one in more.items():
        united[topic_id] = SharedTopic(one.name, one.partitions | _partitions(some, topic_id))
    return united


def _without(topics: SharedTopics, partitions: Mapping[bytes, Iterable[int]]) -> SharedTopics:
    left: SharedTopics = {}
    for topic_id, one in topics.items():
        rest = one.partitions - frozenset(partitions.get(topic_id, ()))
        if rest:
            left[topic_id] = SharedTopic(one.name, rest)
    return left


def _named(state: GroupsState, partitions: Mapping[bytes, Iterable[int]]) -> SharedTopics:
    named: SharedTopics = {}
    for topic_id, indexes in partitions.items():
        view = state.topics.by_id(topic_id)
        name = UNKNOWN_NAME if view is None else view.name
        named[topic_id] = SharedTopic(name, frozenset(indexes))
    return named


def _all_of(state: GroupsState, topic_id: bytes) -> tuple[int, ...]:
    view = state.topics.by_id(topic_id)
    return () if view is None else tuple(range(view.partition_count))
