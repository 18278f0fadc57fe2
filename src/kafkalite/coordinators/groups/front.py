"""The way into the group coordinator: from a group's id to the shard that answers for it.

Owns the shards of `__consumer_offsets` on this broker and tells them of changed topics. Knows
no request of the protocol: handlers hand it events. Invariant: a partition has a shard exactly
while this broker leads it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, cast

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.groups.classic_timers import session_key
from kafkalite.coordinators.groups.events import (
    InitializeShares,
    SharesInitialized,
    SharesNotInitialized,
    TopicsChanged,
    TopicsDeleted,
)
from kafkalite.coordinators.groups.gathering import Gathering, LookUps
from kafkalite.coordinators.groups.settings import GroupSettings, MigrationPolicy
from kafkalite.coordinators.groups.topics import Topics
from kafkalite.coordinators.ports import Partition
from kafkalite.coordinators.shards import Shards, partition_of
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps
from kafkalite.protocol.errors import Error, KafkaError

if TYPE_CHECKING:
    from kafkalite.coordinators.groups.shard import GroupShard
    from kafkalite.coordinators.runtime import Runtime
    from kafkalite.env.slicing import Pace

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"

# Asks share coordinators to begin with partitions, by group and epoch: what came of each.
Outcomes = dict[tuple[bytes, int], KafkaError | None]
Initialize = Callable[[str, dict[tuple[bytes, int], int], int], Later[Outcomes]]


class Groups(Shards):
    """The group coordinator of one broker."""

    def __init__(
        self,
        env: Env,
        settings: GroupSettings,
        topics: Topics,
        partition_count: Callable[[], int],
        initialize: Initialize | None = None,
    ) -> None:
        super().__init__(
            env, OFFSETS_TOPIC, partition_count, self._make_shard, deliver=self._deliver,
            append_timeout_ms=settings.offset_commit_timeout_ms,
        )  # fmt: skip
        self._initialize = initialize
        self._settings = settings
        self._topics = topics
        self._pace: Pace | None = None
        self._look_ups = LookUps()

    def _make_shard(self) -> GroupShard:
        # Imported when there is a group: a tenth of all that a start would otherwise import.
        from kafkalite.coordinators.groups.shard import GroupShard
        from kafkalite.coordinators.groups.state import GroupsState, new_pace

        self._pace = self._pace or new_pace()
        state = GroupsState(
            self._settings, self._topics, self.env.random, pace=self._pace, look_ups=self._look_ups
        )
        return GroupShard(state)

    def _deliver(self, index: int, sent: object) -> None:
        assert isinstance(sent, InitializeShares), sent
        assert self._initialize is not None, "nobody keeps the state of shared partitions"
        runtime = self.runtimes[index]
        shard = cast("GroupShard | None", runtime.shard)
        if shard is not None:
            asked, now_ms = shard.state.initialize_asked_ms, self.env.clock.now_ms()
            asked.update(((sent.group_id, topic_id), now_ms) for topic_id, _ in sent.starts)
        self.initialize_shares(sent)

    def initialize_shares(self, what: InitializeShares) -> Later[Outcomes]:
        """Has share coordinators begin, and the group told when all of them have."""
        assert self._initialize is not None, "nobody keeps the state of shared partitions"

        def initialized(outcomes: Outcomes) -> Later[Outcomes]:
            partitions = _by_topic(outcomes)
            failure = next((one for one in outcomes.values() if one is not None), None)
            kind = SharesInitialized if failure is None else SharesNotInitialized
            if failure is not None:
                log.warning(
                    "partitions of share group %r are not initialized, and will be tried again:"
                    " %s", what.group_id, failure,
                )  # fmt: skip
            told = self.submit(what.group_id, kind(what.group_id, partitions))
            return told.map(lambda _: outcomes)

        asked = self._initialize(what.group_id, what.starts, what.state_epoch)
        return asked.then_ask(initialized)

    def is_share_group(self, group_id: str) -> bool:
        """Whether this is the coordinator of a share group of that name."""
        runtime = self._runtime(group_id)
        shard = None if runtime is None else cast("GroupShard | None", runtime.shard)
        return shard is not None and shard.state.share_group(group_id) is not None

    def looked_up(self, group_id: str, client: Hashable) -> None:
        """Somebody asked where this group's coordinator is, and will come to it."""
        self._look_ups.note(group_id, client, self.env.clock.now_ms())

    def streams_heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members of a streams group are heard of."""
        return self._settings.streams_heartbeat_interval_ms(group_id)

    def spare(self, group_id: str, member_id: str, by_ms: int) -> None:
        """A member that cannot have given a sign of life for so long is none the deader for it."""
        runtime = self._runtime(group_id)
        if runtime is not None:
            runtime.deadlines.postpone(session_key(group_id, member_id), by_ms)

    def has_members(self, group_id: str) -> bool:
        """Whether this is the coordinator of a group that has some."""
        runtime = self._runtime(group_id)
        shard = None if runtime is None else cast("GroupShard | None", runtime.shard)
        group = None if shard is None else shard.state.groups.get(group_id)
        return bool(getattr(group, "members", None))

    def _runtime(self, group_id: str) -> Runtime | None:
        count = self.partition_count()
        return self.runtimes.get(partition_of(group_id, count)) if count else None

    def partition(self, group_id: str) -> Partition | None:
        """The log of this group's coordinator, when it is on this broker."""
        runtime = self._runtime(group_id)
        return None if runtime is None else runtime.partition

    def by_shard(self, group_ids: list[str]) -> Steps[dict[str, list[str]]]:
        """Group ids sorted by shard, each shard named by its first group's id."""
        count = self.partition_count()
        if count == 0:  # nobody has any of them
            ids = list(dict.fromkeys(group_ids))
            return {ids[0]: ids} if ids else {}
        sorted_ids: dict[int, list[str]] = {}
        for number, group_id in enumerate(group_ids):
            if number and number % ELEMENTS_PER_STEP == 0:
                yield
            sorted_ids.setdefault(partition_of(group_id, count), []).append(group_id)
        return {ids[0]: ids for ids in sorted_ids.values()}

    def end_transaction(
        self,
        index: int,
        producer: Producer,
        coordinator_epoch: int,
        is_commit: bool,
        transaction_version: int = 0,
    ) -> Later[KafkaError | None]:
        """Ends a transaction in one partition of __consumer_offsets."""
        runtime = self.runtimes.get(index)
        if runtime is None:
            return Later.of(KafkaError(Error.NOT_COORDINATOR))
        return runtime.end_transaction(producer, coordinator_epoch, is_commit, transaction_version)

    def on_topics_changed(self, names: list[str]) -> None:
        """Topics were created, deleted or given partitions: groups may have to rebalance."""
        self.submit_all(lambda: TopicsChanged(names))

    def on_topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Topics, by name and id, are gone: their committed offsets go too."""
        self.submit_all(lambda: TopicsDeleted(topics))


def _by_topic(places: Iterable[tuple[bytes, int]]) -> dict[bytes, tuple[int, ...]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in places:
        topics.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in topics.items()}


def settings_of(config: BrokerConfig) -> GroupSettings:
    """The broker's configuration, as the group coordinator reads it; but for intervals none of it
    is dynamic."""
    policy = config.get_str("group.consumer.migration.policy").lower()
    return GroupSettings(
        min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
        gathering=None if config.is_given("group.initial.rebalance.delay.ms") else Gathering(),
        max_size=config.get_int("group.max.size"),
        offset_metadata_max_bytes=config.get_int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.get_int("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.get_int("offsets.retention.check.interval.ms"),
        offset_commit_timeout_ms=config.get_int("offsets.commit.timeout.ms"),
        consumer_session_timeout_ms=config.get_int("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.get_int("group.consumer.heartbeat.interval.ms"),
        consumer_assignment_ms=lambda: config.get_int("group.consumer.assignment.interval.ms"),
        consumer_max_size=config.get_int("group.consumer.max.size"),
        consumer_regex_refresh_ms=config.get_int("group.consumer.regex.refresh.interval.ms"),
        consumer_assignors=config.get_list("group.consumer.assignors"),
        consumer_migration_policy=MigrationPolicy(policy),
        share_session_ms=config.get_int("group.share.session.timeout.ms"),
        share_heartbeat_ms=config.get_int("group.share.heartbeat.interval.ms"),
        share_assignment_ms=lambda: config.get_int("group.share.assignment.interval.ms"),
        share_max_size=config.get_int("group.share.max.size"),
        share_initialize_retry_ms=config.get_int("group.share.initialize.retry.interval.ms"),
        streams_session_ms=config.get_int("group.streams.session.timeout.ms"),
        streams_heartbeat_ms=config.get_int("group.streams.heartbeat.interval.ms"),
        streams_assignment_ms=lambda: config.get_int("group.streams.assignment.interval.ms"),
        streams_initial_delay_ms=config.get_int("group.streams.initial.rebalance.delay.ms"),
        streams_standby_replicas=config.get_int("group.streams.num.standby.replicas"),
        streams_max_size=config.get_int("group.streams.max.size"),
    )
