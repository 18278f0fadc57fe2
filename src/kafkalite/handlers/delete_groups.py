"""DeleteGroups, versions 0–2: deletes empty groups with their offsets.

Version 2 is flexible. Each group has its own error; NON_EMPTY_GROUP while it has members.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import DeleteGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import ask_by_shard
from kafkalite.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def delete_groups(
    context: Context, call: Call, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | InSteps | Later[DeleteGroupsResponse | InSteps]:
    return ask_by_shard(
        context,
        dict.fromkeys(request.groups_names),
        DeleteGroups,
        lambda one, code: DeleteGroupsResponse.Result(group_id=one, error_code=code),
        lambda results: DeleteGroupsResponse(results=results),
    )
