"""DeleteAcls, versions 0–3: removes the access rules that match filters.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. Without an authorizer every
filter is refused with SECURITY_DISABLED.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import DeleteAcls
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.acl_kinds import need_authorizer, refuse_unknown_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import DeleteAclsRequest, DeleteAclsResponse
from kafkalite.security.acl import ALTER, CLUSTER, CLUSTER_NAME


def delete_acls(
    context: Context, call: Call, request: DeleteAclsRequest
) -> Later[DeleteAclsResponse | KafkaError] | InSteps:
    return begun(_deleted(context, call, request))


def _deleted(
    context: Context, call: Call, request: DeleteAclsRequest
) -> Steps[Later[DeleteAclsResponse | KafkaError]]:
    yield from refuse_unknown_of(request.filters, _kinds)
    require(context, call, ALTER, CLUSTER, CLUSTER_NAME)
    need_authorizer(context)
    return context.controller.submit(DeleteAcls(request))


def _kinds(one: DeleteAclsRequest.Filter) -> tuple[int, ...]:
    return (
        one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type
    )  # fmt: skip
