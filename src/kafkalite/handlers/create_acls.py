"""CreateAcls, versions 0–3: adds access rules.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. Without an authorizer every
rule is refused with SECURITY_DISABLED. A rule for any kind is no rule, for which Apache Kafka has
no other word than UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import CreateAcls
from kafkalite.env.later import Later
from kafkalite.handlers.acl_kinds import need_authorizer, refuse_unknown
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateAclsRequest, CreateAclsResponse
from kafkalite.security.acl import ALTER, ANY, CLUSTER, CLUSTER_NAME, MATCH


def create_acls(
    context: Context, call: Call, request: CreateAclsRequest
) -> Later[CreateAclsResponse | KafkaError]:
    for one in request.creations:
        refuse_unknown(
            one.resource_type, one.resource_pattern_type, one.operation, one.permission_type
        )
    require(context, call, ALTER, CLUSTER, CLUSTER_NAME)
    need_authorizer(context)
    if any(
        ANY in (one.resource_type, one.operation, one.permission_type)
        or one.resource_pattern_type in (ANY, MATCH)
        for one in request.creations
    ):
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
    return context.controller.submit(CreateAcls(request))
