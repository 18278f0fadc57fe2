"""Produce, versions 0–13: appends record batches to partitions led by this broker.

Versions: 0–1 message format 0, 2 format 1 and log append time, 3 batches v2 and transactional ids,
5 log start offset, 7 zstd, 8 record errors (KIP-467), 9 flexible, 10 the current leader (KIP-951),
11 TRANSACTION_ABORTABLE, 12 partitions join a transaction by being written to (KIP-890), 13 topic
ids (KIP-516).
acks=0 is never answered; an error closes the connection instead, so that the client looks again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kafkalite.coordinators.cluster.deciding import INTERNAL_TOPICS
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call, CloseConnection
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import (
    current_leader,
    endpoints,
    find_partition,
    find_topic_name,
)
from kafkalite.handlers.produce_entry import Answer, Entry
from kafkalite.handlers.produce_transactional import admit
from kafkalite.handlers.produce_whole import once_each, whole_refusal
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records.batch import BatchHeader, Compression, iterate_headers, read_header
from kafkalite.records.errors import InvalidRecords, TruncatedRecords
from kafkalite.replication.partition import Partition
from kafkalite.replication.waiting import Watched

ALL_IN_SYNC = -1
ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
BATCHES_V2_VERSION = 3
ZSTD_VERSION = 7
TOPIC_ID_VERSION = 13
# Of a request for many partitions what is not appended in this time goes on in later turns.
FEW_ENTRIES, TURN_MS = 8, 3

Reply = ProduceResponse | CloseConnection | None


def produce(context: Context, call: Call, request: ProduceRequest) -> Reply | Later[Reply]:
    response = ProduceResponse()
    entries = _entries(context, call, request, response)
    odd = [entry for entry in entries if entry.is_transactional or entry.answer.error_code]
    if not odd and len(entries) < 2:
        return _append_all(context, call, request, response, entries)
    error = whole_refusal(request) if odd and call.version >= BATCHES_V2_VERSION else None
    if len(entries) > 1:  # a partition may be named twice
        entries = once_each(response, entries)
    if error is not None:
        for entry in entries:
            entry.refuse(error)
    transactional = [entry for entry in entries if entry.is_transactional] if odd else []
    if not transactional or error is not None:
        return _append_all(context, call, request, response, entries)
    admitted = admit(context, call, request, entries, transactional)
    if admitted.is_resolved:
        return _append_all(context, call, request, response, entries)
    reply: Later[Reply] = Later()
    for entry in entries:
        entry.keep_records()  # the connection's buffer is used again before the answer comes

    def append(_: None) -> None:
        _pass_on(_append_all(context, call, request, response, entries), reply)

    admitted.then(append)
    return reply


def _entries(
    context: Context, call: Call, request: ProduceRequest, response: ProduceResponse
) -> list[Entry]:
    """One entry per partition asked for; what goes wrong there is that partition's answer alone."""
    entries: list[Entry] = []
    for topic in request.topic_data:
        answers = ProduceResponse.Response(name=topic.name, topic_id=topic.topic_id)
        if topic.partition_data:
            response.responses.append(answers)
        for data in topic.partition_data:
            entry = Entry(topic, data.records, Answer(index=data.index))
            answers.partition_responses.append(entry.answer)
            try:
                entry.partition = partition = _find(context, call, topic, data.index)
                entry.header = header = _check_format(call.version, data.records)
                entry.is_transactional = header is not None and header.is_transactional
                if request.acks not in ACKS:
                    raise KafkaError(Error.INVALID_REQUIRED_ACKS)
                if partition.topic in INTERNAL_TOPICS:
                    _check_internal(call, partition)
            except KafkaError as error:
                entry.refuse(error)
            entries.append(entry)
    return entries


def _find(
    context: Context, call: Call, topic: ProduceRequest.TopicData, index: int
) -> Partition:
    is_named = call.version < TOPIC_ID_VERSION
    name = topic.name if is_named else find_topic_name(context, topic.topic_id)
    return find_partition(context, name, index)


def _check_internal(call: Call, partition: Partition) -> None:
    """Coordinators alone write to their topics, but for the client id of Apache Kafka's tools."""
    if call.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(
            Error.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written to by the broker alone"
        )


def _check_format(version: int, records: memoryview | None) -> BatchHeader | None:
    """The header of the one batch that a request may carry for a partition, since version 3."""
    if version < BATCHES_V2_VERSION:
        return None
    try:
        header = read_header(records or b"")
    except TruncatedRecords:
        raise _invalid(version, "must carry a record batch for each partition") from None
    if header.magic != 2:
        raise _invalid(version, f"must carry batches of format 2, not {header.magic}")
    if version < ZSTD_VERSION and header.compression == Compression.ZSTD:
        raise KafkaError(Error.UNSUPPORTED_COMPRESSION_TYPE)
    if header.size != len(records or b"") and _has_another(records or b"", header):
        raise _invalid(version, "must carry exactly one record batch for each partition")
    return header


def _has_another(records: memoryview | bytes, header: BatchHeader) -> bool:
    """Whether a whole batch follows; a torn one is passed over, as Apache Kafka does."""
    return next(iterate_headers(records, header.end), None) is not None


def _invalid(version: int, what: str) -> InvalidRecords:
    return InvalidRecords(f"a Produce request of version {version} {what}")


def _append_all(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Reply | Later[Reply]:
    clock = context.env.clock
    now_ms = clock.now_ms()
    end_ms = clock.monotonic_ms() + TURN_MS if len(entries) > FEW_ENTRIES else None
    is_late = False
    examined: list[Later[Exception | None]] = []
    for entry in entries:
        entry.append(
            context.long_work, now_ms, is_all=request.acks == ALL_IN_SYNC, is_late=is_late
        )
        if entry.examined is not None:
            examined.append(entry.examined)
        is_late = is_late or (end_ms is not None and clock.monotonic_ms() >= end_ms)
    if not examined:
        return _appended(context, call, request, response, entries)
    reply: Later[Any] = Later()
    waiting = len(examined)
    mistakes: list[Exception] = []

    def one_is_done(mistake: Exception | None) -> None:
        nonlocal waiting
        waiting -= 1
        mistakes.extend([] if mistake is None else [mistake])
        if waiting:
            return
        try:
            appended = None if mistakes else _appended(context, call, request, response, entries)
        except Exception as error:  # noqa: BLE001 - it is the answer
            mistakes.append(error)
        if mistakes:
            reply.resolve(mistakes[0])
        else:
            _pass_on(appended, reply)

    for each in examined:
        each.then(one_is_done)
    return reply


def _pass_on(reply: Reply | Later[Reply], later: Later[Reply]) -> None:
    if isinstance(reply, Later):
        reply.then(later.resolve)
    else:
        later.resolve(reply)


def _appended(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Reply | Later[Reply]:
    if request.acks == 0:
        return _unanswered(entries)
    has_errors = is_waiting = False
    for entry in entries:
        if entry.answer.error_code:
            has_errors = True
        elif entry.is_waiting():
            is_waiting = True
    if has_errors:
        _name_leaders(context, call, response)
    return _acknowledge_later(context, request, response, entries) if is_waiting else response


def _unanswered(entries: list[Entry]) -> CloseConnection | None:
    for entry in entries:
        if entry.answer.error_code != Error.NONE:
            name = entry.topic.name or entry.topic.topic_id.hex()
            error = Error(entry.answer.error_code).name
            return CloseConnection(f"{error} for {name}-{entry.answer.index}, with acks=0")
    return None


def _name_leaders(context: Context, call: Call, response: ProduceResponse) -> None:
    """Spare a client that came to the wrong broker the metadata round trip (KIP-951)."""
    leaders: set[int] = set()
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
                leader_id, leader_epoch = current_leader(
                    context, topic.name, topic.topic_id, answer.index
                )
                answer.current_leader = ProduceResponse.CurrentLeader(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
                leaders.add(leader_id)
    if leaders:
        response.node_endpoints = [
            ProduceResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in endpoints(context, call, leaders)
        ]


def _acknowledge_later(
    context: Context, request: ProduceRequest, response: ProduceResponse, entries: list[Entry]
) -> Later[Reply]:
    """Answer when all of it is committed."""
    reply: Later[Reply] = Later()

    def attempt(moved: Collection[Watched] | None) -> bool:
        waiting = [entry for entry in entries if entry.is_waiting()]
        if waiting and moved is not None:
            return False
        for entry in waiting:
            entry.answer.error_code = Error.REQUEST_TIMED_OUT
        reply.resolve(response)
        return True

    watched = [entry.partition for entry in entries if entry.partition is not None]
    context.waiting.park(watched, request.timeout_ms, attempt, reply)
    return reply
