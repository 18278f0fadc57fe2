"""AddPartitionsToTxn, versions 0–5: makes partitions part of transactions, or verifies it.

Versions: 2 PRODUCER_FENCED, 3 flexible and the last one for clients, 4 several transactions and
verification, for brokers (KIP-890), 5 TRANSACTION_ABORTABLE. One partition that is unknown spares
all others of its transaction: OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.shards import gather
from kafkalite.coordinators.transactions.events import AddPartitions, VerifyPartitions
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.transactional import code_of, partitions_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

BATCHED_VERSION = 4
FENCED_SINCE_VERSION = 2

Transaction = AddPartitionsToTxnRequest.Transaction
Codes = dict[tuple[str, int], Error]
Topics = list[AddPartitionsToTxnResponse.TopicResult]


def add_partitions_to_txn(
    context: Context, call: Call, request: AddPartitionsToTxnRequest
) -> Later[AddPartitionsToTxnResponse]:
    transactions = request.transactions if call.version >= BATCHED_VERSION else [_single(request)]
    response: Later[AddPartitionsToTxnResponse] = Later()

    def respond(topics: list[Topics]) -> None:
        if call.version >= BATCHED_VERSION:
            response.resolve(AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResponse.ResultsByTransaction(
                        transactional_id=transaction.transactional_id, topic_results=found
                    )
                    for transaction, found in zip(transactions, topics, strict=True)
                ]
            ))
        else:
            response.resolve(
                AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics[0])
            )

    # Of a transaction that is named twice all that is added is what is named last, and answered is
    # what is named first; no broker sends one.
    last = {one.transactional_id: one for one in transactions}
    first = {one.transactional_id: one for one in reversed(transactions)}
    gather([
        _add(context, call, one, last[one.transactional_id], first[one.transactional_id])
        for one in transactions
    ]).then(respond)
    return response


def _single(request: AddPartitionsToTxnRequest) -> Transaction:
    return Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _add(
    context: Context, call: Call, transaction: Transaction, last: Transaction, first: Transaction
) -> Later[Topics]:
    partitions = partitions_of(last.topics)
    unknown = {one for one in partitions if context.cluster.image.partition(*one) is None}
    if unknown:
        return Later.of(_topics({
            one: Error.UNKNOWN_TOPIC_OR_PARTITION if one in unknown
            else Error.OPERATION_NOT_ATTEMPTED
            for one in partitions
        }))
    if not transaction.transactional_id:
        return Later.of(_repeated(first, Error.INVALID_REQUEST))
    topics: Later[Topics] = Later()

    def answered(answer: Any) -> None:
        if not transaction.verify_only:
            topics.resolve(_repeated(first, code_of(call, answer, FENCED_SINCE_VERSION)))
        else:
            topics.resolve(_topics(_verified(call, partitions, answer)))

    event = _event(call, transaction, partitions)
    context.transactions.submit(transaction.transactional_id, event).then(answered)
    return topics


def _event(
    call: Call, transaction: Transaction, partitions: tuple[tuple[str, int], ...]
) -> AddPartitions | VerifyPartitions:
    who = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    if transaction.verify_only:
        return VerifyPartitions(*who, partitions)
    return AddPartitions(*who, partitions, 2 if call.version >= BATCHED_VERSION else 0)


def _verified(call: Call, partitions: tuple[tuple[str, int], ...], answer: Any) -> Codes:
    if isinstance(answer, KafkaError):
        return dict.fromkeys(partitions, code_of(call, answer, FENCED_SINCE_VERSION))
    return {
        one: Error.NONE if one in answer else Error.TRANSACTION_ABORTABLE for one in partitions
    }


def _repeated(transaction: Transaction, code: Error) -> Topics:
    """One code for all that was named, as often as it was named."""
    return [
        AddPartitionsToTxnResponse.TopicResult(
            name=topic.name,
            results_by_partition=[_result(index, code) for index in topic.partitions],
        )
        for topic in transaction.topics
    ]


def _topics(codes: Codes) -> Topics:
    topics: dict[str, AddPartitionsToTxnResponse.TopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, AddPartitionsToTxnResponse.TopicResult(name=name))
        topic.results_by_partition.append(_result(index, code))
    return list(topics.values())


def _result(index: int, code: Error) -> AddPartitionsToTxnResponse.ResultsByPartition:
    return AddPartitionsToTxnResponse.ResultsByPartition(
        partition_index=index, partition_error_code=code
    )
