"""ListOffsets, versions 0–11: finds offsets by time or by name.

Versions: 0 a list of segment starts before a time, 1 the first record at or after a time, 2
isolation level, 4 leader epochs, 6 flexible, 7 the record of the largest timestamp (KIP-734), 8 the
earliest local offset (KIP-405), 9 the latest tiered offset (KIP-1005), 10 a timeout for remote
look-ups, 11 the earliest offset that waits for tiering (KIP-1023).
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.isolation import ISOLATION_LEVELS, READ_COMMITTED
from kafkalite.handlers.leaders import find_partition
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from kafkalite.replication.partition import Partition

UNSURE_VERSION = 5  # older clients do not know that a leader is not sure of its end yet
CONSUMER = -1  # in place of a replica's id; the others see what is not committed, too
LATEST = -1
EARLIEST = -2
# The names that a client may ask for, and the version from which it may.
NAMED_SINCE = {LATEST: 0, EARLIEST: 0, -3: 7, -4: 8, -5: 9, -6: 11}

Asked = ListOffsetsRequest.Partition
Answer = ListOffsetsResponse.Partition

STEP_PARTITIONS, SORTED_PER_STEP = 15, 100
# A reader holds one batch at a time, and what is being inflated of it.
HELD_BYTES = 1 << 20


def list_offsets(
    context: Context, call: Call, request: ListOffsetsRequest
) -> ListOffsetsResponse | Later[ListOffsetsResponse]:
    if request.topics and request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
    return context.long_work.answer(call, _answer(context, call, request), HELD_BYTES)


def _answer(
    context: Context, call: Call, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse]:
    response = ListOffsetsResponse()
    number = 0  # over all topics, of which there may be many with few partitions
    for name, partitions in (yield from _by_topic(request)).items():
        answers = ListOffsetsResponse.Topic(name=name)
        response.topics.append(answers)
        for index, asked in partitions.items():
            number += 1
            if number % STEP_PARTITIONS == 0:
                yield
            answer = Answer(partition_index=index)
            try:
                if len(asked) > 1:
                    raise KafkaError(Error.INVALID_REQUEST)
                yield from _look_up(context, call, request, name, asked[0], answer)
            except KafkaError as error:
                answer.error_code = error.code
                if error.code == Error.OFFSET_NOT_AVAILABLE and call.version < UNSURE_VERSION:
                    answer.error_code = Error.LEADER_NOT_AVAILABLE
            answers.partitions.append(answer)
    return response


def _by_topic(request: ListOffsetsRequest) -> Steps[dict[str, dict[int, list[Asked]]]]:
    """What is asked of each partition: it is answered once however often it is named."""
    found: dict[str, dict[int, list[Asked]]] = {}
    number = 0
    for topic in request.topics:
        for asked in topic.partitions:
            number += 1
            if number % SORTED_PER_STEP == 0:
                yield
            partitions = found.setdefault(topic.name, {})
            partitions.setdefault(asked.partition_index, []).append(asked)
    return found


def _look_up(
    context: Context,
    call: Call,
    request: ListOffsetsRequest,
    topic: str,
    asked: Asked,
    answer: Answer,
) -> Steps[None]:
    timestamp = asked.timestamp
    if timestamp < 0 and call.version < NAMED_SINCE.get(timestamp, 2**15):
        raise KafkaError(Error.UNSUPPORTED_VERSION)
    partition = find_partition(context, topic, asked.partition_index)
    partition.check_leader(asked.current_leader_epoch)
    is_client = request.replica_id == CONSUMER
    is_committed_only = is_client and request.isolation_level == READ_COMMITTED
    if call.version == 0:
        answer.old_style_offsets = _segment_starts(partition, timestamp, asked.max_num_offsets)
        return
    found = yield from partition.offset_for_time(
        timestamp, is_committed_only=is_committed_only, is_replica=not is_client
    )
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found


def _segment_starts(partition: Partition, timestamp: int, max_offsets: int) -> list[int]:
    """What version 0 answers: starts of segments last written before a time, latest first."""
    starts: list[tuple[int, int | None]] = [*partition.segment_starts()]
    if partition.log.log_end_offset > starts[-1][0]:
        starts.append((partition.log.log_end_offset, None))
    if timestamp == EARLIEST:
        chosen = starts[:1]
    elif timestamp == LATEST:
        chosen = starts
    else:
        chosen = [start for start in starts if start[1] is not None and start[1] <= timestamp]
    offsets = [min(offset, partition.high_watermark) for offset, _ in reversed(chosen)]
    return list(dict.fromkeys(offsets))[:max_offsets]
