"""DeleteTopics, versions 0–6: deletes topics by name or by id.

Versions: 1 throttle time, 4 flexible, 5 error messages and quotas (KIP-599), 6 topic ids (KIP-516).
When the reply goes out the topic is gone: its files may outlive it by file.delete.delay.ms under
another name.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.events import DeleteTopics
from kafkalite.coordinators.cluster.view import ZERO_UUID
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, chosen, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may_cluster, permitted
from kafkalite.handlers.permits import permits_of
from kafkalite.handlers.refusals import with_refused
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from kafkalite.security.acl import DELETE, DESCRIBE, TOPIC

# Older clients do not know TOPIC_DELETION_DISABLED.
DISABLED_VERSION = 3
STRICT_VERSION = 5
NOT_ALLOWED = Error.TOPIC_AUTHORIZATION_FAILED


def delete_topics(
    context: Context, call: Call, request: DeleteTopicsRequest
) -> InSteps | Later[DeleteTopicsResponse | KafkaError]:
    if not context.config.get_bool("delete.topic.enable"):
        if call.version < DISABLED_VERSION:
            why = "This version does not support topic deletion."
            raise KafkaError(Error.INVALID_REQUEST, why)
        raise KafkaError(Error.TOPIC_DELETION_DISABLED)
    if context.authorizer is None or may_cluster(context, call, DELETE, is_quiet=True):
        return context.controller.submit(DeleteTopics(request, permits_of(call, STRICT_VERSION)))
    return InSteps(_permitted(context, call, request))


def _permitted(
    context: Context, call: Call, request: DeleteTopicsRequest
) -> Steps[Later[DeleteTopicsResponse | KafkaError]]:
    """Those that may be deleted, and those that are refused for another reason. Whether what may
    not be described is there is not told."""
    image, topics = context.metadata.image, request.topics
    counts = Counter(request.topic_names)
    by_name = yield from chosen(topics, lambda each: not any(each.topic_id))
    counts.update(each.name for each in by_name if each.name is not None)
    ids = Counter(each.topic_id for each in topics if each.name is None)
    names = {name for name, count in counts.items() if count == 1}
    by_id = {one: image.topic_name(one) for one, count in ids.items() if count == 1}
    asked = [*names, *(name for name in by_id.values() if name is not None)]
    seen = yield from permitted(context, call, DESCRIBE, TOPIC, asked)
    deletable = yield from permitted(context, call, DELETE, TOPIC, asked)
    # Of what may be described and is not there that is told here: by the time that the controller
    # looks it may be there.
    hidden = set(
        (yield from chosen(names, lambda name: name not in seen or name not in deletable))
    )
    missing = set(
        (yield from chosen(hidden, lambda name: name in seen and name not in image.topics))
    )
    hidden_ids = {
        one: name for one, name in by_id.items() if name is not None and name not in deletable
    }
    request.topic_names = yield from chosen(
        request.topic_names, lambda name: name not in hidden
    )
    request.topics = yield from chosen(
        topics,
        lambda each: each.topic_id not in hidden_ids
        if each.name is None
        else any(each.topic_id) or each.name not in hidden,
    )
    refused = yield from in_steps(
        _refused(
            name, ZERO_UUID,
            Error.UNKNOWN_TOPIC_OR_PARTITION if name in missing else NOT_ALLOWED,
        )
        for name in hidden
    )  # fmt: skip
    refused += yield from in_steps(
        _refused(name if name in seen else None, one) for one, name in hidden_ids.items()
    )
    event = DeleteTopics(request, permits_of(call, STRICT_VERSION))
    return context.controller.submit(event).map(with_refused("responses", refused))


def _refused(
    name: str | None, topic_id: bytes, code: Error = NOT_ALLOWED
) -> DeleteTopicsResponse.Response:
    return DeleteTopicsResponse.Response(
        name=name, topic_id=topic_id, error_code=code, error_message=code.message
    )
