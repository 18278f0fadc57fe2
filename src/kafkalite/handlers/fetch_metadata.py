"""Fetch at a listener for controllers, versions 4–18: the metadata log, as observers follow it.

Owns that one partition's answers (KIP-595, KIP-630): records, a snapshot to begin with, or where
two logs part. There are no sessions, and nothing else is read there. Who has all that is committed
waits for more, or for word that more is.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    check_cluster,
    leader_address,
    leader_of,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.replication.waiting import Watched

IDS_VERSION = 13
STATE_VERSION = 15
ENDPOINTS_VERSION = 16

Asked = FetchRequest.Partition
Partition = FetchResponse.Partition


def fetch_metadata(
    context: Context, call: Call, request: FetchRequest
) -> FetchResponse | Later[FetchResponse]:
    leader = leader_of(context)
    check_cluster(context, request.cluster_id)
    asked = _metadata_partition(request, call.version)
    if asked is None:
        return FetchResponse(error_code=Error.INVALID_REQUEST)
    leader.observed(_who(request, call.version), asked.replica_directory_id, asked.fetch_offset)
    answer = _look(leader, asked, request.max_bytes)
    if request.max_wait_ms <= 0 or _is_news(leader, asked, answer):
        return _response(leader, call, request, answer)
    return _wait(context, leader, call, request, asked)


def _who(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= STATE_VERSION else request.replica_id


def _metadata_partition(request: FetchRequest, version: int) -> Asked | None:
    """The one partition that there is, when nothing else is asked for."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    [topic] = request.topics
    [found] = topic.partitions
    is_log = (
        topic.topic_id == METADATA_TOPIC_ID if version >= IDS_VERSION
        else topic.topic == METADATA_TOPIC
    )  # fmt: skip
    return found if is_log and found.partition == 0 else None


def _wait(
    context: Context, leader: QuorumLeader, call: Call, request: FetchRequest, asked: Asked
) -> Later[FetchResponse]:
    later: Later[FetchResponse] = Later()

    def again(moved: Collection[Watched] | None) -> bool:
        answer = _look(leader, asked, request.max_bytes)
        if moved is not None and not _is_news(leader, asked, answer):
            return False
        later.resolve(_response(leader, call, request, answer))
        return True

    parked = context.waiting.park((leader.partition,), request.max_wait_ms, again, later)
    call.connection.when_gone(parked.expire)
    later.then(lambda _: call.connection.stays_without(parked.expire))
    return later


def _look(leader: QuorumLeader, asked: Asked, max_bytes: int) -> Partition:
    answer = Partition(
        partition_index=0,
        high_watermark=leader.high_watermark,
        log_start_offset=leader.partition.log.log_start_offset,
        current_leader=FetchResponse.CurrentLeader(
            leader_id=leader.node_id, leader_epoch=leader.epoch
        ),
        aborted_transactions=[],
        records=b"",
    )
    try:
        leader.check_epoch(asked.current_leader_epoch)
        if asked.fetch_offset < 0 or asked.last_fetched_epoch < 0:
            raise KafkaError(Error.INVALID_REQUEST)
        found = leader.find(asked.fetch_offset, asked.last_fetched_epoch, max_bytes)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    if found.records is not None:
        answer.records = found.records
    if found.diverging is not None:
        epoch, end = found.diverging
        answer.diverging_epoch = FetchResponse.DivergingEpoch(epoch=epoch, end_offset=end)
    if found.snapshot is not None:
        answer.snapshot_id = FetchResponse.SnapshotId(
            end_offset=found.snapshot.end_offset, epoch=found.snapshot.epoch
        )
    return answer


def _is_news(leader: QuorumLeader, asked: Asked, answer: Partition) -> bool:
    return (
        answer.error_code != Error.NONE
        or bool(answer.records)
        or answer.diverging_epoch.end_offset >= 0
        or answer.snapshot_id.end_offset >= 0
        or asked.high_watermark < leader.high_watermark
    )


def _response(
    leader: QuorumLeader, call: Call, request: FetchRequest, answer: Partition
) -> FetchResponse:
    topic = FetchResponse.Response(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[answer]
    )
    response = FetchResponse(responses=[topic])
    address = leader_address(leader, call)
    if call.version >= ENDPOINTS_VERSION and address is not None:
        host, port = address
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=leader.node_id, host=host, port=port)
        ]
    return response
