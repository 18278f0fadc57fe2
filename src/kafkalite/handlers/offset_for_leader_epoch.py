"""OffsetForLeaderEpoch, versions 0–4: where a leader epoch ended in this leader's log.

Versions: 1 the epoch found, 2 the epoch the asker believes current (KIP-320), 3 the replica id,
4 flexible. Consumers ask it to find out whether what they read was truncated.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.permission import may, may_cluster
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkalite.security.acl import CLUSTER_ACTION, DESCRIBE, TOPIC

STEP_PARTITIONS = 25


def offset_for_leader_epoch(
    context: Context, call: Call, request: OffsetForLeaderEpochRequest
) -> InSteps:
    return InSteps(_answer(context, call, request))


def _answer(
    context: Context, call: Call, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    refused: list[OffsetForLeaderEpochResponse.Topic] = []
    may_all = may_cluster(context, call, CLUSTER_ACTION, is_quiet=True)
    for topic in request.topics:
        answer = OffsetForLeaderEpochResponse.Topic(topic=topic.topic)
        is_refused = not (may_all or may(context, call, DESCRIBE, TOPIC, topic.topic))
        (refused if is_refused else response.topics).append(answer)
        for number, asked in enumerate(topic.partitions):
            answer.partitions.append(_look_up(context, topic.topic, asked, is_refused))
            if number % STEP_PARTITIONS == STEP_PARTITIONS - 1:
                yield
        yield
    response.topics += refused
    return response


def _look_up(
    context: Context, topic: str, asked: OffsetForLeaderEpochRequest.Partition, is_refused: bool
) -> OffsetForLeaderEpochResponse.Partition:
    answer = OffsetForLeaderEpochResponse.Partition(partition=asked.partition)
    try:
        if is_refused:
            raise KafkaError(Error.TOPIC_AUTHORIZATION_FAILED)
        partition = find_partition(context, topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(
            asked.leader_epoch
        )
    except KafkaError as error:
        answer.error_code = error.code
    return answer
