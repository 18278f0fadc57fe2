"""ShareGroupDescribe, version 1: state and members of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.groups.events import DescribeShareGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.afterwards import afterwards
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import HIDDEN_TOPICS, describe_by_shard
from kafkalite.handlers.permission import permitted
from kafkalite.handlers.share_replies import serves_share_groups
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from kafkalite.security.acl import DESCRIBE, TOPIC

Response = ShareGroupDescribeResponse


def share_group_describe(
    context: Context, call: Call, request: ShareGroupDescribeRequest
) -> Response | InSteps | Later[Response | InSteps]:
    if not serves_share_groups(context):
        return begun(_refused(request.group_ids, Error.UNSUPPORTED_VERSION))
    answer = describe_by_shard(
        context, call, request, request.group_ids, DescribeShareGroups, Response,
        Error.INVALID_GROUP_ID,
    )  # fmt: skip
    if context.authorizer is None:
        return answer
    shown: Later[Response | InSteps] = afterwards(
        answer, lambda response: InSteps(_shown(context, call, response))
    )
    return shown


def _shown(context: Context, call: Call, response: Response) -> Steps[Response]:
    """Nothing of a group that has topics which who asks may not describe."""
    groups = response.groups
    names = (name for group in groups for name in _topics_of(group))
    allowed = yield from permitted(context, call, DESCRIBE, TOPIC, names)
    response.groups = [
        group if allowed.issuperset(_topics_of(group)) else _hidden(group) for group in groups
    ]
    return response


def _topics_of(group: Response.Group) -> Iterator[str]:
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            yield topic.topic_name


def _hidden(group: Response.Group) -> Response.Group:
    return Response.Group(
        group_id=group.group_id,
        error_code=Error.TOPIC_AUTHORIZATION_FAILED,
        error_message=HIDDEN_TOPICS,
    )


def _refused(group_ids: list[str], code: Error) -> Steps[Response]:
    groups = yield from in_steps(
        Response.Group(group_id=group_id, error_code=code) for group_id in group_ids
    )
    return Response(groups=groups)
