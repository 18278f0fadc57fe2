"""AlterShareGroupOffsets, version 0: has an empty share group begin elsewhere (KIP-932)."""

from __future__ import annotations

from kafkalite.coordinators.groups.events import AlterShareOffsets, InitializeShares
from kafkalite.coordinators.groups.front import Outcomes
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, InSteps, Steps, begun
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
) -> Later[Response | InSteps] | InSteps:
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message)
    if not may(context, call, READ, GROUP, request.group_id):
        code = Error.GROUP_AUTHORIZATION_FAILED
        raise KafkaError(code, code.message)
    if not request.group_id:
        raise KafkaError(Error.INVALID_GROUP_ID, Error.INVALID_GROUP_ID.message)
    return begun(_altered(context, call, request))


def _altered(
    context: Context, call: Call, request: AlterShareGroupOffsetsRequest
) -> Steps[Later[Response | InSteps]]:
    starts = Starts()
    refused: dict[str, Response.Response] = {}  # one that is named twice is told of once
    others: list[Response.Response] = []
    for number, topic in enumerate(request.topics, 1):
        answer, is_refused = yield from _looked_at(context, call, topic, starts)
        if not is_refused:
            others.append(answer)
        elif topic.partitions:  # of none nothing is told
            first = refused.setdefault(topic.topic_name, answer)
            if first is not answer:
                first.partitions += answer.partitions
        if number % ELEMENTS_PER_STEP == 0:
            yield
    response = Response(responses=[*refused.values(), *others])
    indexes: dict[bytes, list[int]] = {}
    for number, (topic_id, index) in enumerate(starts, 1):
        indexes.setdefault(topic_id, []).append(index)
        if number % LOOKS_PER_STEP == 0:
            yield
    event = AlterShareOffsets(
        request.group_id, {topic_id: tuple(found) for topic_id, found in indexes.items()}
    )

    def known(epoch: int | KafkaError) -> Later[Response | InSteps]:
        if isinstance(epoch, KafkaError):
            why = epoch.message or Error(epoch.code).message
            return Later.of(Response(error_code=epoch.code, error_message=why))
        if not starts:
            return Later.of(response)
        asked = context.groups.initialize_shares(
            InitializeShares(request.group_id, starts, epoch)
        )
        return asked.map(lambda outcomes: begun(_told(response, outcomes)))

    return context.groups.submit(request.group_id, event).then_ask(known)


def _looked_at(
    context: Context,
    call: Call,
    topic: AlterShareGroupOffsetsRequest.Topic,
    starts: Starts,
) -> Steps[tuple[Response.Response, bool]]:
    """Takes down where its partitions are to begin; those that cannot be are refused. Whether all
    of them are: such a topic is answered first."""
    found = context.metadata.image.topics.get(topic.topic_name)
    topic_id = ZERO_UUID if found is None else found.topic_id
    answer = Response.Response(topic_name=topic.topic_name, topic_id=topic_id)
    is_denied = not may(context, call, READ, TOPIC, topic.topic_name)
    is_refused = bool(topic.partitions) or is_denied or found is None
    for asked in topic.partitions:
        code = Error.NONE
        if is_denied:
            code = Error.TOPIC_AUTHORIZATION_FAILED
        elif found is None or asked.partition_index not in found.partitions:
            code = Error.UNKNOWN_TOPIC_OR_PARTITION
        else:
            is_refused = False
            starts[topic_id, asked.partition_index] = asked.start_offset
        message = None if code is Error.NONE else code.message
        answer.partitions.append(
            Response.Partition(
                partition_index=asked.partition_index, error_code=code, error_message=message
            )
        )
        if len(answer.partitions) % ELEMENTS_PER_STEP == 0:
            yield
    return answer, is_refused


def _told(response: Response, outcomes: Outcomes) -> Steps[Response]:
    for topic in response.responses:
        for number, answer in enumerate(topic.partitions, 1):
            if number % LOOKS_PER_STEP == 0:
                yield
            error = outcomes.get((topic.topic_id, answer.partition_index))
            if error is not None:
                answer.error_code, answer.error_message = error.code, error.message
    return response
