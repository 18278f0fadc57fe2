"""TxnOffsetCommit, versions 0–5: stores offsets that count once the transaction commits.

Versions: 2 leader epoch, 3 flexible with member and generation (KIP-447), 4 TRANSACTION_ABORTABLE,
5 the partition of the offsets topic joins the transaction here (KIP-890); before, a producer
says so with AddOffsetsToTxn and is checked for it.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import CommitTransactionalOffsets
from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import (
    TOPICS_PER_STEP,
    code_of,
    merged,
    of_known_partitions,
    one_answer,
    unless_many,
)
from kafkalite.handlers.produce_transactional import VERIFICATION
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

LOADING_SINCE = 2
ABORTABLE_SINCE = 4
ADDING_SINCE = 5
OFFSETS_TOPIC = "__consumer_offsets"

Answer = TxnOffsetCommitResponse.Topic


def txn_offset_commit(
    context: Context, call: Call, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | InSteps | Later[TxnOffsetCommitResponse | InSteps]:
    return unless_many(_commit(context, call, request), request.topics)


def _commit(
    context: Context, call: Call, request: TxnOffsetCommitRequest
) -> Steps[TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse | InSteps]]:
    refused: dict[str, Answer] = {}
    known = request.topics = yield from of_known_partitions(
        request.topics, context.metadata.image, refused, Answer, TxnOffsetCommitResponse.Partition
    )
    if not known:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    if not request.group_id:
        return (yield from _refuse(known, refused, Error.INVALID_GROUP_ID))

    def commit(refusal: KafkaError | None) -> Later[TxnOffsetCommitResponse | KafkaError]:
        if refusal is not None:
            return Later.of(refusal)
        event = CommitTransactionalOffsets(request, call.version)
        return context.groups.submit(request.group_id, event)

    def respond(answer: TxnOffsetCommitResponse | KafkaError) -> TxnOffsetCommitResponse | InSteps:
        if isinstance(answer, KafkaError):
            return unless_many(_refuse(known, refused, _code_for(call, answer)), known)
        return unless_many(_respond(refused, answer.topics), answer.topics)

    return _admit(context, call, request).then_ask(commit).map(respond)


def _admit(
    context: Context, call: Call, request: TxnOffsetCommitRequest
) -> Later[KafkaError | None]:
    """Asks the transaction's coordinator before the transaction's first offset (KIP-890)."""
    partition = context.groups.partition(request.group_id)
    if partition is None:
        return Later.of(KafkaError(Error.NOT_COORDINATOR))
    if call.version < ADDING_SINCE and not context.config.get_bool(VERIFICATION):
        return Later.of(None)
    try:
        verification = partition.log.start_verification(
            request.producer_id,
            0,
            request.producer_epoch,
            supports_epoch_bump=call.version >= ADDING_SINCE,
        )
    except KafkaError as refusal:
        return Later.of(refusal)
    if verification is None:
        return Later.of(None)
    where = (OFFSETS_TOPIC, context.groups.partition_for(request.group_id))
    admission = Admission(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (where,),
        is_adding=call.version >= ADDING_SINCE,
    )
    knows_abortable = call.version >= ABORTABLE_SINCE
    asked = context.transactions.ask(admission, knows_abortable=knows_abortable)
    return asked.map(lambda refusals: refusals.get(where))


def _code_for(call: Call, error: KafkaError) -> Error:
    code = code_of(error)
    if code == Error.NETWORK_EXCEPTION:
        code = Error.COORDINATOR_LOAD_IN_PROGRESS
    if code == Error.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_SINCE:
        return Error.COORDINATOR_NOT_AVAILABLE  # producers before 2.0 die of the other one
    return code


def _refuse(
    topics: list[TxnOffsetCommitRequest.Topic], refused: dict[str, Answer], code: Error
) -> Steps[TxnOffsetCommitResponse]:
    answers: list[Answer] = []
    for count, topic in enumerate(topics, 1):
        if count % TOPICS_PER_STEP == 0:
            yield
        partitions = yield from one_answer(
            TxnOffsetCommitResponse.Partition, topic.partitions, code
        )
        answers.append(Answer(name=topic.name, partitions=partitions))
    return (yield from _respond(refused, answers))


def _respond(
    refused: dict[str, Answer], accepted: list[Answer]
) -> Steps[TxnOffsetCommitResponse]:
    topics = yield from merged(refused, accepted, lambda topic: topic.name)
    return TxnOffsetCommitResponse(topics=topics)
