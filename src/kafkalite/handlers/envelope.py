"""Envelope, version 0: a client's request, as a broker process forwards it to the controller.

Flexible (KIP-590). What is in it is answered as if its sender had asked here: by that sender's
rules and quotas. Only requests that change the cluster, or ask of the quorum, are forwarded.
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.forwarding import FORWARDABLE, sender_in
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import EnvelopeRequest, EnvelopeResponse


def envelope(
    context: Context, call: Call, request: EnvelopeRequest
) -> Later[EnvelopeResponse]:
    data = bytes(request.request_data)
    if int.from_bytes(data[:2], "big") not in FORWARDABLE:
        raise KafkaError(Error.INVALID_REQUEST)
    sender = sender_in(request, call)

    def answered(response: bytes | None) -> EnvelopeResponse:
        if response is None:  # nothing that could be answered: the connection is to end
            return EnvelopeResponse(error_code=Error.UNSUPPORTED_VERSION)
        return EnvelopeResponse(response_data=response)

    return context.answer_forwarded(data, sender).map(answered)
