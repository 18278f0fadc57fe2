"""RenewDelegationToken, versions 0–2: a token holds on, never longer than it may (KIP-48).

Version 2 is flexible. Its owner and its renewers may do so.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.tokens import RenewToken
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.token_requests import NO_TIME, may_ask
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def renew_delegation_token(
    context: Context, call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | Later[RenewDelegationTokenResponse | KafkaError]:
    if not may_ask(call):
        return RenewDelegationTokenResponse(
            error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
        )
    asker, now_ms = call.connection.principal, context.env.clock.now_ms()
    return context.controller.submit(
        RenewToken(bytes(request.hmac), request.renew_period_ms, asker, now_ms)
    )
