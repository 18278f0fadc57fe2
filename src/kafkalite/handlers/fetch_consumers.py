"""Fetches of clients: they read what is committed, from the leader or from a replica nearby.

Owns which replica a client is sent to (KIP-392), by its rack and those of the brokers: the leader
where that is in the client's rack or nobody there has what it asks for. A follower serves whoever
comes, as far as it knows what is committed.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import Wanted
from kafkalite.handlers.isolation import READ_COMMITTED
from kafkalite.protocol.messages import FetchRequest
from kafkalite.replication.leader import Leader
from kafkalite.replication.partition import Partition, PartitionRead

RACK_VERSION = 11
SELECTOR = "replica.selector.class"


class ConsumerFetch:
    """One fetch of a client."""

    __slots__ = ("_call", "_context", "_is_committed_only", "_is_leaders", "_known", "_rack")

    def __init__(self, context: Context, call: Call, request: FetchRequest) -> None:
        self._context, self._call = context, call
        self._is_committed_only = request.isolation_level == READ_COMMITTED
        self._is_leaders = call.version < RACK_VERSION
        has_choice = request.rack_id and context.config.get_optional_str(SELECTOR) is not None
        self._rack: str | None = request.rack_id if has_choice else None
        self._known: tuple[int, frozenset[int]] = (-1, frozenset())

    def read(self, partition: Partition, wanted: Wanted, *, min_one: bool) -> PartitionRead:
        """What is answered for a partition."""
        position = wanted.position
        if self._rack is not None:
            nearer = self._nearer(partition, position.offset)
            if nearer is not None:
                return partition.read_elsewhere(position, nearer)
        return partition.read(
            position,
            is_committed_only=self._is_committed_only,
            min_one=min_one,
            is_leaders=self._is_leaders,
        )

    def end_offset(self, partition: Partition) -> int:
        """Up to where it may be read now."""
        return partition.end_offset(is_committed_only=self._is_committed_only)

    def _nearer(self, partition: Partition, offset: int) -> int | None:
        leader = partition.role
        if not isinstance(leader, Leader):
            return None
        neighbours = self._neighbours()
        if leader.leader_id in neighbours:
            return None
        return leader.nearest(neighbours, offset)

    def _neighbours(self) -> frozenset[int]:
        """The brokers of its rack that it can reach: looked up again when there is news."""
        metadata = self._context.metadata
        if self._known[0] != metadata.offset:
            nodes = nodes_for(metadata.image, self._call.connection)
            found = frozenset(node.node_id for node in nodes if node.rack == self._rack)
            self._known = metadata.offset, found
        return self._known[1]
