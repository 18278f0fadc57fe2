"""DescribeAcls, versions 0–3: the access rules that match a filter.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. Without an authorizer the
answer is SECURITY_DISABLED.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps, emptied
from kafkalite.handlers.acl_kinds import refuse_unknown
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeAclsRequest, DescribeAclsResponse
from kafkalite.security.acl import (
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    KINDS,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    Acl,
    AclFilter,
    known,
)

NO_AUTHORIZER = "No Authorizer is configured on the broker"
MATCHED_PER_STEP = 64

Resource = DescribeAclsResponse.Resource


def describe_acls(
    context: Context, call: Call, request: DescribeAclsRequest
) -> DescribeAclsResponse | InSteps:
    refuse_unknown(
        request.resource_type_filter, request.pattern_type_filter,
        request.operation, request.permission_type,
    )  # fmt: skip
    require(context, call, DESCRIBE, CLUSTER, CLUSTER_NAME)
    if context.authorizer is None:
        return DescribeAclsResponse(
            error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER
        )
    wanted = AclFilter(
        known(KINDS, request.resource_type_filter), request.resource_name_filter,
        known(PATTERNS, request.pattern_type_filter), request.principal_filter,
        request.host_filter, known(OPERATIONS, request.operation),
        known(PERMISSIONS, request.permission_type),
    )  # fmt: skip
    return InSteps(_describe(list(context.metadata.image.acl_ids), wanted))


def _describe(acls: list[Acl], wanted: AclFilter) -> Steps[DescribeAclsResponse]:
    resources: dict[tuple[int, int, str], Resource] = {}
    for number, acl in enumerate(acls, 1):
        if wanted.matches(acl):
            key = acl.kind, acl.pattern, acl.name
            resource = resources.get(key)
            if resource is None:
                resource = resources[key] = Resource(
                    resource_type=acl.kind, resource_name=acl.name, pattern_type=acl.pattern
                )
            resource.acls.append(
                DescribeAclsResponse.Acl(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
            )
        if number % MATCHED_PER_STEP == 0:
            yield
    found = list(resources.values())
    yield from emptied(resources)
    return DescribeAclsResponse(error_code=Error.NONE, error_message="", resources=found)
