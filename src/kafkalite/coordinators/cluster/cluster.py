"""The cluster as brokers and handlers see it: the image, changes to it, and who is told of them.

Owns the order of things: decide, append, replay, tell those who subscribed, answer. When an append
fails nothing has changed. One Cluster serves every broker of this process; it is their controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import (
    PRODUCER_ID_BLOCK,
    AllocateProducerIds,
    FenceBroker,
    RegisterBroker,
)
from kafkalite.coordinators.cluster.deciding import INTERNAL_TOPICS, decided
from kafkalite.coordinators.cluster.features import INITIAL
from kafkalite.coordinators.cluster.image import BROKER, Changes, Image
from kafkalite.coordinators.cluster.internal_topics import internal_topic
from kafkalite.coordinators.cluster.metadata_log import MetadataLog
from kafkalite.coordinators.cluster.nodes import Node, Reached, nodes_for
from kafkalite.coordinators.cluster.shard import ClusterShard
from kafkalite.coordinators.cluster.writing import records_of
from kafkalite.coordinators.effects import Effects
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.later import Later
from kafkalite.log.home import LogHome
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    BeginTransactionRecord,
    ConfigRecord,
    CreateTopicsRequest,
    EndTransactionRecord,
    FeatureLevelRecord,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Subscriber = Callable[[Changes], None]


class Cluster:
    """Metadata of the cluster whose controller this process is."""

    def __init__(
        self, env: Env, home: LogHome, config: BrokerConfig, cluster_id: str, node_id: int
    ) -> None:
        self.env = env
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.shard = ClusterShard(config, env.random)
        self.log = MetadataLog(home, node_id, config.get_int("metadata.log.segment.bytes"))
        self._subscribers: list[Subscriber] = []
        self._producer_ids: dict[int, range] = {}
        self._snapshot_timer: Timer | None = None
        self._load()

    @property
    def image(self) -> Image:
        """The metadata as it stands."""
        return self.shard.image

    @property
    def controller_epoch(self) -> int:
        """The epoch that this controller leads in."""
        return self.log.epoch

    @property
    def features_epoch(self) -> int:
        """The offset up to which finalized features are known: that of the last record."""
        return self.log.end_offset - 1

    @property
    def is_fsynced(self) -> bool:
        """Whether a reply waits until its records are on stable storage."""
        return self.config.fsync_every_append

    # --- start and stop -------------------------------------------------------------------------

    def _load(self) -> None:
        for message in self.log.read_all():
            self.shard.fold(message)
        self.shard.loaded(self.env.clock.now_ms())
        self.shard.take_changes()
        self.log.begin_epoch()
        self.shard.view.next_offset = self.log.end_offset
        if not self.image.features:
            self._enact(decided(self._first_records(), None))
        self._arm_snapshot_timer()

    def _first_records(self) -> Iterable[Any]:
        """What a new cluster begins with; as Kafka writes it, in a transaction."""
        least_isr = str(self.config.get_int("min.insync.replicas"))
        yield BeginTransactionRecord(name="Bootstrap records")
        for name, level in INITIAL.items():
            yield FeatureLevelRecord(name=name, feature_level=level)
        # With eligible leader replicas the least in-sync count is the cluster's, not a broker's.
        yield ConfigRecord(
            resource_type=BROKER, resource_name="", name="min.insync.replicas", value=least_isr
        )
        yield EndTransactionRecord()

    def close(self) -> None:
        """Writes a last snapshot and puts everything on stable storage."""
        self.abandon()
        if self.log.bytes_since_snapshot:
            self.write_snapshot()
        try:
            self.log.close()
        except OSError as error:
            logger.error("the cluster's metadata is not closed cleanly: %s", error)

    def abandon(self) -> None:
        """Writes no more by itself."""
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()

    # --- changes --------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber) -> None:
        """Has a callback told of every change, after it is in the image and before its reply."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Tells a callback no more."""
        self._subscribers.remove(subscriber)

    def decide(self, event: Any) -> Any:
        """Has an event decided and enacted at once; raises KafkaError when it is refused."""
        effects = self.shard.decide(event, self.env.clock.now_ms())
        self._enact(effects)
        return effects.reply

    def submit(self, event: Any) -> Later[Any]:
        """As `decide`, but the reply comes when the records are as durable as is configured."""
        end_offset = self.log.end_offset
        reply = self.decide(event)
        return Later.of(reply) if self.log.end_offset == end_offset else self._once_durable(reply)

    def _once_durable(self, reply: T) -> Later[T]:
        """A reply that comes when all records so far are as durable as is configured."""
        if not self.is_fsynced:
            return Later.of(reply)
        later: Later[T] = Later()
        self.once_durable(lambda: later.resolve(reply))
        return later

    def once_durable(self, then: Callable[[], None]) -> None:
        """Goes on when all records so far are on stable storage: never when their disk fails, and
        the broker then ends."""
        end_offset = self.log.end_offset

        def told(durable: int) -> None:
            if durable >= end_offset:
                then()

        self.log.when_durable().then(told)

    def _enact(self, effects: Effects) -> None:
        if not effects.records:
            return
        self.log.append(effects.records)
        for record in effects.records:
            self.shard.replay(record)
        self.shard.view.next_offset = self.log.end_offset
        changes = self.shard.take_changes()
        if changes.configs:
            self._take_cluster_config(changes)
        for subscriber in list(self._subscribers):
            subscriber(changes)
        if self.log.bytes_since_snapshot >= self._snapshot_bytes():
            self.write_snapshot()

    def _take_cluster_config(self, changes: Changes) -> None:
        """The controller decides by the settings of its own broker."""
        own = (BROKER, str(self.node_id))
        if own in changes.configs or (BROKER, "") in changes.configs:
            self.apply_dynamic_config(self.config, self.node_id)

    def apply_dynamic_config(self, config: BrokerConfig, node_id: int) -> None:
        """Gives a broker's configuration the dynamic settings that the image has for it."""
        image = self.image
        config.set_dynamic(image.config(BROKER, ""), image.config(BROKER, str(node_id)))

    # --- brokers --------------------------------------------------------------------------------

    def register_broker(self, registration: RegisterBroker) -> int:
        """Registers a broker that has started; returns its epoch."""
        epoch = self.decide(registration)
        assert isinstance(epoch, int)
        return epoch

    def fence_broker(self, node_id: int) -> None:
        """Takes a broker out of service."""
        self.decide(FenceBroker(node_id))

    def fence_absent(self) -> None:
        """When the controller starts, no other broker is up, whatever the log says of them: they
        are of its process, and register after it."""
        for node_id in self.image.live_brokers():
            if node_id != self.node_id:
                self.fence_broker(node_id)

    def next_producer_id(self, node_id: int | None = None) -> int:
        """A producer id that nobody has; blocks of them are taken from the log."""
        node_id = self.node_id if node_id is None else node_id
        block = self._producer_ids.get(node_id, range(0))
        if not block:
            first = self.decide(AllocateProducerIds(node_id))
            block = range(first, first + PRODUCER_ID_BLOCK)
        self._producer_ids[node_id] = block[1:]
        return block[0]

    def give_producer_id(self) -> Later[int]:
        """A producer id for somebody who writes it nowhere: it comes when its block lasts, so that
        nobody is given it again after a power cut."""
        return self._once_durable(self.next_producer_id())

    def nodes_for(self, connection: Reached, *, with_fenced: bool = False) -> list[Node]:
        """Brokers as the client at the other end should reach them, by id."""
        return nodes_for(self.image, connection, with_fenced=with_fenced)

    def create_missing(self, names: Iterable[str]) -> Later[dict[str, Error]]:
        """Creates topics that were asked for and are missing; tells what came of each."""
        missing = [name for name in names if name not in self.image.topics]
        request = CreateTopicsRequest(topics=[self._by_default(name) for name in missing])
        outcomes: Later[dict[str, Error]] = Later()

        def answered(response: Any) -> None:
            outcomes.resolve({each.name: Error(each.error_code) for each in response.topics})

        try:
            self.submit(request).then(answered)
        except KafkaError as error:
            return Later.of(dict.fromkeys(missing, error.code))
        return outcomes

    def _by_default(self, name: str) -> CreateTopicsRequest.Topic:
        if name in INTERNAL_TOPICS:
            return internal_topic(self.config, name, len(self.image.live_brokers()))
        return CreateTopicsRequest.Topic(name=name, num_partitions=-1, replication_factor=-1)

    def create_internal_topic(self, name: str) -> Later[Any]:
        """Creates one of Kafka's own topics unless it is there; the value is None or an error."""
        later: Later[Any] = Later()

        def answered(outcomes: dict[str, Error]) -> None:
            code = outcomes.get(name, Error.NONE)
            later.resolve(None if code is Error.NONE else KafkaError(code))

        self.create_missing([name]).then(answered)
        return later

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is one of Kafka's own."""
        return topic in INTERNAL_TOPICS

    # --- snapshots ------------------------------------------------------------------------------

    def write_snapshot(self) -> None:
        """Writes the image, and drops from the log what it covers. Without it the log has all."""
        try:
            snapshot = self.log.write_snapshot(records_of(self.image))
        except OSError as error:
            logger.warning("no snapshot of the cluster's metadata could be written: %s", error)
            self.log.home.storage_error(error)
        else:
            logger.debug("metadata snapshot %s", snapshot.file_name)

    def _snapshot_bytes(self) -> int:
        return self.config.get_int("metadata.log.max.record.bytes.between.snapshots")

    def _arm_snapshot_timer(self) -> None:
        interval_ms = self.config.get_int("metadata.log.max.snapshot.interval.ms")
        if interval_ms > 0:
            self._snapshot_timer = self.env.clock.call_later(interval_ms, self._snapshot_is_due)

    def _snapshot_is_due(self) -> None:
        if self.log.bytes_since_snapshot:
            self.write_snapshot()
        self._arm_snapshot_timer()
