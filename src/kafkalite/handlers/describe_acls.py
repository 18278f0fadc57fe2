"""DescribeAcls, versions 0–3: the access rules that match a filter.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. There is no authorizer, so
the answer is SECURITY_DISABLED, as Apache Kafka's without one.
"""

from __future__ import annotations

from kafkalite.handlers.acl_kinds import refuse_unknown
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "No Authorizer is configured on the broker"


def describe_acls(
    context: Context, call: Call, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    refuse_unknown(
        request.resource_type_filter, request.pattern_type_filter,
        request.operation, request.permission_type,
    )  # fmt: skip
    return DescribeAclsResponse(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
