"""DescribeCluster, versions 0–2: the cluster's id, brokers and controller.

Versions: all flexible; 1 kinds of endpoints (KIP-919), of which this listener has brokers; 2 fenced
brokers too, when asked.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.metadata import controller_among
from kafkalite.handlers.operations import NOT_ASKED, cluster_operations
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2


def describe_cluster(
    context: Context, call: Call, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _wrong_endpoint(call, request.endpoint_type)
    metadata, with_fenced = context.metadata, request.include_fenced_brokers
    nodes = nodes_for(metadata.image, call.connection, with_fenced=with_fenced)
    live = [node.node_id for node in nodes if not node.is_fenced]
    allowed = NOT_ASKED
    if request.include_cluster_authorized_operations:
        allowed = cluster_operations(context, call)
    return DescribeClusterResponse(
        error_code=Error.NONE,
        endpoint_type=BROKERS,
        cluster_id=metadata.cluster_id,
        controller_id=controller_among(live, metadata.controller_id),
        brokers=[
            DescribeClusterResponse.Broker(
                broker_id=node.node_id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                is_fenced=node.is_fenced,
            )
            for node in nodes
        ],
        cluster_authorized_operations=allowed,
    )


def _wrong_endpoint(call: Call, endpoint_type: int) -> DescribeClusterResponse:
    code, why = Error.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
    if endpoint_type == CONTROLLERS:
        code = Error.MISMATCHED_ENDPOINT_TYPE
        why = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER"
        )
    if call.version == 0:
        code = Error.INVALID_REQUEST
    return DescribeClusterResponse(error_code=code, error_message=why)
