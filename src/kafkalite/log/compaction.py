"""Which records of a compacted log are kept: the work of one pass over one log, in small steps.

Owns the rules: the last record of each key, tombstones and markers until their horizon, nothing of
an aborted transaction, and an empty batch where a producer's last sequence or the last offset would
be lost. It reads the log's files and writes `.cleaned` ones; putting those in place is `cleaner`'s.
Invariant: no offset and no order changes, and a record at or behind the end of the pass is kept.

A pass runs on worker threads, never two steps at a time, and shares nothing with the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kafkalite.env.disk import Disk
from kafkalite.log.config import LogConfig
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.latest import LatestOffsets
from kafkalite.log.names import CLEANED, INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX
from kafkalite.log.raw import Piece, body_of, keys_of, pieces_at, pieces_of, with_pieces
from kafkalite.log.recovery import whole_batches
from kafkalite.log.segment import Segment
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import (
    NO_PRODUCER_ID,
    BatchHeader,
    TimestampType,
    codec,
    read_header,
)
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.convert import iterate_any
from kafkalite.records.errors import CorruptRecords, RecordsTooLarge
from kafkalite.records.record import BatchBuilder, Record, build_empty

STEP_BYTES = 256 * 1024


@dataclass(slots=True)
class Source:
    """A segment to be read, as it was when the pass began."""

    base_offset: int
    size: int
    modified_ms: int


@dataclass(slots=True)
class Plan:
    """What one pass is to do, decided on the event loop."""

    directory: str
    config: LogConfig
    sources: list[Source]  # all segments that begin below `end_offset`
    first_dirty_offset: int
    end_offset: int  # nothing from here on may be cleaned
    aborted: list[AbortedTransaction]
    last_of_producers: dict[int, tuple[int, int]]  # last data offset (or -1) and epoch
    now_ms: int
    key_memory: int


class Transactions:
    """Follows the transactions of a log while it is read from the start."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._ahead = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()  # producers of whose aborted transaction a batch was read
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []  # for the index of the new segment

    def _advance(self, offset: int) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            transaction = self._ahead.popleft()
            self._aborted.setdefault(transaction.producer_id, transaction)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_marker_empty(self, header: BatchHeader, records: list[Record]) -> bool:
        """Whether a marker has lost all batches of its transaction, and may go when it is old."""
        self._advance(header.last_offset)
        if not records:
            return True
        kind = read_type(records[0].key)
        producer_id = header.producer_id
        if kind == ControlType.ABORT:
            transaction = self._aborted.pop(producer_id, None)
            if transaction is not None and producer_id in self._seen:
                self._seen.discard(producer_id)
                self.kept.append(transaction)
                return False
            return True
        if kind == ControlType.COMMIT:
            had_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_batches
        return False


@dataclass(slots=True)
class Cleaned:
    """A new segment, complete on the disk, and the old ones that it replaces."""

    base_offset: int
    size: int
    replaces: list[int]
    has_aborted: bool


@dataclass(slots=True)
class Totals:
    """What a pass did, for its line in the log."""

    bytes_read: int = 0
    bytes_kept: int = 0
    records_read: int = 0
    records_kept: int = 0


@dataclass(slots=True)
class Batch:
    """A batch on its way through the filter."""

    data: bytes
    header: BatchHeader


class Compaction:
    """One pass over one log."""

    def __init__(self, disk: Disk, plan: Plan) -> None:
        self._disk = disk
        self._plan = plan
        self.latest = LatestOffsets(plan.key_memory)
        self.totals = Totals()
        self._transactions = Transactions(plan.aborted)
        # Of the first batch whose records are not at the offsets that its header says: a producer
        # may send such a batch, and nobody looks there.
        self._odd_offset = plan.end_offset

    @property
    def end_offset(self) -> int:
        """Up to here the log is clean when the pass is done."""
        return self.latest.end_offset

    # --- the keys ---------------------------------------------------------------------------------

    def map_keys(self) -> Iterator[None]:
        """Reads the dirty part; in steps."""
        yield from self._map_sources()
        yield from self.latest.finish()

    def _map_sources(self) -> Iterator[None]:
        plan = self._plan
        transactions = Transactions(plan.aborted)
        sources = plan.sources
        for index, source in enumerate(sources):
            is_last = index + 1 == len(sources)
            end = plan.end_offset if is_last else sources[index + 1].base_offset
            if end <= plan.first_dirty_offset:
                continue
            for batch in self._batches(source):
                if batch is None:
                    yield
                    continue
                if not self._map_batch(batch, transactions):
                    return
            self.latest.end_offset = end

    def _map_batch(self, batch: Batch, transactions: Transactions) -> bool:
        """False when the memory for keys is used up; the batch counts as not read then."""
        header, start = batch.header, self._plan.first_dirty_offset
        if header.last_offset < start:
            return True
        if header.is_control:
            transactions.is_marker_empty(header, list(iterate_any(batch.data, header)))
        elif not transactions.is_aborted(header) and not self._map_records(batch):
            return False
        self.latest.end_offset = header.next_offset
        return True

    def _map_records(self, batch: Batch) -> bool:
        header, start, latest = batch.header, self._plan.first_dirty_offset, self.latest
        body = _body_of(batch)
        if body is not None and header.base_offset >= start and _is_dense(header):
            keys = keys_of(body, header.record_count)
            if keys is not None:
                return latest.put_all(keys, header.base_offset)
        found = list(_keys_in(batch, body))
        if _is_dense(header) and [offset for _, offset in found] != list(_offsets_of(header)):
            self._odd_offset = min(self._odd_offset, header.base_offset)
        return all(
            latest.put(key, offset) for key, offset in found if key is not None and offset >= start
        )

    def _batches(self, source: Source) -> Iterator[Batch | None]:
        """The batches of a segment; None in between where a step ends."""
        plan = self._plan
        segment = Segment(
            self._disk, plan.directory, source.base_offset, source.size, source.modified_ms
        )
        done = 0
        try:
            for data, header in whole_batches(segment, source.size):
                yield Batch(data, header)
                done += header.size
                if done >= STEP_BYTES:
                    done = 0
                    yield None
        finally:
            segment.close()

    # --- the groups -------------------------------------------------------------------------------

    def groups(self) -> list[list[Source]]:
        """Neighbouring segments that become one: together no larger than a segment may be."""
        config, groups = self._plan.config, list[list[Source]]()
        sources = [s for s in self._plan.sources if s.base_offset < self.end_offset]
        for index, source in enumerate(sources):
            group = groups[-1] if groups else []
            following = sources[index + 1 :]
            end = following[0].base_offset if following else self._plan.end_offset
            if (
                group
                and sum(one.size for one in group) + source.size <= config.segment_bytes
                and end - 1 - group[0].base_offset < 2**31
            ):
                group.append(source)
            else:
                groups.append([source])
        return groups

    # --- the filter -------------------------------------------------------------------------------

    def clean(self, group: list[Source], done: list[Cleaned]) -> Iterator[None]:
        """Writes the records of a group that are kept into a new segment; in steps."""
        plan = self._plan
        base_offset = group[0].base_offset
        target = Segment.create(self._disk, plan.directory, base_offset, plan.now_ms, CLEANED)
        target.txn_index.reset()
        self._transactions.kept = []
        try:
            for source in group:
                yield from self._clean_source(source, target)
            for transaction in self._transactions.kept:
                target.txn_index.append(transaction)
            self._complete(target)
        except (OSError, CorruptRecords):
            self._remove(target)
            raise
        finally:
            target.close()
        replaces = [source.base_offset for source in group]
        done.append(Cleaned(base_offset, target.size, replaces, bool(self._transactions.kept)))

    def _clean_source(self, source: Source, target: Segment) -> Iterator[None]:
        interval = self._plan.config.index_interval_bytes
        for batch in self._batches(source):
            if batch is None:
                yield
                continue
            kept = self._filter(batch, self._is_old(source))
            if kept is not None:
                target.append(kept, [read_header(kept)], interval)
                self.totals.bytes_kept += len(kept)

    def _remove(self, target: Segment) -> None:
        for kind in SEGMENT_SUFFIXES:
            if self._disk.exists(target.path(kind)):
                self._disk.remove(target.path(kind))

    def _complete(self, target: Segment) -> None:
        """Everything about the new segment is on stable storage before it may take a place."""
        target.finish()
        files = [target.path(kind) for kind in (LOG, INDEX, TIME_INDEX)]
        if self._transactions.kept:
            files.append(target.path(TXN_INDEX))
        sync_all(self._disk, [FlushWork(0, 0, files, [target.directory])])

    def _is_old(self, source: Source) -> bool:
        """Whether tombstones without a horizon of their own (magic 0 and 1) may go."""
        return source.modified_ms <= self._plan.now_ms - self._plan.config.delete_retention_ms

    def _filter(self, batch: Batch, is_old: bool) -> bytes | bytearray | None:
        """What is left of a batch; None when nothing is."""
        header = batch.header
        self.totals.bytes_read += header.size
        if header.is_control:
            return self._filter_marker(batch)
        if self._transactions.is_aborted(header):
            self.totals.records_read += max(header.record_count, 0)
            return self._empty(header)
        if self._is_mapped(header):
            deltas = self._deltas_kept(header)
            if not deltas:
                self._count(header.record_count, 0)
                return self._empty(header)
            body = _body_of(batch)
            found = None if body is None else pieces_at(body, header.record_count, deltas)
            if body is not None and found is not None:
                return self._with_pieces(batch, body, self._without_old_tombstones(header, found))
        body = _body_of(batch)
        if body is None:
            return self._filter_records(batch, is_old)
        base, is_kept = header.base_offset, self._is_kept
        kept = [
            piece
            for piece in pieces_of(body, header.record_count)
            if is_kept(header, base + piece[0], piece[1], piece[2], False)
        ]
        return self._with_pieces(batch, body, kept)

    def _is_mapped(self, header: BatchHeader) -> bool:
        """Whether the keys of all of a batch's records are known, and its offsets say which of
        them stay."""
        is_dirty = header.base_offset >= self._plan.first_dirty_offset
        end_offset = min(self.latest.end_offset, self._odd_offset)
        return is_dirty and header.last_offset < end_offset and _is_dense(header)

    def _deltas_kept(self, header: BatchHeader) -> list[int]:
        base = header.base_offset
        return [offset - base for offset in self.latest.between(base, header.last_offset)]

    def _without_old_tombstones(self, header: BatchHeader, pieces: list[Piece]) -> list[Piece]:
        horizon = header.delete_horizon_ms
        if horizon is None or self._plan.now_ms < horizon:
            return pieces
        return [piece for piece in pieces if piece[2]]

    def _with_pieces(
        self, batch: Batch, body: bytes, kept: list[Piece]
    ) -> bytes | bytearray | None:
        header = batch.header
        self._count(header.record_count, len(kept))
        if not kept:
            return self._empty(header)
        if not header.has_delete_horizon and not all(piece[2] for piece in kept):
            offsets = {header.base_offset + piece[0] for piece in kept}
            records = [r for r in iterate_any(batch.data, header) if r.offset in offsets]
            return _rebuild(header, records, self._horizon_ms)
        if len(kept) == header.record_count:
            return batch.data[header.position : header.end]
        return with_pieces(batch.data, header, body, kept)

    def _filter_records(self, batch: Batch, is_old: bool) -> bytes | bytearray | None:
        """The same record by record, for old formats and for what inflates too far."""
        header = batch.header
        records = list(iterate_any(batch.data, header))
        kept = [
            one
            for one in records
            if self._is_kept(header, one.offset, one.key, one.value is not None, is_old)
        ]
        self._count(len(records), len(kept))
        if not kept:
            return self._empty(header)
        horizon = header.delete_horizon_ms
        if horizon is None and any(one.value is None for one in kept):
            horizon = self._horizon_ms
        elif len(kept) == len(records) and header.magic == 2:
            return batch.data[header.position : header.end]
        return _rebuild(header, kept, horizon)

    def _filter_marker(self, batch: Batch) -> bytes | bytearray | None:
        """A marker stays as long as its transaction has records, and then until its horizon."""
        header = batch.header
        records = list(iterate_any(batch.data, header))
        is_empty = self._transactions.is_marker_empty(header, records)
        horizon = header.delete_horizon_ms
        is_over = is_empty and horizon is not None and horizon <= self._plan.now_ms
        self._count(len(records), 0 if is_over else len(records))
        if is_over or not records:
            return self._empty(header)
        if is_empty and horizon is None:
            return _rebuild(header, records, self._horizon_ms)
        return batch.data[header.position : header.end]

    def _count(self, read: int, kept: int) -> None:
        self.totals.records_read += read
        self.totals.records_kept += kept

    @property
    def _horizon_ms(self) -> int:
        """Until then a tombstone or marker that is met for the first time now is kept."""
        return self._plan.now_ms + self._plan.config.delete_retention_ms

    def _empty(self, header: BatchHeader) -> bytearray | None:
        return build_empty(header) if self._is_needed_empty(header) else None

    def _is_kept(
        self, header: BatchHeader, offset: int, key: bytes | None, has_value: bool, is_old: bool
    ) -> bool:
        if offset >= self.latest.end_offset:
            return True
        if key is None or offset < self.latest.get(key):
            return False
        if has_value:
            return True
        if header.magic < 2:
            return not is_old
        horizon = header.delete_horizon_ms
        return horizon is None or self._plan.now_ms < horizon

    def _is_needed_empty(self, header: BatchHeader) -> bool:
        """Whether an empty batch must stay: for its producer's state, or for the last offset."""
        if header.magic < 2:
            return False
        last = self._plan.last_of_producers.get(header.producer_id)
        if header.producer_id > NO_PRODUCER_ID and last is not None:
            offset, epoch = last
            if offset >= 0 and header.last_offset == offset:
                return True
            if offset < 0 and header.is_control and header.producer_epoch == epoch:
                return True
        return header.next_offset == self._plan.end_offset


def _body_of(batch: Batch) -> bytes | None:
    """The bytes of a batch's records; None when they have to be read one by one, for old formats
    and for what inflates too far."""
    if batch.header.magic < 2:
        return None
    try:
        return body_of(batch.data, batch.header)
    except RecordsTooLarge:
        return None


def _is_dense(header: BatchHeader) -> bool:
    """Whether a batch says that it has a record at each of its offsets."""
    return header.magic == 2 and header.record_count == header.last_offset_delta + 1


def _offsets_of(header: BatchHeader) -> range:
    return range(header.base_offset, header.next_offset)


def _keys_in(batch: Batch, body: bytes | None) -> Iterator[tuple[bytes | None, int]]:
    """The key and the offset of every record."""
    header = batch.header
    if body is not None:
        for piece in pieces_of(body, header.record_count):
            yield piece[1], header.base_offset + piece[0]
        return
    for record in iterate_any(batch.data, header):
        yield record.key, record.offset


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
