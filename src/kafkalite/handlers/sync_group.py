"""SyncGroup, versions 0–5: the leader hands out the assignment, every member gets its own.

Versions: 3 static members, 4 flexible, 5 protocol type and name, which must then be given.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import Sync
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require
from kafkalite.handlers.refusals import or_refused
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SyncGroupRequest, SyncGroupResponse
from kafkalite.security.acl import GROUP, READ

PROTOCOL_SINCE = 5


def sync_group(
    context: Context, call: Call, request: SyncGroupRequest
) -> SyncGroupResponse | Later[SyncGroupResponse]:
    is_vague = request.protocol_type is None or request.protocol_name is None
    if call.version >= PROTOCOL_SINCE and is_vague:
        return SyncGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL)
    require(context, call, READ, GROUP, request.group_id)
    if not request.group_id:
        return SyncGroupResponse(error_code=Error.INVALID_GROUP_ID)
    return context.groups.submit(request.group_id, Sync(request)).map(
        or_refused(lambda error: SyncGroupResponse(error_code=error.code))
    )
