"""Fetches of followers: they read to the log's end, and the leader learns from them.

Owns which partitions of one such fetch were told of to their leader: each once, however often the
fetch is looked at while it waits, for later looks say nothing new of the follower's log.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import Wanted, replica_id
from kafkalite.protocol.messages import FetchRequest
from kafkalite.replication.acting import serve, serve_again
from kafkalite.replication.partition import Partition, PartitionRead


class FollowerFetch:
    """One fetch of a follower."""

    __slots__ = ("_broker_epoch", "_broker_id", "_context", "_told")

    def __init__(self, context: Context, broker_id: int, broker_epoch: int) -> None:
        self._context = context
        self._broker_id, self._broker_epoch = broker_id, broker_epoch
        self._told: set[int] = set()  # by the identity of what is wanted

    def read(self, partition: Partition, wanted: Wanted, *, min_one: bool) -> PartitionRead:
        """What is answered for a partition."""
        position = wanted.position
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
