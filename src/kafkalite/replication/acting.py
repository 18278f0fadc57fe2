"""Does what a partition's role wants done, and tells it what came of that.

Owns the way between a role, which has no log, and the log, which has no role. What is for others, a
request to the controller or a time to wait, it hands back to its caller. Invariant: each event is
told to the role that the partition has now, with the log as it is now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kafkalite.protocol.errors import KafkaError
from kafkalite.replication import follower as following
from kafkalite.replication import leader as leading
from kafkalite.replication.follower import (
    Append,
    Backoff,
    Copy,
    Follower,
    RaiseStart,
    TruncateFullyAndStartAt,
    TruncateTo,
)
from kafkalite.replication.leader import AlterPartition, Committed, Leader, ReplicaFetch
from kafkalite.replication.partition import FetchPosition, Partition, PartitionRead

# --- of a leader ----------------------------------------------------------------------------------


def serve(
    partition: Partition, broker_id: int, broker_epoch: int, position: FetchPosition, now_ms: int
) -> tuple[PartitionRead, list[AlterPartition]]:
    """A follower's fetch: what it is answered, and what the controller is to be asked. Where the
    logs part, what the follower has counts for nothing."""
    partition.check_leader(position.leader_epoch)
    leader = partition.role
    assert isinstance(leader, Leader)
    leader.check_follower(broker_id, position.leader_epoch)
    found = partition.read_as_replica(position)
    if found.diverging is not None:
        return found, []
    fetch = ReplicaFetch(position.offset, position.log_start_offset, broker_epoch)
    return found, lead(partition, leader.fetched(broker_id, fetch, partition.moment(now_ms)))


def lead(partition: Partition, effects: Iterable[leading.Effect]) -> list[AlterPartition]:
    """Does what a leader wants done; returns what the controller is to be asked."""
    asked = []
    for effect in effects:
        if isinstance(effect, AlterPartition):
            asked.append(effect)
        elif isinstance(effect, Committed):
            partition.advance(effect.high_watermark)
        else:
            partition.wake()  # a DeleteRecords may have come far enough
    return asked


# --- of a follower --------------------------------------------------------------------------------


def copy_of(partition: Partition) -> Copy:
    """A follower's log, as its role is told of it."""
    log = partition.log
    return Copy(log.log_start_offset, log.high_watermark, log.log_end_offset, log.epochs)


def follow(
    partition: Partition, effects: Iterable[following.Effect], now_ms: int
) -> list[Backoff]:
    """Does what a follower wants done, and what it wants then; returns how long to wait, if so."""
    role = partition.role
    assert isinstance(role, Follower)
    waiting, left = deque(effects), []
    while waiting:
        effect = waiting.popleft()
        if isinstance(effect, Backoff):
            left.append(effect)
            continue
        try:
            waiting.extend(_do(partition, role, effect, now_ms))
        except KafkaError as error:
            waiting = deque(role.not_done(error.code, now_ms))
    return left


def _do(
    partition: Partition, role: Follower, effect: following.Effect, now_ms: int
) -> list[following.Effect]:
    log = partition.log
    if isinstance(effect, Append):
        log.append_as_follower(effect.records, effect.leader_epoch, now_ms)
        return role.appended(effect, copy_of(partition))
    if isinstance(effect, Committed):
        partition.advance(effect.high_watermark)
    elif isinstance(effect, RaiseStart):
        log.raise_start(effect.offset)
    elif isinstance(effect, TruncateTo):
        log.truncate_to(effect.offset)
        return role.truncated()
    elif isinstance(effect, TruncateFullyAndStartAt):
        log.truncate_fully_and_start_at(effect.offset)
        return role.truncated()
    return []
