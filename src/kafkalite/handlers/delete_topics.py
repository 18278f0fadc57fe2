"""DeleteTopics, versions 0–6: deletes topics by name or by id.

Versions: 1 throttle time, 4 flexible, 5 error messages, 6 topic ids (KIP-516). When the reply goes
out the topic is gone: its files may outlive it by file.delete.delay.ms under another name.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import DeleteTopics
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

# Older clients do not know TOPIC_DELETION_DISABLED.
DISABLED_VERSION = 3


def delete_topics(
    context: Context, call: Call, request: DeleteTopicsRequest
) -> Later[DeleteTopicsResponse | KafkaError]:
    if not context.config.get_bool("delete.topic.enable"):
        if call.version < DISABLED_VERSION:
            why = "This version does not support topic deletion."
            raise KafkaError(Error.INVALID_REQUEST, why)
        raise KafkaError(Error.TOPIC_DELETION_DISABLED)
    return context.controller.submit(DeleteTopics(request))
