"""DescribeUserScramCredentials, version 0: which SCRAM mechanisms users have (KIP-554).

Flexible. Without users all are meant. Neither salts nor keys are ever told.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.image import Image
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Response = DescribeUserScramCredentialsResponse


def describe_user_scram_credentials(
    context: Context, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    image: Image = context.cluster.image
    asked = Counter(user.name for user in request.users or ())
    asked = asked or Counter({user: 1 for user, _ in image.scram})
    results = [_user(image, user, count) for user, count in asked.items()]
    return Response(error_code=Error.NONE, results=results)


def _user(image: Image, user: str, count: int) -> Response.Result:
    infos = [
        Response.CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        for (name, mechanism), credential in sorted(image.scram.items())
        if name == user
    ]
    if count > 1:
        code, why = Error.DUPLICATE_RESOURCE, "Cannot describe SCRAM credentials for the same user "
        why += f"twice in a single request: {user}"
    elif not infos:
        code = Error.RESOURCE_NOT_FOUND
        why = f"Attempt to describe a user credential that does not exist: {user}"
    else:
        return Response.Result(user=user, error_code=Error.NONE, credential_infos=infos)
    return Response.Result(user=user, error_code=code, error_message=why)
