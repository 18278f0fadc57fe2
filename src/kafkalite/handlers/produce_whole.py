"""What concerns all of a Produce request: why it is refused as a whole, and partitions named twice.

Apache Kafka looks at the first batch of every partition before it looks for any topic. Neither is
asked about the usual request, which is neither refused in part nor transactional.
"""

from __future__ import annotations

from kafkalite.handlers.produce_entry import Entry
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records.batch import read_header
from kafkalite.records.errors import CorruptRecords, TruncatedRecords

Key = tuple[str, bytes, int]


def whole_refusal(request: ProduceRequest) -> KafkaError | None:
    """A batch of no known format, or transactional records without a transactional id."""
    records = (data.records for topic in request.topic_data for data in topic.partition_data)
    try:
        is_transactional = any(_is_transactional(each) for each in records if each is not None)
    except CorruptRecords as error:
        return error
    if is_transactional and request.transactional_id is None:
        return KafkaError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return None


def _is_transactional(records: memoryview) -> bool:
    """Of the first batch; what is cut off is none."""
    try:
        return read_header(records).is_transactional
    except TruncatedRecords:
        return False


def once_each(response: ProduceResponse, entries: list[Entry]) -> list[Entry]:
    """A partition that is named twice is written to once, with the last that can be, and answered
    once: what could not be, if there is any. A topic that is named twice is answered once."""
    accepted: dict[Key, Entry] = {}
    refused: dict[Key, Entry] = {}
    for entry in entries:
        key = entry.topic.name, entry.topic.topic_id, entry.answer.index
        is_refused = entry.answer.error_code and entry.records is not None
        (refused if is_refused else accepted)[key] = entry
    told = accepted | refused
    topics = {key[:2] for key in told}
    if len(told) < len(entries) or len(topics) < len(response.responses):
        response.responses = _responses(list(told.values()))
    return [*accepted.values(), *refused.values()]


def _responses(entries: list[Entry]) -> list[ProduceResponse.Response]:
    topics: dict[tuple[str, bytes], ProduceResponse.Response] = {}
    for entry in entries:
        name, topic_id = entry.topic.name, entry.topic.topic_id
        topic = topics.setdefault(
            (name, topic_id), ProduceResponse.Response(name=name, topic_id=topic_id)
        )
        topic.partition_responses.append(entry.answer)
    return list(topics.values())
