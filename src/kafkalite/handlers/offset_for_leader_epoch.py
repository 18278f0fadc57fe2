"""OffsetForLeaderEpoch, versions 0–4: where a leader epoch ended in this leader's log.

Versions: 1 the epoch found, 2 the epoch the asker believes current (KIP-320), 3 the replica id,
4 flexible. Consumers ask it to find out whether what they read was truncated.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)


def offset_for_leader_epoch(
    context: Context, call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.Topic(
                topic=topic.topic,
                partitions=[_look_up(context, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _look_up(
    context: Context, topic: str, asked: OffsetForLeaderEpochRequest.Partition
) -> OffsetForLeaderEpochResponse.Partition:
    answer = OffsetForLeaderEpochResponse.Partition(partition=asked.partition)
    try:
        partition = find_partition(context, topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(
            asked.leader_epoch
        )
    except KafkaError as error:
        answer.error_code = error.code
    return answer
