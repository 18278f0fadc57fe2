"""The numbers of a broker, as Apache Kafka's beans call them, and those that it has no word for.

Owns the table: of each its bean, what kind of number it is, by what it is told apart, and what it
says. How a page spells it is spellings.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache


class Kind(Enum):
    COUNTER = "counter"  # only rises: a Meter's Count
    GAUGE = "gauge"
    SHARE = "share"  # from 0 to 1, what a bean calls Percent
    TIMES = "times"  # percentiles, a count and a sum


@dataclass(slots=True, frozen=True)
class Bean:
    domain: str  # server, of kafka.server; empty where the name is ours
    type: str
    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str

    @property
    def key(self) -> str:
        """Under which rows are kept."""
        return f"{self.type}.{self.name}" if self.domain else self.name


# domain type name kind labels | what it says
TABLE = """
server BrokerTopicMetrics MessagesInPerSec counter topic | Records that were appended.
server BrokerTopicMetrics BytesInPerSec counter topic | Bytes of batches that were appended.
server BrokerTopicMetrics BytesOutPerSec counter topic | Bytes of batches that consumers were sent.
server BrokerTopicMetrics BytesRejectedPerSec counter topic | Bytes of batches that were too large.
server BrokerTopicMetrics TotalProduceRequestsPerSec counter topic | Appends that were asked for.
server BrokerTopicMetrics TotalFetchRequestsPerSec counter topic | Reads of partitions.
server BrokerTopicMetrics FailedProduceRequestsPerSec counter topic | Appends that were refused, and not as a client expects.
server BrokerTopicMetrics FailedFetchRequestsPerSec counter topic | Reads that were refused so.
server BrokerTopicMetrics ProduceMessageConversionsPerSec counter topic | Records that came in an old format.
server BrokerTopicMetrics FetchMessageConversionsPerSec counter topic | Reads that were given in an old format.
server BrokerTopicMetrics ReplicationBytesOutPerSec counter - | Bytes of batches that followers were sent.
server ReplicaManager LeaderCount gauge - | Partitions that this broker leads.
server ReplicaManager PartitionCount gauge - | Partitions that it has a replica of.
server ReplicaManager OfflineReplicaCount gauge - | Replicas here whose log cannot be opened.
server ReplicaManager UnderReplicatedPartitions gauge - | Partitions led here of which not all replicas are in sync.
server ReplicaManager UnderMinIsrPartitionCount gauge - | Those with fewer in sync than min.insync.replicas.
server ReplicaManager AtMinIsrPartitionCount gauge - | Those with just as many.
server ReplicaManager ReassigningPartitions gauge - | Those that are on the move.
server ReplicaManager IsrShrinksPerSec counter - | Times that a replica left the in-sync ones.
server ReplicaManager IsrExpandsPerSec counter - | Times that one joined them.
server ReplicaManager ProducerIdCount gauge - | Producers that logs know, once for each log.
server KafkaServer BrokerState gauge - | 3 while it serves.
server KafkaServer linux-disk-read-bytes gauge - | Bytes that the process had read from disks.
server KafkaServer linux-disk-write-bytes gauge - | Bytes that it had written to disks.
server FetchSessionCache NumIncrementalFetchSessions gauge - | Fetch sessions.
server FetchSessionCache NumIncrementalFetchPartitionsCached gauge - | Partitions in them.
server FetchSessionCache IncrementalFetchSessionEvictionsPerSec counter - | Sessions that gave way to others.
server DelayedOperationPurgatory PurgatorySize gauge delayedOperation | Requests that wait for a partition to move.
server DelayedOperationPurgatory NumDelayedOperations gauge delayedOperation | The same: each is told once of what it waits for.
server KafkaRequestHandlerPool RequestHandlerAvgIdlePercent share - | Share of the last minute that the loop's thread did not compute.
network SocketServer NetworkProcessorAvgIdlePercent share - | The same: one thread does both.
network SocketServer MemoryPoolUsed gauge - | Bytes of requests in memory.
network SocketServer MemoryPoolAvailable gauge - | Bytes of queued.max.request.bytes that are left.
network RequestChannel RequestQueueSize gauge - | Requests that are worked on in slices.
network RequestChannel ResponseQueueSize gauge - | Replies in memory that their peers have not taken: connections that have some.
network RequestMetrics RequestsPerSec counter request,version | Requests.
network RequestMetrics ErrorsPerSec counter request,error | Codes in answers, NONE too.
network RequestMetrics TotalTimeMs times request | Milliseconds of a request, from its bytes to its reply.
network RequestMetrics RequestQueueTimeMs times request | Of it behind what came with it.
network RequestMetrics LocalTimeMs times request | Of it at work.
network RequestMetrics RemoteTimeMs times request | Of it waiting for a log, a disk or others.
network RequestMetrics ResponseQueueTimeMs times request | Of it until the reply was given to the socket.
network RequestMetrics ResponseSendTimeMs times request | Of it until the socket had taken the reply.
network RequestMetrics ThrottleTimeMs times request | For how long its client was to be silent.
server socket-server-metrics connection-count gauge listener,networkProcessor | Connections.
server socket-server-metrics connection-creation-total counter listener,networkProcessor | Connections that came.
server socket-server-metrics connection-creation-rate gauge listener,networkProcessor | Of them in a second, lately.
server socket-server-metrics connection-close-total counter listener,networkProcessor | Connections that ended.
server socket-server-metrics connection-close-rate gauge listener,networkProcessor | Of them in a second, lately.
server socket-server-metrics connections gauge clientSoftwareName,clientSoftwareVersion,listener,networkProcessor | Connections by what is at the other end.
server socket-server-metrics successful-authentication-total counter listener,networkProcessor | Logins.
server socket-server-metrics failed-authentication-total counter listener,networkProcessor | Logins that were refused.
server socket-server-metrics successful-reauthentication-total counter listener,networkProcessor | Later logins of a connection.
server socket-server-metrics failed-reauthentication-total counter listener,networkProcessor | Those that were refused.
controller KafkaController ActiveControllerCount gauge - | 1 where the controller is.
controller KafkaController OfflinePartitionsCount gauge - | Partitions without a leader.
controller KafkaController PreferredReplicaImbalanceCount gauge - | Partitions that another than their first replica leads.
controller KafkaController GlobalTopicCount gauge - | Topics.
controller KafkaController GlobalPartitionCount gauge - | Partitions.
controller KafkaController ActiveBrokerCount gauge - | Brokers that are up.
controller KafkaController FencedBrokerCount gauge - | Brokers that are not.
controller KafkaController LastAppliedRecordOffset gauge - | Of the metadata, the last record in the image.
controller ControllerStats UncleanLeaderElectionsPerSec counter - | Leaders that may lack records.
cluster Partition UnderReplicated gauge topic,partition | 1 when not all replicas are in sync, where it is led.
cluster Partition UnderMinIsr gauge topic,partition | 1 when fewer than min.insync.replicas are.
cluster Partition AtMinIsr gauge topic,partition | 1 when just as many are.
cluster Partition ReplicasCount gauge topic,partition | Replicas, where it is led; else 0.
cluster Partition InSyncReplicasCount gauge topic,partition | Those in sync, where it is led; else 0.
log Log Size gauge topic,partition | Bytes.
log Log NumLogSegments gauge topic,partition | Segments.
log Log LogStartOffset gauge topic,partition | Where it begins.
log Log LogEndOffset gauge topic,partition | Where it ends.
log LogManager OfflineLogDirectoryCount gauge - | Log directories that failed.
log LogCleanerManager max-dirty-percent gauge - | Of compacted logs, at the last look, the largest share to be cleaned.
log LogCleanerManager time-since-last-run-ms gauge - | How long ago that look was.
log LogCleanerManager uncleanable-partitions-count gauge logDirectory | Logs that a pass cannot read.
coordinator.group GroupMetadataManager NumGroups gauge - | Classic groups that this broker coordinates.
coordinator.group GroupMetadataManager NumGroupsPreparingRebalance gauge - | Those whose members are to join.
coordinator.group GroupMetadataManager NumGroupsCompletingRebalance gauge - | Those that wait for their leader's assignment.
coordinator.group GroupMetadataManager NumGroupsStable gauge - | Those that are settled.
coordinator.group GroupMetadataManager NumGroupsEmpty gauge - | Those without members.
coordinator.group GroupMetadataManager NumGroupsDead gauge - | None: a group that dies is gone.
coordinator.group GroupMetadataManager NumOffsets gauge - | Partitions of groups with a committed offset.
server raft-metrics current-leader gauge - | The node that leads the metadata's log.
server raft-metrics current-vote gauge - | Whom this node voted for: its own leader.
server raft-metrics current-epoch gauge - | The epoch in which it leads.
server raft-metrics current-state gauge current-state | 1 for what this node is in the metadata's quorum.
server raft-metrics high-watermark gauge - | Of the metadata, what is committed.
server raft-metrics log-end-offset gauge - | Where its log ends.
server raft-metrics append-records-rate gauge - | Records of it in a second, lately.
server Produce byte-rate gauge user,client-id | Bytes in a second of those who have a quota.
server Fetch byte-rate gauge user,client-id | The same of what they read.
server Request request-time gauge user,client-id | Per cent of a thread that they take.
server ControllerMutation tokens gauge user,client-id | Partitions that may come or go at once, of those who have a quota.
server Produce throttle-time gauge user,client-id | Milliseconds of silence that they were told, in the mean of the last minute.
server Fetch throttle-time gauge user,client-id | The same of reading.
server Request throttle-time gauge user,client-id | The same of their time at work.
server ControllerMutation throttle-time gauge user,client-id | The same of topics that come and go.
server client-metrics instance-count gauge - | Clients that push metrics, or asked which.
server client-metrics unknown-subscription-request-count counter - | Pushes for what is not wanted any more.
server client-metrics throttle-count counter - | Requests of clients that came before their time.
server client-metrics plugin-export-count counter - | Pushes that were read.
server client-metrics plugin-error-count counter - | Pushes that could not be.
- - kafkalite_info gauge version,node_id,cluster_id | 1.
- - kafkalite_loop_idle_ratio gauge - | Share of the last minute that the loop's thread did not compute.
- - kafkalite_loop_long_turns counter - | Turns of the loop of 100 ms and more.
- - kafkalite_loop_longest_turn_seconds gauge - | The longest so far.
- - kafkalite_request_bytes counter request | Bytes of requests.
- - kafkalite_received_bytes counter - | Bytes that clients sent.
- - kafkalite_sent_bytes counter - | Bytes of replies.
- - kafkalite_held_bytes gauge - | Bytes that work in slices keeps in memory.
- - kafkalite_groups gauge type,state | Groups that this broker coordinates.
- - kafkalite_transactions gauge state | Transactional ids that it coordinates.
- - kafkalite_expired_segments counter - | Segments that retention removed.
- - kafkalite_expired_bytes counter - | Bytes in them.
- - kafkalite_compactions counter outcome | Passes of compaction.
- - kafkalite_compacting gauge - | 1 while a pass is under way.
- - kafkalite_recovered_bytes gauge - | Bytes of logs that the last start had to read through.
- - kafkalite_telemetry_bytes counter - | Bytes of metrics that clients pushed.
- - kafkalite_telemetry_instances gauge - | Clients that push metrics, or asked which.
- - kafkalite_telemetry_series gauge - | Series that clients pushed and are told here.
- - kafkalite_telemetry_left_out counter - | Of those, points for which there was no room.
- - kafkalite_telemetry_forwarded counter outcome | Pushes that went on to kafkalite.telemetry.url, or could not.
"""  # noqa: E501 - a row is a line


@cache
def beans() -> dict[str, Bean]:
    """All of them by their keys."""
    rows = (line for line in TABLE.splitlines() if line)
    return {bean.key: bean for bean in map(_bean, rows)}


def _bean(row: str) -> Bean:
    head, _, text = row.partition(" | ")
    domain, type_, name, kind, labels = head.split()
    return Bean(
        domain.strip("-"), type_.strip("-") if domain == "-" else type_, name, Kind(kind),
        tuple(label for label in labels.split(",") if label != "-"), text,
    )  # fmt: skip
