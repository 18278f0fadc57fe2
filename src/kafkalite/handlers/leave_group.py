"""LeaveGroup, versions 0–5: members leave a classic group.

Versions: 3 many members, by member or instance id (KIP-345), 4 flexible, 5 reason (KIP-800).
Until version 2 there is one member, and its error is the response's.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.classic_leave import left
from kafkalite.coordinators.groups.events import Leave
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

MANY_MEMBERS_SINCE = 3


def leave_group(
    context: Context, call: Call, request: LeaveGroupRequest
) -> LeaveGroupResponse | Later[LeaveGroupResponse | InSteps]:
    if not request.group_id:
        return LeaveGroupResponse(error_code=Error.INVALID_GROUP_ID)
    if call.version < MANY_MEMBERS_SINCE:
        request.members = [LeaveGroupRequest.Member(member_id=request.member_id)]

    def told(answer: LeaveGroupResponse | KafkaError) -> Steps[LeaveGroupResponse]:
        if isinstance(answer, KafkaError):
            answer = yield from _failed(request, answer)
        if call.version < MANY_MEMBERS_SINCE and answer.members:
            return LeaveGroupResponse(error_code=answer.members[0].error_code)
        return answer

    submitted = context.groups.submit(request.group_id, Leave(request))
    return submitted.map(lambda answer: begun(told(answer)))


def _failed(request: LeaveGroupRequest, error: KafkaError) -> Steps[LeaveGroupResponse]:
    if error.code != Error.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error.code)
    members = in_steps(left(member, Error.UNKNOWN_MEMBER_ID) for member in request.members)
    return LeaveGroupResponse(members=(yield from members))
