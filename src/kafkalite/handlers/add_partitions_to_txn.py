"""AddPartitionsToTxn, versions 0–5: makes partitions part of transactions, or verifies it.

Versions: 2 PRODUCER_FENCED, 3 flexible and the last one for clients, 4 several transactions and
verification, for brokers (KIP-890), 5 TRANSACTION_ABORTABLE. One partition that is unknown spares
all others of its transaction: OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.coordinators.transactions.events import AddPartitions, VerifyPartitions
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import PARTITIONS_PER_STEP, unless_many
from kafkalite.handlers.permission import may, permitted
from kafkalite.handlers.stepwise import pieces
from kafkalite.handlers.transactional import code_of, partitions_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkalite.security.acl import TOPIC, TRANSACTIONAL_ID, WRITE

BATCHED_VERSION = 4
FENCED_SINCE_VERSION = 2

Transaction = AddPartitionsToTxnRequest.Transaction
Codes = dict[tuple[str, int], Error]
Topics = list[AddPartitionsToTxnResponse.TopicResult]


def add_partitions_to_txn(
    context: Context, call: Call, request: AddPartitionsToTxnRequest
) -> InSteps | Later[AddPartitionsToTxnResponse | InSteps]:
    transactions = request.transactions if call.version >= BATCHED_VERSION else [_single(request)]
    named = [topic for transaction in transactions for topic in transaction.topics]
    return unless_many(_add_all(context, call, transactions), named)


def _add_all(
    context: Context, call: Call, transactions: list[Transaction]
) -> Steps[Later[AddPartitionsToTxnResponse | InSteps]]:
    # Of a transaction that is named twice all that is added is what is named last, and answered is
    # what is named first; no broker sends one.
    last = {one.transactional_id: one for one in transactions}
    first = {one.transactional_id: one for one in reversed(transactions)}
    answers: list[Later[Steps[Topics]]] = []
    for count, one in enumerate(transactions, 1):
        last_one, first_one = last[one.transactional_id], first[one.transactional_id]
        answers.append((yield from _add(context, call, one, last_one, first_one)))
        if count % PARTITIONS_PER_STEP == 0:
            yield

    def respond(found: list[Steps[Topics]]) -> AddPartitionsToTxnResponse | InSteps:
        named = [topic for transaction in transactions for topic in transaction.topics]
        return unless_many(_respond(call, transactions, found), named)

    return Later.all(answers).map(respond)


def _respond(
    call: Call, transactions: list[Transaction], found: list[Steps[Topics]]
) -> Steps[AddPartitionsToTxnResponse]:
    if call.version < BATCHED_VERSION:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(yield from found[0]))
    response = AddPartitionsToTxnResponse()
    results = response.results_by_transaction
    for transaction, topics in zip(transactions, found, strict=True):
        results.append(
            AddPartitionsToTxnResponse.ResultsByTransaction(
                transactional_id=transaction.transactional_id, topic_results=(yield from topics)
            )
        )
        if len(results) % PARTITIONS_PER_STEP == 0:
            yield
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
) -> Steps[Later[Steps[Topics]]]:
    """What works out the answer of each topic, once it can be."""
    partitions = partitions_of(last.topics)
    is_asked = call.version < BATCHED_VERSION
    if is_asked and not may(
        context, call, WRITE, TRANSACTIONAL_ID, transaction.transactional_id
    ):
        return Later.of(_repeated(first, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    forbidden: set[str] = set()
    if is_asked:  # by a client, who never writes to internal topics
        names = {name for name, _ in partitions}
        forbidden = names.intersection(INTERNAL_TOPICS)
        if context.authorizer is not None:
            allowed = yield from permitted(context, call, WRITE, TOPIC, names - forbidden)
            forbidden = names - allowed
    unknown: set[tuple[str, int]] = set()
    for some in pieces(list(partitions), PARTITIONS_PER_STEP):
        unknown.update(one for one in some if context.metadata.image.partition(*one) is None)
        if len(partitions) > PARTITIONS_PER_STEP:
            yield
    if unknown or forbidden:
        codes = dict.fromkeys(partitions, Error.OPERATION_NOT_ATTEMPTED)
        codes.update(dict.fromkeys(unknown, Error.UNKNOWN_TOPIC_OR_PARTITION))
        for one in partitions:
            if one[0] in forbidden:
                codes[one] = Error.TOPIC_AUTHORIZATION_FAILED
        return Later.of(_topics(codes))
    if not transaction.transactional_id:
        return Later.of(_repeated(first, Error.INVALID_REQUEST))

    who = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    submit = context.transactions.submit
    if transaction.verify_only:
        asked = submit(transaction.transactional_id, VerifyPartitions(*who, partitions))
        return asked.map(lambda present: _topics(_verified(call, partitions, present)))
    version = 2 if call.version >= BATCHED_VERSION else 0
    added = submit(transaction.transactional_id, AddPartitions(*who, partitions, version))
    return added.map(lambda none: _repeated(first, code_of(call, none, FENCED_SINCE_VERSION)))


def _verified(
    call: Call,
    partitions: tuple[tuple[str, int], ...],
    answer: frozenset[tuple[str, int]] | KafkaError,
) -> Codes:
    if isinstance(answer, KafkaError):
        return dict.fromkeys(partitions, code_of(call, answer, FENCED_SINCE_VERSION))
    return {
        one: Error.NONE if one in answer else Error.TRANSACTION_ABORTABLE for one in partitions
    }


def _repeated(transaction: Transaction, code: Error) -> Steps[Topics]:
    """One code for all that was named, as often as it was named."""
    answers: Topics = []
    answered = 0
    for topic in transaction.topics:
        answer = AddPartitionsToTxnResponse.TopicResult(name=topic.name)
        answers.append(answer)
        for index in topic.partitions:
            answer.results_by_partition.append(_result(index, code))
            answered += 1
            if answered % PARTITIONS_PER_STEP == 0:
                yield
    return answers


def _topics(codes: Codes) -> Steps[Topics]:
    topics: dict[str, AddPartitionsToTxnResponse.TopicResult] = {}
    for count, ((name, index), code) in enumerate(codes.items(), 1):
        topic = topics.setdefault(name, AddPartitionsToTxnResponse.TopicResult(name=name))
        topic.results_by_partition.append(_result(index, code))
        if count % PARTITIONS_PER_STEP == 0:
            yield
    return list(topics.values())


def _result(index: int, code: Error) -> AddPartitionsToTxnResponse.ResultsByPartition:
    return AddPartitionsToTxnResponse.ResultsByPartition(
        partition_index=index, partition_error_code=code
    )
