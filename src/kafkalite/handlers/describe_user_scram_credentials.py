"""DescribeUserScramCredentials, version 0: which SCRAM mechanisms users have (KIP-554).

Flexible. Without users all are meant. Neither salts nor keys are ever told.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.image import Image
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Response = DescribeUserScramCredentialsResponse

USERS_PER_STEP = 64


def describe_user_scram_credentials(
    context: Context, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse | InSteps:
    return begun(_all(context.metadata.image, request))


def _all(image: Image, request: DescribeUserScramCredentialsRequest) -> Steps[Response]:
    known: dict[str, list[Response.CredentialInfo]] = {}
    for some in pieces(list(image.scram.items()), USERS_PER_STEP):
        for (name, mechanism), credential in some:
            known.setdefault(name, []).append(
                Response.CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            )
        if len(image.scram) > USERS_PER_STEP:
            yield
    asked = Counter(user.name for user in request.users or ()) or Counter(list(known))
    results: list[Response.Result] = []
    for some_asked in pieces(list(asked.items()), USERS_PER_STEP):
        results += [_user(known.get(user, []), user, count) for user, count in some_asked]
        if len(asked) > USERS_PER_STEP:
            yield
    return Response(error_code=Error.NONE, results=results)


def _user(infos: list[Response.CredentialInfo], user: str, count: int) -> Response.Result:
    if count > 1:
        code, why = Error.DUPLICATE_RESOURCE, "Cannot describe SCRAM credentials for the same user "
        why += f"twice in a single request: {user}"
    elif not infos:
        code = Error.RESOURCE_NOT_FOUND
        why = f"Attempt to describe a user credential that does not exist: {user}"
    else:
        infos = sorted(infos, key=lambda info: info.mechanism)
        return Response.Result(user=user, error_code=Error.NONE, credential_infos=infos)
    return Response.Result(user=user, error_code=code, error_message=why)
