"""Decides that leaders begin a new epoch, as they do when they were away for a moment and came back
before anybody else was elected.

Owns only that; who leads stays.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.states import NO_LEADER
from kafkalite.coordinators.cluster.view import View, decided
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.messages import PartitionChangeRecord


@dataclass(slots=True)
class LeadAnew(Event[None]):
    """Partitions, by topic and index; what has no leader, or is not there, stays as it is."""

    partitions: list[tuple[str, int]]


def lead_anew(view: View, asked: LeadAnew) -> Effects:
    found = [view.image.partition(name, index) for name, index in asked.partitions]
    records = [
        PartitionChangeRecord(
            partition_id=state.index, topic_id=state.topic_id, leader=state.leader
        )
        for state in found
        if state is not None and state.leader != NO_LEADER
    ]
    return decided(view, records, None)
