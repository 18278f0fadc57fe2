"""StreamsGroupDescribe, version 0: topology, state and members of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.groups.events import DescribeStreamsGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_descriptions import describe_with_topics
from kafkalite.handlers.group_replies import serves_streams_groups
from kafkalite.protocol.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."

Response = StreamsGroupDescribeResponse


def streams_group_describe(
    context: Context, call: Call, request: StreamsGroupDescribeRequest
) -> Response | InSteps | Later[Response | InSteps]:
    return describe_with_topics(
        context, call, request, DescribeStreamsGroups, Response, _topics_of,
        is_served=serves_streams_groups(context), hidden=HIDDEN_TOPICS,
    )  # fmt: skip


def _topics_of(group: Response.Group) -> Iterator[str]:
    topology = group.topology
    for one in () if topology is None else topology.subtopologies or ():
        yield from one.source_topics
        yield from one.repartition_sink_topics
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics):
            yield topic.name
