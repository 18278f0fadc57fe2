"""The cluster as brokers and handlers see it: the image, changes to it, and who is told of them.

Owns the order of things: decide, append, replay, tell those who subscribed, answer. When an append
fails nothing has changed. One Cluster serves every broker of this process; it is their controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import refusal
from kafkalite.coordinators.cluster.absence import AWAY, Absence
from kafkalite.coordinators.cluster.activation import activation_records
from kafkalite.coordinators.cluster.brokers import (
    PRODUCER_ID_BLOCK,
    AllocateProducerIds,
    AssignDirectories,
    DirectoriesOffline,
    FenceBroker,
    RegisterBroker,
)
from kafkalite.coordinators.cluster.deciding import INTERNAL_TOPICS
from kafkalite.coordinators.cluster.features import KRAFT_VERSION, check_finalized
from kafkalite.coordinators.cluster.folding import Folded
from kafkalite.coordinators.cluster.image import BROKER, Changes, Image
from kafkalite.coordinators.cluster.internal_topics import internal_topic
from kafkalite.coordinators.cluster.line import Line
from kafkalite.coordinators.cluster.metadata_log import MetadataLog, Snapshot
from kafkalite.coordinators.cluster.nodes import Node, Reached, nodes_for
from kafkalite.coordinators.cluster.publishing import AtOnce, Publishing, Subscriber
from kafkalite.coordinators.cluster.shard import ClusterShard
from kafkalite.coordinators.cluster.writing import records_of
from kafkalite.coordinators.effects import Effects, Refused
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, caught, finish
from kafkalite.log.directory import WrongDirectory
from kafkalite.log.home import LogHome
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest
from kafkalite.records.record import BatchBuilder

logger = logging.getLogger(__name__)

CURES = {
    Error.INVALID_REPLICATION_FACTOR: "Lower default.replication.factor, or start more brokers.",
}
MAX_UNCREATED = 100  # topics whose failed creation is remembered, so that it is told once

_SNAPSHOT = object()  # in place of an event

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class _Enacted:
    """The answer to an event, and what it changed, if it changed anything."""

    reply: Any
    changes: Changes | None


class Cluster:
    """Metadata of the cluster whose controller this process is."""

    def __init__(
        self,
        env: Env,
        home: LogHome,
        config: BrokerConfig,
        cluster_id: str,
        node_id: int,
        directory_id: bytes = bytes(16),
    ) -> None:
        """Reads the metadata; nothing is written before `open`. Raises UnusableMetadata."""
        self.env = env
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.shard = ClusterShard(config, env.random)
        segment_bytes = config.get_int("metadata.log.segment.bytes")
        self.log = MetadataLog(home, node_id, segment_bytes, directory_id)
        self._publishing = Publishing()
        self._line = Line(env.slices, self._enact, self._enacted)
        self._snapshot_timer: Timer | None = None
        self._is_snapshot_due = False
        self._uncreated: dict[str, Error] = {}
        self.absence = Absence(env.clock, self._line)
        self._found: MetadataLog | None = None  # by a controller that comes back
        self._read()

    @property
    def image(self) -> Image:
        """The metadata as it stands."""
        return self.shard.image

    @property
    def controller_epoch(self) -> int:
        """The epoch that this controller leads in."""
        return self.log.epoch

    @property
    def finalized_features(self) -> dict[str, int]:
        """The levels of all features; that of kraft.version is the metadata log's own."""
        kraft_version = self.log.quorum.kraft_version
        own = {KRAFT_VERSION: kraft_version} if kraft_version else {}
        return {**self.image.features, **own}

    @property
    def features_epoch(self) -> int:
        """The offset up to which finalized features are known: that of the last record."""
        return self.shard.view.next_offset - 1

    @property
    def is_fsynced(self) -> bool:
        """Whether a reply waits until its records are on stable storage."""
        return self.config.fsync_every_append

    @property
    def lasts(self) -> bool:
        """Whether all of the metadata is as durable as is configured. While it is not, nobody is
        told of it, and nothing is done because of it that cannot be undone."""
        return self.log.is_durable or not self.is_fsynced

    # --- start and stop -------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for message in self.log.read_all():
                self.shard.fold(message)
            self.shard.view.next_offset = self.log.stored.end_offset
            check_finalized(self.image)
            self._activation = activation_records(self.shard, self.env.disk, self.log.home.path)
        except refusal.CAUSES as cause:
            raise refusal.unusable(self.log.directory, cause) from cause
        self.shard.take_changes()
        self.shard.view.kraft_version = self.log.quorum.kraft_version

    def open(self) -> None:
        """Takes the lead: from here on records are written. Also of one that comes back."""
        if self._found is not None:
            self.log, self._found = self._found, None
        self.log.open()
        self.log.begin_epoch()
        self.shard.view.next_offset = self.log.end_offset
        self._write(Effects(records=self._activation))
        self._arm_snapshot_timer()
        self.absence.end()

    def leave(self) -> None:
        """As `close`, while other brokers of this process go on with the metadata as it is: what
        is asked of the controller waits for its return."""
        self.absence.begin()
        self._close_log()

    def come_back(self, home: LogHome, directory_id: bytes) -> None:
        """Finds the log of a controller that has left. Nothing is written before `open`."""
        log = MetadataLog(home, self.node_id, self.log.config.segment_bytes, directory_id)
        try:
            for _ in log.read_all():
                pass
        except refusal.CAUSES as cause:
            raise refusal.unusable(log.directory, cause) from cause
        if log.stored.end_offset != self.shard.view.next_offset:
            raise WrongDirectory(
                f"{log.directory} ends at {log.stored.end_offset}, and not at "
                f"{self.shard.view.next_offset}, where the controller left it"
            )
        self._found, self._activation = log, []

    def close(self) -> None:
        """Writes a last snapshot and puts everything on stable storage."""
        self.abandon()
        self._close_log()

    def _close_log(self) -> None:
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        self.log.end_background()
        if self.log.bytes_since_snapshot or self._is_snapshot_due:
            self.write_snapshot()
        try:
            self.log.close()
        except OSError as error:
            logger.error("the cluster's metadata is not closed cleanly: %s", error)

    def abandon(self) -> None:
        """Writes no more by itself, and decides nothing more."""
        self.absence.abandon()
        self.log.end_background()
        self._line.stop(KafkaError(Error.NOT_CONTROLLER, "the controller is stopping"))
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()

    # --- changes --------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber, at_once: AtOnce | None = None) -> None:
        """Has a callback told of every change, after it is in the image and before its reply; and
        another one in the turn in which the image changes."""
        self._publishing.subscribe(subscriber, at_once)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Tells a callback no more."""
        self._publishing.unsubscribe(subscriber)

    def decide(self, event: Any) -> Any:
        """Has an event decided and enacted at once, however long it takes; raises KafkaError when
        it is refused. For what a broker's start, end and failed disks ask."""
        self.absence.check()
        self._line.finish_current()
        enacted = finish(self._enact(event))
        self._publish(enacted)
        return enacted.reply

    def submit(self, event: Any) -> Later[Any]:
        """As `decide`, but in line and between everything else. The reply comes when everybody
        here is through with what was changed, and it lasts, as does what others changed before:
        Refused when there is no other, KafkaError when that cannot be made to last."""
        answer: Later[Any] = self._line.submit(event)
        self.absence.limit(answer)
        return answer

    def once_it_lasts(self, reply: T) -> Later[T | KafkaError]:
        """A reply that comes when all records so far are as durable as is configured; an error in
        its place when their disk fails."""
        if self.lasts:
            return Later.of(reply)
        return self.log.when_durable().map(lambda error: reply if error is None else error)

    def once_durable(self, then: Callable[[], None]) -> None:
        """Goes on when all records so far are on stable storage: never when their disk fails, and
        the broker then ends."""
        self.log.when_durable().then(lambda error: then() if error is None else None)

    def _enact(self, event: Any) -> Steps[_Enacted]:
        if event is _SNAPSHOT:
            yield from self._begin_snapshot()
            return _Enacted(None, None)
        effects = yield from self.shard.decide(event)
        if not effects.records:
            return _Enacted(effects.reply, None)
        batch = yield from self.log.batch_of(effects.records)
        prepared = yield from self.shard.prepare(effects.records)
        return _Enacted(effects.reply, self._commit(batch, prepared))

    def _commit(self, batch: BatchBuilder, prepared: list[Any] | Folded) -> Changes:
        """In one go: whoever reads the image finds all of a decision that is in the log, and
        nothing else."""
        self.log.append(batch)
        changes = self.shard.take(prepared)
        self.shard.view.next_offset = self.log.end_offset
        if changes.configs:
            self._take_cluster_config(changes)
        return changes

    def _write(self, effects: Effects) -> None:
        """What nobody asked for."""
        if not effects.records:
            return
        batch = finish(self.log.batch_of(effects.records))
        prepared = finish(self.shard.prepare(effects.records))
        self._publish(_Enacted(effects.reply, self._commit(batch, prepared)))

    def _enacted(self, enacted: _Enacted, answer: Later[Any]) -> None:
        published = self._publish(enacted)
        published.then(lambda _: self.once_it_lasts(enacted.reply).then(answer.resolve))

    def _publish(self, enacted: _Enacted) -> Later[None]:
        if enacted.changes is None:
            return Later.of(None)
        published = self._publishing.publish(enacted.changes)
        if self.log.bytes_since_snapshot >= self._snapshot_bytes():
            self._snapshot_soon()
        return published

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

    def fence_at_stop(self, node_id: int) -> None:
        """Says that a broker has stopped, and nothing of its partitions: nobody else has them.
        Apache Kafka would otherwise wait for its session to end before it takes it back."""
        try:
            self.decide(FenceBroker(node_id, leaves_partitions=False))
        except KafkaError as error:
            logger.error(
                "the cluster's metadata does not say that broker %d stopped: %s", node_id, error
            )

    def fence_absent(self, present: Container[int] = ()) -> None:
        """When the controller starts, no other broker is up, whatever the log says of them: they
        are of its process, and register after it, but for those that went on without it."""
        for node_id in self.image.live_brokers():
            if node_id != self.node_id and node_id not in present:
                self.fence_broker(node_id)

    def assign_directories(self, node_id: int, directories: dict[tuple[bytes, int], bytes]) -> None:
        """Names the directories in which a broker has its replicas of partitions."""
        self.decide(AssignDirectories(node_id, directories))

    def directories_offline(self, node_id: int, directories: list[bytes]) -> None:
        """Takes failed directories of a broker out of service."""
        self.decide(DirectoriesOffline(node_id, directories))

    def allocate_producer_ids(self, node_id: int) -> Later[range | KafkaError]:
        """A block of producer ids for a broker. It comes when it lasts, so that nobody is given one
        of them again after a power cut."""

        def allocated(first: int | KafkaError | Refused) -> range | KafkaError:
            if isinstance(first, Refused):
                return first.error
            if isinstance(first, KafkaError):
                return first
            return range(first, first + PRODUCER_ID_BLOCK)

        if self.absence.is_now:
            return Later.of(KafkaError(Error.COORDINATOR_LOAD_IN_PROGRESS, AWAY))
        return self.submit(AllocateProducerIds(node_id)).map(allocated)

    def nodes_for(self, connection: Reached, *, with_fenced: bool = False) -> list[Node]:
        """Brokers as the client at the other end should reach them, by id."""
        return nodes_for(self.image, connection, with_fenced=with_fenced)

    def create_missing(self, names: Iterable[str]) -> Later[dict[str, Error]]:
        """Creates topics that were asked for and are missing; tells what came of each."""
        missing = [name for name in names if name not in self.image.topics]
        if self.absence.is_now:  # as of any that is on its way, for who asks again
            return Later.of(dict.fromkeys(missing, Error.UNKNOWN_TOPIC_OR_PARTITION))
        request = CreateTopicsRequest(topics=[self._by_default(name) for name in missing])

        def outcomes(response: Any) -> dict[str, Error]:
            if isinstance(response, Refused):
                response = response.error
            if isinstance(response, KafkaError):
                for name in missing:
                    self._tell_uncreated(name, Error(response.code), response.message)
                return dict.fromkeys(missing, Error(response.code))
            for each in response.topics:
                code = Error(each.error_code)
                self._tell_uncreated(each.name, code, _with_cure(code, each.error_message))
            return {each.name: Error(each.error_code) for each in response.topics}

        return self.submit(request).map(outcomes)

    def _tell_uncreated(self, name: str, code: Error, why: str | None) -> None:
        """Who asked hears a code that says nothing of the settings, and asks again and again."""
        if code in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
            self._uncreated.pop(name, None)
        elif self._uncreated.get(name) != code and len(self._uncreated) < MAX_UNCREATED:
            self._uncreated[name] = code
            logger.warning("topic %s was asked for and cannot be created: %s", name, why or code)

    def _by_default(self, name: str) -> CreateTopicsRequest.Topic:
        if name in INTERNAL_TOPICS:
            return internal_topic(self.config, name, len(self.image.live_brokers()))
        return CreateTopicsRequest.Topic(name=name, num_partitions=-1, replication_factor=-1)

    def create_internal_topic(self, name: str) -> Later[Any]:
        """Creates one of Kafka's own topics unless it is there; the value is None or an error."""

        def outcome(outcomes: dict[str, Error]) -> KafkaError | None:
            code = outcomes.get(name, Error.NONE)
            return None if code is Error.NONE else KafkaError(code)

        return self.create_missing([name]).map(outcome)

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is one of Kafka's own."""
        return topic in INTERNAL_TOPICS

    # --- snapshots ------------------------------------------------------------------------------

    def write_snapshot(self) -> None:
        """Writes the image, and drops from the log what it covers, however long it takes. Without
        it the log has all."""
        self._line.finish_current()
        try:
            self.log.write_now(finish(self._snapshot()))
        except OSError as error:
            self._snapshot_ended(error)
        else:
            self._snapshot_ended(None)

    def _snapshot_soon(self) -> None:
        """In line with what is decided, so that nothing changes while the image is encoded; a
        worker writes it. One at a time."""
        if not self._is_snapshot_due:
            self._is_snapshot_due = True
            self._line.submit(_SNAPSHOT)

    def _begin_snapshot(self) -> Steps[None]:
        snapshot = yield from caught(self._snapshot())
        if isinstance(snapshot, Exception):
            self._snapshot_ended(snapshot)
        else:
            self.log.write_later(snapshot, self._snapshot_ended)

    def _snapshot(self) -> Steps[Snapshot]:
        assert not self.shard.is_in_transaction, "a snapshot would leave out what is held back"
        image = self.image
        return (yield from self.log.snapshot(records_of(image), image.metadata_version))

    def _snapshot_ended(self, outcome: BaseException | None) -> None:
        self._is_snapshot_due = False
        if isinstance(outcome, OSError):
            logger.warning("no snapshot of the cluster's metadata could be written: %s", outcome)
            self.log.home.storage_error(outcome)
        elif outcome is not None:
            raise outcome

    def _snapshot_bytes(self) -> int:
        return self.config.get_int("metadata.log.max.record.bytes.between.snapshots")

    def _arm_snapshot_timer(self) -> None:
        interval_ms = self.config.get_int("metadata.log.max.snapshot.interval.ms")
        if interval_ms > 0:
            self._snapshot_timer = self.env.clock.call_later(interval_ms, self._snapshot_is_due)

    def _snapshot_is_due(self) -> None:
        if self.log.bytes_since_snapshot:
            self._snapshot_soon()
        self._arm_snapshot_timer()


def _with_cure(code: Error, why: str | None) -> str | None:
    """Why a topic cannot be created, and what its owner can do about it where that is known."""
    return f"{why} {CURES[code]}" if code in CURES else why
