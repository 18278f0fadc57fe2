"""What brokers ask of each other for transactions: by whoever leads a partition, and by whoever
coordinates a transaction.

Nothing here has behaviour. `Local` is a broker asking itself; the room `peers` has the way to
others. A refusal is a value, and every question is answered, however the peer ends.
"""

from __future__ import annotations

from typing import Protocol

from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.coordinators.transactions.transaction import TopicPartition
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError

Refusals = dict[TopicPartition, KafkaError]


@dataclass(frozen=True, slots=True)
class Admission:
    """May this producer write to these partitions in its transaction? With `is_adding` they join
    it (transaction version 2); else they must be part of it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    is_adding: bool


class Peer(Protocol):
    """A broker, as others ask it."""

    def admit(self, admission: Admission) -> Later[Refusals]:
        """Asked of the transaction's coordinator: the partitions that may not, and why."""
        ...

    def write_markers(self, marker: Marker) -> Later[Outcomes]:
        """Asked of the partitions' leader: what became of each, once it is committed."""
        ...
