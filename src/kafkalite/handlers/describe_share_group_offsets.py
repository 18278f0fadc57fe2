"""DescribeShareGroupOffsets, versions 0–1: where share groups stand in their partitions (KIP-932).

Version 1 tells the lag (KIP-1226), for which the leaders of partitions are asked how far these go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.coordinators.groups.events import ListShared
from kafkalite.coordinators.shares.persister import Partitions, Summary
from kafkalite.coordinators.shares.records import NO_COUNT
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.permission import may
from kafkalite.handlers.share_replies import serves_share_groups
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kafkalite.security.acl import DESCRIBE, GROUP, TOPIC

Response = DescribeShareGroupOffsetsResponse
Asked = DescribeShareGroupOffsetsRequest.Group
Summaries = dict[tuple[bytes, int], Summary | KafkaError]

NO_OFFSET, NO_LAG = -1, -1


def describe_share_group_offsets(
    context: Context, call: Call, request: DescribeShareGroupOffsetsRequest
) -> Later[Response] | InSteps:
    return begun(_all_described(context, call, request))


def _all_described(
    context: Context, call: Call, request: DescribeShareGroupOffsetsRequest
) -> Steps[Later[Response]]:
    described: list[Later[Response.Group]] = []
    for number, asked in enumerate(request.groups, 1):
        described.append((yield from _described(context, call, asked)))
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return Later.all(described).map(lambda groups: Response(groups=groups))


def _described(context: Context, call: Call, asked: Asked) -> Steps[Later[Response.Group]]:
    answer = Response.Group(group_id=asked.group_id)
    may_see = partial(may, context, call, DESCRIBE, TOPIC)
    if not serves_share_groups(context):
        answer.error_code = Error.UNSUPPORTED_VERSION
    elif not may(context, call, DESCRIBE, GROUP, asked.group_id):
        answer.error_code = Error.GROUP_AUTHORIZATION_FAILED
    elif asked.topics is None:
        return _all(context, answer, partial(may_see, is_quiet=True))
    else:
        return (yield from _named(context, answer, asked.topics, may_see))
    return Later.of(answer)


def _all(
    context: Context, answer: Response.Group, may_see: Callable[[str], bool]
) -> Later[Response.Group]:
    """Of all partitions that the group has begun with, in topics that are there."""

    def listed(found: Partitions | KafkaError) -> Later[Response.Group]:
        if isinstance(found, KafkaError):
            code = Error(found.code)
            answer.error_code, answer.error_message = code, found.message or code.message
            return Later.of(answer)
        names = {each: context.metadata.image.topic_name(each) for each in found}
        shown = {each: name for each, name in names.items() if name is not None and may_see(name)}
        return _summarized(context, answer, {each: found[each] for each in shown}, shown)

    event = ListShared(answer.group_id)
    return context.groups.submit(answer.group_id, event).then_ask(listed)


def _named(
    context: Context,
    answer: Response.Group,
    topics: list[DescribeShareGroupOffsetsRequest.Topic],
    may_see: Callable[[str], bool],
) -> Steps[Later[Response.Group]]:
    known: dict[bytes, dict[int, None]] = {}
    names: dict[bytes, str] = {}
    unknown: list[Response.Topic] = []
    refused: list[Response.Topic] = []
    for number, topic in enumerate(topics, 1):
        found = context.metadata.image.topics.get(topic.topic_name)
        if not may_see(topic.topic_name):
            refused.append((yield from _unknown(topic, Error.TOPIC_AUTHORIZATION_FAILED)))
        elif found is None:
            unknown.append((yield from _unknown(topic, Error.NONE)))
        else:
            known.setdefault(found.topic_id, {}).update(dict.fromkeys(topic.partitions))
            names[found.topic_id] = topic.topic_name
        if number % ELEMENTS_PER_STEP == 0:
            yield

    def told(described: Response.Group) -> Response.Group:
        described.topics += [*reversed(unknown), *refused]
        return described

    asked = {topic_id: tuple(indexes) for topic_id, indexes in known.items()}
    return _summarized(context, answer, asked, names).map(told)


def _unknown(
    topic: DescribeShareGroupOffsetsRequest.Topic, code: Error
) -> Steps[Response.Topic]:
    message = None if code is Error.NONE else code.message
    return Response.Topic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID,
        partitions=(yield from in_steps(
            Response.Partition(
                partition_index=index, start_offset=NO_OFFSET, error_code=code,
                error_message=message,
            )
            for index in topic.partitions
        )),
    )  # fmt: skip


def _summarized(
    context: Context, answer: Response.Group, partitions: Partitions, names: dict[bytes, str]
) -> Later[Response.Group]:
    def told(summaries: Summaries) -> Steps[Response.Group]:
        for topic_id, indexes in partitions.items():
            name = names[topic_id]
            answers = yield from in_steps(
                _partition(context, name, index, summaries[topic_id, index]) for index in indexes
            )
            answer.topics.append(
                Response.Topic(topic_name=name, topic_id=topic_id, partitions=answers)
            )
            yield
        return answer

    summarized = context.persister.summarize(answer.group_id, partitions)
    return summarized.then_ask(lambda summaries: context.env.slices.soon(told(summaries)))


def _partition(
    context: Context, topic: str, index: int, found: Summary | KafkaError
) -> Response.Partition:
    known = Summary() if isinstance(found, KafkaError) else found
    answer = Response.Partition(
        partition_index=index, start_offset=known.start_offset, leader_epoch=known.leader_epoch,
        lag=NO_LAG,
    )  # fmt: skip
    if known.start_offset == NO_OFFSET or known.complete_count == NO_COUNT:
        return answer
    try:
        end_offset = find_partition(context, topic, index).high_watermark
    except KafkaError as error:
        code = Error(error.code)
        return Response.Partition(
            partition_index=index, error_code=code, error_message=code.message
        )
    answer.lag = end_offset - known.start_offset - known.complete_count
    return answer
