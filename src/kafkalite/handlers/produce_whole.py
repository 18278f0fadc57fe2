"""What concerns all of a Produce request: why it is refused as a whole, and partitions named twice.

Apache Kafka looks at the first batch of every partition before it looks for any topic. Neither is
asked about the usual request, which is neither refused in part nor transactional.
"""

from __future__ import annotations

from kafkalite.env.slicing import Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.produce_entry import Entry
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records.batch import read_header
from kafkalite.records.errors import CorruptRecords, TruncatedRecords
from kafkalite.security.acl import TRANSACTIONAL_ID, WRITE

Key = tuple[str, bytes, int]

LOOKED_AT_PER_STEP = 64


def whole_refusal(
    context: Context, call: Call, request: ProduceRequest, entries: list[Entry]
) -> Steps[KafkaError | None]:
    """A batch of no known format, or transactional records without a transactional id, or with one
    that is not the sender's."""
    try:
        is_transactional = yield from _has_transactional(entries)
    except CorruptRecords as error:
        return error
    if is_transactional:
        name = request.transactional_id
        if name is None or not may(context, call, WRITE, TRANSACTIONAL_ID, name):
            return KafkaError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return None


def _has_transactional(entries: list[Entry]) -> Steps[bool]:
    """Nothing behind the first one is looked at."""
    for some in pieces(entries, LOOKED_AT_PER_STEP):
        for entry in some:
            if entry.is_transactional or (entry.header is None and _is_transactional(entry)):
                return True
        if len(entries) > LOOKED_AT_PER_STEP:
            yield
    return False


def _is_transactional(entry: Entry) -> bool:
    """Of the first batch of a partition that was refused before; what is cut off is none."""
    if entry.records is None:
        return False
    try:
        return read_header(entry.records).is_transactional
    except TruncatedRecords:
        return False


def once_each(response: ProduceResponse, entries: list[Entry]) -> Steps[list[Entry]]:
    """A partition that is named twice is written to once, with the last that can be, and answered
    once: what could not be, if there is any. A topic that is named twice is answered once."""
    accepted: dict[Key, Entry] = {}
    refused: dict[Key, Entry] = {}
    topics: set[tuple[str, bytes]] = set()
    for some in pieces(entries, LOOKED_AT_PER_STEP):
        for entry in some:
            key = entry.topic.name, entry.topic.topic_id, entry.answer.index
            is_refused = entry.answer.error_code and entry.records is not None
            (refused if is_refused else accepted)[key] = entry
            topics.add(key[:2])
        if len(entries) > LOOKED_AT_PER_STEP:
            yield
    told = accepted | refused
    if len(told) < len(entries) or len(topics) < len(response.responses):
        response.responses = yield from _responses(list(told.values()))
    return [*accepted.values(), *refused.values()]


def _responses(entries: list[Entry]) -> Steps[list[ProduceResponse.Response]]:
    topics: dict[tuple[str, bytes], ProduceResponse.Response] = {}
    for some in pieces(entries, LOOKED_AT_PER_STEP):
        for entry in some:
            name, topic_id = entry.topic.name, entry.topic.topic_id
            topic = topics.setdefault(
                (name, topic_id), ProduceResponse.Response(name=name, topic_id=topic_id)
            )
            topic.partition_responses.append(entry.answer)
        yield
    return list(topics.values())
