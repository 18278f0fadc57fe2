"""CreateDelegationToken, versions 0–3: a token that stands for a user until it expires (KIP-48).

Versions: 2 flexible, 3 for another owner (KIP-373), and who asked is told. One's own is given to
whoever logged in; who may have CREATE_TOKENS of a user gets one that stands for that user.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.tokens import CreateToken, named
from kafkalite.env.later import Later
from kafkalite.handlers.call import ANONYMOUS, Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.refusals import or_refused
from kafkalite.handlers.token_requests import NO_TIME, USER, may_ask
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkalite.security.acl import CREATE_TOKENS
from kafkalite.security.acl import USER as USER_KIND


def create_delegation_token(
    context: Context, call: Call, request: CreateDelegationTokenRequest
) -> Later[CreateDelegationTokenResponse] | CreateDelegationTokenResponse:
    requester = owner = call.connection.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            return _refused(ANONYMOUS, ANONYMOUS, Error.UNKNOWN_SERVER_ERROR)
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
    if not may_ask(call):
        return _refused(owner, requester, Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if owner != requester and not may(context, call, CREATE_TOKENS, USER_KIND, owner):
        return _refused(owner, requester, Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    if any(each.principal_type != USER for each in request.renewers):
        return _refused(owner, requester, Error.INVALID_PRINCIPAL_TYPE)
    asked = CreateToken(
        requester, owner, renewers, request.max_lifetime_ms, context.env.clock.now_ms()
    )
    return context.controller.submit(asked).map(
        or_refused(lambda error: _refused(ANONYMOUS, ANONYMOUS, error.code))
    )


def _refused(owner: str, requester: str, error: Error) -> CreateDelegationTokenResponse:
    response = named(owner, requester, error)
    response.issue_timestamp_ms = NO_TIME
    response.expiry_timestamp_ms = NO_TIME
    response.max_timestamp_ms = NO_TIME
    return response
