"""Ties the rooms of one broker together, and starts and stops them in order.

Owns the order: the directories are taken, the metadata folded, the logs opened, the address bound,
the broker registered, the roles taken up; and the way back. Decides nothing about requests or data.
Invariant: no connection is answered before every role of this broker is taken up, nor after a disk
failed that the broker cannot do without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from kafkalite.broker import limiting
from kafkalite.broker.answering import services_of
from kafkalite.broker.audit import audit_of
from kafkalite.broker.authorizing import authorizer_of, follow
from kafkalite.broker.creating import Creating
from kafkalite.broker.disk_errors import disk_errors
from kafkalite.broker.encryption import Keys
from kafkalite.broker.identity import find_cluster_id
from kafkalite.broker.known import Known, LocalBrokers
from kafkalite.broker.leading_quorum import lead_quorum
from kafkalite.broker.log_configs import log_settings, take_settings
from kafkalite.broker.logins import Logins, entry_of
from kafkalite.broker.replicas import Replicas
from kafkalite.broker.replicating import Replicating
from kafkalite.broker.sharing import build_sharing
from kafkalite.broker.telemetry import receiver_of
from kafkalite.broker.unclean_elections import UncleanElections
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.auto_creation import AutoCreation
from kafkalite.coordinators.cluster.broker_ids import BrokerIds
from kafkalite.coordinators.cluster.brokers import (
    AssignDirectories,
    DirectoriesOffline,
    FenceBroker,
    RegisterBroker,
)
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.controller import OwnController
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.streams_topics import StreamsTopics
from kafkalite.coordinators.groups.front import OFFSETS_TOPIC, Groups, settings_of
from kafkalite.coordinators.groups.topics import ImageTopics
from kafkalite.coordinators.shares.front import STATE_TOPIC
from kafkalite.coordinators.transactions.front import (
    TRANSACTIONS_TOPIC,
    Transactions,
    transaction_settings,
)
from kafkalite.coordinators.transactions.markers import Markers
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.network import Network
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.log.directory import LogDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.peers.peers import Peers
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.quotas.client_quotas import ClientQuotas
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.traffic import Traffics
from kafkalite.replication.waiting import Waiting
from kafkalite.server.counting import Counts
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Keep, Server
from kafkalite.server.terms import Service

logger = logging.getLogger(__name__)

TRANSACTION_VERSION = "transaction.version"
STOP_GRACE_MS = 500
HAND_OVER_MS = 100  # for replies to be taken
# For the watch on the loop: before anybody can come, and when all have gone.
TURNS_ALONE = ("start", "opened", "_close")


class Broker(Creating):
    """One broker. `start` may raise LockedByOther, WrongDirectory or OSError for an address; making
    one raises InvalidSetting for keys of its listeners that cannot be had."""

    def __init__(
        self,
        env: Env,
        network: Network,
        config: BrokerConfig,
        brokers: LocalBrokers | None = None,
        service_over: Callable[[Service], Service] = lambda service: service,
        counts: Counts | None = None,
    ) -> None:
        """`service_over` may have somebody stand between the connections and the broker; with
        `counts` requests are counted there, and what goes through topics is, too."""
        self.env, self.config, self.node_id = env, config, config.node_id
        self.brokers = brokers or LocalBrokers()
        self.known = Known(self.brokers, config)
        self.keys = Keys(env, config)
        controller, metadata = self.brokers.controller, self.brokers.metadata
        self.is_controller = controller is None or controller.node_id == self.node_id
        known_id = None if metadata is None else metadata.cluster_id
        self.cluster_id = known_id or find_cluster_id(env, config.log_dirs)
        self.logs = LogManager(
            env, config.log_dirs, node_id=self.node_id, cluster_id=self.cluster_id,
            settings=log_settings(config), config_of=self.known.config_of,
            topic_of=self.known.topic_of, named_directory=self.known.named_directory,
            name_directory=self._name_directory, on_offline=self._went_offline,
        )  # fmt: skip
        self.failure: OSError | None = None
        # Filled when nothing is served more, with the failure that it ended for if it did.
        self.ended: Later[OSError | None] = Later()
        self.counts = counts
        self.unclean_elections = UncleanElections()
        self.partitions = Partitions(self.node_id, None if counts is None else Traffics())
        self.context = Context(
            env, config, self.node_id, self.cluster_id, self.partitions, Waiting(env.clock),
            FetchSessions(config.get_int("max.incremental.fetch.session.cache.slots"), env.random),
            ClientQuotas(config, env.clock, self.brokers.mutations_of(config, env.clock)),
        )
        self._log = LimitedLog(env.clock)
        self.context.telemetry.receiver = receiver_of(
            env, config, self._log, is_told=counts is not None
        )
        self.audit = audit_of(env, config, self._log)
        self.context.authorizer = authorizer_of(config, self._log, self.audit)
        self.context.api_sets |= self._own_apis()
        self.dispatcher, services = services_of(self.context, self._log, counts, service_over)
        self.logins = Logins(env, config, lambda: self.metadata, services, self._log)
        self.server = Server(
            network, env.clock, env.slices, config, self.logins.terms, self._log,
            self.context.quotas.connection_rate, self.keys.listeners,
            None if counts is None else counts.watch,
        )  # fmt: skip
        self.peers = Peers(
            self.keys.calling(network), env.clock, env.slices, node_id=self.node_id,
            address_of=self.known.address_of, timeout_ms=config.get_int("request.timeout.ms"),
            entry=entry_of(env, config),
        )  # fmt: skip
        self._replicas: Replicas | None = None
        self._replicating: Replicating | None = None
        self._unfollow: list[Callable[[], None]] = []
        self._is_serving = self._is_killed = False
        self._stopped: Later[None] | None = None

    @property
    def metadata(self) -> Metadata:
        return self.known.metadata

    @property
    def controller(self) -> LocalController:
        assert self.brokers.controller is not None, "the broker has not been started"
        return self.brokers.controller

    @property
    def is_serving(self) -> bool:
        """Whether clients are answered, now and in the next moment."""
        return self._is_serving and self._stopped is None and self.failure is None

    @property
    def asked(self) -> OwnController:
        """Whoever decides for the cluster, as this broker asks."""
        return self.controller

    def _own_apis(self) -> dict[str, ApiSet]:
        """What is answered otherwise than by the handlers of this process."""
        return {}

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
        apply_dynamic_config(self.metadata.image, self.config)
        take_settings(self.logs.settings, self.config)

        def opened(_: None) -> Later[Exception | None]:
            try:
                self._serve()
            except Exception as error:
                failure = error
                if not isinstance(error, OSError):
                    logger.exception("[KafkaServer id=%d] cannot start", self.node_id)
                self.stop(0)
                return self.ended.map(lambda _: failure)
            return Later.of(None)

        return self.logs.start().then_ask(opened)

    def _read_metadata(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.is_controller:
            directory = next(each for each in self.logs.directories if self._has_metadata(each))
            with disk_errors():
                if self.brokers.controller is not None:
                    self.controller.come_back(directory.home, directory.directory_id)
                    return
                metadata = Metadata(self.cluster_id)
                controller = LocalController(
                    self.env, directory.home, self.config, metadata, directory.directory_id
                )
                controller.when_lost = self._lost_metadata
                controller.read()
                self.brokers.metadata, self.brokers.controller = metadata, controller

    def _open_metadata(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.is_controller:
            with disk_errors():
                self.controller.open()

    def _has_metadata(self, directory: LogDirectory | LogHome) -> bool:
        return self.is_controller and directory.path == self.config.metadata_log_dir.rstrip("/")

    def _serve(self) -> None:
        if self.failure is not None:
            raise self.failure
        with disk_errors():
            self._take_up()

    def _take_up(self) -> None:
        self._open_ports()
        if self.is_controller:
            lead_quorum(self.context, self.controller, self.server.addresses)
            self.controller.fence_absent(self.brokers.serving)
        self._register()
        if self.is_controller:
            self.controller.absence.resume()
        self._take_roles()

    def _open_ports(self) -> None:
        self._build_coordinators()
        if self.context.authorizer is not None:
            self._unfollow += [follow(self.context.authorizer, self.metadata, self.env.slices)]
        self._unfollow += [
            limiting.follow(
                self.context.quotas, self.context.host_names, self.metadata, self.env.slices
            )
        ]
        self.server.start()
        self.known.own_host = self.server.addresses[self.config.inter_broker_listener][0]

    def _take_roles(self) -> None:
        assert self._replicas is not None
        assert self._replicating is not None
        self._replicating.start()
        self._replicas.start()
        self.metadata.subscribe(self._on_topics)
        self.keys.watch()
        self.logins.start()
        self._is_serving = True

    def _build_coordinators(self) -> None:
        metadata, controller, context = self.metadata, self.asked, self.context
        context.auto_creation = AutoCreation(metadata, controller, self.config)
        context.streams_topics = StreamsTopics(metadata, controller, self.env.clock)
        build_sharing(context, self.known, self.peers)
        groups = Groups(
            self.env,
            replace(settings_of(self.config), group_override=self.known.group_setting),
            ImageTopics(lambda: metadata.image),
            lambda: self.known.partition_count(OFFSETS_TOPIC),
            context.persister.initialize,
        )
        transactions = Transactions(
            self.env,
            transaction_settings(
                self.config, lambda: metadata.image.features.get(TRANSACTION_VERSION, 0)
            ),
            producer_ids=ProducerIds(BrokerIds(metadata, controller, self.node_id).allocate),
            partition_count=lambda: self.known.partition_count(TRANSACTIONS_TOPIC),
            leader_of=self.known.leader_of,
            markers=Markers(self.env.clock, self.env.slices, self.partitions, groups),
            peer_of=self.peers.get,
        )
        self.peers.local = transactions
        self._replicating = Replicating(
            self.env, self.config, self.partitions, metadata, controller, self.peers.to_copy_from
        )
        self.brokers.serving.add(self.node_id)
        context.metadata, context.controller = metadata, controller
        context.groups, context.transactions = groups, transactions
        context.logs, context.check_keys = self.logs, self.keys.check
        context.alter_in_sync = self._replicating.ask
        self._replicas = Replicas(
            metadata, controller, self.config, self.partitions, self.logs, self._replicating,
            {OFFSETS_TOPIC: groups, TRANSACTIONS_TOPIC: transactions, STATE_TOPIC: context.shares},
            self.keys.settings_changed,
        )

    def _name_directory(self, log: PartitionLog, then: Callable[[], None]) -> None:
        """Has the metadata name the directory of a log; goes on when that lasts."""
        named = {(log.topic_id, log.partition): self.logs.directory_of(log).directory_id}

        def told(refused: KafkaError | None) -> None:
            if refused is None:
                self.asked.once_durable(then)
            elif refused.code == Error.REQUEST_TIMED_OUT:  # the controller is away
                self._name_directory(log, then)
            elif self._stopped is None:
                logger.error("the directory of %s is not told: %s", log.directory, refused)

        self.asked.submit(AssignDirectories(self.node_id, named)).then(told)

    def _register(self) -> None:
        self.controller.decide(
            RegisterBroker(
                self.node_id,
                self.known.endpoints(self.server.addresses),
                self.config.get_optional_str("broker.rack"),
                [each.directory_id for each in self.logs.directories if each.home.is_online],
                all(directory.was_clean for directory in self.logs.directories),
            )
        )

    def _on_topics(self, changes: Changes) -> None:
        """Groups hear of topics that came, went or grew, after their partitions were opened. What
        they committed goes when the deletion lasts: a power cut could give the topic back."""
        self.unclean_elections.note(self.metadata.image, changes)
        deleted = [(each.name, each.topic_id) for each in changes.deleted.values()]
        known = (self.metadata.image.topic_name(topic_id) for topic_id, _ in changes.partitions)
        names = [name for name in known if name is not None] + [name for name, _ in deleted]
        if deleted:
            self.metadata.once_it_lasts(deleted).then(self._on_topics_deleted)
        if names:
            self.context.groups.on_topics_changed(list(dict.fromkeys(names)))

    def _on_topics_deleted(self, deleted: list[tuple[str, bytes]] | KafkaError) -> None:
        if not isinstance(deleted, KafkaError):
            self.context.groups.on_topics_deleted(deleted)
            self.context.shares.on_topics_deleted(frozenset(each for _, each in deleted))

    # --- stopping ---------------------------------------------------------------------------

    def stop(self, grace_ms: int = STOP_GRACE_MS) -> Later[None]:
        """Takes no more connections, ends what is open, and makes everything last."""
        if self._stopped is None:
            self._stopped = Later()
            self.server.stop(grace_ms).then(self._close_and_tell)
        return self._stopped

    def kill(self) -> Later[None]:
        """Ends as a process does that is killed: nothing is written any more, and nobody told."""
        self._is_killed = True
        stopped = self.stop(0)
        self.server.disconnect()
        return stopped

    def hand_over(self, keep: Keep, *, is_clean: bool) -> Later[None]:
        """Stops, while connections that are owed nothing go on with another broker: `keep` is given
        each. Whoever waits is told first, as at any stop."""
        self._is_killed = not is_clean
        self._stopped = Later()
        self.server.hear_no_more()
        self._close()
        self.server.stop(HAND_OVER_MS, keep).then(self._tell_soon)
        return self._stopped

    def _close_and_tell(self, _: None) -> None:
        self._close()
        self._tell_soon(None)

    def _tell_soon(self, _: None) -> None:
        """Those who waited for a log or a role are told in this turn."""
        self.env.clock.call_later(0, self._tell_stopped)

    def _tell_stopped(self) -> None:
        assert self._stopped is not None
        self.ended.resolve(self.failure)
        self._stopped.resolve(None)

    def _close(self) -> None:
        self._leave_roles()
        self._close_logs()

    def _leave_roles(self) -> None:
        metadata, context = self.metadata, self.context
        self.brokers.serving.discard(self.node_id)
        self.peers.stop()
        self.keys.stop()
        self.logins.stop()
        while self._unfollow:
            self._unfollow.pop()()
        if self._is_serving and self._replicas is not None:
            assert self._replicating is not None
            context.transactions.stop()
            context.sharing.stop()
            context.persister.stop()
            self._replicating.stop()
            self._replicas.stop()
            metadata.unsubscribe(self._on_topics)
        context.waiting.stop()
        context.telemetry.stop()
        context.long_work.stop()
        context.host_names.stop()
        if self.audit is not None:
            self.audit.stop()

    def _close_logs(self) -> None:
        controller = self.controller
        if self._is_killed and self.is_controller and self.brokers.serving:
            controller.leave()  # what it has written is there, whatever becomes of its process
            self.logs.abandon()
            return
        if self.failure is not None or self._is_killed:
            self.logs.abandon()
            if self.is_controller:
                controller.abandon()
            return
        state = self.metadata.image.brokers.get(self.node_id)
        if self.is_controller:
            controller.fence_at_stop(self.node_id)
        self.logs.close(state.epoch if state is not None else -1)
        if self.is_controller and self.brokers.serving:
            controller.leave()
        elif self.is_controller:
            controller.close()
        elif not self.brokers.serving and controller.absence.is_now:
            controller.abandon()

    def fence(self) -> Later[KafkaError | None]:
        """Says that this broker goes, and leaves its partitions to others. While nobody leads the
        metadata log, nobody hears of it: later it might be up again."""
        metadata = self.brokers.metadata
        if metadata is None or metadata.controller_id is None:
            return Later.of(KafkaError(Error.NOT_CONTROLLER))
        return self.controller.submit(FenceBroker(self.node_id))

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
        if self.is_serving:
            gone = [each.directory_id for each in self.logs.directories if each.home is home]

            def told(refused: KafkaError | None) -> None:
                if refused is None:
                    return
                if refused.code == Error.REQUEST_TIMED_OUT:  # the controller is away
                    self._tell_offline(home)
                else:
                    why = "the cluster is not told that %s is offline: %s"
                    logger.error(why, home.path, refused)

            self.asked.submit(DirectoriesOffline(self.node_id, gone)).then(told)

    def _lost_metadata(self, mistake: Exception) -> None:
        """The controller's image is not what its log says, and cannot be made so."""
        if self.failure is None:
            self.failure = OSError(f"the cluster's metadata cannot be loaded again: {mistake}")
            self.env.clock.call_later(0, self._end)

    def _end(self) -> None:
        if not self._is_serving:
            return
        logger.critical(
            "[KafkaServer id=%d] ends, because it cannot do without what has failed: %s. What was "
            "acknowledged is not touched: mend the disk, or put a copy of its files in its place, "
            "and start again",
            self.node_id, self.failure,
        )
        if not self.is_controller:
            self.fence()  # when nobody hears of it, it is as if this process had died
        self.stop(0)
