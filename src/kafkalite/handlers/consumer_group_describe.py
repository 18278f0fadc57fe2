"""ConsumerGroupDescribe, versions 0–1: state and members of consumer groups (KIP-848).

Version 1 tells which protocol each member speaks.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.groups.events import DescribeConsumerGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_descriptions import describe_with_topics
from kafkalite.handlers.group_replies import serves_consumer_groups
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

Response = ConsumerGroupDescribeResponse


def consumer_group_describe(
    context: Context, call: Call, request: ConsumerGroupDescribeRequest
) -> Response | InSteps | Later[Response | InSteps]:
    return describe_with_topics(
        context, call, request, DescribeConsumerGroups, Response, _topics_of,
        is_served=serves_consumer_groups(context),
    )  # fmt: skip


def _topics_of(group: Response.Group) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)
