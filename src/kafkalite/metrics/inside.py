"""What a broker counts and holds, taken down on its loop, a slice per turn.

Owns which number is read where. What is written down are plain numbers, which others may spell on
another thread while the broker goes on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version

from kafkalite.broker.broker import Broker
from kafkalite.client.survey import Survey
from kafkalite.coordinators.groups.classic_group import ClassicGroup, ClassicState
from kafkalite.env.slicing import Steps
from kafkalite.env.turns import watch
from kafkalite.metrics.inside_groups import look_at_groups, look_at_transactions
from kafkalite.metrics.inside_survey import begin_survey, look_at_topics
from kafkalite.metrics.loop_share import Lately
from kafkalite.metrics.spellings import Row
from kafkalite.protocol.errors import Error
from kafkalite.replication.leader import Leader
from kafkalite.replication.partition import Partition
from kafkalite.replication.traffic import Traffic
from kafkalite.replication.waiting import PURGATORIES
from kafkalite.server.timing import Sample
from kafkalite.telemetry.payload import Key

PARTITIONS_PER_STEP = 64
RUNNING, STOPPING = 3, 6  # of a broker's states
PROCESSOR = "0"  # there is one
MOST_CLIENTS = 100
OF_TOPICS = {
    "MessagesInPerSec": "messages_in", "BytesInPerSec": "bytes_in", "BytesOutPerSec": "bytes_out",
    "BytesRejectedPerSec": "bytes_rejected", "TotalProduceRequestsPerSec": "produces",
    "TotalFetchRequestsPerSec": "fetches", "FailedProduceRequestsPerSec": "failed_produces",
    "FailedFetchRequestsPerSec": "failed_fetches",
    "ProduceMessageConversionsPerSec": "produce_conversions",
    "FetchMessageConversionsPerSec": "fetch_conversions",
}  # fmt: skip


@dataclass(slots=True)
class ApiTimes:
    """The samples of one API, and what they stand for."""

    request: str
    samples: list[Sample]
    sums_ns: list[int]
    timed: int


@dataclass(slots=True)
class Inside:
    """All of it."""

    survey: Survey
    rows: dict[str, list[Row]] = field(default_factory=dict)
    times: list[ApiTimes] = field(default_factory=list)
    pushed: list[tuple[Key, float]] = field(default_factory=list)

    def add(self, key: str, value: float, *labels: object) -> None:
        self.rows.setdefault(key, []).append((tuple(map(str, labels)), value))


def look(broker: Broker, lately: Lately) -> Steps[Inside]:
    found = Inside(begin_survey(broker))
    _look_at_loop(found, broker, lately)
    _look_at_server(found, broker, lately)
    yield
    yield from _look_at_requests(found, broker)
    yield from _look_at_traffic(found, broker)
    yield from _look_at_partitions(found, broker)
    yield from look_at_topics(found.survey, broker)
    yield from look_at_groups(found.survey, broker)
    _count_groups(found, broker)
    yield
    states: Counter[str] = yield from look_at_transactions(broker)
    for state, count in states.items():
        found.add("kafkalite_transactions", count, state)
    _look_at_logs(found, broker)
    yield from _look_at_telemetry(found, broker)
    if broker.is_controller:
        yield from _look_at_cluster(found, broker, lately)
    else:
        found.add("KafkaController.ActiveControllerCount", 0)
    return found


@cache
def _release() -> str:
    return version("kafkalite")


def _look_at_loop(found: Inside, broker: Broker, lately: Lately) -> None:
    idle = lately.idle_share()
    found.add("KafkaRequestHandlerPool.RequestHandlerAvgIdlePercent", idle)
    found.add("SocketServer.NetworkProcessorAvgIdlePercent", idle)
    found.add("kafkalite_loop_idle_ratio", idle)
    found.add("kafkalite_loop_long_turns", watch.count)
    longest = watch.longest
    found.add("kafkalite_loop_longest_turn_seconds", longest.wall_ms / 1000 if longest else 0)
    found.add("kafkalite_info", 1, _release(), broker.node_id, broker.cluster_id)
    state = RUNNING if broker.is_serving else STOPPING
    found.add("KafkaServer.BrokerState", state)
    context = broker.context
    slices = broker.env.slices
    found.add("kafkalite_held_bytes", slices.held_bytes)
    found.add("RequestChannel.RequestQueueSize", len(slices))
    sessions = context.fetch_sessions
    found.add("FetchSessionCache.NumIncrementalFetchSessions", len(sessions))
    cached = sessions.partition_count()
    found.add("FetchSessionCache.NumIncrementalFetchPartitionsCached", cached)
    evictions = sessions.evictions
    found.add("FetchSessionCache.IncrementalFetchSessionEvictionsPerSec", evictions)
    waiting = Counter(each.kind for each in context.waiting.parked)
    for kind in PURGATORIES:
        found.add("DelayedOperationPurgatory.PurgatorySize", waiting[kind], kind)
        found.add("DelayedOperationPurgatory.NumDelayedOperations", waiting[kind], kind)
    for type_, name, rates in context.quotas.rates():
        for (user, client_id), rate in rates:
            found.add(f"{type_}.{name}", rate, user, client_id)


# --- connections and requests ---------------------------------------------------------------------


def _look_at_server(found: Inside, broker: Broker, lately: Lately) -> None:
    server = broker.server
    memory = server.request_memory
    found.add("SocketServer.MemoryPoolUsed", memory.used)
    found.add("SocketServer.MemoryPoolAvailable", max(memory.limit - memory.used, 0))
    clients = server.clients
    open_ = Counter(each.listener for each in clients)
    for listener in server.addresses:
        came, ended = lately.connection_rates(listener)
        for name, value in (
            ("connection-count", open_[listener]),
            ("connection-creation-total", server.opened[listener]),
            ("connection-creation-rate", came),
            ("connection-close-total", server.closed[listener]),
            ("connection-close-rate", ended),
        ):
            found.add(f"socket-server-metrics.{name}", value, listener, PROCESSOR)
        logins = broker.logins.counts.get(listener)
        if logins is not None:
            for name, value in (
                ("successful-authentication-total", logins.taken),
                ("failed-authentication-total", logins.failed),
                ("successful-reauthentication-total", logins.taken_again),
                ("failed-reauthentication-total", logins.failed_again),
            ):
                found.add(f"socket-server-metrics.{name}", value, listener, PROCESSOR)
    unsent = sum(each.timed is not None for each in clients)
    found.add("RequestChannel.ResponseQueueSize", unsent)
    software = Counter((each.software_name, each.software_version, each.listener)
                       for each in clients)  # fmt: skip
    # Their names are what clients say they are.
    for labels, count in software.most_common(MOST_CLIENTS):
        found.add("socket-server-metrics.connections", count, *labels, PROCESSOR)


def _look_at_requests(found: Inside, broker: Broker) -> Steps[None]:
    counts = broker.counts
    if counts is None:
        return
    found.add("kafkalite_received_bytes", counts.received_bytes)
    found.add("kafkalite_sent_bytes", counts.watch.sent_bytes)
    sizes: Counter[str] = Counter()
    fetches: Counter[int] = Counter()
    for each in list(counts.by_route.values()):
        found.add("RequestMetrics.RequestsPerSec", each.requests, each.name, each.version)
        sizes[each.name] += each.request_bytes
        if each.name.startswith("Fetch") and each.name != "FetchSnapshot":
            fetches[each.version] += each.requests
    for version_, count in fetches.items():  # as Apache Kafka: of both, and of each
        found.add("RequestMetrics.RequestsPerSec", count, "Fetch", version_)
    for request, size in sizes.items():
        found.add("kafkalite_request_bytes", size, request)
    for request, errors in list(counts.errors.items()):
        for code, count in list(errors.items()):
            found.add("RequestMetrics.ErrorsPerSec", count, request, Error(code).name)
    yield
    for request, times in list(counts.times.items()):
        found.times.append(
            ApiTimes(request, times.samples.copy(), times.sums.copy(), times.timed)
        )
        yield


def _look_at_telemetry(found: Inside, broker: Broker) -> Steps[None]:
    telemetry = broker.context.telemetry
    found.add("kafkalite_telemetry_bytes", telemetry.pushed_bytes)
    found.add("kafkalite_telemetry_instances", len(telemetry))
    unknown = telemetry.unknown_subscriptions
    found.add("client-metrics.instance-count", len(telemetry))
    found.add("client-metrics.unknown-subscription-request-count", unknown)
    found.add("client-metrics.throttle-count", telemetry.throttled)
    receiver = telemetry.receiver
    if receiver is None:
        return
    found.add("client-metrics.plugin-export-count", receiver.taken)
    found.add("client-metrics.plugin-error-count", receiver.unreadable)
    if receiver.forwarding is not None:
        found.add("kafkalite_telemetry_forwarded", receiver.forwarding.sent, "sent")
        found.add("kafkalite_telemetry_forwarded", receiver.forwarding.dropped, "dropped")
    if receiver.series is not None:
        now_ms = broker.env.clock.monotonic_ms()
        found.pushed = yield from receiver.series.taken_down(now_ms)
        found.add("kafkalite_telemetry_series", len(receiver.series))
        found.add("kafkalite_telemetry_left_out", receiver.series.left_out)


# --- topics and partitions ------------------------------------------------------------------------


def _look_at_traffic(found: Inside, broker: Broker) -> Steps[None]:
    traffics = broker.partitions.traffics
    if traffics is None:
        return
    total = traffics.total()
    _add_traffic(found, total)
    found.add("BrokerTopicMetrics.ReplicationBytesOutPerSec", total.replication_bytes_out)
    summed: dict[str, Traffic] = {}
    for count, (topic, traffic) in enumerate(traffics.by_topic(), 1):
        summed.setdefault(topic, Traffic()).add(traffic)
        if count % PARTITIONS_PER_STEP == 0:
            yield
    for count, (topic, traffic) in enumerate(summed.items(), 1):
        _add_traffic(found, traffic, topic)
        if count % PARTITIONS_PER_STEP == 0:
            yield


def _add_traffic(found: Inside, traffic: Traffic, *labels: str) -> None:
    for name, ours in OF_TOPICS.items():
        found.add(f"BrokerTopicMetrics.{name}", getattr(traffic, ours), *labels)


def _look_at_partitions(found: Inside, broker: Broker) -> Steps[None]:
    partitions = list(broker.partitions)
    sums: Counter[str] = Counter(
        LeaderCount=0, UnderReplicatedPartitions=0, UnderMinIsrPartitionCount=0,
        AtMinIsrPartitionCount=0, ReassigningPartitions=0, ProducerIdCount=0,
    )  # fmt: skip
    image = broker.metadata.image
    for count, each in enumerate(partitions, 1):
        state = image.partition(each.topic, each.index)
        if each.is_leader and state is not None and state.is_reassigning:
            sums["ReassigningPartitions"] += 1
        sums["ProducerIdCount"] += len(each.log.producers or ())
        _add_partition(found, each, sums)
        _add_log(found, each)
        if count % PARTITIONS_PER_STEP == 0:
            yield
    for name, value in sums.items():
        found.add(f"ReplicaManager.{name}", value)
    found.add("ReplicaManager.PartitionCount", len(partitions))
    found.add("ReplicaManager.OfflineReplicaCount", len(broker.partitions.offline))
    shared = partitions[0].neighbours if partitions else None
    found.add("ReplicaManager.IsrShrinksPerSec", shared.isr_shrinks if shared else 0)
    found.add("ReplicaManager.IsrExpandsPerSec", shared.isr_expands if shared else 0)


def _add_partition(found: Inside, each: Partition, sums: Counter[str]) -> None:
    leader = each.role if isinstance(each.role, Leader) else None
    replicas = 0 if leader is None else len(leader.replicas)
    in_sync = 0 if leader is None else len(leader.isr)
    wanted = min(each.log.config.min_insync_replicas, replicas)
    under, below, at = in_sync < replicas, in_sync < wanted, bool(wanted) and in_sync == wanted
    sums["LeaderCount"] += leader is not None
    sums["UnderReplicatedPartitions"] += under
    sums["UnderMinIsrPartitionCount"] += below
    sums["AtMinIsrPartitionCount"] += at
    for name, value in (
        ("UnderReplicated", under), ("UnderMinIsr", below), ("AtMinIsr", at),
        ("ReplicasCount", replicas), ("InSyncReplicasCount", in_sync),
    ):  # fmt: skip
        found.add(f"Partition.{name}", int(value), each.topic, each.index)


def _add_log(found: Inside, each: Partition) -> None:
    log = each.log
    size = log.size
    for name, value in (
        ("Size", size), ("NumLogSegments", len(log.segments)),
        ("LogStartOffset", log.log_start_offset), ("LogEndOffset", log.log_end_offset),
    ):  # fmt: skip
        found.add(f"Log.{name}", value, each.topic, each.index)
    found.survey.log_bytes[each.node_id, each.topic, each.index] = size


def _look_at_logs(found: Inside, broker: Broker) -> None:
    logs = broker.logs
    failed = sum(not each.home.is_online for each in logs.directories)
    found.add("LogManager.OfflineLogDirectoryCount", failed)
    found.add("kafkalite_expired_segments", logs.expired_segments)
    found.add("kafkalite_expired_bytes", logs.expired_bytes)
    found.add("kafkalite_compactions", logs.compactions, "done")
    found.add("kafkalite_compactions", logs.failed_compactions, "failed")
    cleaner = logs.periodic.cleaner
    found.add("kafkalite_compacting", int(cleaner.is_running))
    since_ms = broker.env.clock.monotonic_ms() - cleaner.looked_ms
    found.add("LogCleanerManager.max-dirty-percent", int(100 * cleaner.dirtiest_ratio))
    found.add("LogCleanerManager.time-since-last-run-ms", since_ms)
    for path, count in cleaner.uncleanable().items():
        found.add("LogCleanerManager.uncleanable-partitions-count", count, path)
    found.add("kafkalite_recovered_bytes", logs.loading.bytes_expected)


# --- groups ---------------------------------------------------------------------------------------

_NAMES = {
    ClassicState.PREPARING_REBALANCE: "NumGroupsPreparingRebalance",
    ClassicState.COMPLETING_REBALANCE: "NumGroupsCompletingRebalance",
    ClassicState.STABLE: "NumGroupsStable",
    ClassicState.EMPTY: "NumGroupsEmpty",
    ClassicState.DEAD: "NumGroupsDead",
}


def _count_groups(found: Inside, broker: Broker) -> None:
    groups = found.survey.groups.values()
    states = Counter((each.kind, each.state) for each in groups)
    for (kind, state), count in states.items():
        found.add("kafkalite_groups", count, kind, state)
    classic = ClassicGroup("").type_name
    of_classic = {state: count for (kind, state), count in states.items() if kind == classic}
    found.add("GroupMetadataManager.NumGroups", sum(of_classic.values()))
    for each, name in _NAMES.items():
        found.add(f"GroupMetadataManager.{name}", of_classic.get(each.value, 0))
    offsets = sum(len(each.committed) for each in groups)
    found.add("GroupMetadataManager.NumOffsets", offsets)


# --- the cluster ----------------------------------------------------------------------------------


def _look_at_cluster(found: Inside, broker: Broker, lately: Lately) -> Steps[None]:
    metadata = broker.metadata
    image = metadata.image
    partitions = offline = imbalanced = 0
    for count, topic in enumerate(list(image.topics.values()), 1):
        for state in list(topic.partitions.values()):
            partitions += 1
            offline += state.leader < 0
            imbalanced += state.leader != state.preferred_leader
        if count % PARTITIONS_PER_STEP == 0:
            yield
    active = len(image.live_brokers())
    epoch = broker.controller.shard.view.epoch
    for key, value in (
        ("KafkaController.ActiveControllerCount", 1),
        ("KafkaController.OfflinePartitionsCount", offline),
        ("KafkaController.PreferredReplicaImbalanceCount", imbalanced),
        ("KafkaController.GlobalTopicCount", len(image.topics)),
        ("KafkaController.GlobalPartitionCount", partitions),
        ("KafkaController.ActiveBrokerCount", active),
        ("KafkaController.FencedBrokerCount", len(image.brokers) - active),
        ("KafkaController.LastAppliedRecordOffset", metadata.offset),
        ("ControllerStats.UncleanLeaderElectionsPerSec", broker.unclean_elections.count),
        ("raft-metrics.current-leader", broker.node_id),
        ("raft-metrics.current-vote", broker.node_id),
        ("raft-metrics.current-epoch", epoch),
        ("raft-metrics.high-watermark", metadata.offset + 1),
        ("raft-metrics.log-end-offset", metadata.offset + 1),
        ("raft-metrics.append-records-rate", lately.record_rate()),
    ):
        found.add(key, value)
    found.add("raft-metrics.current-state", 1, "leader")

