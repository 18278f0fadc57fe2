"""DescribeTransactions, version 0: where the transactions of some ids stand (KIP-664)."""

from __future__ import annotations

from kafkalite.coordinators.transactions.events import Describe
from kafkalite.coordinators.transactions.transaction import Transaction
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, finish
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkalite.security.acl import DESCRIBE, TOPIC, TRANSACTIONAL_ID

FEW, ASKED_PER_STEP = 16, 5

Described = DescribeTransactionsResponse.TransactionState


def describe_transactions(
    context: Context, call: Call, request: DescribeTransactionsRequest
) -> InSteps | Later[DescribeTransactionsResponse | InSteps]:
    names = request.transactional_ids
    steps = _ask_all(context, call, names)
    return InSteps(steps) if len(names) > FEW else finish(steps)


def _ask_all(
    context: Context, call: Call, names: list[str]
) -> Steps[Later[DescribeTransactionsResponse | InSteps]]:
    asked: list[Later[Transaction | KafkaError]] = []
    for some in pieces(names, ASKED_PER_STEP):
        asked += [_ask(context, call, transactional_id) for transactional_id in some]
        yield

    def respond(
        answers: list[Transaction | KafkaError],
    ) -> DescribeTransactionsResponse | InSteps:
        steps = _respond(context, call, names, answers)
        return InSteps(steps) if len(names) > FEW else finish(steps)

    return Later.all(asked).map(respond)


def _respond(
    context: Context, call: Call, names: list[str], answers: list[Transaction | KafkaError]
) -> Steps[DescribeTransactionsResponse]:
    response = DescribeTransactionsResponse()
    for name, answer in zip(names, answers, strict=True):
        described = _describe(name, answer)
        described.topics = [
            each for each in described.topics if may(context, call, DESCRIBE, TOPIC, each.topic)
        ]
        response.transaction_states.append(described)
        if len(response.transaction_states) % ASKED_PER_STEP == 0:
            yield
    return response


def _ask(
    context: Context, call: Call, transactional_id: str
) -> Later[Transaction | KafkaError]:
    if not may(context, call, DESCRIBE, TRANSACTIONAL_ID, transactional_id):
        return Later.of(KafkaError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not transactional_id:
        return Later.of(KafkaError(Error.INVALID_REQUEST))
    return context.transactions.submit(transactional_id, Describe(transactional_id))


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
