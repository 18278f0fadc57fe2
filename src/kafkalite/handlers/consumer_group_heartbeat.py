"""ConsumerGroupHeartbeat, versions 0–1: a member joins, lives, reconciles and leaves (KIP-848).

Version 1 adds regular expressions and has the client choose its member id.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.coordinators.groups.events import ConsumerHeartbeat
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import (
    client_host_of,
    client_id_of,
    serves_consumer_groups,
)
from kafkalite.handlers.permission import may, permitted, require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkalite.security.acl import DESCRIBE, GROUP, READ, TOPIC

Response = ConsumerGroupHeartbeatResponse

# Of an assignment, encoded in one go.
TOPICS_AT_ONCE = 200


def consumer_group_heartbeat(
    context: Context, call: Call, request: ConsumerGroupHeartbeatRequest
) -> Response | InSteps | Later[Response | InSteps]:
    if not serves_consumer_groups(context):
        return ConsumerGroupHeartbeatResponse(error_code=Error.UNSUPPORTED_VERSION)
    if context.authorizer is None:
        return _beat(context, call, request, None)
    require(context, call, READ, GROUP, request.group_id)

    def may_see(topic: str) -> bool:
        return may(context, call, DESCRIBE, TOPIC, topic, is_quiet=True)

    return InSteps(_permitted_beat(context, call, request, may_see))


def _permitted_beat(
    context: Context,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
    may_see: Callable[[str], bool],
) -> Steps[Response | Later[Response | InSteps]]:
    names = set(request.subscribed_topic_names or ())
    allowed = yield from permitted(context, call, DESCRIBE, TOPIC, names)
    if len(allowed) < len(names):
        return ConsumerGroupHeartbeatResponse(error_code=Error.TOPIC_AUTHORIZATION_FAILED)
    return _beat(context, call, request, may_see)


def _beat(
    context: Context,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
    may_see: Callable[[str], bool] | None,
) -> Later[Response | InSteps]:
    event = ConsumerHeartbeat(
        request, call.version, client_id_of(call), client_host_of(call), may_see
    )

    def respond(
        response: ConsumerGroupHeartbeatResponse | KafkaError,
    ) -> ConsumerGroupHeartbeatResponse | InSteps:
        if isinstance(response, KafkaError):
            return ConsumerGroupHeartbeatResponse(
                error_code=response.code, error_message=response.message
            )
        assigned = response.assignment
        if assigned is not None and len(assigned.topic_partitions) > TOPICS_AT_ONCE:
            return InSteps(outcome_of(response))  # which has it encoded so, too
        return response

    return context.groups.submit(request.group_id, event).map(respond)
