"""What an image is made of: topics, partitions, brokers, and how settings and quotas are named.

Owns these as values; what each record does to them is image.py's.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass, field

NO_LEADER = -1

TOPIC, BROKER, GROUP = 2, 4, 32  # the kinds of resources
RESOURCE = tuple[int, str]
# The parts of a quota's entity, sorted: (("client-id", "x"), ("user", None)); None is the default.
QuotaEntity = tuple[tuple[str, str | None], ...]


@dataclass(slots=True, frozen=True)
class PartitionState:
    """One partition as the cluster sees it; replaced, never changed."""

    topic_id: bytes
    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0

    @property
    def preferred_leader(self) -> int:
        """The replica that leads when all is well."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Whether a move to other replicas is under way."""
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(slots=True)
class Topic:
    """A topic and its partitions by index."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionState] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class EndPoint:
    """Where a broker or controller is reached under one listener name."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(slots=True, frozen=True)
class BrokerState:
    """A broker's registration; replaced, never changed."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[EndPoint, ...]
    features: tuple[tuple[str, int, int], ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]
    # None until the broker has told them.
    cordoned_log_dirs: tuple[bytes, ...] | None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether new partitions and leaderships may go there."""
        return not self.is_fenced and not self.in_controlled_shutdown
