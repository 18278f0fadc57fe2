"""TxnOffsetCommit, versions 0–5: stores offsets that count once the transaction commits.

Versions: 2 leader epoch, 3 flexible with member and generation (KIP-447), 4 TRANSACTION_ABORTABLE,
5 the partition of the offsets topic joins the transaction here (KIP-890); before, a producer
says so with AddOffsetsToTxn and is checked for it.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import CommitTransactionalOffsets
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import code_of
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
) -> TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse]:
    refused: dict[str, Answer] = {}
    request.topics = [topic for topic in request.topics if _resolve(context, topic, refused)]
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    if not request.group_id:
        failed = _failed(request, Error.INVALID_GROUP_ID)
        return TxnOffsetCommitResponse(topics=_merged(refused, failed.topics))
    response: Later[TxnOffsetCommitResponse] = Later()

    def respond(answer: Any) -> None:
        if isinstance(answer, KafkaError):
            answer = _failed(request, _code_for(call, answer))
        response.resolve(TxnOffsetCommitResponse(topics=_merged(refused, answer.topics)))

    def commit(refusal: KafkaError | None) -> None:
        if refusal is not None:
            respond(refusal)
            return
        event = CommitTransactionalOffsets(request, call.version)
        context.groups.submit(request.group_id, event).then(respond)

    _admit(context, call, request).then(commit)
    return response


def _resolve(
    context: Context, topic: TxnOffsetCommitRequest.Topic, refused: dict[str, Answer]
) -> bool:
    """Keeps the partitions that exist; false when none is left."""
    image = context.cluster.image
    known: list[TxnOffsetCommitRequest.Partition] = []
    missing: list[TxnOffsetCommitRequest.Partition] = []
    for partition in topic.partitions:
        exists = image.has_partition(topic.name, partition.partition_index)
        (known if exists else missing).append(partition)
    if missing:
        answer = refused.setdefault(topic.name, Answer(name=topic.name))
        for one in missing:
            answer.partitions.append(
                TxnOffsetCommitResponse.Partition(
                    partition_index=one.partition_index,
                    error_code=Error.UNKNOWN_TOPIC_OR_PARTITION,
                )
            )
    topic.partitions = known
    return bool(known)


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
    admitted: Later[KafkaError | None] = Later()
    context.transactions.admit(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (where,),
        is_adding=call.version >= ADDING_SINCE,
        knows_abortable=call.version >= ABORTABLE_SINCE,
    ).then(lambda refusals: admitted.resolve(refusals.get(where)))
    return admitted


def _code_for(call: Call, error: KafkaError) -> Error:
    code = code_of(error)
    if code == Error.NETWORK_EXCEPTION:
        code = Error.COORDINATOR_LOAD_IN_PROGRESS
    if code == Error.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_SINCE:
        return Error.COORDINATOR_NOT_AVAILABLE  # producers before 2.0 die of the other one
    return code


def _failed(request: TxnOffsetCommitRequest, code: Error) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            Answer(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.Partition(
                        partition_index=one.partition_index, error_code=code
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _merged(refused: dict[str, Answer], accepted: list[Answer]) -> list[Answer]:
    for topic in accepted:
        present = refused.setdefault(topic.name, topic)
        if present is not topic:
            present.partitions += topic.partitions
    return list(refused.values())
