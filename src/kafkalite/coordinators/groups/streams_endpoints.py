"""Where the state of a streams application can be asked for: endpoints, and what is behind them.

Owns how tasks become partitions of topics (KIP-1071): each topic that a subtopology reads, with the
tasks' partitions as far as it has so many.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.groups.assignors import Rest
from kafkalite.coordinators.groups.streams_group import Held, StreamsMember
from kafkalite.coordinators.groups.streams_topology import Configured
from kafkalite.coordinators.groups.topics import Topics
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import StreamsGroupHeartbeatResponse

Response = StreamsGroupHeartbeatResponse


def endpoints_of(
    members: Iterable[StreamsMember], configured: Configured, topics: Topics
) -> Steps[list[Response.PartitionsByUserEndpoint]]:
    """Of members that have an endpoint."""
    found = []
    for member in members:
        if member.endpoint is not None:
            host, port = member.endpoint
            found.append(
                Response.PartitionsByUserEndpoint(
                    user_endpoint=Response.Endpoint(host=host, port=port),
                    active_partitions=(
                        yield from _partitions(member.assigned.active, configured, topics)
                    ),
                    standby_partitions=(
                        yield from _partitions(member.assigned.standby, configured, topics)
                    ),
                )
            )
    return found


def _partitions(
    tasks: Held, configured: Configured, topics: Topics
) -> Steps[list[Response.ActivePartition]]:
    found, rest = [], Rest()
    for subtopology_id, indexes in tasks.items():
        subtopology = configured.subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        inner = (topic.name for topic in subtopology.repartition_sources)
        for name in dict.fromkeys((*subtopology.sources, *inner)):
            view = topics.by_name(name)
            if view is not None:
                partitions = sorted(indexes)[: view.partition_count]
                found.append(Response.ActivePartition(topic=name, partitions=partitions))
            if rest.after(1 + len(indexes)):
                yield
    return found
