"""ConsumerGroupHeartbeat, versions 0–1: a member joins, lives, reconciles and leaves (KIP-848).

Version 1 adds regular expressions and has the client choose its member id.
"""

from __future__ import annotations

from kafkalite.coordinators.groups.events import ConsumerHeartbeat
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import (
    client_host_of,
    client_id_of,
    serves_consumer_groups,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

# Of an assignment, encoded in one go.
TOPICS_AT_ONCE = 200


def consumer_group_heartbeat(
    context: Context, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Later[ConsumerGroupHeartbeatResponse | InSteps]:
    if not serves_consumer_groups(context):
        return ConsumerGroupHeartbeatResponse(error_code=Error.UNSUPPORTED_VERSION)
    event = ConsumerHeartbeat(request, call.version, client_id_of(call), client_host_of(call))

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
