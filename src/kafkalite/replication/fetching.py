"""What a follower asks, as Kafka's requests, and what their answers say.

Owns the translation alone, of many partitions at once. A partition that an answer leaves out says
nothing; an error that nobody here has heard of is UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafkalite.replication.follower import AskRange, Fetched, Range
from kafkalite.replication.partition import Partition
from kafkalite.replication.session import Key, Question

# By topic ids, with what replicas say of themselves: each replica's log end and epoch.
FETCH_VERSIONS = range(15, 19)
RANGE_VERSIONS = range(4, 12)
EARLIEST, LATEST = -2, -1

MADE_PER_STEP = 32  # partitions


@dataclass(slots=True, frozen=True)
class FetchSettings:
    """How much a fetch brings, and how long it waits: replica.fetch.* of the broker."""

    max_bytes: int = 1 << 20
    min_bytes: int = 1
    response_max_bytes: int = 10 << 20
    wait_max_ms: int = 500


def fetch_request(
    question: Question, broker_id: int, broker_epoch: int, settings: FetchSettings
) -> Steps[FetchRequest]:
    """Asks for records of all that the session has then."""
    topics: dict[bytes, FetchRequest.Topic] = {}
    for count, ((topic_id, index), (_, asked)) in enumerate(question.news.items(), 1):
        if count % MADE_PER_STEP == 0:
            yield
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchRequest.Topic(topic_id=topic_id)
        topic.partitions.append(
            FetchRequest.Partition(
                partition=index,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=settings.max_bytes,
            )
        )
    return FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch),
        max_wait_ms=settings.wait_max_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.response_max_bytes,
        session_id=question.session_id,
        session_epoch=question.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=_forgotten(question.forgotten),
    )


def _forgotten(keys: Iterable[Key]) -> list[FetchRequest.ForgottenTopicsData]:
    topics: dict[bytes, FetchRequest.ForgottenTopicsData] = {}
    for topic_id, index in keys:
        topic = topics.setdefault(topic_id, FetchRequest.ForgottenTopicsData(topic_id=topic_id))
        topic.partitions.append(index)
    return list(topics.values())


def fetched(response: FetchResponse) -> Iterator[tuple[Key, Fetched]]:
    """What is said of each partition."""
    for topic in response.responses:
        for answer in topic.partitions:
            yield (topic.topic_id, answer.partition_index), _fetched(answer)


def _fetched(answer: FetchResponse.Partition) -> Fetched:
    leader, diverging = answer.current_leader, answer.diverging_epoch
    return Fetched(
        known(answer.error_code),
        answer.records or None,
        answer.high_watermark,
        answer.log_start_offset,
        None if diverging.end_offset == -1 else (diverging.epoch, diverging.end_offset),
        None if leader.leader_id == -1 else (leader.leader_id, leader.leader_epoch),
    )


def range_request(
    partition: Partition, asked: AskRange, broker_id: int, place: int
) -> ListOffsetsRequest:
    """Asks where a log begins, or ends."""
    wanted = ListOffsetsRequest.Partition(
        partition_index=partition.index,
        current_leader_epoch=asked.leader_epoch,
        timestamp=place,
    )
    topic = ListOffsetsRequest.Topic(name=partition.topic, partitions=[wanted])
    return ListOffsetsRequest(replica_id=broker_id, topics=[topic])


def range_in(answers: Iterable[ListOffsetsResponse | KafkaError]) -> Range | Error | None:
    """What two of these say; None when one of them was not answered."""
    offsets: list[int] = []
    for answer in answers:
        if isinstance(answer, KafkaError):
            return None
        for each in (one for topic in answer.topics for one in topic.partitions):
            if each.error_code != Error.NONE:
                return known(each.error_code)
            offsets.append(each.offset)
    return Range(*offsets) if len(offsets) == 2 else None


def known(code: int) -> Error:
    """A newer leader may have errors that nobody here has heard of."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
