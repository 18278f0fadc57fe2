"""Heartbeat, versions 0–4: a classic member says that it lives and learns of a rebalance.

Versions: 3 static members, 4 flexible. While the coordinator loads, members are told that all is
well, so that a restart does not scatter a group that nothing happened to.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import Heartbeat
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.refusals import or_refused
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    context: Context, call: Call, request: HeartbeatRequest
) -> HeartbeatResponse | Later[HeartbeatResponse]:
    if not request.group_id:
        return HeartbeatResponse(error_code=Error.INVALID_GROUP_ID)

    def refused(error: KafkaError) -> HeartbeatResponse:
        is_loading = error.code == Error.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=Error.NONE if is_loading else error.code)

    return context.groups.submit(request.group_id, Heartbeat(request)).map(or_refused(refused))
