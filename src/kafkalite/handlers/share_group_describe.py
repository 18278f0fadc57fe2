"""ShareGroupDescribe, version 1: state and members of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.groups.events import DescribeShareGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_descriptions import describe_with_topics
from kafkalite.handlers.share_replies import serves_share_groups
from kafkalite.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse

Response = ShareGroupDescribeResponse


def share_group_describe(
    context: Context, call: Call, request: ShareGroupDescribeRequest
) -> Response | InSteps | Later[Response | InSteps]:
    return describe_with_topics(
        context, call, request, DescribeShareGroups, Response, _topics_of,
        is_served=serves_share_groups(context),
    )  # fmt: skip


def _topics_of(group: Response.Group) -> Iterator[str]:
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            yield topic.topic_name
