"""AddOffsetsToTxn, versions 0–4: makes a group's offsets part of a transaction.

Versions: 2 PRODUCER_FENCED, 3 flexible, 4 TRANSACTION_ABORTABLE. What joins the transaction is the
partition of `__consumer_offsets` that coordinates the group; from transaction version 2 on clients
leave this out and TxnOffsetCommit adds it.
"""

from __future__ import annotations

from kafkalite.coordinators.shards import partition_of
from kafkalite.coordinators.transactions.events import AddPartitions
from kafkalite.coordinators.transactions.markers import OFFSETS_TOPIC
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.transactional import code_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE_VERSION = 2


def add_offsets_to_txn(
    context: Context, call: Call, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Later[AddOffsetsToTxnResponse]:
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=Error.INVALID_REQUEST)
    event = AddPartitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        ((OFFSETS_TOPIC, _offsets_partition(context, request.group_id)),),
        client_version=0,
    )

    def answered(answer: KafkaError | None) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=code_of(call, answer, FENCED_SINCE_VERSION))

    return context.transactions.submit(request.transactional_id, event).map(answered)


def _offsets_partition(context: Context, group_id: str) -> int:
    """Where the group's offsets will go: their topic is created when the group is first sought."""
    count = context.groups.partition_count()
    return partition_of(group_id, count or context.config.get_int("offsets.topic.num.partitions"))
