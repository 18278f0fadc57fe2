"""OffsetForLeaderEpoch, versions 0–4: where a leader epoch ended in this leader's log.

Versions: 1 the epoch found, 2 the epoch the asker believes current (KIP-320), 3 the replica id,
4 flexible. Consumers ask it to find out whether what they read was truncated.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

STEP_PARTITIONS = 25


def offset_for_leader_epoch(
    context: Context, call: Call, request: OffsetForLeaderEpochRequest
) -> InSteps:
    return InSteps(_answer(context, request))


def _answer(
    context: Context, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answer = OffsetForLeaderEpochResponse.Topic(topic=topic.topic)
        response.topics.append(answer)
        for number, asked in enumerate(topic.partitions):
            answer.partitions.append(_look_up(context, topic.topic, asked))
            if number % STEP_PARTITIONS == STEP_PARTITIONS - 1:
                yield
        yield
    return response


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
