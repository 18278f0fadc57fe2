"""CreateAcls, versions 0–3: adds access rules.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. There is no authorizer, so
every rule is refused with SECURITY_DISABLED.
"""

from __future__ import annotations

from kafkalite.handlers.acl_kinds import refuse_unknown
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateAclsRequest, CreateAclsResponse

NO_AUTHORIZER = "No Authorizer is configured."


def create_acls(context: Context, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    for one in request.creations:
        refuse_unknown(
            one.resource_type, one.resource_pattern_type, one.operation, one.permission_type
        )
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.Result(
                error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER
            )
            for _ in request.creations
        ]
    )
