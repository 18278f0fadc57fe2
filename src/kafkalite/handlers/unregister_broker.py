"""UnregisterBroker, version 0: forgets a broker that is gone for good.

Flexible. What it held is led by others, or by nobody.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.brokers import UnregisterBroker
from kafkalite.coordinators.effects import Refused
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import code_of
from kafkalite.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


def unregister_broker(
    context: Context, call: Call, request: UnregisterBrokerRequest
) -> Later[UnregisterBrokerResponse | Refused]:
    def respond(done: object) -> UnregisterBrokerResponse | Refused:
        if isinstance(done, Refused):
            return done
        return UnregisterBrokerResponse(error_code=code_of(done), error_message=None)

    return context.cluster.submit(UnregisterBroker(request.broker_id)).map(respond)
