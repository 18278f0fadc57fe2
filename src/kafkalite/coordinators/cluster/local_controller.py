"""The controller that this process has itself.

Owns the order of things: decide, append, replay, tell those who follow, answer. One event at a
time; who follows and who asked are told between two events. One serves every broker of this
process. Invariants: when an append fails nothing has changed; the image is the fold of the log,
also after a mistake of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TypeVar, cast

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import refusal
from kafkalite.coordinators.cluster.absence import Absence
from kafkalite.coordinators.cluster.activation import activation_records
from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.coordinators.cluster.features import check_finalized
from kafkalite.coordinators.cluster.folding import Folded
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.image_records import records_of
from kafkalite.coordinators.cluster.line import Answer, Line
from kafkalite.coordinators.cluster.looks import looks_of
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.metadata_log import MetadataLog, Snapshot
from kafkalite.coordinators.cluster.sessions import Sessions
from kafkalite.coordinators.cluster.shard import ClusterShard
from kafkalite.coordinators.cluster.states import BROKER
from kafkalite.coordinators.effects import Effects, Record
from kafkalite.coordinators.events import Event
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, caught, emptied, finish
from kafkalite.log.directory import WrongDirectory
from kafkalite.log.home import LogHome
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.record import BatchBuilder

logger = logging.getLogger(__name__)

_SNAPSHOT = object()  # in place of an event

R = TypeVar("R")


@dataclass(slots=True, frozen=True)
class _Enacted:
    """The answer to an event, and what it changed, if it changed anything."""

    reply: object
    changes: Changes | None


class LocalController:
    """Decides on the metadata of the cluster, and keeps its log."""

    def __init__(
        self,
        env: Env,
        home: LogHome,
        config: BrokerConfig,
        metadata: Metadata,
        directory_id: bytes = bytes(16),
    ) -> None:
        self.env = env
        self.config = config
        self.metadata = metadata
        self.node_id = config.node_id
        self.shard = ClusterShard(metadata.image, config, env.random)
        segment_bytes = config.get_int("metadata.log.segment.bytes")
        self.log = MetadataLog(home, self.node_id, segment_bytes, directory_id)
        self._line = Line(env.slices, self._enact, self._enacted)
        self.absence = Absence(env.clock, self._line)
        self._looks = looks_of(env.clock, config, self.submit)
        timeout_ms = config.get_int("broker.session.timeout.ms")
        self.sessions = Sessions(env.clock, timeout_ms, self.submit)
        self._activation: list[Record] = []
        self._snapshot_timer: Timer | None = None
        self._is_snapshot_due = False
        # Called when the image is a guess that cannot be made good: nothing is decided any more.
        self.when_lost: Callable[[Exception], None] = lambda mistake: None
        self._is_lost = False
        self._found: MetadataLog | None = None  # by a controller that comes back
        # What is done when records last that were not on the disk when it failed.
        self._unsettled: list[Callable[[], None]] = []

    # --- start and stop -------------------------------------------------------------------------

    def read(self) -> None:
        """Reads the metadata; nothing is written before `open`. Raises UnusableMetadata."""
        try:
            for message in self.log.read_all():
                self.shard.fold(message)
            check_finalized(self.metadata.image)
            self._activation = activation_records(self.shard, self.env.disk, self.log.home.path)
        except refusal.CAUSES as cause:
            raise refusal.unusable(self.log.directory, cause) from cause
        self.shard.take_changes()
        self.shard.view.kraft_version = self.log.quorum.kraft_version
        self.shard.view.voters = self.log.quorum.voters or {}
        self.metadata.kraft_version = self.log.quorum.kraft_version
        self._stand_at(self.log.stored.end_offset)

    def _stand_at(self, end_offset: int) -> None:
        self.shard.view.next_offset = end_offset
        self.metadata.offset = end_offset - 1

    def open(self) -> None:
        """Takes the lead: from here on records are written. Also of one that comes back."""
        if self._found is not None:
            self.log, self._found = self._found, None
        self.log.open()
        self.log.begin_epoch()
        self.shard.view.epoch = self.log.epoch
        self._stand_at(self.log.end_offset)
        for look in self._looks:
            look.start()
        self._write(Effects(records=self._activation))
        self._arm_snapshot_timer()
        self.absence.end()
        unsettled, self._unsettled = self._unsettled, []
        for then in unsettled:
            self.once_durable(then)
        self.metadata.controller_id = self.node_id
        if self.config.fsync_every_append:
            self.metadata.ahead_of = self.log

    def leave(self) -> None:
        """As `close`, while other brokers of this process go on with the metadata as it is: what
        is asked of the controller waits for its return."""
        self.metadata.controller_id = None
        self.absence.begin()
        self._stop_looks()
        self._close_log()
        self.metadata.ahead_of = None

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
        has_more = self.log.bytes_since_snapshot or self._is_snapshot_due
        if has_more and not self._is_lost:
            self.write_snapshot()
        try:
            self.log.close()
        except OSError as error:
            logger.error("the cluster's metadata is not closed cleanly: %s", error)

    def _stop_looks(self) -> None:
        for look in self._looks:
            look.stop()

    def abandon(self) -> None:
        """Writes no more by itself, and decides nothing more."""
        self.absence.abandon()
        self._stop_looks()
        self.sessions.stop()
        self.log.end_background()
        self._line.stop(KafkaError(Error.NOT_CONTROLLER, "the controller is stopping"))
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()

    # --- changes --------------------------------------------------------------------------------

    def submit(self, event: Event[R]) -> Later[R | KafkaError]:
        """In line and between everything else."""
        answer: Later[R | KafkaError] = self._line.submit(event)
        self.absence.limit(answer)
        return answer

    def decide(self, event: Event[R]) -> R:
        """Has an event decided and enacted at once, however long it takes; raises KafkaError when
        it is refused. For a broker that cannot wait: at its start its port is bound, and nobody
        may come in before its roles are taken up; at its stop the log is closed next."""
        self.absence.check()
        if self._is_lost:
            raise KafkaError(Error.NOT_CONTROLLER, "the cluster's metadata is lost")
        self._line.finish_current()
        enacted = finish(self._enact(event))
        self._publish(enacted)
        if isinstance(enacted.reply, KafkaError):
            raise enacted.reply
        return cast(R, enacted.reply)

    def once_durable(self, then: Callable[[], None]) -> None:
        """Goes on when all records so far are on stable storage. When their disk fails that is
        once the controller is back, or never."""
        self.log.when_durable().then(
            lambda error: then() if error is None else self._unsettled.append(then)
        )

    def _enact(self, event: object) -> Steps[_Enacted]:
        if event is _SNAPSHOT:
            yield from self._begin_snapshot()
            return _Enacted(None, None)
        assert isinstance(event, Event)
        effects = yield from self.shard.decide(event)
        if not effects.records:
            return _Enacted(effects.reply, None)
        batch = yield from self.log.batch_of(effects.records)
        prepared = yield from self.shard.prepare(effects.records)
        yield from emptied(effects.records)
        return self._commit(batch, prepared, effects.reply)

    def _commit(
        self, batch: BatchBuilder, prepared: list[object] | Folded, reply: object
    ) -> _Enacted:
        """In one go: whoever reads the image finds all of a decision that is in the log, and
        nothing else."""
        self.log.append(batch)
        changes: Changes | None
        try:
            changes = self.shard.take(prepared)
        except Exception as mistake:
            logger.exception("the cluster's metadata was not folded; loading it again")
            changes = self._load_again()
            reply = OutcomeUnknown(Error.UNKNOWN_SERVER_ERROR, f"not folded: {mistake}")
        self._stand_at(self.log.end_offset)
        if changes is not None and changes.configs:
            self._take_own_config(changes)
        return _Enacted(reply, changes)

    def _load_again(self) -> Changes | None:
        """After a mistake of ours the image is what its log says, never a guess; without that the
        broker ends."""
        changes = self.shard.take_changes()  # of the records before the mistake
        fresh = ClusterShard(Image(), self.config, self.env.random)
        try:
            for message in self.log.read_again():
                fresh.fold(message)
        except Exception as mistake:
            logger.exception("the cluster's metadata cannot be loaded again")
            self._line.hold()
            self._is_lost = True
            self.when_lost(mistake)
            return None
        changes.add(self.metadata.replace(fresh.image, self.log.end_offset - 1))
        self.shard.hold_back_as(fresh)
        return changes

    def _write(self, effects: Effects) -> None:
        """What nobody asked for."""
        if not effects.records:
            return
        batch = finish(self.log.batch_of(effects.records))
        prepared = finish(self.shard.prepare(effects.records))
        self._publish(self._commit(batch, prepared, effects.reply))

    def _enacted(self, enacted: _Enacted, answer: Answer) -> None:
        self._publish(enacted)
        metadata = self.metadata
        # A refusal, too, may tell of what others changed and does not last yet.
        applied = Later.of(None)
        if enacted.changes is not None:
            applied = metadata.when_applied(metadata.offset)
        lasting = applied.then_ask(lambda _: metadata.once_it_lasts(enacted.reply))
        lasting.then(answer.resolve, answer.fail)

    def _publish(self, enacted: _Enacted) -> None:
        if enacted.changes is None:
            return
        self.metadata.publish(enacted.changes)
        if self.log.bytes_since_snapshot >= self._snapshot_bytes():
            self._snapshot_soon()

    def _take_own_config(self, changes: Changes) -> None:
        """The controller decides by the settings of its own broker."""
        own = (BROKER, str(self.node_id))
        if own in changes.configs or (BROKER, "") in changes.configs:
            apply_dynamic_config(self.metadata.image, self.config)

    def fence_absent(self, present: Collection[int] = ()) -> None:
        """When the controller starts, no other broker of its process is up, whatever the log says
        of them: they register after it, but for those that went on without it. Where some did,
        these take over what the others led; else all are about to be what they were. Where brokers
        come over connections, those that were up have a session to be heard of."""
        others = {each for each in present if each != self.node_id}
        gone = [
            node_id
            for node_id in self.metadata.image.live_brokers()
            if node_id != self.node_id and node_id not in others
        ]
        if self.config.controller_listeners:
            self.sessions.start(gone)
            return
        for node_id in gone:
            self.decide(FenceBroker(node_id, leaves_partitions=bool(others)))

    def fence_at_stop(self, node_id: int) -> None:
        """Says that a broker has stopped, and nothing of its partitions: nobody else has them.
        Apache Kafka would otherwise wait for its session to end before it takes it back."""
        try:
            self.decide(FenceBroker(node_id, leaves_partitions=False))
        except KafkaError as error:
            logger.error(
                "the cluster's metadata does not say that broker %d stopped: %s", node_id, error
            )

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
        image = self.metadata.image
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
