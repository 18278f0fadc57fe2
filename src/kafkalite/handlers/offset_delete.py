"""OffsetDelete, version 0: deletes a group's offsets of single partitions (KIP-496).

A topic that the group subscribes to keeps its offsets; partitions that do not exist are refused
one by one.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import DeleteOffsets
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import merged, of_known_partitions, unless_many
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

Answer = OffsetDeleteResponse.Topic


def offset_delete(
    context: Context, call: Call, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | InSteps | Later[OffsetDeleteResponse | InSteps]:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=Error.INVALID_GROUP_ID)
    return unless_many(_delete(context, request), request.topics)


def _delete(
    context: Context, request: OffsetDeleteRequest
) -> Steps[Later[OffsetDeleteResponse | InSteps]]:
    refused: dict[str, Answer] = {}
    request.topics = yield from of_known_partitions(
        request.topics, context.metadata.image, refused, Answer, OffsetDeleteResponse.Partition
    )

    def respond(answer: OffsetDeleteResponse | KafkaError) -> OffsetDeleteResponse | InSteps:
        if isinstance(answer, KafkaError):
            return OffsetDeleteResponse(error_code=answer.code)
        return unless_many(_respond(refused, answer.topics), answer.topics)

    return context.groups.submit(request.group_id, DeleteOffsets(request)).map(respond)


def _respond(refused: dict[str, Answer], accepted: list[Answer]) -> Steps[OffsetDeleteResponse]:
    topics = yield from merged(refused, accepted, lambda topic: topic.name)
    return OffsetDeleteResponse(topics=topics)
