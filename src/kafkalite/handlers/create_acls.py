"""CreateAcls, versions 0–3: adds access rules.

Versions: 1 prefixed patterns (KIP-290), 2 flexible, 3 user resources. Without an authorizer every
rule is refused with SECURITY_DISABLED. A rule for any kind is no rule, for which Apache Kafka has
no other word than UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import CreateAcls
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, chosen
from kafkalite.handlers.acl_kinds import need_authorizer, refuse_unknown_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateAclsRequest, CreateAclsResponse
from kafkalite.security.acl import ALTER, ANY, CLUSTER, CLUSTER_NAME, MATCH

Creation = CreateAclsRequest.Creation


def create_acls(
    context: Context, call: Call, request: CreateAclsRequest
) -> Later[CreateAclsResponse | KafkaError] | InSteps:
    return begun(_created(context, call, request))


def _created(
    context: Context, call: Call, request: CreateAclsRequest
) -> Steps[Later[CreateAclsResponse | KafkaError]]:
    yield from refuse_unknown_of(request.creations, _kinds)
    require(context, call, ALTER, CLUSTER, CLUSTER_NAME)
    need_authorizer(context)
    if (yield from chosen(request.creations, _is_for_any)):
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
    return context.controller.submit(CreateAcls(request))


def _kinds(one: Creation) -> tuple[int, ...]:
    return one.resource_type, one.resource_pattern_type, one.operation, one.permission_type


def _is_for_any(one: Creation) -> bool:
    is_any = ANY in (one.resource_type, one.operation, one.permission_type)
    return is_any or one.resource_pattern_type in (ANY, MATCH)
