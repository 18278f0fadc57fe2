"""CreatePartitions, versions 0–3: gives topics more partitions.

Versions: 2 flexible; 3 may throttle, which is not done here. New partitions take records when the
reply goes out.
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse


def create_partitions(
    context: Context, call: Call, request: CreatePartitionsRequest
) -> Later[CreatePartitionsResponse]:
    later: Later[CreatePartitionsResponse] = context.cluster.submit(request)
    return later
