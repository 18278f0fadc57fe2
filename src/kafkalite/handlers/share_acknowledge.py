"""ShareAcknowledge, versions 1–2: a member says what became of records that it was handed.

Version 2 renews locks (KIP-1222) and tells how long they last.
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.share_replies import (
    Outcomes,
    acknowledge,
    by_topic,
    check_member,
    name_leaders,
    said_in,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kafkalite.sharing.sessions import FINAL_EPOCH, INITIAL_EPOCH

Response = ShareAcknowledgeResponse


def share_acknowledge(
    context: Context, call: Call, request: ShareAcknowledgeRequest
) -> Later[Response | InSteps]:
    check_member(context, call, request)
    assert request.group_id is not None
    assert request.member_id is not None
    sessions, epoch = context.sharing.sessions, request.share_session_epoch
    key = request.group_id, request.member_id
    if epoch == INITIAL_EPOCH:
        raise KafkaError(Error.INVALID_SHARE_SESSION_EPOCH)
    is_last = epoch == FINAL_EPOCH
    session = sessions.find(key) if is_last else sessions.go_on(key, epoch)

    def respond(outcomes: Outcomes) -> Response | InSteps:
        if is_last:
            context.sharing.end(session)
        return begun(_told(context, call, key[0], outcomes))

    return acknowledge(context, call, request, said_in(request.topics)).map(respond)


def _told(
    context: Context, call: Call, group_id: str, outcomes: Outcomes
) -> Steps[Response]:
    answers = yield from in_steps(
        (place, _answer(place[1], error)) for place, error in outcomes.items()
    )
    return Response(
        acquisition_lock_timeout_ms=context.sharing.settings.lock_ms(group_id),
        responses=by_topic(Response, answers),
        node_endpoints=name_leaders(context, call, Response, answers),
    )


def _answer(index: int, error: KafkaError | None) -> Response.Partition:
    answer = Response.Partition(partition_index=index)
    if error is not None:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
