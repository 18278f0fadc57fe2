"""What handlers work on: the rooms below them, as the composition root has tied them together.

Owns nothing and decides nothing. One Context serves all requests of one broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.listeners import BROKER, CONTROLLER
from kafkalite.config.setting import InvalidSetting
from kafkalite.coordinators.cluster.auto_creation import AutoCreation
from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.coordinators.cluster.streams_topics import StreamsTopics
from kafkalite.coordinators.groups.front import Groups
from kafkalite.coordinators.shares.front import Shares
from kafkalite.coordinators.shares.persister import Persister
from kafkalite.coordinators.transactions.front import Transactions
from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.handlers.kept_replies import KeptReplies
from kafkalite.handlers.long_work import LongWork
from kafkalite.handlers.produce_order import ProduceOrder
from kafkalite.handlers.sender import Sender
from kafkalite.handlers.telemetry import Telemetry
from kafkalite.log.manager import LogManager
from kafkalite.quotas.client_quotas import ClientQuotas
from kafkalite.quotas.host_names import HostNames
from kafkalite.replication.leader import AlterPartition
from kafkalite.replication.partition import Partition
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.throttle import LEADER, Throttle
from kafkalite.replication.waiting import Waiting
from kafkalite.security.authorizer import Authorizer
from kafkalite.sharing.sharing import Sharing


@dataclass(slots=True)
class Context:
    """References, filled in by the broker."""

    env: Env
    config: BrokerConfig
    node_id: int
    cluster_id: str
    partitions: Partitions
    waiting: Waiting
    fetch_sessions: FetchSessions
    quotas: ClientQuotas
    # Known once the directories have been opened, which is before the first request.
    metadata: Metadata = field(init=False)
    controller: Controller = field(init=False)
    auto_creation: AutoCreation = field(init=False)
    streams_topics: StreamsTopics = field(init=False)
    groups: Groups = field(init=False)
    transactions: Transactions = field(init=False)
    shares: Shares = field(init=False)
    persister: Persister = field(init=False)
    sharing: Sharing = field(init=False)
    logs: LogManager = field(init=False)
    # Asks the controller for other in-sync replicas, as leaders want them.
    alter_in_sync: Callable[[Partition, Iterable[AlterPartition]], None] = (
        lambda partition, wanted: None
    )
    # Why listeners could not go on with the keys of these settings, once a worker has read them.
    check_keys: Callable[[BrokerConfig], Later[InvalidSetting | None]] = lambda _: Later.of(None)
    telemetry: Telemetry = field(default_factory=Telemetry)
    kept_replies: KeptReplies = field(default_factory=KeptReplies)
    # None: everybody may do everything.
    authorizer: Authorizer | None = None
    long_work: LongWork = field(init=False)
    host_names: HostNames = field(init=False)
    leader_throttle: Throttle = field(init=False)
    produce_order: ProduceOrder = field(default_factory=ProduceOrder)
    # Of the metadata log, where this process leads it for others.
    quorum: QuorumLeader | None = None
    # The response to a request that a broker forwards for a sender; None when there can be none.
    answer_forwarded: Callable[[bytes, Sender], Later[bytes | None]] = lambda *_: Later.of(None)
    # By the kind of listener.
    api_sets: dict[str, ApiSet] = field(
        default_factory=lambda: {kind: ApiSet(kind) for kind in (BROKER, CONTROLLER)}
    )

    def __post_init__(self) -> None:
        self.long_work = LongWork(self.env.slices)
        self.host_names = HostNames(self.env)
        self.leader_throttle = Throttle(self.config, self.env.clock, LEADER)
