"""The replicas of one broker, kept as the metadata says: opened, closed, given roles and settings.

Owns the way from the image to `Partitions` and logs. Changes come as the cluster's subscriber, so a
topic is there on every path when the reply to its creation goes out, and gone when that to its
deletion does. Invariant: this broker has a partition open exactly while the image gives it a
replica and the replica's disk works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from kafkalite.broker import following
from kafkalite.broker.log_configs import take_settings
from kafkalite.broker.replicating import Replicating
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.brokers import AssignDirectories
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.controller import OwnController
from kafkalite.coordinators.cluster.directories import directory_of
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.states import BROKER, NO_LEADER, TOPIC, PartitionState, Topic
from kafkalite.env.later import Later
from kafkalite.log.forerunners import forget, make_now
from kafkalite.log.making import Made, Making, NewLog
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.leader import Leadership
from kafkalite.replication.partition import Partition
from kafkalite.replication.partitions import Partitions

logger = logging.getLogger(__name__)

TELL_AGAIN_MS = 10_000
_TOLD_AT_ONCE = 200
_FILES_AT_ONCE = 512

T = TypeVar("T")
_Opening = tuple[Topic, PartitionState, NewLog]


class Coordinator(Protocol):
    """Who keeps its state in a topic of Kafka's own, a shard for each partition led here."""

    def gained(self, index: int, partition: Partition) -> None: ...

    def lost(self, index: int) -> None: ...


class Replicas:
    """What one broker holds of the cluster."""

    def __init__(
        self,
        metadata: Metadata,
        controller: OwnController,
        config: BrokerConfig,
        partitions: Partitions,
        logs: LogManager,
        replicating: Replicating,
        coordinators: Mapping[str, Coordinator] | None = None,
        on_settings: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_settings = on_settings
        self.coordinators = coordinators or {}
        self._replicating = replicating
        self.metadata = metadata
        self.controller = controller
        self.config = config
        self.partitions = partitions
        self.logs = logs
        self.node_id = partitions.node_id
        # Directories that the metadata does not name yet, by topic id and index.
        self._untold: dict[tuple[bytes, int], bytes] = {}
        self._has_named_leaderless = False
        self._is_stopped = False
        self._making = Making(logs.env, partial(forget, logs))
        self._through: Later[None] | None = None  # with the change that is followed now

    def start(self) -> None:
        """Opens every replica that the image gives this broker, and follows changes from here on.

        Logs without a topic in the image are what a deletion left behind, or what lost its
        metadata: nobody can tell, so they are set aside and not removed.
        """
        for topic in self.metadata.image.topics.values():
            for state in topic.partitions.values():
                new = self._follow(topic, state, is_new=False)
                if new is not None:
                    self._take(topic, state, new, make_now(self.logs, new))
        for log in (*self.logs.logs, *self.logs.offline):
            known = self.metadata.image.partition(log.topic, log.partition)
            if known is None or self.node_id not in known.replicas:
                self.logs.set_aside(log)
        self.metadata.subscribe(self.changed, self._hide)
        self._name_leaderless()

    def stop(self) -> None:
        """Follows no more changes and gives every role up: whoever waits is told."""
        self._is_stopped = True
        self._making.stop()
        self.metadata.unsubscribe(self.changed)
        self._is_through()
        for partition in self.partitions:
            coordinator = self.coordinators.get(partition.topic)
            if coordinator is not None:
                coordinator.lost(partition.index)
            partition.give_up(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))

    def _hide(self, changes: Changes) -> None:
        """What is deleted is not served, though closing it takes its time."""
        for topic_id in changes.deleted:
            self.partitions.close_topic(topic_id)

    def changed(self, changes: Changes) -> Later[None]:
        """Brings this broker's replicas to what the metadata now says, a slice per turn of the loop
        and a worker for the files; filled when all of them are there."""
        through = self._through = Later()
        following.run(self.logs.env.slices, self._follow_all(changes), self._is_through)
        return through

    def _is_through(self) -> None:
        through, self._through = self._through, None
        if through is not None:
            through.resolve(None)

    def _follow_all(self, changes: Changes) -> following.Waits:
        for topic in changes.deleted.values():
            for index in topic.partitions:
                self._guard(topic.name, index, partial(self._delete, topic, index))
                yield None
            self.partitions.forget_topic(topic.topic_id)
        waiting: list[_Opening] = []
        for topic_id, index in changes.partitions:
            found = self.metadata.image.by_id.get(topic_id)
            if found is not None:
                state = found.partitions[index]
                new = self._guard(found.name, index, partial(self._follow, found, state))
                waiting += [] if new is None else [(found, state, new)]
            if len(waiting) == _FILES_AT_ONCE:
                yield from self._open_all(waiting)
                waiting = []
            yield None
        yield from self._open_all(waiting)
        if changes.configs:
            # Until they last nothing is removed by them: a power cut brings the old ones back.
            yield self.metadata.once_it_lasts(None)
            if not self._is_stopped:
                yield from self._take_settings(changes)

    def _open_all(self, waiting: list[_Opening]) -> following.Waits:
        """Serves partitions once their files are made, whatever became of them meanwhile: the
        changes that come next say it."""
        if self._is_stopped or not waiting:
            return  # nobody makes the files any more
        made = self._making.make([new for _, _, new in waiting])
        yield made
        for (topic, state, new), files in zip(waiting, made.value, strict=False):
            self._guard(topic.name, state.index, partial(self._take, topic, state, new, files))
            yield None

    def _guard(self, topic: str, index: int, act: Callable[[], T]) -> T | None:
        """What fails by a mistake of ours is this partition's alone. After a stop nothing is done
        any more."""
        try:
            return None if self._is_stopped else act()
        except Exception:
            logger.exception("%s-%d does not follow the metadata", topic, index)
            return None

    # --- one partition ----------------------------------------------------------------------------

    def _follow(
        self, topic: Topic, state: PartitionState, *, is_new: bool = True
    ) -> NewLog | None:
        """The log that is to be made before the partition can be served, if it is not there."""
        partition = self.partitions.held(topic.name, state.index)
        if self.node_id not in state.replicas:
            if partition is not None or (topic.name, state.index) in self.partitions.offline:
                self._close(topic.name, state.index)
        elif partition is None:
            return self._open(topic, state, is_new=is_new)
        elif state.partition_epoch > partition.role.partition_epoch:
            self._lead(partition, state)
            if not partition.log.home.is_online:
                self._replicating.gone(partition)
                self.partitions.remove(topic.name, state.index)
                self.partitions.offline.add((topic.name, state.index))
        return None

    def _open(self, topic: Topic, state: PartitionState, *, is_new: bool) -> NewLog | None:
        try:
            log = self._find_or_plan(topic, state, is_new=is_new)
            if isinstance(log, PartitionLog) and self._may_have_others(state):
                # Who led it last began an epoch in its log: the one before this, in which nobody
                # may lead.
                self.logs.check_up_to_date(log, state.leader_epoch - 1)
        except KafkaError as error:
            self._leave_offline(topic, state, error)
            return None
        if not isinstance(log, PartitionLog):
            return log
        self._serve(topic, state, log)
        return None

    def _find_or_plan(
        self, topic: Topic, state: PartitionState, *, is_new: bool
    ) -> PartitionLog | NewLog:
        """The log that is there, or a new one in the directory that was chosen for it."""
        directory_id = directory_of(state, self.node_id)
        path = next(
            (each.path for each in self.logs.directories if each.directory_id == directory_id),
            None,
        )
        settings = self.logs.config_of(topic.name)
        return self.logs.find_or_plan(
            topic.name, state.index, topic.topic_id, settings, directory=path, is_new=is_new,
            is_copied=self._is_copied(state),
        )  # fmt: skip

    def _is_copied(self, state: PartitionState) -> bool:
        """Whether another broker leads it, and nobody counts on what is here: a log that begins
        with nothing takes all from there before anybody does."""
        is_counted_on = self.node_id in (*state.isr, *state.elr)
        return state.leader not in (NO_LEADER, self.node_id) and not is_counted_on

    def _may_have_others(self, state: PartitionState) -> bool:
        """Whether another log of ours may have been copied and counted on since this one was. The
        only replica has nobody to copy from."""
        return len(state.replicas) > 1 and not self._is_copied(state)

    def _take(self, topic: Topic, state: PartitionState, new: NewLog, files: Made) -> None:
        try:
            log = self.logs.take_new(new, files)
        except KafkaError as error:
            self._leave_offline(topic, state, error)
        else:
            self._serve(topic, state, log)

    def _leave_offline(self, topic: Topic, state: PartitionState, error: KafkaError) -> None:
        if (topic.name, state.index) not in self.partitions.offline:
            logger.error("%s-%d is offline: %s", topic.name, state.index, error)
        self.partitions.offline.add((topic.name, state.index))

    def _serve(self, topic: Topic, state: PartitionState, log: PartitionLog) -> None:
        log.config = self.logs.config_of(topic.name)
        partition = Partition(
            topic.name, state.index, topic.topic_id, self.node_id, log,
            neighbours=self._replicating.neighbours,
        )  # fmt: skip
        self.partitions.add(partition)
        self._lead(partition, state)
        self._tell_directory(state, log)
        self.logs.mover.resume(log, partition.moved)

    # --- directories ------------------------------------------------------------------------------

    def _tell_directory(self, state: PartitionState, log: PartitionLog) -> None:
        """Has the metadata name the directory that a log was opened in, if it does not yet. Many
        together, when those that are told of changes now have heard all of them."""
        directory_id = self.logs.directory_of(log).directory_id
        if directory_of(state, self.node_id) == directory_id:
            return
        if not self._untold:
            self.logs.env.clock.call_later(0, self._tell_directories)
        self._untold[state.topic_id, state.index] = directory_id

    def _tell_directories(self) -> None:
        """Some of them in each turn of the loop, so that nobody waits for thousands."""
        told = dict(islice(self._untold.items(), _TOLD_AT_ONCE))
        if self._is_stopped or not told:
            return
        for key in told:
            del self._untold[key]
        if self._untold:
            self.logs.env.clock.call_later(0, self._tell_directories)
        asked = self.controller.submit(AssignDirectories(self.node_id, told))
        asked.then(partial(self._are_told, list(told)))

    def _are_told(self, told: list[tuple[bytes, int]], outcome: KafkaError | None) -> None:
        if outcome is not None and not self._is_stopped:
            logger.error("the directories of %d partitions are told later: %s", len(told), outcome)
            self.logs.env.clock.call_later(TELL_AGAIN_MS, partial(self._tell_again, told))
        self._name_leaderless()

    def _tell_again(self, told: list[tuple[bytes, int]]) -> None:
        """Of those that are still here. Where a move leads to, the mover tells."""
        for topic_id, index in told:
            topic = self.metadata.image.by_id.get(topic_id)
            held = None if topic is None else self.partitions.held(topic.name, index)
            if topic is None or held is None or self.logs.future(topic.name, index) is not None:
                continue
            self._tell_directory(topic.partitions[index], held.log)

    def _name_leaderless(self) -> None:
        """Nobody can write to or read from these, and their clients would wait without a word. Once
        the metadata has all directories: until then it has no leader in those it does not know."""
        if self._untold or self._has_named_leaderless:
            return
        self._has_named_leaderless = True
        names = [
            f"{each.topic}-{each.index}"
            for each in self.partitions
            if each.role.leader_id == NO_LEADER
        ]
        if names:
            logger.warning(
                "%d partitions have no leader, since a broker that has their records is not up: %s",
                len(names),
                ", ".join(names[:3]) + (", …" if len(names) > 3 else ""),
            )

    # --- roles ------------------------------------------------------------------------------------

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        was_leader = partition.is_leader
        is_new_epoch = partition.take(leadership_of(state))
        if is_new_epoch:
            self._hold(partition.log)
            partition.begin_epoch()
        coordinator = self.coordinators.get(partition.topic)
        if coordinator is not None and is_new_epoch:
            coordinator.gained(partition.index, partition)
        elif was_leader and not partition.is_leader:
            if coordinator is not None:
                coordinator.lost(partition.index)
            partition.give_up(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))
        self._replicating.role_changed(partition)
        partition.wake()

    def _hold(self, log: PartitionLog) -> None:
        """No record is acknowledged before the topic and the epoch that it belongs to last."""
        if not log.is_durable_on_append:
            log.durability.hold()
            self.controller.once_durable(log.durability.release)

    def _close(self, topic: str, index: int) -> None:
        """Nothing of ours any more: out of service at once, its files a while later."""
        coordinator = self.coordinators.get(topic)
        if coordinator is not None:
            coordinator.lost(index)
        partition = self.partitions.remove(topic, index)
        if partition is not None:
            self._replicating.gone(partition)
        self.partitions.offline.discard((topic, index))
        self.logs.delete(topic, index, self.controller.once_durable)

    def _delete(self, topic: Topic, index: int) -> None:
        partition = self.partitions.held(topic.name, index)
        is_offline = (topic.name, index) in self.partitions.offline
        if is_offline or (partition is not None and partition.topic_id == topic.topic_id):
            self._close(topic.name, index)

    # --- settings ---------------------------------------------------------------------------------

    def _take_settings(self, changes: Changes) -> following.Waits:
        own = (BROKER, str(self.node_id))
        if own in changes.configs or (BROKER, "") in changes.configs:
            apply_dynamic_config(self.metadata.image, self.config)
            take_settings(self.logs.settings, self.config)
            self._on_settings()
            topics = {partition.topic for partition in self.partitions}
        else:
            topics = {name for kind, name in changes.configs if kind == TOPIC}
        for name in sorted(topics):
            found = self.metadata.image.topics.get(name)
            if found is None:
                continue
            settings = self.logs.config_of(name)
            for index in list(found.partitions):
                partition = self.partitions.get(name, index)
                if partition is not None:
                    partition.log.config = settings
            yield None


def leadership_of(state: PartitionState) -> Leadership:
    """What a partition is told of its role."""
    return Leadership(
        state.leader, state.leader_epoch, state.partition_epoch, state.replicas, state.isr,
        state.replicas,
    )  # fmt: skip
