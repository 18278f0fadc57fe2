"""DescribeTransactions, version 0: where the transactions of some ids stand (KIP-664)."""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.shards import gather
from kafkalite.coordinators.transactions.events import Describe
from kafkalite.coordinators.transactions.transaction import Transaction
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

Described = DescribeTransactionsResponse.TransactionState


def describe_transactions(
    context: Context, call: Call, request: DescribeTransactionsRequest
) -> Later[DescribeTransactionsResponse]:
    asked = [_ask(context, transactional_id) for transactional_id in request.transactional_ids]
    response: Later[DescribeTransactionsResponse] = Later()
    gather(asked).then(
        lambda answers: response.resolve(DescribeTransactionsResponse(
            transaction_states=[
                _describe(transactional_id, answer)
                for transactional_id, answer in zip(request.transactional_ids, answers, strict=True)
            ]
        ))
    )
    return response


def _ask(context: Context, transactional_id: str) -> Later[Any]:
    if not transactional_id:
        return Later.of(KafkaError(Error.INVALID_REQUEST))
    asked: Later[Any] = context.transactions.submit(transactional_id, Describe(transactional_id))
    return asked


def _describe(transactional_id: str, answer: KafkaError | Transaction) -> Described:
    if isinstance(answer, KafkaError):
        return Described(error_code=answer.code, transactional_id=transactional_id)
    described = Described(
        transactional_id=transactional_id,
        transaction_state=answer.state.title,
        transaction_timeout_ms=answer.timeout_ms,
        transaction_start_time_ms=answer.started_ms,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )
    topics: dict[str, DescribeTransactionsResponse.Topic] = {}
    for topic, index in answer.partitions:
        entry = topics.setdefault(topic, DescribeTransactionsResponse.Topic(topic=topic))
        entry.partitions.append(index)
    described.topics = list(topics.values())
    return described
