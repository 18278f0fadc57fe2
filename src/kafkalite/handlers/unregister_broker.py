"""UnregisterBroker, version 0: forgets a broker that is gone for good.

Flexible. What it held is led by others, or by nobody.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.brokers import UnregisterBroker
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


def unregister_broker(
    context: Context, call: Call, request: UnregisterBrokerRequest
) -> Later[UnregisterBrokerResponse | KafkaError]:
    def respond(refused: KafkaError | None) -> UnregisterBrokerResponse | KafkaError:
        if refused is not None:
            return refused
        return UnregisterBrokerResponse(error_code=Error.NONE, error_message=None)

    return context.controller.submit(UnregisterBroker(request.broker_id)).map(respond)
