"""ConsumerGroupDescribe, versions 0–1: state and members of consumer groups (KIP-848).

Version 1 tells which protocol each member speaks.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import DescribeConsumerGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import describe_by_shard, serves_consumer_groups
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

Response = ConsumerGroupDescribeResponse


def consumer_group_describe(
    context: Context, call: Call, request: ConsumerGroupDescribeRequest
) -> Response | InSteps | Later[Response | InSteps]:
    if not serves_consumer_groups(context):
        return begun(_refused(request.group_ids, Error.UNSUPPORTED_VERSION))
    return describe_by_shard(
        context, call, request, request.group_ids, DescribeConsumerGroups, Response,
        Error.INVALID_GROUP_ID,
    )  # fmt: skip


def _refused(group_ids: list[str], code: Error) -> Steps[Response]:
    groups = yield from in_steps(
        Response.Group(group_id=group_id, error_code=code) for group_id in group_ids
    )
    return Response(groups=groups)
