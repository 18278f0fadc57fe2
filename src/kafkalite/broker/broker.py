"""Ties the rooms of one broker together, and starts and stops them in order.

Owns the order: the directories are taken, the metadata folded, the logs opened, the address bound,
the broker registered, the roles taken up; and the way back. Decides nothing about requests or data.
Invariant: no connection is answered before every role of this broker is taken up, nor after a disk
failed that the broker cannot do without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from kafkalite.config import BrokerConfig, group_value
from kafkalite.coordinators.cluster.brokers import SECURITY_PROTOCOLS, RegisterBroker
from kafkalite.coordinators.cluster.cluster import Cluster
from kafkalite.coordinators.cluster.directories import named_directory
from kafkalite.coordinators.cluster.identity import find_cluster_id
from kafkalite.coordinators.cluster.image import GROUP, NO_LEADER, TOPIC, Changes, EndPoint
from kafkalite.coordinators.cluster.log_configs import log_config, log_settings, take_settings
from kafkalite.coordinators.cluster.nodes import LOOPBACK, UNADVERTISED, peer_address
from kafkalite.coordinators.cluster.replicas import Replicas
from kafkalite.coordinators.effects import Refused
from kafkalite.coordinators.groups.front import OFFSETS_TOPIC, Groups, settings_of
from kafkalite.coordinators.groups.topics import ImageTopics
from kafkalite.coordinators.transactions.front import (
    TRANSACTIONS_TOPIC,
    Transactions,
    transaction_settings,
)
from kafkalite.coordinators.transactions.markers import Markers
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.env import Env, collector
from kafkalite.env.later import Later
from kafkalite.env.network import Address, Network
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.log.config import LogConfig
from kafkalite.log.directory import LogDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.peers.peers import Peers
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.waiting import Waiting
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Server

logger = logging.getLogger(__name__)

TRANSACTION_VERSION = "transaction.version"
STOP_GRACE_MS = 500
# For the watch on the loop: before anybody can come, and when all have gone.
TURNS_ALONE = ("start", "opened", "_close")


@dataclass(slots=True)
class LocalBrokers:
    """The brokers of one process: they have one controller, and share its metadata."""

    cluster: Cluster | None = None
    serving: set[int] = field(default_factory=set)  # by node id


class Broker:
    """One broker. `start` may raise LockedByOther, WrongDirectory or OSError for an address."""

    def __init__(
        self,
        env: Env,
        network: Network,
        config: BrokerConfig,
        brokers: LocalBrokers | None = None,
    ) -> None:
        self.env = env
        self.config = config
        self.node_id = config.node_id
        self.brokers = brokers or LocalBrokers()
        known = self.brokers.cluster
        self.is_controller = known is None or known.node_id == self.node_id
        self.cluster_id = (
            known.cluster_id if known is not None else find_cluster_id(env, config.log_dirs)
        )
        self.logs = LogManager(
            env,
            config.log_dirs,
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            settings=log_settings(config),
            config_of=self._config_of,
            topic_of=self._topic_of,
            named_directory=self._named_directory,
            name_directory=self._name_directory,
            on_offline=self._went_offline,
        )
        self.failure: OSError | None = None
        # Filled when nothing is served more, with the failure that it ended for if it did.
        self.ended: Later[OSError | None] = Later()
        self.partitions = Partitions(self.node_id)
        self.context = Context(
            env, config, self.node_id, self.cluster_id, self.partitions, Waiting(env.clock),
            FetchSessions(config.get_int("max.incremental.fetch.session.cache.slots"), env.random),
        )
        self._log = LimitedLog(env.clock)
        self.dispatcher = Dispatcher(self.context, self._log)
        self.server = Server(
            network, env.clock, config, self.dispatcher, self._log, self._connection_rate
        )
        self.peers = Peers(
            network,
            env.clock,
            node_id=self.node_id,
            address_of=self._address_of,
            timeout_ms=config.get_int("request.timeout.ms"),
        )
        self._own_host = LOOPBACK  # that of its inter-broker listener, once that is open
        self._replicas: Replicas | None = None
        self._is_serving = False
        self._stopped: Later[None] | None = None

    @property
    def cluster(self) -> Cluster:
        assert self.brokers.cluster is not None, "the broker has not been started"
        return self.brokers.cluster

    # --- starting ---------------------------------------------------------------------------

    def start(self) -> Later[Exception | None]:
        """Resolved with None when the broker serves, or with the reason why it does not: an address
        cannot be had, a disk fails, or a mistake of ours, which is logged. What is wrong with its
        directories from the beginning is raised at once."""
        try:
            self.logs.lock()
            self._read_metadata()
            self.logs.take()
            self._open_metadata()
        except BaseException:
            self.logs.abandon()
            raise
        self.cluster.apply_dynamic_config(self.config, self.node_id)
        take_settings(self.logs.settings, self.config)
        started: Later[Exception | None] = Later()

        def opened(_: None) -> None:
            try:
                self._serve()
            except Exception as error:
                failure = error
                if not isinstance(error, OSError):
                    logger.exception("[KafkaServer id=%d] cannot start", self.node_id)
                self.ended.then(lambda _: started.resolve(failure))
                self.stop(0)
            else:
                started.resolve(None)

        self.logs.start().then(opened)
        return started

    def _read_metadata(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.is_controller:
            directory = next(each for each in self.logs.directories if self._has_metadata(each))
            with _disk_errors():
                if self.brokers.cluster is not None:
                    self.cluster.come_back(directory.home, directory.directory_id)
                    return
                self.brokers.cluster = Cluster(
                    self.env, directory.home, self.config, self.cluster_id, self.node_id,
                    directory.directory_id,
                )  # fmt: skip

    def _open_metadata(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.is_controller:
            with _disk_errors():
                self.cluster.open()

    def _has_metadata(self, directory: LogDirectory | LogHome) -> bool:
        return self.is_controller and directory.path == self.config.metadata_log_dir.rstrip("/")

    def _serve(self) -> None:
        if self.failure is not None:
            raise self.failure
        with _disk_errors():
            self._take_up()

    def _take_up(self) -> None:
        self._build_coordinators()
        self.server.start()
        self._own_host = self.server.addresses[self.config.inter_broker_listener][0]
        if self.is_controller:
            self.cluster.fence_absent(self.brokers.serving)
        self.cluster.register_broker(self._registration())
        if self.is_controller:
            self.cluster.absence.resume()
        assert self._replicas is not None
        self._replicas.start()
        self.cluster.subscribe(self._on_topics)
        self._is_serving = True

    def _build_coordinators(self) -> None:
        cluster, context = self.cluster, self.context
        groups = Groups(
            self.env,
            replace(settings_of(self.config), group_override=self._group_setting),
            ImageTopics(lambda: cluster.image),
            lambda: self._partition_count(OFFSETS_TOPIC),
        )
        transactions = Transactions(
            self.env,
            transaction_settings(
                self.config, lambda: cluster.image.features.get(TRANSACTION_VERSION, 0)
            ),
            producer_ids=ProducerIds(lambda: cluster.allocate_producer_ids(self.node_id)),
            partition_count=lambda: self._partition_count(TRANSACTIONS_TOPIC),
            leader_of=self._leader_of,
            markers=Markers(self.env.clock, self.env.slices, self.partitions, groups),
            peer_of=self.peers.get,
        )
        self.peers.local = transactions
        self.brokers.serving.add(self.node_id)
        context.cluster, context.groups, context.transactions = cluster, groups, transactions
        context.logs = self.logs
        self._replicas = Replicas(
            cluster, self.config, self.partitions, self.logs,
            {OFFSETS_TOPIC: groups, TRANSACTIONS_TOPIC: transactions},
        )

    def _connection_rate(self, host: str) -> float | None:
        """How many connections an address may make in a second, if somebody has said so."""
        quotas = self.cluster.image.quotas
        for entity in ((("ip", host),), (("ip", None),)):
            rate = quotas.get(entity, {}).get("connection_creation_rate") if quotas else None
            if rate is not None:
                return rate
        return None

    def _group_setting(self, group_id: str, name: str) -> int | None:
        """A setting that a group was given, None when it was not."""
        overrides = self.cluster.image.config(GROUP, group_id)
        if name not in overrides:
            return None
        value = group_value(self.config, overrides, name)
        assert isinstance(value, int), f"{name} is not a number: {value!r}"
        return value

    def _partition_count(self, topic: str) -> int:
        found = self.cluster.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def _leader_of(self, topic: str, index: int) -> int | None:
        """Id of the leader, -1 when there is none now; None when there is no such partition, and
        that lasts: a transaction that was ended without it is over for good."""
        state = self.cluster.image.partition(topic, index)
        if state is None:
            return None if self.cluster.lasts else NO_LEADER
        return state.leader

    def _address_of(self, node_id: int) -> Address | None:
        """Where other brokers find a broker, None when it is not there."""
        listener = self.config.inter_broker_listener
        return peer_address(self.cluster.image, node_id, listener, self._own_host)

    def _config_of(self, topic: str) -> LogConfig:
        return log_config(self.config, self.cluster.image.config(TOPIC, topic))

    def _topic_of(self, topic_id: bytes, index: int) -> str | None:
        """The name of a topic, when this broker has a replica of its partition."""
        topic = self.cluster.image.by_id.get(topic_id)
        state = None if topic is None else topic.partitions.get(index)
        has_replica = state is not None and self.node_id in state.replicas
        return topic.name if topic is not None and has_replica else None

    def _named_directory(self, topic: str, index: int) -> bytes | None:
        """The directory in which the metadata has this broker's replica, if it names one."""
        state = self.cluster.image.partition(topic, index)
        return None if state is None else named_directory(state, self.node_id)

    def _name_directory(self, log: PartitionLog, then: Callable[[], None]) -> None:
        """Has the metadata name the directory of a log; goes on when that lasts."""
        if self.cluster.absence.afterwards(lambda: self._name_directory(log, then)):
            return
        directory_id = self.logs.directory_of(log).directory_id
        self.cluster.assign_directories(
            self.node_id, {(log.topic_id, log.partition): directory_id}
        )
        self.cluster.once_durable(then)

    def _registration(self) -> RegisterBroker:
        return RegisterBroker(
            self.node_id,
            self._endpoints(),
            self.config.get_optional_str("broker.rack"),
            [each.directory_id for each in self.logs.directories if each.home.is_online],
            all(directory.was_clean for directory in self.logs.directories),
        )

    def _endpoints(self) -> list[EndPoint]:
        """What is advertised of each listener; a port of 0 is the one that was bound."""
        advertised = self.config.advertised_listeners
        endpoints = []
        for listener in self.config.listeners:
            bound_port = self.server.addresses[listener.name][1]
            known = advertised.get(listener.name)
            host = known.host if known is not None else UNADVERTISED
            port = known.port if known is not None and known.port else bound_port
            protocol = SECURITY_PROTOCOLS[listener.protocol]
            endpoints.append(EndPoint(listener.name, host, port, protocol))
        return endpoints

    def _on_topics(self, changes: Changes) -> None:
        """Groups hear of topics that came, went or grew, after their partitions were opened. What
        they committed goes when the deletion lasts: a power cut could give the topic back."""
        deleted = [(topic.name, topic.topic_id) for topic in changes.deleted.values()]
        known = (self.cluster.image.topic_name(topic_id) for topic_id, _ in changes.partitions)
        names = [name for name in known if name is not None] + [name for name, _ in deleted]
        if deleted:
            collector.of_process.unsettle()
            self.cluster.once_it_lasts(deleted).then(self._on_topics_deleted)
        if names:
            self.context.groups.on_topics_changed(list(dict.fromkeys(names)))

    def _on_topics_deleted(self, deleted: list[tuple[str, bytes]] | KafkaError) -> None:
        if not isinstance(deleted, KafkaError):
            self.context.groups.on_topics_deleted(deleted)

    def create_topic(
        self, name: str, partitions: int = -1, configs: Mapping[str, str] | None = None
    ) -> Later[KafkaError | None]:
        """Creates a topic as a client would. Filled when it lasts as is configured, with None or
        with why it is refused."""
        settings = [
            CreateTopicsRequest.Config(name=key, value=value)
            for key, value in (configs or {}).items()
        ]
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=partitions, replication_factor=-1, configs=settings
        )

        def refusal(response: CreateTopicsResponse | KafkaError | Refused) -> KafkaError | None:
            if isinstance(response, Refused):
                return response.error
            if isinstance(response, KafkaError):
                return response
            [answer] = response.topics
            code = Error(answer.error_code)
            return None if code is Error.NONE else KafkaError(code, answer.error_message)

        return self.cluster.submit(CreateTopicsRequest(topics=[topic])).map(refusal)

    # --- stopping ---------------------------------------------------------------------------

    def stop(self, grace_ms: int = STOP_GRACE_MS) -> Later[None]:
        """Takes no more connections, ends what is open, and makes everything last."""
        if self._stopped is None:
            self._stopped = Later()
            self.server.stop(grace_ms).then(self._close_and_tell)
        return self._stopped

    def _close_and_tell(self, _: None) -> None:
        self._close()
        # Those who waited for a log or a role are told in this turn.
        self.env.clock.call_later(0, self._tell_stopped)

    def _tell_stopped(self) -> None:
        assert self._stopped is not None
        self.ended.resolve(self.failure)
        self._stopped.resolve(None)

    def _close(self) -> None:
        cluster, context = self.cluster, self.context
        self.brokers.serving.discard(self.node_id)
        self.peers.stop()
        if self._is_serving and self._replicas is not None:
            context.transactions.stop()
            self._replicas.stop()
            cluster.unsubscribe(self._on_topics)
        context.waiting.stop()
        context.long_work.stop()
        if self.failure is not None:
            self.logs.abandon()
            if self.is_controller:
                cluster.abandon()
            return
        state = cluster.image.brokers.get(self.node_id)
        if self.is_controller:
            cluster.fence_at_stop(self.node_id)
        self.logs.close(state.epoch if state is not None else -1)
        if self.is_controller and self.brokers.serving:
            cluster.leave()
        elif self.is_controller:
            cluster.close()
        elif not self.brokers.serving and cluster.absence.is_now:
            cluster.abandon()

    # --- failing ----------------------------------------------------------------------------

    def _went_offline(self, home: LogHome) -> None:
        """A controller cannot go on without its metadata, nor a broker without any directory.

        What waits for the failed disk is never acknowledged. The end comes with the loop's next
        turn, so that whoever met the failure may tell its client; also when it was met while the
        roles were taken up. Before that, whoever starts the broker is told.
        """
        is_online = any(each.home.is_online for each in self.logs.directories)
        if self.failure is None and (self._has_metadata(home) or not is_online):
            self.failure = home.failure
            self.env.clock.call_later(0, self._end)
        else:
            self.env.clock.call_later(0, lambda: self._tell_offline(home))

    def _tell_offline(self, home: LogHome) -> None:
        """The cluster goes on without what is in a directory that failed."""
        if self._is_serving and self.failure is None and self._stopped is None:
            if self.cluster.absence.afterwards(lambda: self._tell_offline(home)):
                return
            gone = [each.directory_id for each in self.logs.directories if each.home is home]
            try:
                self.cluster.directories_offline(self.node_id, gone)
            except KafkaError as error:
                logger.error("the cluster is not told that %s is offline: %s", home.path, error)

    def _end(self) -> None:
        if not self._is_serving:
            return
        logger.critical(
            "[KafkaServer id=%d] ends, because it cannot do without a disk that has failed: %s. "
            "What was acknowledged is not touched: mend the disk, or put a copy of its files in "
            "its place, and start again",
            self.node_id, self.failure,
        )
        if not self.is_controller:
            with suppress(KafkaError):  # then it is as if this process had died
                self.cluster.fence_broker(self.node_id)
        self.stop(0)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """While a broker starts nobody but its owner is told of a failed disk."""
    try:
        yield
    except KafkaError as error:
        raise OSError(error.message) from error
