"""How fast one side of replication goes, where somebody holds it back (KIP-73).

Owns what came lately of the partitions that are throttled, and the rate that it is held against. A
topic names its throttled replicas, the broker the rate; both may change while it runs. Who is in
sync is never held back: that is for its callers to look at.
"""

from __future__ import annotations

from kafkalite.config import BrokerConfig
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass
from kafkalite.quotas.rates import SimpleRate, Window
from kafkalite.replication.partition import Partition

EVERY_REPLICA = "*"


@dataclass(slots=True, frozen=True)
class Side:
    """The broker's rate, and what a log's settings name the replicas that it is for."""

    rate: str
    replicas: str


LEADER = Side("leader.replication.throttled.rate", "leader_replication_throttled_replicas")
FOLLOWER = Side("follower.replication.throttled.rate", "follower_replication_throttled_replicas")


class Throttle:
    """Of one broker, as a leader or as a follower."""

    def __init__(self, config: BrokerConfig, clock: Clock, side: Side) -> None:
        self._config, self._clock, self._side = config, clock, side
        self._rate = SimpleRate(
            Window(
                config.get_int("replication.quota.window.num"),
                config.get_int("replication.quota.window.size.seconds") * 1_000,
            )
        )

    def concerns(self, partition: Partition) -> bool:
        """Whether the replica here is one of those that its topic has throttled on this side."""
        replicas: frozenset[str] = getattr(partition.log.config, self._side.replicas)
        return bool(replicas) and (
            EVERY_REPLICA in replicas or f"{partition.index}:{partition.node_id}" in replicas
        )

    def record(self, size: int) -> None:
        """So many bytes of throttled partitions went by."""
        self._rate.record(self._clock.monotonic_ms(), size)

    @property
    def is_exceeded(self) -> bool:
        """Whether nothing throttled may go on now."""
        limit = self._config.get_int(self._side.rate)
        return self._rate.value(self._clock.monotonic_ms()) > limit
