"""Who leads a partition, for answers that spare a client its metadata round trip (KIP-951).

Reads the cluster's image; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context

Endpoint = tuple[int, str, int, str | None]


def current_leader(
    context: Context, topic: str, topic_id: bytes, index: int
) -> tuple[int, int]:
    """Id and epoch of the leader as the cluster knows it, or -1 twice."""
    image = context.cluster.image
    state = image.partition(topic or image.topic_name(topic_id) or "", index)
    return (state.leader, state.leader_epoch) if state is not None else (-1, -1)


def endpoints(context: Context, call: Call, node_ids: Iterable[int]) -> list[Endpoint]:
    """(id, host, port, rack) of brokers, as this client should reach them."""
    return [
        (node.node_id, node.host, node.port, node.rack)
        for node in context.cluster.nodes_for(call.connection)
        if node.node_id in set(node_ids)
    ]
