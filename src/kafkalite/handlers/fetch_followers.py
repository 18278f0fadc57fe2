"""Fetches of followers: they read to the log's end, and the leader learns from them.

Owns which partitions of one such fetch were told of to their leader: each once, however often the
fetch is looked at while it waits, for later looks say nothing new of the follower's log. A follower
that is not in sync is given nothing of a throttled partition while more than the rate was sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.env.dataclasses import replace
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import Wanted, replica_id
from kafkalite.protocol.messages import FetchRequest
from kafkalite.replication.acting import serve, serve_again
from kafkalite.replication.leader import Leader
from kafkalite.replication.partition import FetchPosition, Partition, PartitionRead

NOTHING = -1


class FollowerFetch:
    """One fetch of a follower."""

    __slots__ = ("_broker_epoch", "_broker_id", "_context", "_throttled", "_told")

    def __init__(self, context: Context, broker_id: int, broker_epoch: int) -> None:
        self._context = context
        self._broker_id, self._broker_epoch = broker_id, broker_epoch
        # By the identity of what is wanted.
        self._told: set[int] = set()
        self._throttled: set[int] = set()

    def read(self, partition: Partition, wanted: Wanted, *, min_one: bool) -> PartitionRead:
        """What is answered for a partition."""
        position = wanted.position
        if self._context.leader_throttle.concerns(partition):
            self._throttled.add(id(wanted))
            if self._is_held_back(partition):
                position, min_one = replace(position, max_bytes=0), False
        return self._read(partition, wanted, position, min_one=min_one)

    def end_offset(self, partition: Partition) -> int:
        """Up to where it may be read now; below all offsets where it may not."""
        is_throttled = self._context.leader_throttle.concerns(partition)
        if is_throttled and self._is_held_back(partition):
            return NOTHING
        return partition.log.log_end_offset

    def answered(self, sizes: Iterable[tuple[Wanted, int]]) -> None:
        """So many bytes of each are on their way."""
        if self._throttled:
            throttled = sum(size for wanted, size in sizes if id(wanted) in self._throttled)
            self._context.leader_throttle.record(throttled)

    def _is_held_back(self, partition: Partition) -> bool:
        """Of a partition that is throttled. One that is in sync would leave."""
        leader = partition.role
        is_in_sync = isinstance(leader, Leader) and self._broker_id in leader.isr
        return not is_in_sync and self._context.leader_throttle.is_exceeded

    def _read(
        self, partition: Partition, wanted: Wanted, position: FetchPosition, *, min_one: bool
    ) -> PartitionRead:
        if id(wanted) in self._told:
            return serve_again(partition, self._broker_id, position, min_one=min_one)
        now_ms = self._context.env.clock.monotonic_ms()
        found, asked = serve(
            partition, self._broker_id, self._broker_epoch, position, now_ms, min_one=min_one
        )
        self._told.add(id(wanted))
        if asked:
            self._context.alter_in_sync(partition, asked)
        return found


def follower_of(context: Context, call: Call, request: FetchRequest) -> FollowerFetch | None:
    """None when it is a client that asks."""
    broker_id = replica_id(request)
    if broker_id < 0:
        return None
    call.connection.is_follower = True
    return FollowerFetch(context, broker_id, request.replica_state.replica_epoch)
