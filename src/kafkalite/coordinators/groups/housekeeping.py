"""Deleting: expired offsets, deserted groups, groups on request, offsets of deleted topics.

Owns no state. What it decides is always a list of tombstones.
"""

from __future__ import annotations

from kafkalite.coordinators.groups import consumer_records, records
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.classic_timers import join_key
from kafkalite.coordinators.groups.events import DeleteGroups, OffsetSweep, TopicsDeleted
from kafkalite.coordinators.groups.offsets import CommittedOffset
from kafkalite.coordinators.groups.state import Group, GroupsState
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteGroupsResponse

NEVER = -1
SWEEP_KEY = ("offset-sweep",)


def keep_sweeping(state: GroupsState, turn: Turn) -> None:
    """One timer for the whole shard, and none while there is nothing that could expire."""
    interval_ms = state.settings.offsets_retention_check_interval_ms
    if state.groups and not turn.now_ms <= state.next_sweep_ms <= turn.now_ms + interval_ms:
        # Also after a sweep that is overdue (its timer's effects were lost with a failed
        # append) and when somebody moved the wall clock back.
        state.next_sweep_ms = turn.now_ms + interval_ms
        turn.arm(SWEEP_KEY, interval_ms, OffsetSweep())


def sweep(state: GroupsState, turn: Turn, _: OffsetSweep) -> None:
    """Deletes offsets past their retention, then groups that have neither members nor offsets."""
    for group in list(state.groups.values()):
        if _expire_offsets(state, turn, group) and group.is_empty:
            _delete(turn, group)
    turn.effects.atomic = False
    state.next_sweep_ms = NEVER


def _expire_offsets(state: GroupsState, turn: Turn, group: Group) -> bool:
    """True when no offset of the group remains, committed or pending."""
    group_id, store = group.group_id, state.offsets
    has_expired_all = not store.has_open_transactions(group_id)
    for topic, partitions in store.of_group(group_id).items():
        is_protected = group.is_subscribed_to(topic)
        for partition, offset in partitions.items():
            is_unstable = store.is_unstable(group_id, topic, partition)
            if is_protected or is_unstable or not _is_expired(state, group, offset, turn.now_ms):
                has_expired_all = False
            else:
                turn.write(records.offset_tombstone(group_id, topic, partition))
    return has_expired_all


def _is_expired(state: GroupsState, group: Group, offset: CommittedOffset, now_ms: int) -> bool:
    base_ms = group.expiry_base_ms(offset.commit_timestamp_ms)
    if base_ms is None:
        return False
    if offset.expire_timestamp_ms >= 0:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base_ms >= state.settings.offsets_retention_ms


def delete_groups(state: GroupsState, turn: Turn, event: DeleteGroups) -> None:
    results = []
    for group_id in dict.fromkeys(event.group_ids):
        code = _delete_on_request(state, turn, group_id)
        results.append(DeleteGroupsResponse.Result(group_id=group_id, error_code=code))
    turn.reply(results)


def _delete_on_request(state: GroupsState, turn: Turn, group_id: str) -> int:
    group = state.groups.get(group_id)
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    try:
        group.check_delete()
    except KafkaError as refusal:
        return refusal.code
    for topic, partition in state.offsets.partitions_of(group_id):
        turn.write(records.offset_tombstone(group_id, topic, partition))
    _delete(turn, group)
    return Error.NONE


def _delete(turn: Turn, group: Group) -> None:
    if isinstance(group, ClassicGroup):
        turn.cancel(join_key(group.group_id))
        turn.write(records.group_tombstone(group.group_id))
    else:
        turn.write(*consumer_records.group_tombstones(group))


def on_topics_deleted(state: GroupsState, turn: Turn, event: TopicsDeleted) -> None:
    """The offsets of a deleted topic go with it, unless they are of another incarnation."""
    written: dict[tuple[str, str, int], None] = {}
    for store in [state.offsets.committed, *state.offsets.pending.values()]:
        for group_id, topics in store.items():
            for name, topic_id in event.topics:
                for partition, offset in topics.get(name, {}).items():
                    if offset.topic_id in (ZERO_UUID, topic_id):
                        written[group_id, name, partition] = None
    for group_id, name, partition in written:
        turn.write(records.offset_tombstone(group_id, name, partition))
    turn.effects.atomic = False
    turn.reply(None)
