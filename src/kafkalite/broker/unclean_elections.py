"""How many leaders were elected that may lack records, as the cluster's metadata tells it.

Owns the count since the start, and which partitions are known to have such a leader.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.partition_change import RECOVERING


class UncleanElections:
    """Of a cluster."""

    def __init__(self) -> None:
        self.count = 0
        self._epochs: dict[tuple[bytes, int], int] = {}  # of leaders that were elected so

    def note(self, image: Image, changes: Changes) -> None:
        for place in changes.partitions:
            topic = image.by_id.get(place[0])
            state = None if topic is None else topic.partitions.get(place[1])
            if state is None or state.leader_recovery_state != RECOVERING:
                self._epochs.pop(place, None)
            elif self._epochs.get(place) != state.leader_epoch and state.isr == (state.leader,):
                self._epochs[place] = state.leader_epoch
                self.count += 1
