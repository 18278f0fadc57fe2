"""OffsetCommit, versions 0–10: stores how far a group has read.

Versions: 1 generation and member, 2–4 retention, 6 leader epoch, 7 static members, 8 flexible, 9
consumer groups (KIP-848), 10 topic ids. Partitions that do not exist are refused one by one;
the others go to the group's coordinator.
"""

from __future__ import annotations

from collections.abc import Hashable

from kafkalite.coordinators.groups.events import CommitOffsets
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import (
    TOPICS_PER_STEP,
    merged,
    one_answer,
    sorted_out,
    unless_many,
)
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

TOPIC_IDS_SINCE = 10

Topic = OffsetCommitRequest.Topic
Answer = OffsetCommitResponse.Topic


def offset_commit(
    context: Context, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | InSteps | Later[OffsetCommitResponse | InSteps]:
    return unless_many(_commit(context, call, request), request.topics)


def _commit(
    context: Context, call: Call, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Later[OffsetCommitResponse | InSteps]]:
    refused: list[Answer] = []
    known = yield from _resolve(context, call, request.topics, refused)
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known

    def respond(answer: OffsetCommitResponse | KafkaError) -> OffsetCommitResponse | InSteps:
        if isinstance(answer, KafkaError):
            return unless_many(_refuse(known, refused, answer.code), known)
        return unless_many(_respond(refused, answer.topics), answer.topics)

    event = CommitOffsets(request, call.version)
    return context.groups.submit(request.group_id, event).map(respond)


def _resolve(
    context: Context, call: Call, topics: list[Topic], refused: list[Answer]
) -> Steps[list[Topic]]:
    """Fills in names and ids and keeps the partitions that exist, and the topics that have any."""
    image = context.metadata.image
    known: list[Topic] = []
    for count, topic in enumerate(topics, 1):
        if count % TOPICS_PER_STEP == 0:
            yield
        if call.version >= TOPIC_IDS_SINCE:
            topic.name = image.topic_name(topic.topic_id) or ""
            code = Error.UNKNOWN_TOPIC_ID
        else:
            topic.topic_id = image.topic_id(topic.name) or ZERO_UUID
            code = Error.UNKNOWN_TOPIC_OR_PARTITION
        missing = topic.partitions
        if topic.name and topic.topic_id != ZERO_UUID:
            code = Error.UNKNOWN_TOPIC_OR_PARTITION
            topic.partitions, missing = yield from sorted_out(topic.name, missing, image)
            if topic.partitions:
                known.append(topic)
            if not missing:
                continue
        refused.append((yield from _answer(topic, missing, code)))
    return known


def _refuse(topics: list[Topic], refused: list[Answer], code: int) -> Steps[OffsetCommitResponse]:
    answers: list[Answer] = []
    for count, topic in enumerate(topics, 1):
        if count % TOPICS_PER_STEP == 0:
            yield
        answer = yield from _answer(topic, topic.partitions, code)
        answers.append(answer)
    return (yield from _respond(refused, answers))


def _answer(
    topic: Topic, partitions: list[OffsetCommitRequest.Partition], code: int
) -> Steps[Answer]:
    answers = yield from one_answer(OffsetCommitResponse.Partition, partitions, code)
    return Answer(name=topic.name, topic_id=topic.topic_id, partitions=answers)


def _respond(refused: list[Answer], accepted: list[Answer]) -> Steps[OffsetCommitResponse]:
    if not refused:
        return OffsetCommitResponse(topics=accepted)
    by_topic: dict[Hashable, Answer] = {}
    yield from merged(by_topic, refused, _key)
    return OffsetCommitResponse(topics=(yield from merged(by_topic, accepted, _key)))


def _key(topic: Answer) -> tuple[str, bytes]:
    return topic.name, topic.topic_id
