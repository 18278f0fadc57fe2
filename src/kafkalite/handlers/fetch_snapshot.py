"""FetchSnapshot, versions 0–1: a piece of a snapshot of the metadata.

Flexible (KIP-630). Versions: 1 the directory of who asks, and where the leader is (KIP-853). Pieces
may cut batches anywhere.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.coordinators.cluster.snapshots import SnapshotId
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import (
    METADATA_TOPIC,
    check_cluster,
    leader_address,
    leader_of,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse

MOST_BYTES = 1 << 20  # read on the loop
ENDPOINTS_VERSION = 1

Partition = FetchSnapshotResponse.Partition


def fetch_snapshot(
    context: Context, call: Call, request: FetchSnapshotRequest
) -> FetchSnapshotResponse:
    leader = leader_of(context)
    check_cluster(context, request.cluster_id)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=Error.INVALID_REQUEST)  # each would be read at once
    [topic] = request.topics
    [asked] = topic.partitions
    max_bytes = max(1, min(request.max_bytes, MOST_BYTES))
    is_log = (topic.name, asked.partition) == (METADATA_TOPIC, 0)
    part = (
        _piece(leader, asked, max_bytes) if is_log
        else Partition(index=asked.partition, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
    )  # fmt: skip
    response = FetchSnapshotResponse(
        topics=[FetchSnapshotResponse.Topic(name=topic.name, partitions=[part])]
    )
    address = leader_address(leader, call)
    if call.version >= ENDPOINTS_VERSION and address is not None:
        host, port = address
        node = FetchSnapshotResponse.NodeEndpoint(node_id=leader.node_id, host=host, port=port)
        response.node_endpoints = [node]
    return response


def _piece(
    leader: QuorumLeader, asked: FetchSnapshotRequest.Partition, max_bytes: int
) -> Partition:
    wanted = asked.snapshot_id
    part = Partition(
        index=0,
        snapshot_id=FetchSnapshotResponse.SnapshotId(
            end_offset=wanted.end_offset, epoch=wanted.epoch
        ),
        current_leader=FetchSnapshotResponse.CurrentLeader(
            leader_id=leader.node_id, leader_epoch=leader.epoch
        ),
        position=asked.position,
    )
    try:
        leader.check_epoch(asked.current_leader_epoch)
        part.unaligned_records, part.size = leader.read_snapshot(
            SnapshotId(wanted.end_offset, wanted.epoch), asked.position, max_bytes
        )
    except KafkaError as error:
        part.error_code, part.unaligned_records = error.code, b""
    return part
