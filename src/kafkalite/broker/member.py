"""A broker of a cluster whose controller is elsewhere (process.roles=broker).

Owns the order in which it comes and goes: the directories are locked, the metadata is followed to
its end, the logs are opened, the address is bound, the broker is registered, its roles are taken up
and it is let in; and the way back, which begins with its leaving what it leads. Invariant: nobody
is answered before it is let in.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kafkalite.broker.broker import STOP_GRACE_MS, Broker
from kafkalite.broker.known import LocalBrokers
from kafkalite.broker.log_configs import take_settings
from kafkalite.config import BrokerConfig
from kafkalite.config.listeners import BROKER
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.controller import OwnController
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.followed_log import FollowedLog
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.nodes import WILDCARDS
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.network import Address, Network
from kafkalite.env.randomness import random_uuid
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.forwarding import handler_for
from kafkalite.log.checkpoints import CorruptFile, read_properties
from kafkalite.log.directory import WrongDirectory
from kafkalite.log.names import META_PROPERTIES
from kafkalite.peers.channel import Channel
from kafkalite.peers.lifecycle import Lifecycle, Times
from kafkalite.peers.metadata_fetcher import Follower, MetadataFetcher
from kafkalite.peers.wire_controller import WireController
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import BrokerRegistrationRequest, EnvelopeRequest, EnvelopeResponse
from kafkalite.server.counting import Counts

logger = logging.getLogger(__name__)


class MemberBroker(Broker):
    """Asks its controller over connections, and follows its log."""

    def __init__(
        self, env: Env, network: Network, config: BrokerConfig, counts: Counts | None = None
    ) -> None:
        metadata = Metadata(cluster_id_of(env, config))
        super().__init__(env, network, config, LocalBrokers(metadata), counts=counts)
        self.is_controller = False
        self._network = network
        self._has_opened = False  # its logs, which are to be closed then
        self._leaving: Later[None] | None = None
        self._failed_with: Exception | None = None
        self._started: Later[Exception | None] = Later()
        timeout_ms = config.get_int("request.timeout.ms")
        session_ms = config.get_int("broker.session.timeout.ms")
        self._channels = {
            name: self._channel(name, ms)
            for name, ms in (
                ("raft", config.get_int("controller.quorum.request.timeout.ms")),
                ("heartbeat", max(1, session_ms // 2)),
                ("alter-partition", timeout_ms),
                ("forwarding", timeout_ms),
            )
        }
        self.lifecycle = Lifecycle(
            env.clock,
            self._channels["heartbeat"],
            Times(
                config.get_int("broker.heartbeat.interval.ms"),
                session_ms,
                config.get_int("initial.broker.registration.timeout.ms"),
            ),
            lambda: metadata.applied,
        )
        self._wire = WireController(
            env.clock,
            self._channels["alter-partition"],
            self._channels["forwarding"],
            self.lifecycle,
        )
        self.log = FollowedLog(metadata, config, env.random)
        self._fetcher: MetadataFetcher | None = None

    def _channel(self, what: str, timeout_ms: int) -> Channel:
        return Channel(
            self._network,
            self.env.clock,
            self.env.slices,
            client_id=f"broker-{self.node_id}-{what}-to-controller",
            address=self._controller_address,
            timeout_ms=timeout_ms,
        )

    def _controller_address(self) -> Address:
        found = self.config.controller_address
        assert found is not None, "checked with the settings"
        return found.host, found.port

    @property
    def asked(self) -> OwnController:
        return self._wire

    def _own_apis(self) -> dict[str, ApiSet]:
        return {BROKER: ApiSet(BROKER, handler_for(self._forward))}

    def _forward(self, envelope: EnvelopeRequest) -> Later[EnvelopeResponse | KafkaError]:
        return self._wire.forward(envelope)

    # --- starting ---------------------------------------------------------------------------------

    def start(self) -> Later[Exception | None]:
        try:
            self.logs.lock()
        except BaseException:
            self.logs.abandon()
            raise
        config = self.config
        self._fetcher = MetadataFetcher(
            self.env,
            self._channels["raft"],
            Follower(
                self.node_id,
                self.cluster_id,
                self.logs.directories[0].directory_id,
                config.get_int("controller.quorum.fetch.max.bytes"),
                config.get_int("controller.quorum.fetch.snapshot.max.bytes"),
                config.get_int("controller.quorum.retry.backoff.ms"),
            ),
            self.log,
            self._cannot_follow,
        )
        self._fetcher.start()
        self.log.caught_up.then(self._caught_up)
        return self._started

    def _caught_up(self, _: None) -> None:
        self._guarded(self._open_logs)

    def _open_logs(self) -> None:
        if self._stopped is not None:
            return
        self.metadata.controller_id = self._leader_id
        self.logs.take()
        apply_dynamic_config(self.metadata.image, self.config)
        take_settings(self.logs.settings, self.config)
        self.logs.start().then(lambda _: self._guarded(self._enter))

    @property
    def _leader_id(self) -> int:
        return -1 if self._fetcher is None else self._fetcher.leader_id

    def _enter(self) -> None:
        if self._stopped is not None:
            return
        self._has_opened = True
        if self.failure is not None:
            raise self.failure
        self._open_ports()
        self.server.wait_with_all()
        cordoned = self.config.get_list("cordoned.log.dirs")
        directories = [
            each.directory_id
            for each in self.logs.directories
            if "*" in cordoned or each.path in cordoned
        ]
        registered = self.lifecycle.register(self._registration(), directories)
        registered.then(lambda refused: self._guarded(lambda: self._entered(refused)))

    def _registration(self) -> BrokerRegistrationRequest:
        asked = BrokerRegistrationRequest
        directories = self.logs.directories
        was_clean = all(each.was_clean for each in directories)
        return asked(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=random_uuid(self.env.random),
            listeners=[
                asked.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in self._endpoints()
            ],
            features=[
                asked.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ],
            rack=self.config.get_optional_str("broker.rack"),
            log_dirs=[each.directory_id for each in directories if each.home.is_online],
            previous_broker_epoch=min(each.broker_epoch for each in directories)
            if was_clean
            else -1,
        )

    def _endpoints(self) -> list[EndPoint]:
        """Others may be on other machines, and of other makers: each has a host."""
        bound = {each.name: each.host for each in self.config.listeners}
        return [
            each if each.host else replace(each, host=_host_of(bound[each.name]))
            for each in self.known.endpoints(self.server.addresses)
        ]

    def _entered(self, refused: KafkaError | None) -> None:
        if self._stopped is not None:
            return
        if refused is not None:
            raise OSError(f"the controller does not take this broker in: {refused}")
        applied = self.metadata.when_applied(self.lifecycle.epoch)
        applied.then(lambda _: self._guarded(self._serve_soon))

    def _serve_soon(self) -> None:
        if self._stopped is not None:
            return
        if self.failure is not None:
            raise self.failure
        self._take_roles()
        self.lifecycle.let_in().then(lambda refused: self._guarded(self._is_let_in))

    def _is_let_in(self) -> None:
        if self._stopped is None:
            self.server.admit()
            self._started.resolve(None)

    def _guarded(self, step: Callable[[], None]) -> None:
        """What fails ends the start."""
        try:
            step()
        except Exception as error:
            if not isinstance(error, OSError | WrongDirectory):
                logger.exception("[KafkaServer id=%d] cannot start", self.node_id)
            self._give_up(error)

    def _give_up(self, why: Exception) -> None:
        self._failed_with = why
        self.ended.then(lambda _: self._tell_start(why))
        self.stop(0)

    def _tell_start(self, why: Exception) -> None:
        if not self._started.is_resolved:
            self._started.resolve(why)

    def _cannot_follow(self, why: Exception) -> None:
        """What the controller says is not understood, or is another cluster's."""
        logger.critical(
            "[KafkaServer id=%d] ends, because it cannot follow the metadata: %s",
            self.node_id, why,
        )  # fmt: skip
        if self.failure is None:
            self.failure = OSError(f"the metadata cannot be followed: {why}")
        self._give_up(self.failure)

    # --- stopping ---------------------------------------------------------------------------------

    def stop(self, grace_ms: int = STOP_GRACE_MS) -> Later[None]:
        """As any broker, once others lead what it leads."""
        if self._leaving is not None:
            return self._leaving
        self._leaving = Later()
        hurries = self.failure is not None or self._failed_with is not None or self._is_killed
        if hurries or not self.config.get_bool("controlled.shutdown.enable"):
            self._stop_now(grace_ms)
        else:
            go_on = partial(self._stop_now, grace_ms)
            self.lifecycle.shut_down().then(lambda _: go_on(), lambda _: go_on())
        return self._leaving

    def _stop_now(self, grace_ms: int) -> None:
        leaving = self._leaving
        assert leaving is not None
        super().stop(grace_ms).then(leaving.resolve, leaving.fail)

    def _close_logs(self) -> None:
        self.lifecycle.stop()
        self._wire.stop()
        if self._fetcher is not None:
            self._fetcher.stop()
        for channel in self._channels.values():
            channel.stop()
        self.log.stop()
        if self._failed_with is None:
            self._tell_start(OSError("it was stopped before it served"))
        if not self._has_opened or self.failure is not None or self._is_killed:
            self.logs.abandon()
        else:
            self.logs.close(self.lifecycle.epoch)

    def fence(self) -> Later[KafkaError | None]:
        """Nothing is to be said: its session ends."""
        return Later.of(None)


def _host_of(bound: str) -> str:
    """The one that it listens at, or this machine's name, as with Apache Kafka."""
    return bound if bound and bound not in WILDCARDS else socket.gethostname()


def cluster_id_of(env: Env, config: BrokerConfig) -> str:
    """The id that its directories were formatted with; raises WrongDirectory where none was."""
    for directory in config.log_dirs:
        path = f"{directory.rstrip('/')}/{META_PROPERTIES}"
        if env.disk.exists(path):
            try:
                found = read_properties(env.disk, path).get("cluster.id")
            except CorruptFile as error:
                raise WrongDirectory(f"{error}: bring it back from a copy") from None
            if found:
                return found
    raise WrongDirectory(
        f"No `{META_PROPERTIES}` found in {', '.join(config.log_dirs)} (have you run "
        "`kafka-storage.sh` to format the directory?)"
    )
