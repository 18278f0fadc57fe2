"""CreateTopics, versions 0–7: creates topics with their partitions and settings.

Versions: 1 error messages and validate_only, 2 throttle time, 4 the broker's defaults for counts
of -1 (KIP-464), 5 flexible and the new topic's settings (KIP-525), 6 quotas (KIP-599), 7 topic ids
(KIP-516). When the reply goes out the topic is there on every path.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.controller import is_refusal
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.view import METADATA_TOPIC, text_of
from kafkalite.coordinators.java_hash import some_in_hash_order
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, chosen, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster, permitted
from kafkalite.handlers.permits import permits_of
from kafkalite.handlers.refusals import with_refused
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from kafkalite.security.acl import CREATE, DESCRIBE_CONFIGS, TOPIC

STRICT_VERSION = 6


def create_topics(
    context: Context, call: Call, request: CreateTopicsRequest
) -> InSteps | Later[CreateTopicsResponse | KafkaError]:
    if context.authorizer is not None:
        return InSteps(_permitted(context, call, request))
    return _create(context, call, request)


def _create(
    context: Context, call: Call, request: CreateTopicsRequest
) -> Later[CreateTopicsResponse | KafkaError]:
    def answered(answer: CreateTopicsResponse | KafkaError) -> CreateTopicsResponse | KafkaError:
        return _all_refused(request, answer) if is_refusal(answer) else answer

    event = CreateTopics(request, permits_of(call, STRICT_VERSION))
    return context.controller.submit(event).map(answered)


def _permitted(
    context: Context, call: Call, request: CreateTopicsRequest
) -> Steps[Later[CreateTopicsResponse | KafkaError]]:
    """Those that may be created, and those that are refused for another reason."""
    counts = Counter(topic.name for topic in request.topics)
    names = [name for name, count in counts.items() if count == 1 and name != METADATA_TOPIC]
    allowed = set(names)
    if not may_cluster(context, call, CREATE, is_quiet=True):
        allowed = yield from permitted(context, call, CREATE, TOPIC, names)
    shown = yield from permitted(context, call, DESCRIBE_CONFIGS, TOPIC, names, is_quiet=True)
    hidden = yield from chosen(names, lambda name: name not in allowed)
    refused = yield from in_steps(
        CreateTopicsResponse.Topic(
            name=name,
            error_code=Error.TOPIC_AUTHORIZATION_FAILED,
            error_message="Authorization failed.",
            configs=[],
        )
        for name in (yield from some_in_hash_order(hidden, len(names)))
    )
    is_hidden = set(hidden).__contains__
    request.topics = yield from chosen(
        request.topics, lambda topic: not is_hidden(topic.name)
    )

    def without_hidden(
        answer: CreateTopicsResponse | KafkaError,
    ) -> CreateTopicsResponse | KafkaError:
        if not isinstance(answer, KafkaError):
            for topic in answer.topics:
                if topic.error_code == Error.NONE and topic.name not in shown:
                    _hide_settings(topic)
        return answer

    created = _create(context, call, request)
    return created.map(without_hidden).map(with_refused("topics", refused))


def _hide_settings(topic: CreateTopicsResponse.Topic) -> None:
    topic.topic_config_error_code = Error.TOPIC_AUTHORIZATION_FAILED
    topic.num_partitions = topic.replication_factor = -1
    topic.configs = []


def _all_refused(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.Topic(
                name=topic.name, error_code=error.code, error_message=text_of(error)
            )
            for topic in request.topics
        ]
    )
