"""CreatePartitions, versions 0–3: gives topics more partitions.

Versions: 2 flexible; 3 may throttle, which is not done here. New partitions take records when the
reply goes out.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import CreatePartitions
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse


def create_partitions(
    context: Context, call: Call, request: CreatePartitionsRequest
) -> Later[CreatePartitionsResponse | KafkaError]:
    return context.controller.submit(CreatePartitions(request))
