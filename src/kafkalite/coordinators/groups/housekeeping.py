"""Deleting: expired offsets, deserted groups, groups on request, offsets of deleted topics.

Owns no state. What it decides is always a list of tombstones, which is cut into slices: each of
them stands for itself, so that neither their number nor their size holds anybody up.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups import (
    consumer_records,
    records,
    share_records,
    share_states,
    streams_records,
)
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.classic_timers import join_key
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.events import DeleteGroups, OffsetSweep, TopicsDeleted
from kafkalite.coordinators.groups.offsets import CommittedOffset, OffsetStore
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.state import Group, GroupsState, Unswept
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.streams_target import end_delay
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Pace
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteGroupsResponse

NEVER = -1
NOT_KNOWN = -1
SWEEP_KEY = ("offset-sweep",)
APPEND_AGAIN_MS = 500
# Cost as much as so many looks.
TOMBSTONE_WORK = 10
ANSWER_WORK = 2


class _Stretch:
    """The work of one turn."""

    __slots__ = ("_pace", "turn")

    def __init__(self, turn: Turn, pace: Pace) -> None:
        self.turn = turn
        self._pace = pace
        pace.at(turn.now_ms)

    @property
    def is_done(self) -> bool:
        return self._pace.left <= 0

    @property
    def pause_ms(self) -> int:
        return self._pace.pause_ms(self.turn.now_ms)

    def look(self, work: int = 1) -> None:
        self._pace.left -= work

    def write(self, *tombstones: Record) -> None:
        self.turn.write(*tombstones)
        self._pace.left -= TOMBSTONE_WORK * len(tombstones)


# -- the sweep -------------------------------------------------------------------------------


def keep_sweeping(state: GroupsState, turn: Turn) -> None:
    """One timer for the whole shard, and none while there is nothing that could expire."""
    interval_ms = state.settings.offsets_retention_check_interval_ms
    if state.groups and abs(turn.now_ms - state.next_sweep_ms) > interval_ms:
        # Also when somebody moved the wall clock.
        _sweep_in(state, turn, interval_ms)


def _sweep_in(state: GroupsState, turn: Turn, delay_ms: int) -> None:
    state.next_sweep_ms = turn.now_ms + delay_ms
    turn.arm(SWEEP_KEY, delay_ms, OffsetSweep())


def sweep(state: GroupsState, turn: Turn, _: OffsetSweep) -> None:
    """Deletes offsets past their retention, then groups that have neither members nor offsets.

    A slice at a time, each for itself: between two of them requests are served.
    """
    work = _Stretch(turn, state.pace)
    turn.effects.atomic = False
    if state.unswept is None:
        state.unswept = Unswept(list(state.groups))
    while state.unswept.groups and not work.is_done:
        _sweep_group(state, work, state.unswept)
    if state.unswept.groups:
        _sweep_in(state, turn, work.pause_ms)
    else:
        state.unswept = None
        state.next_sweep_ms = NEVER


def _sweep_group(state: GroupsState, work: _Stretch, unswept: Unswept) -> None:
    """Goes on with the group that is next, and is through with it unless the slice ends first."""
    group_id, store = unswept.groups[-1], state.offsets
    group = state.groups.get(group_id)
    expired = 0
    if group is not None:
        if unswept.places is None:
            unswept.places = _places(store, group_id)
        protected: dict[str, bool] = {}
        for topic, partition in unswept.places:
            if topic not in protected:
                protected[topic] = group.is_subscribed_to(topic)
            work.look()
            if _may_go(state, group, topic, partition, protected[topic], work.turn.now_ms):
                work.write(records.offset_tombstone(group_id, topic, partition))
                expired += 1
            if work.is_done:
                return
    work.look()
    unswept.groups.pop()
    unswept.places = None
    if group is not None and group.is_empty and store.count(group_id) == expired:
        # What is left of its offsets goes in this very turn, so nobody has come back for them.
        _delete(state, work, group)


def _places(store: OffsetStore, group_id: str) -> Iterator[tuple[str, int]]:
    """Where the group has offsets now; some of them may be gone when their turn comes."""
    for topic in list(store.of_group(group_id)):
        for partition in list(store.of_group(group_id).get(topic, ())):
            yield topic, partition


def _may_go(
    state: GroupsState, group: Group, topic: str, partition: int, is_protected: bool, now_ms: int
) -> bool:
    if isinstance(group, (ForeignGroup, ShareGroup)):
        return False  # whoever serves it decides; a share group has none of its own
    offset = state.offsets.get(group.group_id, topic, partition)
    if offset is None or state.offsets.is_unstable(group.group_id, topic, partition):
        return False
    if offset.topic_id != ZERO_UUID and not state.topics.is_known(offset.topic_id):
        return True  # its topic went while nobody was there to see it
    return not is_protected and _is_expired(state, group, offset, now_ms)


def _is_expired(state: GroupsState, group: Group, offset: CommittedOffset, now_ms: int) -> bool:
    base_ms = group.expiry_base_ms(offset.commit_timestamp_ms)
    if base_ms is None:
        return False
    if offset.expire_timestamp_ms >= 0:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base_ms >= state.settings.offsets_retention_ms


# -- on request ------------------------------------------------------------------------------


def delete_groups(state: GroupsState, turn: Turn, event: DeleteGroups) -> None:
    """One group after the other; a large one over several turns, and the shard's other requests
    wait for that: nobody sees half of a group."""
    work = _Stretch(turn, state.pace)
    turn.effects.atomic = False
    remaining = list(dict.fromkeys(event.group_ids))[len(event.results) :]
    for group_id in remaining:
        code = None if work.is_done else _delete_on_request(state, work, group_id)
        if code is None:
            turn.go_on(work.pause_ms, event)
            return
        event.results.append(DeleteGroupsResponse.Result(group_id=group_id, error_code=code))
    turn.reply(event.results)


def _delete_on_request(state: GroupsState, work: _Stretch, group_id: str) -> int | None:
    """The error code; None when the slice ended and more is left."""
    work.look(ANSWER_WORK)
    group = state.groups.get(group_id)
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    try:
        group.check_delete()
    except KafkaError as refusal:
        return refusal.code
    for topic, partition in state.offsets.partitions_of(group_id):
        if work.is_done:
            return None
        work.write(records.offset_tombstone(group_id, topic, partition))
    _delete(state, work, group)
    return Error.NONE


def _delete(state: GroupsState, work: _Stretch, group: Group) -> None:
    if isinstance(group, ClassicGroup):
        work.turn.cancel(join_key(group.group_id))
        work.write(records.group_tombstone(group.group_id))
    elif isinstance(group, ShareGroup):
        work.write(*share_records.group_tombstones(group))
    elif isinstance(group, StreamsGroup):
        end_delay(state, work.turn, group.group_id)
        work.write(*streams_records.group_tombstones(group.group_id))
    elif isinstance(group, ConsumerGroup):
        work.write(*consumer_records.group_tombstones(group))


# -- with their topics -----------------------------------------------------------------------


def on_topics_deleted(state: GroupsState, turn: Turn, event: TopicsDeleted) -> None:
    """The offsets of a deleted topic go with it, unless they are of another incarnation.

    The shard's requests wait until all are gone: nobody finds them under a new topic's name.
    """
    work = _Stretch(turn, state.pace)
    turn.effects.atomic = False
    turn.effects.on_failed = event
    if event.groups is None:
        store = state.offsets
        event.groups = list(dict.fromkeys((*store.committed, *store.open_producers)))
        if event.end_offset == NOT_KNOWN:
            event.end_offset = state.end_offset
        share_states.forget_topics(state, turn, frozenset(each for _, each in event.topics))
    while event.groups:
        if work.is_done or not _forget_topics(state, work, event, event.groups[-1]):
            turn.go_on(work.pause_ms, event)
            return
        event.groups.pop()
    turn.reply(None)


def _forget_topics(state: GroupsState, work: _Stretch, event: TopicsDeleted, group_id: str) -> bool:
    """False when the slice ended before all of the group's were through."""
    work.look()
    for name, topic_id in event.topics:
        for partition, offset in state.offsets.of_topic(group_id, name):
            is_its_own = offset.topic_id in (ZERO_UUID, topic_id)
            if is_its_own and offset.record_offset < event.end_offset:
                if work.is_done:
                    return False
                work.write(records.offset_tombstone(group_id, name, partition))
    return True


def on_topics_deleted_failed(
    state: GroupsState, turn: Turn, event: TopicsDeleted, _: KafkaError
) -> None:
    """Begins again, as often as it takes."""
    event.groups = None
    key = ("topics-deleted", *(topic_id for _, topic_id in event.topics))
    turn.arm(key, APPEND_AGAIN_MS, event)
