"""ControllerRegistration, version 0: a controller says what it can do and where it is found.

Flexible (KIP-919).
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.registering_controller import RegisterController
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def controller_registration(
    context: Context, call: Call, request: ControllerRegistrationRequest
) -> Later[ControllerRegistrationResponse | KafkaError]:
    def registered(refused: KafkaError | None) -> ControllerRegistrationResponse | KafkaError:
        return refused or ControllerRegistrationResponse(error_message=None)

    return context.controller.submit(RegisterController(request)).map(registered)
