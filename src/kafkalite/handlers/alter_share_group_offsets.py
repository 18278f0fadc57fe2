"""AlterShareGroupOffsets, version 0: has an empty share group begin elsewhere (KIP-932)."""

from __future__ import annotations

from kafkalite.coordinators.groups.events import AlterShareOffsets, InitializeShares
from kafkalite.coordinators.groups.front import Outcomes
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.share_replies import serves_share_groups
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kafkalite.security.acl import GROUP, READ, TOPIC

Response = AlterShareGroupOffsetsResponse
Starts = dict[tuple[bytes, int], int]


def alter_share_group_offsets(
    context: Context, call: Call, request: AlterShareGroupOffsetsRequest
) -> Response | Later[Response]:
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message)
    if not may(context, call, READ, GROUP, request.group_id):
        code = Error.GROUP_AUTHORIZATION_FAILED
        raise KafkaError(code, code.message)
    if not request.group_id:
        raise KafkaError(Error.INVALID_GROUP_ID, Error.INVALID_GROUP_ID.message)
    response, starts = Response(), Starts()
    for topic in request.topics:
        response.responses.append(_looked_at(context, call, topic, starts))
    # Those that are refused as a whole come first.
    response.responses.sort(key=lambda one: any(
        (one.topic_id, answer.partition_index) in starts for answer in one.partitions
    ))
    indexes: dict[bytes, list[int]] = {}
    for topic_id, index in starts:
        indexes.setdefault(topic_id, []).append(index)
    event = AlterShareOffsets(
        request.group_id, {topic_id: tuple(found) for topic_id, found in indexes.items()}
    )

    def begun(epoch: int | KafkaError) -> Later[Response]:
        if isinstance(epoch, KafkaError):
            why = epoch.message or Error(epoch.code).message
            return Later.of(Response(error_code=epoch.code, error_message=why))
        if not starts:
            return Later.of(response)
        asked = context.groups.initialize_shares(
            InitializeShares(request.group_id, starts, epoch)
        )
        return asked.map(lambda outcomes: _told(response, outcomes))

    return context.groups.submit(request.group_id, event).then_ask(begun)


def _looked_at(
    context: Context,
    call: Call,
    topic: AlterShareGroupOffsetsRequest.Topic,
    starts: Starts,
) -> Response.Response:
    """Takes down where its partitions are to begin; those that cannot be are refused."""
    found = context.metadata.image.topics.get(topic.topic_name)
    topic_id = ZERO_UUID if found is None else found.topic_id
    answer = Response.Response(topic_name=topic.topic_name, topic_id=topic_id)
    is_denied = not may(context, call, READ, TOPIC, topic.topic_name)
    for asked in topic.partitions:
        code = Error.NONE
        if is_denied:
            code = Error.TOPIC_AUTHORIZATION_FAILED
        elif found is None or asked.partition_index not in found.partitions:
            code = Error.UNKNOWN_TOPIC_OR_PARTITION
        else:
            starts[topic_id, asked.partition_index] = asked.start_offset
        message = None if code is Error.NONE else code.message
        answer.partitions.append(
            Response.Partition(
                partition_index=asked.partition_index, error_code=code, error_message=message
            )
        )
    return answer


def _told(response: Response, outcomes: Outcomes) -> Response:
    for topic in response.responses:
        for answer in topic.partitions:
            error = outcomes.get((topic.topic_id, answer.partition_index))
            if error is not None:
                answer.error_code, answer.error_message = error.code, error.message
    return response
