"""ExpireDelegationToken, versions 0–2: a token ends early, or at once (KIP-48).

Version 2 is flexible. Its owner and its renewers may do so. Connections that came in with it go on
until their sessions end, which is when it would have expired.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.tokens import ExpireToken
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.token_requests import NO_TIME, may_ask
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def expire_delegation_token(
    context: Context, call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | Later[ExpireDelegationTokenResponse | KafkaError]:
    if not may_ask(call):
        return ExpireDelegationTokenResponse(
            error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
        )
    asker, now_ms = call.connection.principal, context.env.clock.now_ms()
    return context.controller.submit(
        ExpireToken(bytes(request.hmac), request.expiry_time_period_ms, asker, now_ms)
    )
