"""Groups and transactions of the shards that one broker coordinates, as they are in memory.

Owns the look at them; changes nothing. A shard that is being loaded tells nothing yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from kafkalite.broker.broker import Broker
from kafkalite.client.survey import Group, Member, Survey
from kafkalite.coordinators.asked import State
from kafkalite.coordinators.groups.classic_group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.consumer_protocol import read_assignment
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.state import Group as Known
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.transactions.shard import TransactionShard
from kafkalite.env.slicing import Steps

GROUPS_PER_STEP = 8
TRANSACTIONS_PER_STEP = 1_024


def look_at_groups(found: Survey, broker: Broker) -> Steps[None]:
    left = GROUPS_PER_STEP
    for shard in _shards(broker.context.groups):
        state = cast(GroupShard, shard).state
        for known in list(state.groups.values()):
            group = _group(known, broker)
            if group is not None:
                group.committed = dict(_committed(state, known.group_id))
                found.groups[group.group_id] = group
            left -= 1
            if not left:
                left = GROUPS_PER_STEP
                yield


def look_at_transactions(broker: Broker) -> Steps[Counter[str]]:
    states: Counter[str] = Counter()
    for shard in _shards(broker.context.transactions):
        known = list(cast(TransactionShard, shard).transactions.values())
        for start in range(0, len(known), TRANSACTIONS_PER_STEP):
            some = known[start : start + TRANSACTIONS_PER_STEP]
            states.update(each.state.title for each in some)
            yield
    return states


def _shards(shards: Shards) -> Iterator[object]:
    for runtime in list(shards.runtimes.values()):
        if runtime.state is State.ACTIVE and runtime.shard is not None:
            yield runtime.shard


def _group(known: Known, broker: Broker) -> Group | None:
    """None of a kind that is not served."""
    if isinstance(known, ClassicGroup):
        kind, protocol = known.protocol_type or "", known.protocol_name or ""
        members = list(_classic_members(known))
    elif isinstance(known, ConsumerGroup):
        kind, protocol = known.protocol_type, ""
        members = [
            Member(each.client_id, each.client_host, _named(broker, each.assigned.items()))
            for each in known.members.values()
        ]
    elif isinstance(known, ShareGroup):
        kind, protocol = "share", ""
        members = [
            Member(each.client_id, each.client_host, _named(broker, each.assigned.items()))
            for each in known.members.values()
        ]
    else:
        return None
    return Group(
        known.group_id, broker.node_id, known.type_name, kind, protocol, known.state.value, members
    )


def _classic_members(known: ClassicGroup) -> Iterator[Member]:
    is_of_consumers = known.protocol_type == CONSUMER_PROTOCOL_TYPE
    for each in known.members.values():
        assignment = read_assignment(each.assignment) if is_of_consumers else None
        topics = () if assignment is None else assignment.assigned_partitions
        assigned = {str(one.topic): list(one.partitions) for one in topics}
        yield Member(each.client_id, each.client_host, assigned)


def _named(
    broker: Broker, assigned: Iterable[tuple[bytes, Iterable[int]]]
) -> dict[str, list[int]]:
    named = ((broker.metadata.image.topic_name(each), list(indexes)) for each, indexes in assigned)
    return {name: indexes for name, indexes in named if name is not None}


def _committed(state: GroupsState, group_id: str) -> Iterator[tuple[tuple[str, int], int]]:
    for topic, partitions in state.offsets.of_group(group_id).items():
        for index, committed in partitions.items():
            yield (topic, index), committed.offset
