"""DescribeDelegationToken, versions 0–3: the tokens that one may see, with their HMACs (KIP-48).

Versions: 2 flexible, 3 who asked for a token is told (KIP-373). Who owns, asked for or may renew a
token sees it; others need DESCRIBE of the token, or DESCRIBE_TOKENS of its owner. Without owners
all are meant; an empty list means none.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.stepwise import pieces
from kafkalite.handlers.token_requests import may_ask
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkalite.security.acl import DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from kafkalite.security.delegation import SECRET, token_hmac

Response = DescribeDelegationTokenResponse
TOKENS_PER_STEP = 64


def describe_delegation_token(
    context: Context, call: Call, request: DescribeDelegationTokenRequest
) -> Response | InSteps:
    if not may_ask(call):
        return Response(error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret = context.config.get_optional_str(SECRET)
    if not secret:
        return Response(error_code=Error.DELEGATION_TOKEN_AUTH_DISABLED)
    if request.owners is None:
        return begun(_described(context, call, None, secret))
    owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    return begun(_described(context, call, owners, secret)) if owners else Response()


def _described(
    context: Context, call: Call, owners: set[str] | None, secret: str
) -> Steps[Response]:
    response = Response()
    for some in pieces(list(context.metadata.image.tokens.values()), TOKENS_PER_STEP):
        for token in some:
            theirs = {token.owner, token.requester, *token.renewers}
            is_asked_for = owners is None or not owners.isdisjoint(theirs)
            if is_asked_for and _may_see(context, call, token, theirs):
                response.tokens.append(_shown(token, secret))
        if len(some) == TOKENS_PER_STEP:
            yield
    return response


def _may_see(
    context: Context, call: Call, token: DelegationTokenRecord, theirs: set[str]
) -> bool:
    return (
        call.connection.principal in theirs
        or may(context, call, DESCRIBE, DELEGATION_TOKEN, token.token_id, is_quiet=True)
        or may(context, call, DESCRIBE_TOKENS, USER, token.owner, is_quiet=True)
    )


def _shown(token: DelegationTokenRecord, secret: str) -> Response.Token:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":")
    renewers = (each.partition(":") for each in token.renewers)
    return Response.Token(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[
            Response.Renewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
