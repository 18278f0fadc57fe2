"""Decides that another replica leads a partition, because somebody names that one.

An election whose outcome is given: who is to lead has to be in sync, up, and to hold the data. Who
leads already begins a new epoch.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.partition_change import Target, may_lead
from kafkalite.coordinators.cluster.states import NO_LEADER, PartitionState
from kafkalite.coordinators.cluster.view import View, decided
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import PartitionChangeRecord


@dataclass(slots=True)
class MoveLeader(Event[None]):
    """A partition, by topic and index, and the broker that is to lead it."""

    topic: str
    partition: int
    to: int


def move_leader(view: View, asked: MoveLeader) -> Effects:
    state = view.image.partition(asked.topic, asked.partition)
    if state is None:
        why = f"there is no partition {asked.topic}-{asked.partition}"
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, why)
    why_not = _hindrance(view, state, asked.to)
    if why_not is not None:
        raise KafkaError(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, why_not)
    record = PartitionChangeRecord(
        partition_id=state.index, topic_id=state.topic_id, leader=asked.to
    )
    return decided(view, [record], None)


def _hindrance(view: View, state: PartitionState, to: int) -> str | None:
    if to not in state.replicas:
        return (
            f"broker {to} has no replica of it, as {', '.join(map(str, state.replicas))} have: "
            "create the topic with a replication factor (default.replication.factor)"
        )
    if state.leader == NO_LEADER:
        return "it has no leader: the broker that holds its records does not serve"
    if to not in state.isr:
        return f"broker {to} is not in sync"
    if not may_lead(view, state, to, Target.of(state)):
        return f"broker {to} is not up, or does not hold its records"
    return None
