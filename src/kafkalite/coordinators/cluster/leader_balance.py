"""Decides that partitions are led again by the replicas that should, where these can.

Owns how many change together. Nobody asks for it: the controller looks from time to time, as Apache
Kafka's does, partition by partition, however the leaders of a broker are balanced as a whole.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.image import NO_LEADER_CHANGE
from kafkalite.coordinators.cluster.partition_change import Election, Target, change_partition
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps, chosen
from kafkalite.protocol.messages import PartitionChangeRecord

MOST_AT_ONCE = 1_000
ELECTED_PER_STEP = 16


@dataclass(slots=True)
class BalanceLeaders(Event[bool]):
    """A look at all partitions; the reply is whether there may be more to do."""


def balance_leaders(view: View, _: BalanceLeaders) -> Steps[Effects]:
    states = (
        state for topic in view.image.topics.values() for state in topic.partitions.values()
    )
    astray = yield from chosen(states, lambda state: state.leader != state.preferred_leader)
    records: list[PartitionChangeRecord] = []
    for count, state in enumerate(astray, 1):
        record = _returned(view, state)
        if record is not None:
            records.append(record)
        if len(records) == MOST_AT_ONCE:
            break
        if count % ELECTED_PER_STEP == 0:
            yield
    return (yield from decided_in_steps(view, records, len(records) == MOST_AT_ONCE))


def _returned(view: View, state: PartitionState) -> PartitionChangeRecord | None:
    """The election of its preferred leader, unless that cannot be one."""
    target = Target.of(state)
    target.election = Election.PREFERRED
    record = change_partition(view, state, target)
    return None if record is None or record.leader == NO_LEADER_CHANGE else record
