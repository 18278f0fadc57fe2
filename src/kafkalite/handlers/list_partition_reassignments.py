"""ListPartitionReassignments, version 0: the moves of partitions that are under way.

Flexible (KIP-455). Without a list all topics are meant; partitions that do not move are not named.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import ListPartitionReassignments
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def list_partition_reassignments(
    context: Context, call: Call, request: ListPartitionReassignmentsRequest
) -> Later[ListPartitionReassignmentsResponse | KafkaError]:
    return context.controller.submit(ListPartitionReassignments(request))
