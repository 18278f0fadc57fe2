"""What the requests to a controller share: the log that is meant, the leader of it, and whether a
broker asks in the life that it is registered for.

Owns nothing; a listener for controllers is open only where there is a leader.
"""

from __future__ import annotations

from typing import Protocol

from kafkalite.coordinators.cluster.nodes import WILDCARDS
from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"


class OfBroker(Protocol):
    """A request that a broker sends for itself."""

    broker_id: int
    broker_epoch: int


def leader_of(context: Context) -> QuorumLeader:
    if context.quorum is None:
        raise KafkaError(Error.NOT_CONTROLLER)
    return context.quorum


def check_cluster(context: Context, cluster_id: str | None) -> None:
    """That the caller, if it says one, means this cluster."""
    if cluster_id is not None and cluster_id != context.cluster_id:
        why = f'The given id "{cluster_id}" doesn\'t match the cluster id "{context.cluster_id}"'
        raise KafkaError(Error.INCONSISTENT_CLUSTER_ID, why)


def check_broker(context: Context, request: OfBroker) -> None:
    """That the broker asks in the life that it is registered for."""
    broker = context.metadata.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != request.broker_epoch:
        raise KafkaError(Error.STALE_BROKER_EPOCH)


def leader_address(leader: QuorumLeader, call: Call) -> tuple[str, int] | None:
    """Where who asks finds the leader: where it has found it already, unless told otherwise."""
    for each in leader.endpoints:
        if each.name == call.connection.listener:
            return host_of(each, call), each.port
    return None


def host_of(endpoint: EndPoint, call: Call) -> str:
    is_told = endpoint.host and endpoint.host not in WILDCARDS
    return endpoint.host if is_told else call.connection.local_address[0]
