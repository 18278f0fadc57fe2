"""InitProducerId, versions 0–6: gives a producer its id and epoch, and ends what it left open.

Versions: 2 flexible, 3 the id and epoch that the producer had (KIP-360), 4 PRODUCER_FENCED instead
of INVALID_PRODUCER_EPOCH, 6 two-phase commit (KIP-939), which is refused as a broker without
`transaction.two.phase.commit.enable` refuses it. Without a transactional id any id that nobody has
will do.
"""

from __future__ import annotations

from kafkalite.coordinators.transactions.events import InitProducerId, ProducerIdentity
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_any, may_cluster, require
from kafkalite.handlers.transactional import error_for
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from kafkalite.security.acl import IDEMPOTENT_WRITE, TOPIC, TRANSACTIONAL_ID, WRITE

NONE = -1
FENCED_SINCE_VERSION = 4


def init_producer_id(
    context: Context, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | Later[InitProducerIdResponse] | InSteps:
    return begun(_init(context, call, request))


def _init(
    context: Context, call: Call, request: InitProducerIdRequest
) -> Steps[InitProducerIdResponse | Later[InitProducerIdResponse]]:
    try:
        yield from _ask(context, call, request)
        had = _had(request)
        if request.transactional_id is None:
            return context.transactions.producer_ids.take().map(_without_transactions)
        _check(context, request)
    except KafkaError as error:
        return _refusal(error.code)
    event = InitProducerId(request.transactional_id, request.transaction_timeout_ms, *had)

    def answer(value: ProducerIdentity | KafkaError) -> InitProducerIdResponse:
        if isinstance(value, KafkaError):
            return _refusal(error_for(call, value, FENCED_SINCE_VERSION))
        return _identity(value)

    return context.transactions.submit(request.transactional_id, event).map(answer)


def _ask(context: Context, call: Call, request: InitProducerIdRequest) -> Steps[None]:
    """Whether one may write: with this transactional id, or anything at all."""
    if request.transactional_id is not None:
        require(context, call, WRITE, TRANSACTIONAL_ID, request.transactional_id)
        return
    if may_cluster(context, call, IDEMPOTENT_WRITE, is_quiet=True):
        return
    if not (yield from may_any(context, call, WRITE, TOPIC)):
        raise KafkaError(Error.CLUSTER_AUTHORIZATION_FAILED)


def _without_transactions(taken: int | KafkaError) -> InitProducerIdResponse:
    if isinstance(taken, KafkaError):
        return _refusal(Error(taken.code))
    return _identity(ProducerIdentity(taken, 0))


def _had(request: InitProducerIdRequest) -> tuple[int | None, int | None]:
    """The producer id and epoch that the producer had before, both or neither."""
    had_id, had_epoch = request.producer_id != NONE, request.producer_epoch != NONE
    if had_id != had_epoch:
        raise KafkaError(Error.INVALID_REQUEST)
    return (request.producer_id, request.producer_epoch) if had_id else (None, None)


def _check(context: Context, request: InitProducerIdRequest) -> None:
    if not request.transactional_id:
        raise KafkaError(Error.INVALID_REQUEST)
    if request.enable2_pc:
        raise KafkaError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(Error.UNSUPPORTED_VERSION)
    longest_ms = context.config.get_int("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= longest_ms:
        raise KafkaError(Error.INVALID_TRANSACTION_TIMEOUT)


def _identity(identity: ProducerIdentity) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        producer_id=identity.producer_id, producer_epoch=identity.producer_epoch
    )


def _refusal(error: Error) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)
