"""AlterPartitionReassignments, versions 0–1: moves partitions, or calls a move off.

Flexible (KIP-455). Version 1 may forbid that the replication factor changes (KIP-860). A move that
needs data at another broker stays under way until replicas copy data.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import AlterPartitionReassignments
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


def alter_partition_reassignments(
    context: Context, call: Call, request: AlterPartitionReassignmentsRequest
) -> Later[AlterPartitionReassignmentsResponse | KafkaError]:
    return context.controller.submit(AlterPartitionReassignments(request))
