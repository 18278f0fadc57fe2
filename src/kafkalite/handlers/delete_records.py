"""DeleteRecords, versions 0–2: moves the log start offset of partitions forward.

Version 2 is flexible. An offset of -1 means the high watermark. What lies below the new start is
gone for readers at once and from the disk when the log's next retention pass finds whole segments.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from kafkalite.security.acl import DELETE, TOPIC

NO_LOW_WATERMARK = -1
AT_ONCE = 32  # partitions


def delete_records(context: Context, call: Call, request: DeleteRecordsRequest) -> InSteps:
    return InSteps(_delete_all(context, call, request))


def _delete_all(
    context: Context, call: Call, request: DeleteRecordsRequest
) -> Steps[DeleteRecordsResponse]:
    response = DeleteRecordsResponse()
    for name, offsets in _by_topic(request).items():
        topic = DeleteRecordsResponse.Topic(name=name)
        for index, offset in offsets.items():
            topic.partitions.append(_delete(context, call, name, index, offset))
            if len(topic.partitions) % AT_ONCE == 0:
                yield
        if topic.partitions:
            response.topics.append(topic)
        yield
    return response


def _by_topic(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """The offset that is named last for each partition."""
    found: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = found.setdefault(topic.name, {})
        offsets.update({asked.partition_index: asked.offset for asked in topic.partitions})
    return found


def _delete(
    context: Context, call: Call, topic: str, index: int, offset: int
) -> DeleteRecordsResponse.Partition:
    answer = DeleteRecordsResponse.Partition(
        partition_index=index, low_watermark=NO_LOW_WATERMARK
    )
    try:
        require(context, call, DELETE, TOPIC, topic)
        answer.low_watermark = _move_start(context, topic, index, offset)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _move_start(context: Context, topic: str, index: int, offset: int) -> int:
    if topic in INTERNAL_TOPICS:
        raise KafkaError(Error.INVALID_TOPIC_EXCEPTION)
    partition = find_partition(context, topic, index)
    partition.check_leader()
    return partition.delete_records_before(offset)
