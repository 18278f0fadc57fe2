"""OffsetFetch, versions 0–10: tells how far groups have read.

Versions: 2 all topics of a group, 6 flexible, 7 require_stable, 8 many groups, 9 member and epoch
(KIP-848), 10 topic ids. Until version 7 there is one group, and its error is the response's; until
version 1 every partition carries it.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import FetchOffsets
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import code_of
from kafkalite.handlers.permission import may, permitted
from kafkalite.handlers.stepwise import let_go
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from kafkalite.security.acl import DESCRIBE, GROUP, TOPIC

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1
STEP_PARTITIONS, ASKED_PER_STEP = 100, 5

Group = OffsetFetchRequest.Group
Answer = OffsetFetchResponse.Group
TopicAnswer = OffsetFetchResponse.GroupTopic


def offset_fetch(
    context: Context, call: Call, request: OffsetFetchRequest
) -> InSteps | Later[OffsetFetchResponse | InSteps]:
    return begun(_ask(context, call, request))


def _ask(
    context: Context, call: Call, request: OffsetFetchRequest
) -> Steps[Later[OffsetFetchResponse | InSteps]]:
    groups = request.groups
    if call.version < MANY_GROUPS_SINCE:
        groups = [(yield from _only_group(request))]
    refused: list[list[TopicAnswer]] = []
    asked: list[Later[Answer | InSteps | KafkaError]] = []
    for count, group in enumerate(groups, 1):
        if may(context, call, DESCRIBE, GROUP, group.group_id):
            refused.append((yield from _resolve(context, call, group)))
            event = FetchOffsets(group, request.require_stable)
            asked.append(context.groups.submit(group.group_id, event))
        else:
            refused.append([])
            asked.append(Later.of(KafkaError(Error.GROUP_AUTHORIZATION_FAILED)))
        if count % ASKED_PER_STEP == 0:
            yield

    def respond(found: list[Answer | InSteps | KafkaError]) -> OffsetFetchResponse | InSteps:
        return begun(_respond(context, call, list(zip(groups, found, refused, strict=True))))

    return Later.all(asked).map(respond)


def _respond(
    context: Context,
    call: Call,
    found: list[tuple[Group, Answer | InSteps | KafkaError, list[TopicAnswer]]],
) -> Steps[OffsetFetchResponse]:
    answers = []
    for group, answer, refused in found:
        outcome = yield from outcome_of(answer)
        answers.append((yield from _answer(context, call, group, outcome, refused)))
        if len(answers) % ASKED_PER_STEP == 0:
            yield
    if call.version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=answers)
    return (yield from _of_one_group(answers[0]))


def _only_group(request: OffsetFetchRequest) -> Steps[Group]:
    topics = None
    if request.topics is not None:
        topics = yield from in_steps(
            OffsetFetchRequest.GroupTopic(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in request.topics
        )
    return Group(group_id=request.group_id, topics=topics)


def _resolve(context: Context, call: Call, group: Group) -> Steps[list[TopicAnswer]]:
    """Names the topics that came by id; answers those that no longer exist, or are hidden."""
    has_ids = call.version >= TOPIC_IDS_SINCE
    if group.topics is None or not (has_ids or context.authorizer):
        return []
    refused, known = [], []
    for count, topic in enumerate(group.topics, 1):
        if has_ids:
            topic.name = context.metadata.image.topic_name(topic.topic_id) or ""
        if has_ids and not topic.name:
            refused.append((yield from _failed_topic(topic, Error.UNKNOWN_TOPIC_ID)))
        elif may(context, call, DESCRIBE, TOPIC, topic.name):
            known.append(topic)
        else:
            code = Error.TOPIC_AUTHORIZATION_FAILED
            refused.append((yield from _failed_topic(topic, code)))
        if count % STEP_PARTITIONS == 0:
            yield
    group.topics = known
    return refused


def _failed_topic(topic: OffsetFetchRequest.GroupTopic, code: Error) -> Steps[TopicAnswer]:
    partitions = yield from in_steps(
        OffsetFetchResponse.GroupTopicPartition(
            partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
        )
        for index in topic.partition_indexes
    )
    return TopicAnswer(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _answer(
    context: Context,
    call: Call,
    group: Group,
    found: Answer | KafkaError,
    refused: list[TopicAnswer],
) -> Steps[Answer]:
    if isinstance(found, KafkaError):
        return (yield from _failed(call, group, code_of(found)))
    if group.topics is None and context.authorizer is not None:
        names = (topic.name for topic in found.topics)
        shown = yield from permitted(context, call, DESCRIBE, TOPIC, names)
        found.topics = [topic for topic in found.topics if topic.name in shown]
    if call.version >= TOPIC_IDS_SINCE and group.topics is None:
        found.topics = [topic for topic in found.topics if _identify(context, topic)]
    found.topics += refused
    return found


def _identify(context: Context, topic: TopicAnswer) -> bool:
    """A topic without an id cannot be told in a version that has no names."""
    if topic.topic_id == ZERO_UUID:
        topic.topic_id = context.metadata.image.topic_id(topic.name) or ZERO_UUID
    return topic.topic_id != ZERO_UUID


def _failed(call: Call, group: Group, code: Error) -> Steps[Answer]:
    if call.version >= GROUP_ERROR_SINCE:
        return Answer(group_id=group.group_id, error_code=code)
    topics: list[TopicAnswer] = []
    for topic in group.topics or ():
        topics.append((yield from _failed_topic(topic, code)))
        if len(topics) % STEP_PARTITIONS == 0:
            yield
    return Answer(group_id=group.group_id, topics=topics)


def _of_one_group(group: Answer) -> Steps[OffsetFetchResponse]:
    """As it was told before there could be many."""
    response = OffsetFetchResponse(error_code=group.error_code)
    told = 0
    for topic in group.topics:
        answer = OffsetFetchResponse.Topic(name=topic.name)
        response.topics.append(answer)
        for one in topic.partitions:
            answer.partitions.append(
                OffsetFetchResponse.Partition(
                    partition_index=one.partition_index,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata,
                    error_code=one.error_code,
                )
            )
            told += 1
            if told % STEP_PARTITIONS == 0:
                yield
    yield from let_go(group)
    return response
