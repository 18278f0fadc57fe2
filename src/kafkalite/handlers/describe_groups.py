"""DescribeGroups, versions 0–6: state, protocol and members of classic groups.

Versions: 3 authorized operations, 4 instance ids, 5 flexible, 6 GROUP_ID_NOT_FOUND, where older
ones show a dead group.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import DescribeGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import ALL_GROUP_OPERATIONS, ask_by_shard, reply_with
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse


def describe_groups(
    context: Context, call: Call, request: DescribeGroupsRequest
) -> InSteps | Later[InSteps]:
    asked = ask_by_shard(
        context, request.groups, lambda ids: DescribeGroups(ids, call.version)
    )

    def respond(answers: list[tuple[list[str], Any]]) -> Steps[DescribeGroupsResponse]:
        response = DescribeGroupsResponse()
        for group_ids, answer in answers:
            response.groups += (
                [
                    DescribeGroupsResponse.Group(group_id=group_id, error_code=answer.code)
                    for group_id in group_ids
                ]
                if isinstance(answer, KafkaError)
                else (yield from outcome_of(answer))
            )
        if request.include_authorized_operations:
            for group in response.groups:
                if group.error_code == Error.NONE:
                    group.authorized_operations = ALL_GROUP_OPERATIONS
        return response

    return reply_with(asked, lambda answers: InSteps(respond(answers)))
