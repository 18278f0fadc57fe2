"""DeleteRecords, versions 0–2: moves the log start offset of partitions forward.

Version 2 is flexible. An offset of -1 means the high watermark. What lies below the new start is
gone for readers at once and from the disk when the log's next retention pass finds whole segments.
It is answered when the followers that are up have moved theirs, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, InSteps, Steps, emptied
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from kafkalite.replication.partition import Partition
from kafkalite.replication.waiting import DELETE_RECORDS, Watched
from kafkalite.security.acl import DELETE, TOPIC

NO_LOW_WATERMARK = -1
AT_ONCE = 32  # partitions


def delete_records(context: Context, call: Call, request: DeleteRecordsRequest) -> InSteps:
    return InSteps(_delete_all(context, call, request))


def _delete_all(
    context: Context, call: Call, request: DeleteRecordsRequest
) -> Steps[DeleteRecordsResponse | Later[Any]]:
    response = DeleteRecordsResponse()
    moves: list[_Move] = []
    named = yield from _by_topic(request)
    for name, offsets in named.items():
        topic = DeleteRecordsResponse.Topic(name=name)
        for index, offset in offsets.items():
            topic.partitions.append(_delete(context, call, name, index, offset, moves))
            if len(topic.partitions) % AT_ONCE == 0:
                yield
        if topic.partitions:
            response.topics.append(topic)
        yield
    yield from emptied(named)
    left = [each for each in moves if each.is_waiting()]
    return _once_moved(context, request, response, left) if left else response


def _once_moved(
    context: Context,
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    moves: list[_Move],
) -> Later[Any]:
    reply: Later[Any] = Later()

    def attempt(moved: Collection[Watched] | None) -> bool:
        waiting = [each for each in moves if each.is_waiting()]
        if waiting and moved is not None:
            return False
        for each in waiting:
            each.answer.error_code = Error.REQUEST_TIMED_OUT
        reply.resolve(response)
        return True

    partitions = {id(each.partition): each.partition for each in moves}
    context.waiting.park(partitions.values(), request.timeout_ms, attempt, reply, DELETE_RECORDS)
    return reply


def _by_topic(request: DeleteRecordsRequest) -> Steps[dict[str, dict[int, int]]]:
    """The offset that is named last for each partition."""
    found: dict[str, dict[int, int]] = {}
    looked_at = 0
    for topic in request.topics:
        offsets = found.setdefault(topic.name, {})
        for asked in topic.partitions:
            offsets[asked.partition_index] = asked.offset
            looked_at += 1
            if looked_at % LOOKS_PER_STEP == 0:
                yield
        looked_at += 1
        if looked_at % LOOKS_PER_STEP == 0:
            yield
    return found


@dataclass(slots=True)
class _Move:
    """Of the start of one partition's log."""

    partition: Partition
    offset: int
    answer: DeleteRecordsResponse.Partition

    def is_waiting(self) -> bool:
        """Whether some follower has not moved yet; a lost role is its answer."""
        if self.answer.error_code != Error.NONE:
            return False
        if not self.partition.is_leader:
            self.answer.error_code = Error.NOT_LEADER_OR_FOLLOWER
            return False
        self.answer.low_watermark = self.partition.low_watermark
        return self.answer.low_watermark < self.offset


def _delete(
    context: Context, call: Call, topic: str, index: int, offset: int, moves: list[_Move]
) -> DeleteRecordsResponse.Partition:
    answer = DeleteRecordsResponse.Partition(
        partition_index=index, low_watermark=NO_LOW_WATERMARK
    )
    try:
        require(context, call, DELETE, TOPIC, topic)
        partition, start = _move_start(context, topic, index, offset)
        answer.low_watermark = partition.low_watermark
        moves.append(_Move(partition, start, answer))
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _move_start(
    context: Context, topic: str, index: int, offset: int
) -> tuple[Partition, int]:
    if topic in INTERNAL_TOPICS:
        raise KafkaError(Error.INVALID_TOPIC_EXCEPTION)
    partition = find_partition(context, topic, index)
    partition.check_leader()
    return partition, partition.delete_records_before(offset)
