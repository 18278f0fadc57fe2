"""ListPartitionReassignments, version 0: the moves of partitions that are under way.

Flexible (KIP-455). Without a list all topics are meant; partitions that do not move are not named.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.cluster.image import PartitionState, Topic
from kafkalite.coordinators.effects import Refused
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Response = ListPartitionReassignmentsResponse


def list_partition_reassignments(
    context: Context, call: Call, request: ListPartitionReassignmentsRequest
) -> Response | Later[Response | Refused]:
    return context.cluster.absence.answered(lambda: _listed(context, request))


def _listed(context: Context, request: ListPartitionReassignmentsRequest) -> Response:
    topics = context.cluster.image.topics
    response = Response(error_code=Error.NONE, error_message=None)
    if request.topics is None:
        asked = [(topics[name], sorted(topics[name].partitions)) for name in sorted(topics)]
    else:
        known = [each for each in request.topics if each.name in topics]
        asked = [(topics[each.name], each.partition_indexes) for each in known]
    for topic, indexes in asked:
        moving = [_partition(state) for state in _moving(topic, indexes)]
        if moving:
            response.topics.append(Response.Topic(name=topic.name, partitions=moving))
    return response


def _moving(topic: Topic, indexes: Iterable[int]) -> list[PartitionState]:
    states = (topic.partitions.get(index) for index in indexes)
    return [state for state in states if state is not None and state.is_reassigning]


def _partition(state: PartitionState) -> Response.Partition:
    return Response.Partition(
        partition_index=state.index,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
    )
