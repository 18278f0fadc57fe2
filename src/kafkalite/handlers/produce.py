"""Produce, versions 0–13: appends record batches to partitions led by this broker.

Versions: 0–1 message format 0, 2 format 1 and log append time, 3 batches v2 and transactional ids,
5 log start offset, 7 zstd, 8 record errors (KIP-467), 9 flexible, 10 the current leader (KIP-951),
11 TRANSACTION_ABORTABLE, 12 partitions join a transaction by being written to (KIP-890), 13 topic
ids (KIP-516).
acks=0 is never answered; an error closes the connection instead, so that the client looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, finish
from kafkalite.handlers.call import Call, CloseConnection
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import (
    current_leader,
    endpoints,
    find_partition,
    find_topic_name,
)
from kafkalite.handlers.permission import require
from kafkalite.handlers.produce_acknowledged import acknowledged
from kafkalite.handlers.produce_entry import Answer, Entry
from kafkalite.handlers.produce_order import ProduceOrder
from kafkalite.handlers.produce_transactional import admit
from kafkalite.handlers.produce_whole import once_each, whole_refusal
from kafkalite.handlers.stepwise import let_go, pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records.batch import BatchHeader, Compression, iterate_headers, read_header
from kafkalite.records.errors import InvalidRecords, TruncatedRecords
from kafkalite.replication.partition import Partition
from kafkalite.security.acl import TOPIC, WRITE

ALL_IN_SYNC = -1
ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
BATCHES_V2_VERSION = 3
ZSTD_VERSION = 7
TOPIC_ID_VERSION = 13
# Of a request for many partitions what is not appended in this time goes on in later turns.
FEW_ENTRIES, TURN_MS = 8, 3

# Of a request for more than that, so many are looked at, or appended, in one step.
MANY, LOOKED_AT_PER_STEP, APPENDED_PER_STEP = 200, 16, 16

Reply = ProduceResponse | CloseConnection | None
# In place of which may come InSteps, when what is left takes long.
Replies = Later[Any]

TopicData = ProduceRequest.TopicData
Answers = ProduceResponse.Response


def produce(
    context: Context, call: Call, request: ProduceRequest
) -> Reply | InSteps | Replies:
    response = ProduceResponse()
    entries = _entries(context, call, request, response)
    if entries is None:
        return InSteps(_many(context, call, request))
    if len(entries) == 1:
        entry = entries[0]
        if not entry.is_transactional and not entry.answer.error_code:
            # The usual request; `_append_all` in short.
            now_ms = context.env.clock.now_ms()
            entry.append(context.long_work, now_ms, is_all=request.acks == ALL_IN_SYNC)
            return _once_examined(context, call, request, response, entries)
    odd = [entry for entry in entries if entry.is_transactional or entry.answer.error_code]
    error = None
    if odd and call.version >= BATCHES_V2_VERSION:
        error = finish(whole_refusal(context, call, request, entries))
    # A partition may be named twice, and a topic.
    if len(entries) > 1 and (odd or len(response.responses) > 1 or _has_twice(entries)):
        entries = finish(once_each(response, entries))
    if error is not None:
        for entry in entries:
            entry.refuse(error)
    transactional = [entry for entry in entries if entry.is_transactional] if odd else []
    if not transactional or error is not None:
        return _append_all(context, call, request, response, entries)
    return _transactional(context, call, request, response, entries, transactional)


def _transactional(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
    transactional: list[Entry],
) -> Reply | Replies:
    order, producer_id = context.produce_order, _producer_id(transactional)
    admitted: Later[None] | None = None
    if not order.is_waiting(producer_id):
        admitted = finish(admit(context, call, request, entries, transactional))
        if admitted.is_resolved:
            _ = admitted.value  # what went wrong on the way is the answer
            return _append_all(context, call, request, response, entries)
    for entry in entries:
        entry.keep_records()  # the connection's buffer is used again before the answer comes

    def ask() -> Later[None]:
        return admitted or finish(admit(context, call, request, entries, transactional))

    def append() -> Reply | InSteps | Replies:
        if context.long_work.is_at_work_for(call.connection):  # on what came before
            return InSteps(_append_many(context, call, request, response, entries))
        return _append_all(context, call, request, response, entries)

    return _in_order(order, producer_id, ask, append)


def _producer_id(transactional: list[Entry]) -> int:
    header = transactional[0].header
    assert header is not None
    return header.producer_id


def _in_order(
    order: ProduceOrder,
    producer_id: int,
    ask: Callable[[], Later[None]],
    act: Callable[[], Reply | InSteps | Replies],
) -> Replies:
    """Appends once the transaction's coordinator has answered, which is asked when what the
    producer sent before is through."""
    reply: Replies = Later()

    def append(asked: Later[None]) -> None:
        try:
            _ = asked.value
            appended = act()
        except Exception as mistake:  # noqa: BLE001 - it is the answer
            reply.resolve(mistake)
        else:
            _pass_on(appended, reply)

    def told(asked: Later[None], _: object) -> None:
        try:
            append(asked)
        finally:
            order.over(producer_id)

    def begin() -> bool:
        try:
            asked = ask()
        except Exception as mistake:  # noqa: BLE001 - it is the answer
            reply.resolve(mistake)
            return True
        if asked.is_resolved:
            append(asked)
            return True
        asked.then(partial(told, asked), partial(told, asked))
        return False

    order.enter(producer_id, begin)
    return reply


def _has_twice(entries: list[Entry]) -> bool:
    """Whether a partition is named twice, in a request for one topic."""
    return len({entry.answer.index for entry in entries}) < len(entries)


def _entries(
    context: Context, call: Call, request: ProduceRequest, response: ProduceResponse
) -> list[Entry] | None:
    """One entry per partition asked for; what goes wrong there is that partition's answer alone.
    None when there are many."""
    entries: list[Entry] = []
    for topic in request.topic_data:
        answers = Answers(name=topic.name, topic_id=topic.topic_id)
        partitions = topic.partition_data
        if len(entries) + len(partitions) > MANY:
            return None
        if partitions:
            response.responses.append(answers)
        for data in partitions:
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


def _find(context: Context, call: Call, topic: TopicData, index: int) -> Partition:
    is_named = call.version < TOPIC_ID_VERSION
    name = topic.name if is_named else find_topic_name(context, topic.topic_id)
    if context.authorizer is not None:
        require(context, call, WRITE, TOPIC, name)
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
) -> Reply | Replies:
    clock = context.env.clock
    now_ms = clock.now_ms()
    end_ms = clock.monotonic_ms() + TURN_MS if len(entries) > FEW_ENTRIES else None
    is_late = False
    for entry in entries:
        entry.append(
            context.long_work, now_ms, is_all=request.acks == ALL_IN_SYNC, is_late=is_late
        )
        is_late = is_late or (end_ms is not None and clock.monotonic_ms() >= end_ms)
    return _once_examined(context, call, request, response, entries)


def _once_examined(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Reply | Replies:
    examined = [entry.examined for entry in entries if entry.examined is not None]
    if not examined:
        return _appended(context, call, request, response, entries)
    return _once_all(examined, lambda: _appended(context, call, request, response, entries))


def _once_all(examined: list[Later[Exception | None]], then: Callable[[], Any]) -> Replies:
    """What comes of it when all have been looked at; a mistake that was made with one, if any."""

    def all_are_done(outcomes: list[Exception | None]) -> Replies:
        mistake = next((each for each in outcomes if each is not None), None)
        appended = then() if mistake is None else mistake
        return appended if isinstance(appended, Later) else Later.of(appended)

    return Later.all(examined).then_ask(all_are_done)


def _pass_on(reply: Reply | InSteps | Replies, later: Replies) -> None:
    if isinstance(reply, Later):
        reply.then(later.resolve, later.fail)
    else:
        later.resolve(reply)


def _appended(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Reply | Replies:
    if request.acks == 0:
        return _unanswered(entries)
    has_errors = is_waiting = False
    for entry in entries:
        if entry.answer.error_code:
            has_errors = True
        elif entry.is_waiting():
            is_waiting = True
    if has_errors:
        finish(_name_leaders(context, call, response))
    if not is_waiting:
        return response
    return finish(acknowledged(context, request, response, entries))


def _unanswered(entries: list[Entry]) -> CloseConnection | None:
    for entry in entries:
        if entry.answer.error_code != Error.NONE:
            name = entry.topic.name or entry.topic.topic_id.hex()
            error = Error(entry.answer.error_code).name
            return CloseConnection(f"{error} for {name}-{entry.answer.index}, with acks=0")
    return None


def _name_leaders(context: Context, call: Call, response: ProduceResponse) -> Steps[None]:
    """Spare a client that came to the wrong broker the metadata round trip (KIP-951)."""
    leaders: set[int] = set()
    left = LOOKED_AT_PER_STEP
    for topic in response.responses:
        for answer in topic.partition_responses:
            left -= 1
            if not left:
                left = LOOKED_AT_PER_STEP
                yield
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


# --- many partitions ------------------------------------------------------------------------------


def _many(
    context: Context, call: Call, request: ProduceRequest
) -> Steps[Reply | InSteps | Replies]:
    """The same a slice per turn: first all are looked at, then all appended."""
    response = ProduceResponse()
    entries: list[Entry] = []
    transactional: list[Entry] = []
    is_odd = False
    for part in _parts(request):
        found = _entries(context, call, part, response) or []
        is_odd = is_odd or any(one.is_transactional or one.answer.error_code for one in found)
        entries += found
        yield
    error = None
    if is_odd and call.version >= BATCHES_V2_VERSION:
        error = yield from whole_refusal(context, call, request, entries)
    entries = yield from once_each(response, entries)
    for some in pieces(entries, LOOKED_AT_PER_STEP):
        if error is not None:
            for entry in some:
                entry.refuse(error)
        else:
            transactional += [entry for entry in some if entry.is_transactional]
        yield
    if transactional:
        order, producer_id = context.produce_order, _producer_id(transactional)
        admitted: Later[None] | None = None
        if not order.is_waiting(producer_id):
            admitted = yield from admit(context, call, request, entries, transactional)
        if admitted is None or not admitted.is_resolved:
            return _in_order(
                order, producer_id,
                lambda: admitted or finish(admit(context, call, request, entries, transactional)),
                lambda: InSteps(_append_many(context, call, request, response, entries)),
            )  # fmt: skip
        _ = admitted.value
    return (yield from _append_many(context, call, request, response, entries))


def _parts(request: ProduceRequest) -> Iterator[ProduceRequest]:
    """The same for some partitions at a time."""
    part, asked = ProduceRequest(acks=request.acks), 0
    for topic in request.topic_data:
        for some in pieces(topic.partition_data, LOOKED_AT_PER_STEP):
            part.topic_data.append(
                TopicData(name=topic.name, topic_id=topic.topic_id, partition_data=some)
            )
            asked += len(some)
            if asked >= LOOKED_AT_PER_STEP:
                yield part
                part, asked = ProduceRequest(acks=request.acks), 0
    yield part


def _append_many(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Steps[Reply | InSteps | Replies]:
    clock, is_all = context.env.clock, request.acks == ALL_IN_SYNC
    examined: list[Later[Exception | None]] = []
    for some in pieces(entries, APPENDED_PER_STEP):
        now_ms = clock.now_ms()
        for entry in some:
            segments = entry.segments
            entry.append(context.long_work, now_ms, is_all=is_all)
            if entry.examined is not None:
                examined.append(entry.examined)
            if entry.segments != segments:
                yield  # the files of a new one take as long as many appends
        yield
    told = _tell_many(context, call, request, response, entries)
    return _once_all(examined, lambda: InSteps(told)) if examined else (yield from told)


def _tell_many(
    context: Context,
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[Entry],
) -> Steps[Reply | Replies]:
    has_errors = is_waiting = False
    for some in pieces(entries, LOOKED_AT_PER_STEP):
        if request.acks == 0:
            reason = _unanswered(some)
            if reason is not None:
                return reason
        else:
            has_errors = has_errors or any(entry.answer.error_code for entry in some)
            is_waiting = is_waiting or any(entry.is_waiting() for entry in some)
        yield
    if has_errors:
        yield from _name_leaders(context, call, response)
    if is_waiting:
        return (yield from acknowledged(context, request, response, entries))
    while entries:  # to free all of them takes long, too
        del entries[-LOOKED_AT_PER_STEP:]
        yield
    yield from let_go(request)
    return None if request.acks == 0 else response
