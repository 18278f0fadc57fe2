"""Where a partition is: on this broker, or who leads it, which spares a client its metadata round
trip (KIP-951).

Reads the broker's replicas and the cluster's image; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition

Endpoint = tuple[int, str, int, str | None]


def find_partition(context: Context, topic: str, index: int) -> Partition:
    """The partition, if this broker has a replica; NOT_LEADER_OR_FOLLOWER if only others have."""
    partition = context.partitions.get(topic, index)
    if partition is not None:
        return partition
    is_ours = is_offline(context, topic, index, context.node_id)
    if not is_ours and context.metadata.image.partition(topic, index) is not None:
        raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
    return context.partitions.find(topic, index)  # which says why not


def is_offline(context: Context, topic: str, index: int, node_id: int) -> bool:
    """Whether a broker cannot serve its replica of a partition: told of this one, who knows."""
    return node_id == context.node_id and (topic, index) in context.partitions.offline


def offline_replicas(
    context: Context, topic: str, state: PartitionState, reachable: set[int]
) -> list[int]:
    """Those of a partition's replicas that nobody can use now."""
    return [
        each
        for each in state.replicas
        if each not in reachable or is_offline(context, topic, state.index, each)
    ]


def find_topic_name(context: Context, topic_id: bytes) -> str:
    """The name of a topic that the cluster has; else UNKNOWN_TOPIC_ID."""
    name = context.partitions.topic_name(topic_id) or context.metadata.image.topic_name(topic_id)
    if name is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_ID)
    return name


def current_leader(
    context: Context, topic: str, topic_id: bytes, index: int
) -> tuple[int, int]:
    """Id and epoch of the leader as the cluster knows it, or -1 twice: also when that does not last
    yet, for a client believes no earlier epoch afterwards. It asks for metadata then, and waits."""
    if not context.metadata.lasts:
        return -1, -1
    image = context.metadata.image
    state = image.partition(topic or image.topic_name(topic_id) or "", index)
    return (state.leader, state.leader_epoch) if state is not None else (-1, -1)


def endpoints(context: Context, call: Call, node_ids: Iterable[int]) -> list[Endpoint]:
    """(id, host, port, rack) of brokers, as this client should reach them."""
    return [
        (node.node_id, node.host, node.port, node.rack)
        for node in nodes_for(context.metadata.image, call.connection)
        if node.node_id in set(node_ids)
    ]
