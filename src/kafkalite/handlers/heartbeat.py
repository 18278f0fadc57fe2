"""Heartbeat, versions 0–4: a classic member says that it lives and learns of a rebalance.

Versions: 3 static members, 4 flexible. While the coordinator loads, members are told that all is
well, so that a restart does not scatter a group that nothing happened to.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import Heartbeat
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import code_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    context: Context, call: Call, request: HeartbeatRequest
) -> HeartbeatResponse | Later[HeartbeatResponse]:
    if not request.group_id:
        return HeartbeatResponse(error_code=Error.INVALID_GROUP_ID)

    def respond(answer: Any) -> HeartbeatResponse:
        if not isinstance(answer, KafkaError):
            response: HeartbeatResponse = answer
            return response
        is_loading = answer.code == Error.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=Error.NONE if is_loading else code_of(answer))

    return context.groups.submit(request.group_id, Heartbeat(request)).map(respond)
