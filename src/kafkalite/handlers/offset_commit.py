"""OffsetCommit, versions 0–10: stores how far a group has read.

Versions: 1 generation and member, 2–4 retention, 6 leader epoch, 7 static members, 8 flexible, 9
consumer groups (KIP-848), 10 topic ids. Partitions that do not exist are refused one by one;
the others go to the group's coordinator.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import CommitOffsets
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import reply_with
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

TOPIC_IDS_SINCE = 10

Topic = OffsetCommitRequest.Topic
Answer = OffsetCommitResponse.Topic


def offset_commit(
    context: Context, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    refused: list[Answer] = []
    known = [
        topic for topic in request.topics if _resolve(context, call, topic, refused)
    ]
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known

    def respond(answer: Any) -> OffsetCommitResponse:
        if isinstance(answer, KafkaError):
            accepted = [_answer(topic, topic.partitions, answer.code) for topic in known]
        else:
            accepted = answer.topics
        return OffsetCommitResponse(topics=_merged(refused, accepted))

    event = CommitOffsets(request, call.version)
    return reply_with(context.groups.submit(request.group_id, event), respond)


def _resolve(context: Context, call: Call, topic: Topic, refused: list[Answer]) -> bool:
    """Fills in name and id and keeps the partitions that exist; false when none is left."""
    image = context.cluster.image
    if call.version >= TOPIC_IDS_SINCE:
        topic.name = image.topic_name(topic.topic_id) or ""
        unknown = Error.UNKNOWN_TOPIC_ID
    else:
        topic.topic_id = image.topic_id(topic.name) or ZERO_UUID
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    if not topic.name or topic.topic_id == ZERO_UUID:
        refused.append(_answer(topic, topic.partitions, unknown))
        return False
    known: list[OffsetCommitRequest.Partition] = []
    missing: list[OffsetCommitRequest.Partition] = []
    for partition in topic.partitions:
        exists = image.has_partition(topic.name, partition.partition_index)
        (known if exists else missing).append(partition)
    if missing:
        refused.append(_answer(topic, missing, Error.UNKNOWN_TOPIC_OR_PARTITION))
    topic.partitions = known
    return bool(known)


def _answer(topic: Topic, partitions: list[OffsetCommitRequest.Partition], code: int) -> Answer:
    return Answer(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponse.Partition(partition_index=one.partition_index, error_code=code)
            for one in partitions
        ],
    )


def _merged(refused: list[Answer], accepted: list[Answer]) -> list[Answer]:
    """One entry per topic: what was refused here, then what the coordinator said."""
    if not refused:
        return accepted
    by_topic: dict[tuple[str, bytes], Answer] = {}
    for topic in (*refused, *accepted):
        present = by_topic.setdefault((topic.name, topic.topic_id), topic)
        if present is not topic:
            present.partitions.extend(topic.partitions)
    return list(by_topic.values())
