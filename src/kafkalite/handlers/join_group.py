"""JoinGroup, versions 0–9: enters a classic group's rebalance and waits for its outcome.

Versions: 1 rebalance timeout of its own, 4 member id first (KIP-394), 5 static members (KIP-345),
6 flexible, 7 protocol type, 8 reason (KIP-800), 9 skip_assignment (KIP-814). Null protocol names
exist from 7 on; before, an empty one stands for it.
"""

from __future__ import annotations

from functools import partial

from kafkalite.coordinators.groups.events import Join
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import client_host_of, client_id_of
from kafkalite.handlers.refusals import or_refused
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_SINCE = 1
NULL_PROTOCOL_SINCE = 7


def join_group(
    context: Context, call: Call, request: JoinGroupRequest
) -> JoinGroupResponse | Later[JoinGroupResponse]:
    refusal = _refusal(context, request)
    if refusal is not None:
        response = JoinGroupResponse(error_code=refusal, member_id=request.member_id)
        return _fit(call, response)
    if call.version < REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    event = Join(request, call.version, client_id_of(call), client_host_of(call))
    joined = context.groups.submit(request.group_id, event).map(
        or_refused(lambda error: JoinGroupResponse(error_code=error.code))
    )
    return joined.map(partial(_fit, call))


def _refusal(context: Context, request: JoinGroupRequest) -> Error | None:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    least_ms = context.config.get_int("group.min.session.timeout.ms")
    most_ms = context.config.get_int("group.max.session.timeout.ms")
    if not least_ms <= request.session_timeout_ms <= most_ms:
        return Error.INVALID_SESSION_TIMEOUT
    return None


def _fit(call: Call, response: JoinGroupResponse) -> JoinGroupResponse:
    """No protocol is null where the version has nulls, and empty before."""
    if not response.protocol_name:
        response.protocol_name = None if call.version >= NULL_PROTOCOL_SINCE else ""
    return response
