"""EndTxn, versions 0–5: commits or aborts a transaction.

Versions: 2 PRODUCER_FENCED, 3 flexible, 4 TRANSACTION_ABORTABLE, 5 transaction version 2: the epoch
rises with each end and the answer tells the producer id and epoch to go on with (KIP-890).
"""

from __future__ import annotations

from kafkalite.coordinators.transactions.events import EndTransaction, ProducerIdentity
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.transactional import error_for
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import EndTxnRequest, EndTxnResponse

FENCED_SINCE_VERSION = 2
EPOCH_BUMP_VERSION = 5


def end_txn(
    context: Context, call: Call, request: EndTxnRequest
) -> EndTxnResponse | Later[EndTxnResponse]:
    if not request.transactional_id:
        return EndTxnResponse(error_code=Error.INVALID_REQUEST)
    event = EndTransaction(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        client_version=2 if call.version >= EPOCH_BUMP_VERSION else 0,
    )

    def answered(answer: ProducerIdentity | KafkaError) -> EndTxnResponse:
        if isinstance(answer, KafkaError):
            return EndTxnResponse(error_code=error_for(call, answer, FENCED_SINCE_VERSION))
        return EndTxnResponse(
            producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
        )

    return context.transactions.submit(request.transactional_id, event).map(answered)
