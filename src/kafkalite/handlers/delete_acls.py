"""DeleteAcls, versions 0–3: removes the access rules that match filters.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. There is no authorizer, so
every filter is refused with SECURITY_DISABLED.
"""

from __future__ import annotations

from kafkalite.handlers.acl_kinds import refuse_unknown
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteAclsRequest, DeleteAclsResponse

NO_AUTHORIZER = "No Authorizer is configured."


def delete_acls(context: Context, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    for one in request.filters:
        refuse_unknown(
            one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type
        )
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.FilterResult(
                error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER
            )
            for _ in request.filters
        ]
    )
