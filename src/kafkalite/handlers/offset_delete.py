"""OffsetDelete, version 0: deletes a group's offsets of single partitions (KIP-496).

A topic that the group subscribes to keeps its offsets; partitions that do not exist are refused
one by one.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import DeleteOffsets
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import one_answer, reply_with, sorted_out, unless_many
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

Topic = OffsetDeleteRequest.Topic
Answer = OffsetDeleteResponse.Topic


def offset_delete(
    context: Context, call: Call, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Later[OffsetDeleteResponse] | InSteps:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=Error.INVALID_GROUP_ID)
    return unless_many(_delete(context, request), request.topics)


def _delete(
    context: Context, request: OffsetDeleteRequest
) -> Steps[OffsetDeleteResponse | Later[OffsetDeleteResponse]]:
    refused: dict[str, Answer] = {}
    request.topics = yield from _resolve(context, request.topics, refused)

    def respond(answer: Any) -> OffsetDeleteResponse:
        if isinstance(answer, KafkaError):
            return OffsetDeleteResponse(error_code=answer.code)
        for topic in answer.topics:
            present = refused.setdefault(topic.name, topic)
            if present is not topic:
                present.partitions += topic.partitions
        return OffsetDeleteResponse(topics=list(refused.values()))

    return reply_with(context.groups.submit(request.group_id, DeleteOffsets(request)), respond)


def _resolve(
    context: Context, topics: list[Topic], refused: dict[str, Answer]
) -> Steps[list[Topic]]:
    """Keeps the partitions that exist, and the topics that have any."""
    image = context.cluster.image
    known: list[Topic] = []
    for topic in topics:
        topic.partitions, missing = yield from sorted_out(topic.name, topic.partitions, image)
        if topic.partitions:
            known.append(topic)
        if missing:
            code = Error.UNKNOWN_TOPIC_OR_PARTITION
            answers = yield from one_answer(OffsetDeleteResponse.Partition, missing, code)
            refused.setdefault(topic.name, Answer(name=topic.name)).partitions += answers
    return known
