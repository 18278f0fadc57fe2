"""What compaction keeps of a batch.

Owns the rules: the last record of each key, tombstones and markers until their horizon, nothing of
an aborted transaction, and what a producer's state or the last offset would be lost with. It never
touches a file. Invariant: no offset and no order changes, and a record at or behind the offset up
to which the keys are known is kept.
"""

from __future__ import annotations

from typing import TypeAlias

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps
from kafkalite.log import large
from kafkalite.log.ended import Aborted, Markers
from kafkalite.log.key_map import LatestOffsets
from kafkalite.log.record_pieces import body_of, is_dense, with_pieces
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import NO_PRODUCER_ID, BatchHeader, TimestampType, codec
from kafkalite.records.convert import iterate_any
from kafkalite.records.record import BatchBuilder, Record, build_empty
from kafkalite.records.walks import Piece, pieces_at, pieces_of

Kept: TypeAlias = bytes | bytearray | None


@dataclass(slots=True)
class Rules:
    """What a pass goes by."""

    first_dirty_offset: int
    end_offset: int
    last_of_producers: dict[int, tuple[int, int]]
    now_ms: int
    delete_retention_ms: int

    @property
    def horizon_ms(self) -> int:
        """Until then a tombstone or marker that is met for the first time now is kept."""
        return self.now_ms + self.delete_retention_ms

    def is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether a batch has what a producer's state would be built from: its last sequence or,
        when a marker with a new epoch came last, that epoch."""
        last = self.last_of_producers.get(header.producer_id)
        if header.producer_id <= NO_PRODUCER_ID or last is None:
            return False
        offset, epoch = last
        if offset >= 0:
            return header.last_offset == offset
        return header.is_control and header.producer_epoch == epoch


@dataclass(slots=True)
class Totals:
    """What a pass did, for its line in the log."""

    bytes_read: int = 0
    bytes_kept: int = 0
    records_read: int = 0
    records_kept: int = 0

    def count(self, read: int, kept: int) -> None:
        self.records_read += read
        self.records_kept += kept


@dataclass(slots=True)
class Batch:
    """A batch on its way through the filter."""

    data: bytes
    header: BatchHeader

    @property
    def whole(self) -> bytes:
        return self.data[self.header.position : self.header.end]


class Filter:
    """Decides over the batches of a log from its first on."""

    def __init__(
        self, rules: Rules, latest: LatestOffsets, aborted: Aborted, totals: Totals
    ) -> None:
        self._rules = rules
        self._latest = latest
        self._aborted = aborted
        self._markers = Markers(aborted)
        self._totals = totals

    @property
    def kept_aborted(self) -> list[AbortedTransaction]:
        """Those of whom a batch was met, in the order of their markers."""
        return self._markers.kept

    def keep(self, batch: Batch, is_old: bool) -> Steps[Kept]:
        """What is left of a batch; None when nothing is."""
        header = batch.header
        self._totals.bytes_read += header.size
        if header.is_control:
            return self._keep_marker(batch)
        self._markers.met_batch(header)
        if self._aborted.has(header):
            return self._keep_none(header, max(header.record_count, 0))
        is_mapped = self._is_mapped(header)
        deltas = self._deltas_kept(header) if is_mapped else []
        if is_mapped and not deltas:
            return self._keep_none(header, header.record_count)
        if header.magic < 2:
            return self._keep_old_records(batch, is_old)
        body = body_of(batch.data, header)
        if body is None:
            return (yield from self._keep_of_large(batch))
        found = pieces_at(body, header.record_count, deltas) if is_mapped else None
        if found is not None:
            return self._keep_pieces(batch, body, self._without_old_tombstones(header, found))
        base, is_kept = header.base_offset, self._is_kept
        kept = [
            piece
            for piece in pieces_of(body, header.record_count)
            if is_kept(header, base + piece[0], piece[1], piece[2])
        ]
        return self._keep_pieces(batch, body, kept)

    # --- data -------------------------------------------------------------------------------------

    def _is_mapped(self, header: BatchHeader) -> bool:
        """Whether the keys of all of a batch's records are known, and its offsets say which of
        them stay."""
        is_dirty = header.base_offset >= self._rules.first_dirty_offset
        end_offset = min(self._latest.end_offset, self._latest.odd_offset)
        return is_dirty and header.last_offset < end_offset and is_dense(header)

    def _deltas_kept(self, header: BatchHeader) -> list[int]:
        base = header.base_offset
        return [offset - base for offset in self._latest.between(base, header.last_offset)]

    def _is_kept(
        self,
        header: BatchHeader,
        offset: int,
        key: bytes | None,
        has_value: bool,
        is_old: bool = False,
    ) -> bool:
        if offset >= self._latest.end_offset:
            return True
        if key is None or offset < self._latest.get(key):
            return False
        if has_value:
            return True
        if header.magic < 2:
            return not is_old
        return not self._is_horizon_over(header)

    def _is_horizon_over(self, header: BatchHeader) -> bool:
        horizon = header.delete_horizon_ms
        return horizon is not None and horizon <= self._rules.now_ms

    def _without_old_tombstones(self, header: BatchHeader, pieces: list[Piece]) -> list[Piece]:
        if not self._is_horizon_over(header):
            return pieces
        return [piece for piece in pieces if piece[2]]

    def _keep_none(self, header: BatchHeader, count: int) -> Kept:
        self._totals.count(count, 0)
        return self._empty(header)

    def _keep_pieces(self, batch: Batch, body: bytes, kept: list[Piece]) -> Kept:
        header = batch.header
        if not kept:
            return self._keep_none(header, header.record_count)
        self._totals.count(header.record_count, len(kept))
        if not header.has_delete_horizon and not all(piece[2] for piece in kept):
            offsets = {header.base_offset + piece[0] for piece in kept}
            records = [r for r in iterate_any(batch.data, header) if r.offset in offsets]
            return _rebuild(header, records, self._rules.horizon_ms)
        if len(kept) == header.record_count:
            return batch.whole
        return with_pieces(batch.data, header, body, kept)

    def _keep_old_records(self, batch: Batch, is_old: bool) -> Kept:
        """The same of messages of magic 0 and 1; what is left of them is a batch v2 when it has
        tombstones."""
        header = batch.header
        records = list(iterate_any(batch.data, header))
        kept = [
            one
            for one in records
            if self._is_kept(header, one.offset, one.key, one.value is not None, is_old)
        ]
        if not kept:
            return self._keep_none(header, len(records))
        self._totals.count(len(records), len(kept))
        has_tombstones = any(one.value is None for one in kept)
        return _rebuild(header, kept, self._rules.horizon_ms if has_tombstones else None)

    def _keep_of_large(self, batch: Batch) -> Steps[Kept]:
        """The same of what is too much to be held as a whole: looked at as a stream, and then
        copied as one."""
        header = batch.header
        choice = large.Choice()
        for head in large.heads_of(batch.data, header):
            if head is None:
                yield
                continue
            offset = header.base_offset + head.offset_delta
            choice.add(head, is_kept=self._is_kept(header, offset, head.key, head.has_value))
        if not choice.count:
            return self._keep_none(header, header.record_count)
        self._totals.count(header.record_count, choice.count)
        needs_horizon = choice.has_tombstones and not header.has_delete_horizon
        if choice.count == header.record_count and not needs_horizon:
            return batch.whole
        horizon_ms = self._rules.horizon_ms if needs_horizon else None
        return (yield from large.copy(batch.data, header, choice, horizon_ms))

    # --- markers and empty batches ----------------------------------------------------------------

    def _keep_marker(self, batch: Batch) -> Kept:
        """A marker stays as long as its transaction has records, and then until its horizon."""
        header = batch.header
        records = list(iterate_any(batch.data, header))
        is_empty = self._markers.met_marker(header, records)
        if not records:
            return self._empty(header)
        is_over = is_empty and self._is_horizon_over(header)
        if is_over and not self._rules.is_last_of_producer(header):
            return self._keep_none(header, len(records))
        self._totals.count(len(records), len(records))
        if is_empty and not header.has_delete_horizon:
            return _rebuild(header, records, self._rules.horizon_ms)
        return batch.whole

    def _empty(self, header: BatchHeader) -> Kept:
        """The batch without its records, where it must stay for what its header says."""
        rules = self._rules
        is_needed = rules.is_last_of_producer(header) or header.next_offset == rules.end_offset
        return build_empty(header) if header.magic == 2 and is_needed else None


def _rebuild(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> bytearray:
    """The batch with fewer records, or with a horizon behind which its tombstones may go."""
    base_offset = header.base_offset if header.magic == 2 else records[0].offset
    builder = BatchBuilder(horizon_ms)
    for record in records:
        delta = record.offset - base_offset
        builder.append(record.timestamp, record.key, record.value, record.headers, delta)
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    return builder.build(
        base_offset,
        header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        compression=codec(header),
        timestamp_type=header.timestamp_type,
        max_timestamp=header.max_timestamp if is_append_time else None,
        last_offset_delta=header.last_offset_delta if header.magic == 2 else None,
    )
