"""What one broker knows of the cluster, as its rooms ask for it.

Owns nothing but the look-ups; the metadata that they are made in is all brokers' of the process.
"""

from __future__ import annotations

from kafkalite.broker.log_configs import log_config
from kafkalite.config import BrokerConfig, group_value
from kafkalite.config.setting import Value
from kafkalite.coordinators.cluster.brokers import SECURITY_PROTOCOLS
from kafkalite.coordinators.cluster.directories import named_directory
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.nodes import LOOPBACK, UNADVERTISED, peer_address
from kafkalite.coordinators.cluster.states import GROUP, NO_LEADER, TOPIC, EndPoint
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.network import Address
from kafkalite.log.config import LogConfig
from kafkalite.quotas.permits import Mutations, mutations


@dataclass(slots=True)
class LocalBrokers:
    """The brokers of one process: they have one controller, and share its metadata."""

    metadata: Metadata | None = None
    controller: LocalController | None = None
    serving: set[int] = field(default_factory=set)  # by node id
    _mutations: Mutations | None = None

    def mutations_of(self, config: BrokerConfig, clock: Clock) -> Mutations:
        """What clients changed of topics lately, through whichever broker; by the settings of the
        one that is made first, which is the controller."""
        if self._mutations is None:
            self._mutations = mutations(config, clock)
        return self._mutations


@dataclass(slots=True)
class Known:
    """Of one broker."""

    brokers: LocalBrokers
    config: BrokerConfig
    own_host: str = LOOPBACK  # that of its inter-broker listener, once that is open

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def metadata(self) -> Metadata:
        assert self.brokers.metadata is not None, "the broker has not been started"
        return self.brokers.metadata

    def group_value(self, group_id: str, name: str) -> Value:
        """A setting of a group, or what holds for all."""
        return group_value(self.config, self.metadata.image.config(GROUP, group_id), name)

    def group_setting(self, group_id: str, name: str) -> int | None:
        """A setting that a group was given, None when it was not."""
        overrides = self.metadata.image.config(GROUP, group_id)
        if name not in overrides:
            return None
        value = group_value(self.config, overrides, name)
        assert isinstance(value, int), f"{name} is not a number: {value!r}"
        return value

    def partition_count(self, topic: str) -> int:
        found = self.metadata.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def partitions_of(self, topic_id: bytes) -> int:
        """How many partitions a topic has, by its id; 0 when it is not there."""
        found = self.metadata.image.by_id.get(topic_id)
        return 0 if found is None else len(found.partitions)

    def leader_of(self, topic: str, index: int) -> int | None:
        """Id of the leader, -1 when there is none now; None when there is no such partition, and
        that lasts: a transaction that was ended without it is over for good."""
        state = self.metadata.image.partition(topic, index)
        if state is None:
            return None if self.metadata.lasts else NO_LEADER
        return state.leader

    def address_of(self, node_id: int) -> Address | None:
        """Where other brokers find a broker, None when it is not there."""
        listener = self.config.inter_broker_listener
        return peer_address(self.metadata.image, node_id, listener, self.own_host)

    def config_of(self, topic: str) -> LogConfig:
        return log_config(self.config, self.metadata.image.config(TOPIC, topic))

    def topic_of(self, topic_id: bytes, index: int) -> str | None:
        """The name of a topic, when this broker has a replica of its partition."""
        topic = self.metadata.image.by_id.get(topic_id)
        state = None if topic is None else topic.partitions.get(index)
        has_replica = state is not None and self.node_id in state.replicas
        return topic.name if topic is not None and has_replica else None

    def named_directory(self, topic: str, index: int) -> bytes | None:
        """The directory in which the metadata has this broker's replica, if it names one."""
        state = self.metadata.image.partition(topic, index)
        return None if state is None else named_directory(state, self.node_id)

    def endpoints(self, addresses: dict[str, Address]) -> list[EndPoint]:
        """What is advertised of each listener; a port of 0 is the one that was bound."""
        advertised = self.config.advertised_listeners
        endpoints = []
        for listener in self.config.listeners:
            bound_port = addresses[listener.name][1]
            known = advertised.get(listener.name)
            host = known.host if known is not None else UNADVERTISED
            port = known.port if known is not None and known.port else bound_port
            protocol = SECURITY_PROTOCOLS[listener.protocol]
            endpoints.append(EndPoint(listener.name, host, port, protocol))
        return endpoints
