"""ShareGroupHeartbeat, version 1: a member of a share group joins, lives and leaves (KIP-932)."""

from __future__ import annotations

from kafkalite.coordinators.groups.events import ShareHeartbeat
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import client_host_of, client_id_of
from kafkalite.handlers.permission import permitted, require
from kafkalite.handlers.share_replies import check_member_id, serves_share_groups
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kafkalite.security.acl import DESCRIBE, GROUP, READ, TOPIC

Response = ShareGroupHeartbeatResponse


def share_group_heartbeat(
    context: Context, call: Call, request: ShareGroupHeartbeatRequest
) -> InSteps | Later[Response]:
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION)
    require(context, call, READ, GROUP, request.group_id)
    check_member_id(request.member_id)
    if context.authorizer is None:
        return _beat(context, call, request)
    return InSteps(_permitted_beat(context, call, request))


def _permitted_beat(
    context: Context, call: Call, request: ShareGroupHeartbeatRequest
) -> Steps[Response | Later[Response]]:
    names = set(request.subscribed_topic_names or ())
    allowed = yield from permitted(context, call, DESCRIBE, TOPIC, names)
    if len(allowed) < len(names):
        return Response(error_code=Error.TOPIC_AUTHORIZATION_FAILED)
    return _beat(context, call, request)


def _beat(context: Context, call: Call, request: ShareGroupHeartbeatRequest) -> Later[Response]:
    event = ShareHeartbeat(request, client_id_of(call), client_host_of(call))

    def respond(response: Response | KafkaError) -> Response:
        if isinstance(response, KafkaError):
            return Response(error_code=response.code, error_message=response.message)
        return response

    return context.groups.submit(request.group_id, event).map(respond)
