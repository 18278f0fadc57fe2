"""The settings of the group coordinator, as the shards read them.

Owns their names here and Apache Kafka's defaults, but for the initial rebalance delay and the
interval between the assignments of a consumer group: a lone consumer on a laptop should not wait
three seconds, nor one more of them a second. The composition root fills them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.env.dataclasses import dataclass, field

MAX_INT = 2**31 - 1


class MigrationPolicy(Enum):
    """Which way a group may change protocol while it has members."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


def _no_override(group_id: str, name: str) -> int | None:
    return None


@dataclass(slots=True)
class GroupSettings:
    # Classic groups.
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    # In place of the delay, unless somebody has set that; new consumer groups do likewise.
    gathering: Gathering | None = None
    max_size: int = MAX_INT
    new_member_join_timeout_ms: int = 300_000
    # Offsets.
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    offset_commit_timeout_ms: int = 5_000
    # Consumer groups (KIP-848).
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_assignment_ms: Callable[[], int] = lambda: 0
    consumer_max_size: int = MAX_INT
    consumer_regex_refresh_ms: int = 600_000
    consumer_assignors: list[str] = field(default_factory=lambda: ["uniform", "range"])
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    # Share groups (KIP-932).
    share_session_ms: int = 45_000
    share_heartbeat_ms: int = 5_000
    share_assignment_ms: Callable[[], int] = lambda: 1_000
    share_max_size: int = 200
    share_initialize_retry_ms: int = 30_000
    # Streams groups (KIP-1071).
    streams_session_ms: int = 45_000
    streams_heartbeat_ms: int = 5_000
    streams_assignment_ms: Callable[[], int] = lambda: 1_000
    streams_initial_delay_ms: int = 3_000
    streams_standby_replicas: int = 0
    streams_max_size: int = MAX_INT
    # Dynamic configs of one group (`consumer.session.timeout.ms` …), when it has any.
    group_override: Callable[[str, str], int | None] = _no_override

    def session_timeout_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "consumer.session.timeout.ms")
        return self.consumer_session_timeout_ms if override is None else override

    def heartbeat_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "consumer.heartbeat.interval.ms")
        return self.consumer_heartbeat_interval_ms if override is None else override

    def assignment_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "consumer.assignment.interval.ms")
        return self.consumer_assignment_ms() if override is None else override

    def share_session_timeout_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "share.session.timeout.ms")
        return self.share_session_ms if override is None else override

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "share.heartbeat.interval.ms")
        return self.share_heartbeat_ms if override is None else override

    def share_assignment_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "share.assignment.interval.ms")
        return self.share_assignment_ms() if override is None else override

    def streams_session_timeout_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "streams.session.timeout.ms")
        return self.streams_session_ms if override is None else override

    def streams_heartbeat_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "streams.heartbeat.interval.ms")
        return self.streams_heartbeat_ms if override is None else override

    def streams_assignment_interval_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "streams.assignment.interval.ms")
        return self.streams_assignment_ms() if override is None else override

    def streams_initial_rebalance_delay_ms(self, group_id: str) -> int:
        override = self.group_override(group_id, "streams.initial.rebalance.delay.ms")
        return self.streams_initial_delay_ms if override is None else override

    def streams_num_standby_replicas(self, group_id: str) -> int:
        override = self.group_override(group_id, "streams.num.standby.replicas")
        return self.streams_standby_replicas if override is None else override
