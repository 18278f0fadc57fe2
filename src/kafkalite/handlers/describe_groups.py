"""DescribeGroups, versions 0–6: state, protocol and members of classic groups.

Versions: 3 authorized operations, 4 instance ids, 5 flexible, 6 GROUP_ID_NOT_FOUND, where older
ones show a dead group.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import DescribeGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import describe_by_shard
from kafkalite.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse


def describe_groups(
    context: Context, call: Call, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | InSteps | Later[DescribeGroupsResponse | InSteps]:
    return describe_by_shard(
        context,
        call,
        request,
        request.groups,
        lambda ids: DescribeGroups(ids, call.version),
        DescribeGroupsResponse,
    )
