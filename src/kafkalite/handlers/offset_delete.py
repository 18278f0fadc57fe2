"""OffsetDelete, version 0: deletes a group's offsets of single partitions (KIP-496).

A topic that the group subscribes to keeps its offsets; partitions that do not exist are refused
one by one.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import DeleteOffsets
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import reply_with
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

Topic = OffsetDeleteRequest.Topic
Answer = OffsetDeleteResponse.Topic


def offset_delete(
    context: Context, call: Call, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Later[OffsetDeleteResponse]:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=Error.INVALID_GROUP_ID)
    refused: dict[str, Answer] = {}
    request.topics = [topic for topic in request.topics if _resolve(context, topic, refused)]

    def respond(answer: Any) -> OffsetDeleteResponse:
        if isinstance(answer, KafkaError):
            return OffsetDeleteResponse(error_code=answer.code)
        for topic in answer.topics:
            present = refused.setdefault(topic.name, topic)
            if present is not topic:
                present.partitions += topic.partitions
        return OffsetDeleteResponse(topics=list(refused.values()))

    return reply_with(context.groups.submit(request.group_id, DeleteOffsets(request)), respond)


def _resolve(context: Context, topic: Topic, refused: dict[str, Answer]) -> bool:
    """Keeps the partitions that exist; false when none is left."""
    image = context.cluster.image
    known: list[OffsetDeleteRequest.Partition] = []
    missing: list[OffsetDeleteRequest.Partition] = []
    for partition in topic.partitions:
        exists = image.has_partition(topic.name, partition.partition_index)
        (known if exists else missing).append(partition)
    if missing:
        code = Error.UNKNOWN_TOPIC_OR_PARTITION
        refused.setdefault(topic.name, Answer(name=topic.name)).partitions += [
            OffsetDeleteResponse.Partition(partition_index=one.partition_index, error_code=code)
            for one in missing
        ]
    topic.partitions = known
    return bool(known)
