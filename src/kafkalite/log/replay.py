"""What the batches of a log say of its producers: markers, and state rebuilt from snapshots and
batches.

Owns the fold from batches to `Producers`. It never appends and never refuses a batch: what is in
the log was accepted once. Invariant: the state after a replay is the state that appends had left,
but for producers that expired.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafkalite.env.disk import Buffer, Disk
from kafkalite.env.slicing import Steps
from kafkalite.log.checkpoints import CorruptFile
from kafkalite.log.producers import (
    WINDOW_BATCHES,
    CompletedTransaction,
    Marker,
    Producers,
    ProducerState,
    SeenBatch,
)
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import read_snapshot, snapshot_path
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import NO_PRODUCER_ID, BatchHeader
from kafkalite.records.control import read_marker
from kafkalite.records.record import iterate_records

logger = logging.getLogger(__name__)

_LOOK_BACK_BATCHES = 100_000
BATCHES_PER_STEP = 128


def marker_of(records: Buffer, header: BatchHeader) -> Marker | None:
    """The end of a transaction that a batch is; None for data, and for a marker that was compacted
    away."""
    if not header.is_control:
        return None
    for record in iterate_records(records, header):
        marker = read_marker(record)
        if marker is not None:
            return Marker(marker.is_commit, marker.coordinator_epoch, record.timestamp)
    return None


def note_completed(producers: Producers, segment: Segment, completed: CompletedTransaction) -> None:
    """A transaction is over: into the transaction index if it was aborted."""
    if completed.is_aborted:
        stable = producers.last_stable_after(completed)
        segment.txn_index.append(
            AbortedTransaction(
                completed.producer_id, completed.first_offset, completed.last_offset, stable
            )
        )
    producers.complete(completed)


def replay_batch(
    producers: Producers, segment: Segment, header: BatchHeader
) -> CompletedTransaction | None:
    """Notes a batch of a segment; returns the transaction that it ended."""
    completed = None
    if header.producer_id > NO_PRODUCER_ID:
        marker = None
        if header.is_control:
            data = segment.log.read_at(header.position, header.size)
            header.position = 0
            marker = marker_of(data, header)
        completed = producers.apply(header, marker)
    producers.end_offset = header.next_offset
    return completed


def replay(producers: Producers, segments: Sequence[Segment], end_offset: int) -> Steps[None]:
    """Brings the state from where it ends to an offset."""
    count = 0
    for segment in segments:
        start = producers.end_offset
        for header in segment.walk(segment.place_before(start)):
            if header.base_offset >= end_offset:
                break
            if header.last_offset >= start:
                completed = replay_batch(producers, segment, header)
                if completed is not None:
                    producers.complete(completed)
            count += 1
            if count % BATCHES_PER_STEP == 0:
                yield
    producers.end_offset = end_offset


def load_snapshot(
    disk: Disk, directory: str, offsets: list[int], producers: Producers, oldest_ms: int
) -> int | None:
    """Takes the producers from the newest snapshot that is whole; returns its offset. Broken ones
    are removed."""
    while offsets:
        offset = offsets[-1]
        path = snapshot_path(directory, offset)
        try:
            states = read_snapshot(disk, path)
        except CorruptFile as error:
            logger.warning("the producer snapshot is rebuilt from the log: %s", error)
            disk.remove(path)
            offsets.pop()
            continue
        producers.load(
            state for state in states
            if state.transaction_start >= 0 or state.last_timestamp > oldest_ms
        )  # fmt: skip
        producers.end_offset = offset
        return offset
    return None


def look_back(segments: Sequence[Segment], state: ProducerState) -> list[SeenBatch]:
    """The batches of a producer before the ones it has, oldest first, from the last segments that
    can hold them.

    Bounded in batches: only headers are read, and only when a producer repeats a batch
    that the snapshot did not keep.
    """
    before = state.batches[0].first_offset if state.batches else state.last_offset + 1
    found: list[SeenBatch] = []
    left = _LOOK_BACK_BATCHES
    for segment in reversed([one for one in segments if one.base_offset < before]):
        earlier, count = _batches_of(segment, state, before)
        found[:0] = earlier
        left -= count
        if len(found) >= WINDOW_BATCHES or left <= 0:
            break
    return found[-WINDOW_BATCHES:]


def _batches_of(segment: Segment, state: ProducerState, before: int) -> tuple[list[SeenBatch], int]:
    """The last batches of a producer in a segment, and how many batches were looked at."""
    found: list[SeenBatch] = []
    count = 0
    for header in segment.walk(0):
        if header.base_offset >= before:
            break
        count += 1
        if header.producer_id != state.producer_id or header.is_control:
            continue
        if header.producer_epoch == state.epoch:
            last_offset, delta = header.last_offset, header.last_offset_delta
            found.append(SeenBatch(header.last_sequence, last_offset, delta, header.max_timestamp))
            del found[:-WINDOW_BATCHES]
    return found, count
