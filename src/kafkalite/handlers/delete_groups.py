"""DeleteGroups, versions 0–2: deletes empty groups with their offsets.

Version 2 is flexible. Each group has its own error; NON_EMPTY_GROUP while it has members.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import DeleteGroups
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import ask_by_shard, reply_with
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def delete_groups(
    context: Context, call: Call, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Later[DeleteGroupsResponse]:
    group_ids = dict.fromkeys(request.groups_names)

    def respond(answers: list[tuple[list[str], Any]]) -> DeleteGroupsResponse:
        response = DeleteGroupsResponse()
        for ids, answer in answers:
            response.results += (
                [
                    DeleteGroupsResponse.Result(group_id=one, error_code=answer.code)
                    for one in ids
                ]
                if isinstance(answer, KafkaError)
                else answer
            )
        return response

    return reply_with(ask_by_shard(context, group_ids, DeleteGroups), respond)
