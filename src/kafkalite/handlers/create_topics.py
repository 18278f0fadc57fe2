"""CreateTopics, versions 0–7: creates topics with their partitions and settings.

Versions: 1 error messages and validate_only, 2 throttle time, 4 the broker's defaults for counts
of -1 (KIP-464), 5 flexible and the new topic's settings (KIP-525), 7 topic ids (KIP-516). When the
reply goes out the topic is there on every path.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.controller import is_refusal
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse


def create_topics(
    context: Context, call: Call, request: CreateTopicsRequest
) -> Later[CreateTopicsResponse | KafkaError]:
    def answered(answer: CreateTopicsResponse | KafkaError) -> CreateTopicsResponse | KafkaError:
        return _all_refused(request, answer) if is_refusal(answer) else answer

    return context.controller.submit(CreateTopics(request)).map(answered)


def _all_refused(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.Topic(
                name=topic.name, error_code=error.code, error_message=text_of(error)
            )
            for topic in request.topics
        ]
    )
