"""The moves of partitions that are under way, as somebody asks for them.

Reads the image and changes nothing. Without a list all topics are meant; partitions that do not
move are not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Response = ListPartitionReassignmentsResponse

LOOKED_AT_PER_STEP = 64  # partitions


def list_partition_reassignments(
    view: View, request: ListPartitionReassignmentsRequest
) -> Steps[Effects]:
    """The moves, by topic."""
    response = Response(error_code=Error.NONE, error_message=None)
    looked_at = 0
    for name, indexes in _asked(view.image, request):
        moving: list[Response.Partition] = []
        for index in indexes:
            state = view.image.partition(name, index)
            if state is not None and state.is_reassigning:
                moving.append(_partition(state))
            looked_at += 1
            if looked_at % LOOKED_AT_PER_STEP == 0:
                yield
        if moving:
            response.topics.append(Response.Topic(name=name, partitions=moving))
    return Effects(reply=response)


def _asked(
    image: Image, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[str, Iterable[int]]]:
    """Topics that are there, each looked for when its turn comes."""
    for topic in request.topics or ():
        if topic.name in image.topics:
            yield topic.name, topic.partition_indexes
    for name in sorted(image.topics) if request.topics is None else ():
        known = image.topics.get(name)
        if known is not None:
            yield name, sorted(known.partitions)


def _partition(state: PartitionState) -> Response.Partition:
    return Response.Partition(
        partition_index=state.index,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
    )
