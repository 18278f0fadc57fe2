"""StreamsGroupDescribe: what tools see of streams groups (KIP-1071).

Owns nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkalite.coordinators.groups.streams_group import (
    NO_TASKS,
    StreamsGroup,
    StreamsMember,
    Tasks,
)
from kafkalite.coordinators.groups.streams_topology import (
    Configured,
    InternalTopic,
    Subtopology,
    TopicInfo,
    Topology,
)
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import StreamsGroupDescribeResponse

MEMBERS_PER_STEP = 20
SUBTOPOLOGIES_PER_STEP = 8

Response = StreamsGroupDescribeResponse


def describe_streams_group(group: StreamsGroup) -> Steps[Response.Group]:
    """As it is now, told in steps."""
    described = Response.Group(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
    )
    members, targets = list(group.members.values()), dict(group.targets)
    topology, configured = group.topology, group.configured
    if topology is not None:
        described.topology = yield from _topology(topology, configured)
    for number, member in enumerate(members, 1):
        described.members.append(_member(member, targets.get(member.member_id, NO_TASKS)))
        if number % MEMBERS_PER_STEP == 0:
            yield
    return described


def _topology(topology: Topology, configured: Configured | None) -> Steps[Response.Topology]:
    """With the numbers of partitions that were decided, once all topics are there."""
    subtopologies: list[Response.Subtopology] = []
    for number, name in enumerate(sorted(topology.subtopologies), 1):
        one, counts = topology.subtopologies[name], dict[str, int]()
        if configured is not None and configured.is_ready:
            ready = configured.subtopologies[name]
            counts = _counts((*ready.repartition_sources, *ready.changelogs))
        subtopologies.append(_subtopology(one, counts))
        if number % SUBTOPOLOGIES_PER_STEP == 0:
            yield
    return Response.Topology(epoch=topology.epoch, subtopologies=subtopologies)


def _counts(topics: Iterable[InternalTopic]) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in topics}


def _subtopology(one: Subtopology, counts: Mapping[str, int]) -> Response.Subtopology:
    return Response.Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=sorted(one.source_topics),
        repartition_sink_topics=sorted(one.repartition_sink_topics),
        repartition_source_topics=_topics(one.repartition_source_topics, counts),
        state_changelog_topics=_topics(one.state_changelog_topics, counts),
    )


def _topics(topics: Iterable[TopicInfo], counts: Mapping[str, int]) -> list[Response.TopicInfo]:
    return [
        Response.TopicInfo(
            name=topic.name,
            partitions=counts.get(topic.name, topic.partitions),
            replication_factor=topic.replication_factor,
            topic_configs=[
                Response.KeyValue(key=one.key, value=one.value) for one in topic.topic_configs
            ],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsMember, target: Tasks) -> Response.Member:
    endpoint = None
    if member.endpoint is not None:
        endpoint = Response.Endpoint(host=member.endpoint[0], port=member.endpoint[1])
    assigned = member.assigned
    return Response.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[
            Response.KeyValue(key=key, value=value) for key, value in member.client_tags.items()
        ],
        assignment=Response.Assignment(
            active_tasks=_tasks(assigned.active),
            standby_tasks=_tasks(assigned.standby),
            warmup_tasks=_tasks(assigned.warmup),
        ),
        target_assignment=Response.Assignment(
            active_tasks=_tasks(target.active),
            standby_tasks=_tasks(target.standby),
            warmup_tasks=_tasks(target.warmup),
        ),
    )


def _tasks(tasks: Mapping[str, Iterable[int]]) -> list[Response.TaskIds]:
    return [
        Response.TaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks)
    ]
