"""CreatePartitions, versions 0–3: gives topics more partitions.

Versions: 2 flexible, 3 quotas (KIP-599). New partitions take records when the reply goes out.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.events import CreatePartitions
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import permitted
from kafkalite.handlers.permits import permits_of
from kafkalite.handlers.refusals import with_refused
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse
from kafkalite.security.acl import ALTER, TOPIC

STRICT_VERSION = 3


def create_partitions(
    context: Context, call: Call, request: CreatePartitionsRequest
) -> InSteps | Later[CreatePartitionsResponse | KafkaError]:
    if context.authorizer is None:
        permits = permits_of(call, STRICT_VERSION)
        return context.controller.submit(CreatePartitions(request, permits))
    return InSteps(_permitted(context, call, request))


def _permitted(
    context: Context, call: Call, request: CreatePartitionsRequest
) -> Steps[Later[CreatePartitionsResponse | KafkaError]]:
    """Those that may be changed, and those that are named twice: they are refused for that."""
    counts = Counter(topic.name for topic in request.topics)
    names = [name for name, count in counts.items() if count == 1]
    allowed = yield from permitted(context, call, ALTER, TOPIC, names)
    refused = yield from in_steps(
        CreatePartitionsResponse.Result(name=name, error_code=Error.TOPIC_AUTHORIZATION_FAILED)
        for name in names
        if name not in allowed
    )
    request.topics = [
        topic for topic in request.topics if counts[topic.name] > 1 or topic.name in allowed
    ]
    event = CreatePartitions(request, permits_of(call, STRICT_VERSION))
    return context.controller.submit(event).map(with_refused("results", refused))
