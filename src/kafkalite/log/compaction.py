"""One pass over one log: read the keys of its dirty part, then write new segments.

Owns which segments are read and which become one. It reads the log's files and writes `.cleaned`
ones; what of a batch is kept is `filter`'s to say, and `cleaning` puts new segments in place.
Invariant: a pass ends where a segment does, at or below the last stable offset, so it never meets a
transaction that is open; and no offset and no order changes.

A pass runs on worker threads, never two steps at a time, and shares nothing with the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import Disk
from kafkalite.env.slicing import Steps
from kafkalite.log import large
from kafkalite.log.config import LogConfig
from kafkalite.log.ended import Aborted
from kafkalite.log.filter import Batch, Filter, Rules, Totals
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.key_map import LatestOffsets
from kafkalite.log.names import CLEANED, INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX
from kafkalite.log.record_pieces import body_of, is_dense, keys_of
from kafkalite.log.recovery import whole_batches
from kafkalite.log.segment import Segment
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import read_header
from kafkalite.records.convert import iterate_any
from kafkalite.records.walks import pieces_of

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
    sources: list[Source]  # all segments below `end_offset`
    first_dirty_offset: int
    end_offset: int  # where a segment begins of which nothing may be cleaned
    aborted: list[AbortedTransaction]
    last_of_producers: dict[int, tuple[int, int]]  # last data offset (or -1) and epoch
    now_ms: int
    key_memory: int

    def end_of(self, index: int) -> int:
        """Where the segment behind one of the sources begins."""
        following = self.sources[index + 1 : index + 2]
        return following[0].base_offset if following else self.end_offset

    def end_of_segment(self, base_offset: int) -> int:
        bases = (source.base_offset for source in self.sources)
        return next((base for base in bases if base > base_offset), self.end_offset)


@dataclass(slots=True)
class Cleaned:
    """A new segment, complete on the disk, and the old ones that it replaces."""

    base_offset: int
    end_offset: int
    size: int
    replaces: list[int]
    has_aborted: bool


class Compaction:
    """One pass over one log."""

    def __init__(self, disk: Disk, plan: Plan) -> None:
        self._disk = disk
        self._plan = plan
        self._aborted = Aborted(plan.aborted)
        self.latest = LatestOffsets(plan.key_memory)
        self.totals = Totals()
        self._filter = Filter(
            Rules(
                plan.first_dirty_offset,
                plan.end_offset,
                plan.last_of_producers,
                plan.now_ms,
                plan.config.delete_retention_ms,
            ),
            self.latest,
            self._aborted,
            self.totals,
        )
        self.reading = plan.sources[0].base_offset  # of the segment at hand

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
        for index, source in enumerate(plan.sources):
            end = plan.end_of(index)
            if end <= plan.first_dirty_offset:
                continue
            for batch in self._batches(source):
                if batch is None:
                    yield
                elif not (yield from self._map_batch(batch)):
                    return
            self.latest.end_offset = end

    def _map_batch(self, batch: Batch) -> Steps[bool]:
        """False when the memory for keys is used up; `self.latest` knows how far it was enough."""
        header = batch.header
        if header.last_offset < self._plan.first_dirty_offset:
            return True
        if not header.is_control and not self._aborted.has(header):
            is_all = yield from self._map_records(batch)
            if not is_all:
                return False
        self.latest.end_offset = header.next_offset
        return True

    def _map_records(self, batch: Batch) -> Steps[bool]:
        header, start, latest = batch.header, self._plan.first_dirty_offset, self.latest
        body = body_of(batch.data, header)
        says_dense = is_dense(header)
        if body is not None and header.base_offset >= start and says_dense:
            keys = keys_of(body, header.record_count)
            if keys is not None:
                return latest.put_all(keys, header.base_offset)
        expected, is_odd = header.base_offset, False
        for found in _keys_in(batch, body):
            if found is None:
                yield
                continue
            key, offset = found
            if says_dense and offset != expected:
                is_odd = True
                latest.odd_offset = min(latest.odd_offset, header.base_offset)
            expected += 1
            if key is not None and offset >= start and not latest.put(key, offset):
                latest.end_offset = header.base_offset if is_odd else offset
                return False
        return True

    def _batches(self, source: Source) -> Iterator[Batch | None]:
        """The batches of a segment; None in between where a step ends."""
        plan = self._plan
        self.reading = source.base_offset
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
        plan, groups = self._plan, list[list[Source]]()
        for index, source in enumerate(plan.sources):
            if source.base_offset >= self.end_offset:
                break
            group = groups[-1] if groups else []
            if (
                group
                and sum(one.size for one in group) + source.size <= plan.config.segment_bytes
                and plan.end_of(index) - 1 - group[0].base_offset < 2**31
            ):
                group.append(source)
            else:
                groups.append([source])
        return groups

    # --- the new segments -------------------------------------------------------------------------

    def clean(self, group: list[Source], done: list[Cleaned]) -> Iterator[None]:
        """Writes the records of a group that are kept into a new segment; in steps."""
        plan = self._plan
        base_offset = group[0].base_offset
        target = Segment.create(self._disk, plan.directory, base_offset, plan.now_ms, CLEANED)
        target.txn_index.reset()
        self._filter.kept_aborted.clear()
        try:
            for source in group:
                yield from self._clean_source(source, target)
            for transaction in self._filter.kept_aborted:
                target.txn_index.append(transaction)
            self._complete(target)
        except Exception:
            self._remove(target)
            raise
        finally:
            target.close()
        done.append(
            Cleaned(
                base_offset,
                plan.end_of_segment(group[-1].base_offset),
                target.size,
                [source.base_offset for source in group],
                bool(target.txn_index.entries),
            )
        )

    def _clean_source(self, source: Source, target: Segment) -> Iterator[None]:
        config = self._plan.config
        # Tombstones without a horizon of their own (magic 0 and 1) go by the age of the file.
        is_old = source.modified_ms <= self._plan.now_ms - config.delete_retention_ms
        for batch in self._batches(source):
            if batch is None:
                yield
                continue
            kept = yield from self._filter.keep(batch, is_old)
            if kept is not None:
                target.append(kept, [read_header(kept)], config.index_interval_bytes)
                self.totals.bytes_kept += len(kept)

    def _remove(self, target: Segment) -> None:
        for kind in SEGMENT_SUFFIXES:
            if self._disk.exists(target.path(kind)):
                self._disk.remove(target.path(kind))

    def _complete(self, target: Segment) -> None:
        """Everything about the new segment is on stable storage before it may take a place."""
        target.finish()
        files = [target.path(kind) for kind in (LOG, INDEX, TIME_INDEX)]
        if target.txn_index.entries:
            files.append(target.path(TXN_INDEX))
        sync_all(self._disk, [FlushWork(0, 0, files, [target.directory])])


def _keys_in(batch: Batch, body: bytes | None) -> Iterator[tuple[bytes | None, int] | None]:
    """The key and the offset of every record, and None now and then, where it is time to give
    way."""
    data, header = batch.data, batch.header
    base = header.base_offset
    if body is not None:
        for piece in pieces_of(body, header.record_count):
            yield piece[1], base + piece[0]
    elif header.magic < 2:
        for record in iterate_any(data, header):
            yield record.key, record.offset
    else:
        for head in large.heads_of(data, header):
            yield None if head is None else (head.key, base + head.offset_delta)
