"""Does what a partition's role wants done, and tells it what came of that.

Owns the way between a role, which has no log, and the log, which has no role. What is for others, a
request to the controller or a time to wait, it hands back to its caller. Invariant: each event is
told to the role that the partition has now, with the log as it is now; a log is cut for nobody who
has lost the role meanwhile.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.log.append import Writable
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
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

logger = logging.getLogger(__name__)

# Of what came from a leader, in one step.
BATCHES_PER_STEP = 64
BYTES_PER_STEP = 128 * 1024
_LENGTH_END = 12  # of a batch: what its length does not count

T = TypeVar("T")
# Steps, some of which have to wait for the disk.
Acts: TypeAlias = "Generator[Later[Any] | None, None, T]"

# --- of a leader ----------------------------------------------------------------------------------


def serve(
    partition: Partition,
    broker_id: int,
    broker_epoch: int,
    position: FetchPosition,
    now_ms: int,
    *,
    min_one: bool = True,
) -> tuple[PartitionRead, list[AlterPartition]]:
    """A follower's fetch: what it is answered, and what the controller is to be asked. Where the
    logs part, what the follower has counts for nothing."""
    leader = _leader_for(partition, broker_id, position)
    found = partition.read_as_replica(position, min_one=min_one)
    if found.diverging is not None:
        return found, []
    fetch = ReplicaFetch(position.offset, position.log_start_offset, broker_epoch)
    return found, lead(partition, leader.fetched(broker_id, fetch, partition.moment(now_ms)))


def serve_again(
    partition: Partition, broker_id: int, position: FetchPosition, *, min_one: bool = True
) -> PartitionRead:
    """The same fetch, which has waited: of the follower it says nothing new."""
    _leader_for(partition, broker_id, position)
    return partition.read_as_replica(position, min_one=min_one)


def _leader_for(partition: Partition, broker_id: int, position: FetchPosition) -> Leader:
    partition.check_leader(position.leader_epoch)
    leader = partition.role
    assert isinstance(leader, Leader)
    leader.check_follower(broker_id, position.leader_epoch)
    return leader


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
) -> Acts[list[Backoff]]:
    """Does what a follower wants done, and what it wants then; returns how long to wait, if so.
    Nothing more is done once the role is another, or is of another epoch."""
    role = partition.role
    assert isinstance(role, Follower)
    waiting, left = deque(effects), list[Backoff]()
    while waiting:
        effect = waiting.popleft()
        if isinstance(effect, Backoff):
            left.append(effect)
            continue
        try:
            if isinstance(effect, Append):
                is_whole = yield from _append(partition, role, effect)
                if not is_whole:
                    return left
                waiting.extend(role.appended(effect, copy_of(partition)))
            elif isinstance(effect, TruncateTo | TruncateFullyAndStartAt):
                is_cut = yield from _cut(partition, role, effect)
                if not is_cut:
                    return left
                waiting.extend(role.begin_again())
            else:
                _do(partition, effect)
        except KafkaError as error:
            waiting = deque(_not_done(partition, role, error, now_ms))
    return left


def _append(partition: Partition, role: Follower, append: Append) -> Steps[bool]:
    """Some batches in each step; False when there is nothing more to be done for this role."""
    log, epoch = partition.log, role.leader_epoch
    is_first = True
    for piece in _pieces(append.records):
        if not is_first:
            yield
            if not _goes_on(partition, role, epoch, log):
                return False
        log.append_as_follower(piece, append.leader_epoch)
        is_first = False
    return True


def _goes_on(partition: Partition, role: Follower, epoch: int, log: PartitionLog) -> bool:
    """Whether role, epoch and log are those that something was begun for."""
    if partition.role is not role or role.leader_epoch != epoch:
        return False
    if partition.log is not log:
        role.begin_again()
        return False
    return True


def _cut(
    partition: Partition, role: Follower, wanted: TruncateTo | TruncateFullyAndStartAt
) -> Acts[bool]:
    """Waits until the cut lasts; False when there is nothing more to be done for this role."""
    log, epoch, offset = partition.log, role.leader_epoch, wanted.offset
    is_whole = isinstance(wanted, TruncateFullyAndStartAt)
    how = "begins anew, as its leader's log," if is_whole else "is cut, to agree with its leader,"
    logger.info("%s %s at %d", log.directory, how, offset)

    def is_wanted() -> bool:
        is_ours = partition.role is role and role.leader_epoch == epoch
        return is_ours and partition.log is log

    over = log.cut_later(offset, is_wanted, is_whole=is_whole)
    yield over
    if not _goes_on(partition, role, epoch, log):
        return False
    if over.value is not None:
        raise KafkaError(over.value.code, over.value.message)
    return True


def _pieces(records: Writable) -> Iterator[memoryview]:
    """Whole batches, as many as are written in a step. Where lengths make no sense the rest is one
    piece, of which the log says what is wrong with it."""
    view = memoryview(records)
    start = position = count = 0
    while position + _LENGTH_END <= len(view):
        size = _LENGTH_END + int.from_bytes(view[position + 8 : position + 12], "big", signed=True)
        if size <= _LENGTH_END:
            break
        if count == BATCHES_PER_STEP or (count and position + size - start > BYTES_PER_STEP):
            yield view[start:position]
            start, count = position, 0
        position += size
        count += 1
    yield view[start:]


def _not_done(
    partition: Partition, role: Follower, error: KafkaError, now_ms: int
) -> list[following.Effect]:
    name = f"{partition.topic}-{partition.index}"
    if error.code == Error.KAFKA_STORAGE_ERROR and partition.log.home.is_online:
        return role.hindered(now_ms)
    effects = role.not_done(error.code, now_ms)
    if effects:
        logger.error(
            "%s: what broker %d sent is not appended, and asked for again: %s",
            name, role.leader_id, error,
        )  # fmt: skip
    else:
        logger.error("%s follows no longer, until another leader is elected: %s", name, error)
    return effects


def _do(partition: Partition, effect: following.Effect) -> None:
    if isinstance(effect, Committed):
        partition.advance(effect.high_watermark)
    elif isinstance(effect, RaiseStart):
        partition.log.raise_start(effect.offset)
