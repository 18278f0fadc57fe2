"""AllocateProducerIds, version 0: a broker process takes a block of producer ids.

Flexible (KIP-730). No id is ever given twice.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.brokers import AllocateProducerIds
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import check_broker
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def allocate_producer_ids(
    context: Context, call: Call, request: AllocateProducerIdsRequest
) -> Later[AllocateProducerIdsResponse | KafkaError]:
    check_broker(context, request)

    def given(block: range | KafkaError) -> AllocateProducerIdsResponse | KafkaError:
        if isinstance(block, KafkaError):
            return block
        return AllocateProducerIdsResponse(
            producer_id_start=block.start, producer_id_len=len(block)
        )

    return context.controller.submit(AllocateProducerIds(request.broker_id)).map(given)
