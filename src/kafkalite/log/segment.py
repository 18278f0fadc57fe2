"""One segment: a file of record batches and its indexes.

Owns the bytes from its base offset on and how a batch in it is found. It never decides when it
ends, and it never checks what is appended. Invariant: `size` is where the last whole batch ends;
bytes behind it are nobody's.

The index is a hint: where it leads there must be the batch that it means, or else it is built anew
from the batches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from kafkalite.env.disk import Buffer, Disk, File, read_whole
from kafkalite.log.index import (
    NO_TIMESTAMP,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    OffsetIndex,
    TimeIndex,
)
from kafkalite.log.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_name
from kafkalite.log.txn_index import TxnIndex
from kafkalite.records.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, is_message, peek_header
from kafkalite.records.checksum import crc32c
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)

_WALK_BYTES = 16_384  # read at once while walking from batch to batch
_FIND_BYTES = 4_096  # the same on the short way from an index entry to a batch
_EXTENT = Struct(">qi4xb6xi")  # of a header: base offset, length, magic, last offset delta
_MAX_RELATIVE_OFFSET = 2**31 - 1
_RECENT_BATCHES = 16
_INDEX_INTERVAL_BYTES = 4_096  # of an index that is built anew


class SegmentSeal(NamedTuple):
    """What the files of a complete segment are to be, see `seals`."""

    log_size: int
    index_size: int
    time_size: int
    time_checksum: int
    txn_size: int
    txn_checksum: int
    max_timestamp: int
    max_timestamp_offset: int


class Segment:
    """The batches from one offset on, up to the next segment."""

    __slots__ = (
        "_index",
        "_max_timestamp",
        "_older",
        "_read_on",
        "_recent",
        "_time_index",
        "_txn_index",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "disk",
        "index_entries",
        "known_first_timestamp",
        "log",
        "seal",
        "size",
        "suffix",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        size: int,
        created_ms: int,
        suffix: str = "",
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.suffix = suffix
        self.log: File = disk.open(self.path(LOG))
        self.seal: SegmentSeal | None = None  # while the files are those that were sealed
        self.bytes_since_index = 0
        self.index_entries = -1  # at most so many are in an index; -1: not counted yet
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._max_timestamp: tuple[int, int] | None = None
        self.known_first_timestamp: int | None = None
        # Where the last batches begin and their sizes: what a consumer that keeps up asks for.
        # Two generations: forgetting all of one is cheaper than one batch with every append.
        self._recent: dict[int, tuple[int, int]] = {}
        self._older: dict[int, tuple[int, int]] = {}
        # Behind the batch that was found last, and where that is: who reads on asks for it next.
        self._read_on = (-1, 0)

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, now_ms: int, suffix: str = ""
    ) -> Segment:
        """A new empty segment, its files on the disk."""
        segment = cls(disk, directory, base_offset, 0, now_ms, suffix)
        segment.log = disk.create(segment.path(LOG))
        for kind in (INDEX, TIME_INDEX):
            disk.create(segment.path(kind)).close()
        segment._max_timestamp = (NO_TIMESTAMP, base_offset)
        return segment

    def path(self, kind: str, suffix: str | None = None) -> str:
        """Of one of its files, as it is called now or is to be called."""
        suffix = self.suffix if suffix is None else suffix
        return f"{self.directory}/{offset_name(self.base_offset, kind)}{suffix}"

    # --- indexes, made when first asked for -------------------------------------------------------

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self.disk, self.path(INDEX), self.base_offset)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self.disk, self.path(TIME_INDEX), self.base_offset)
            if self.seal is not None and self._checksum(TIME_INDEX) != self.seal.time_checksum:
                self._rebuild_time_index(self._time_index)
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        if self._txn_index is None:
            self._txn_index = TxnIndex(self.disk, self.path(TXN_INDEX))
        return self._txn_index

    # --- appending --------------------------------------------------------------------------------

    def append(
        self, records: Buffer, headers: list[BatchHeader], index_interval_bytes: int
    ) -> None:
        """Writes whole batches at the end. When it raises, the segment is as before."""
        self.log.write_at(self.size, records)
        for header in headers:
            base_offset, size = header.base_offset, header.size
            if len(self._recent) >= _RECENT_BATCHES:
                self._older, self._recent = self._recent, {}
            self._recent[base_offset] = (self.size, size)
            last_offset = base_offset + header.last_offset_delta
            self.note(last_offset, header.max_timestamp, size, index_interval_bytes)

    def append_one(
        self,
        records: Buffer,
        base_offset: int,
        last_offset: int,
        timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """The same for one batch, of which so much is known."""
        position, size = self.size, len(records)
        self.log.write_at(position, records)
        if len(self._recent) >= _RECENT_BATCHES:
            self._older, self._recent = self._recent, {}
        self._recent[base_offset] = (position, size)
        highest = self._max_timestamp
        if (
            highest is None
            or timestamp > highest[0]
            or self.bytes_since_index > index_interval_bytes
        ):
            self.note(last_offset, timestamp, size, index_interval_bytes)
        else:
            self.size = position + size
            self.bytes_since_index += size

    def note(self, last_offset: int, timestamp: int, size: int, index_interval_bytes: int) -> None:
        """Counts in a batch that lies at the end now."""
        highest = self._max_timestamp or self.max_timestamp
        if timestamp > highest[0]:
            highest = self._max_timestamp = (timestamp, last_offset)
        if self.bytes_since_index > index_interval_bytes:
            self.index.append(last_offset, self.size)
            self.time_index.append(*highest)
            self.bytes_since_index = 0
            if self.index_entries >= 0:
                self.index_entries += 1
        if self.known_first_timestamp is None and self.size == 0:
            self.known_first_timestamp = timestamp
        self.size += size
        self.bytes_since_index += size

    def can_hold(self, offset: int) -> bool:
        """Whether the indexes can express an offset."""
        return 0 <= offset - self.base_offset <= _MAX_RELATIVE_OFFSET

    def is_index_full(self, index_bytes: int) -> bool:
        """Whether either index has no room for an entry and, of times, for the one at the end."""
        if self._index is None and self.size == 0:
            return False
        offsets, times = self.index.entries, self.time_index.entries + 1
        self.index_entries = max(offsets, times)
        has_offset = offsets < index_bytes // OFFSET_ENTRY_BYTES
        return not (has_offset and times < index_bytes // TIME_ENTRY_BYTES)

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """How long this segment has been the one to append to: in record time where records have
        it."""
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    def finish(self) -> None:
        """Nothing will be appended any more: complete the indexes."""
        self._forget_recent()
        self.time_index.append(*self.max_timestamp)
        self.index.trim()
        self.time_index.trim()
        self.write_aborted()
        self.drop_tail()

    def sealed(self) -> SegmentSeal:
        """What the files are now, which are complete."""
        txn_index = self.disk.exists(self.path(TXN_INDEX))
        return SegmentSeal(
            self.size,
            self.disk.size_of(self.path(INDEX)),
            self.disk.size_of(self.path(TIME_INDEX)),
            self._checksum(TIME_INDEX),
            self.disk.size_of(self.path(TXN_INDEX)) if txn_index else 0,
            self._checksum(TXN_INDEX) if txn_index else 0,
            *self.max_timestamp,
        )

    def _checksum(self, kind: str) -> int:
        return crc32c(read_whole(self.disk, self.path(kind)))

    def has_sealed_files(self, seal: SegmentSeal) -> bool:
        """Whether its files may be those that were sealed, as far as that is quickly told."""
        sizes = {INDEX: seal.index_size, TIME_INDEX: seal.time_size, TXN_INDEX: seal.txn_size}
        for kind, size in sizes.items():
            path = self.path(kind)
            if size != (self.disk.size_of(path) if self.disk.exists(path) else 0):
                return False
        return not seal.txn_size or self._checksum(TXN_INDEX) == seal.txn_checksum

    def trust(self, seal: SegmentSeal) -> None:
        """The files are as they were sealed: the largest time need not be looked for, and the time
        index is compared when it is first used."""
        self.seal = seal
        self._max_timestamp = (seal.max_timestamp, seal.max_timestamp_offset)

    # --- timestamps -------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The largest timestamp, and the last offset of the batch that has it; -1 without any."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last
        return self._max_timestamp

    @property
    def first_timestamp(self) -> int:
        if self.known_first_timestamp is None:
            first = next(self.walk(0), None)
            if first is None:
                return NO_TIMESTAMP
            self.known_first_timestamp = first.max_timestamp
        return self.known_first_timestamp

    def largest_timestamp(self) -> int:
        """What retention goes by: of the records, or else when the file was last written."""
        timestamp = self.max_timestamp[0]
        return timestamp if timestamp >= 0 else self.disk.modified_ms(self.path(LOG))

    # --- finding ----------------------------------------------------------------------------------

    def walk(
        self, position: int, end: int | None = None, read_bytes: int = _WALK_BYTES
    ) -> Iterator[BatchHeader]:
        """The headers of the batches from a position on; their positions are those in the file."""
        end = self.size if end is None else end
        start, window = position, b""
        while position < end:
            if position + HEADER_BYTES > start + len(window):
                start, window = (
                    position,
                    self.log.read_at(position, min(read_bytes, end - position)),
                )
            header = peek_header(window, position - start)
            header.position = position
            if position + header.size > end:
                raise CorruptRecords(f"{self.path(LOG)}: the batch at {position} ends behind {end}")
            yield header
            position += header.size

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the batch that holds an offset, or of the first one after it."""
        found = self._recent.get(offset) or self._older.get(offset)
        if found is not None:
            return found
        next_offset, start = self._read_on
        if offset == next_offset:
            place = start
        else:
            place = self.index.place_of(offset)
        found = self._extent_at(place, offset)
        if found is not None:
            return found
        header = self.find(offset)
        return (header.position, header.size) if header is not None else None

    def _extent_at(self, position: int, offset: int) -> tuple[int, int] | None:
        """Position and size of the batch that begins at a place and at an offset, by few bytes."""
        if position < 0 or position + HEADER_BYTES > self.size:
            return None
        base_offset, length, magic, delta = _EXTENT.unpack(self.log.read_at(position, _EXTENT.size))
        size = length + LOG_OVERHEAD
        end = position + size
        if magic != 2 or base_offset != offset or size < HEADER_BYTES or end > self.size:
            return None
        self._read_on = (base_offset + delta + 1, end)
        return position, size

    def _forget_recent(self) -> None:
        self._recent.clear()
        self._older.clear()

    def find(self, offset: int) -> BatchHeader | None:
        """The batch that holds an offset, or the first one after it."""
        next_offset, start = self._read_on
        if offset != next_offset:
            start = self.place_before(offset)
        for header in self.walk(start, read_bytes=_FIND_BYTES):
            if header.last_offset >= offset:
                self._read_on = (header.next_offset, header.end)
                return header
        return None

    def place_before(self, offset: int) -> int:
        """Where a batch begins that is the one which holds an offset, or lies before it."""
        last_offset, position = self.index.entry_up_to(offset)
        if self._is_place_of(last_offset, position):
            return position
        self.rebuild_index()
        return self.index.lookup(offset)

    def offset_after(self, position: int) -> int | None:
        """The last offset of a batch at or after a position, if one is in the index."""
        entry = self.index.entry_after(position)
        if entry is not None and not (entry[1] >= position and self._is_place_of(*entry)):
            self.rebuild_index()
            entry = self.index.entry_after(position)
        return None if entry is None else entry[0]

    def _is_place_of(self, last_offset: int, position: int) -> bool:
        """Whether a batch begins at a place and ends at an offset, as the index says. (Before 4.0
        Apache Kafka noted the end of the last of several that came together.)"""
        if position == 0:
            return True
        if position + HEADER_BYTES > self.size:
            return False
        first, length, magic, delta = _EXTENT.unpack(self.log.read_at(position, _EXTENT.size))
        last = first + delta if magic == 2 else first
        is_whole = 0 < length <= self.size - position - LOG_OVERHEAD
        if not (is_whole and self.base_offset <= first <= last <= last_offset):
            return False
        if magic == 2:
            return bool(length >= HEADER_BYTES - LOG_OVERHEAD)
        return is_message(self.log.read_at(position, LOG_OVERHEAD + length))

    def rebuild_index(self) -> None:
        """Makes the index what the batches say; raises CorruptRecords when they say nothing."""
        logger.warning("%s does not fit its segment and is built anew", self.path(INDEX))
        self.index.create()
        since = 0
        for header in self.walk(0):
            if since > _INDEX_INTERVAL_BYTES:
                self.index.append(header.last_offset, header.position)
                since = 0
            since += header.size
        self.index.write_waiting()
        self.index_entries = -1

    def _rebuild_time_index(self, time_index: TimeIndex) -> None:
        """The same for timestamps."""
        logger.warning("%s is damaged and is built anew", self.path(TIME_INDEX))
        time_index.create()
        since, highest = 0, (NO_TIMESTAMP, self.base_offset)
        for header in self.walk(0):
            if header.max_timestamp > highest[0]:
                highest = (header.max_timestamp, header.last_offset)
            if since > _INDEX_INTERVAL_BYTES:
                time_index.append(*highest)
                since = 0
            since += header.size
        time_index.append(*highest)
        time_index.write_waiting()
        self.seal = None

    def next_offset(self) -> int:
        """The offset after the last record, found by reading up to the end of the file."""
        offset = self.base_offset
        for header in self.walk(self.place_before(self.index.last_offset)):
            first = header.base_offset if header.magic == 2 else header.last_offset
            if first < offset or header.last_offset < first:
                raise CorruptRecords(
                    f"{self.path(LOG)}: offset {first} at {header.position},"
                    f" where {offset} or more was next"
                )
            offset = header.next_offset
        return offset

    # --- changing ---------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Removes every batch that reaches an offset or lies behind it."""
        header = self.find(offset)
        self._forget_recent()
        self._read_on = (-1, 0)
        self.index_entries = -1
        self.time_index  # noqa: B018 - compared with its seal, which ends here
        self.seal = None
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if header is not None:
            self.log.truncate(header.position)
            self.size = header.position
        if self.size == 0:
            self.created_ms = now_ms
            self.known_first_timestamp = None
        self.bytes_since_index = 0
        self._max_timestamp = self._read_max_timestamp()

    def _read_max_timestamp(self) -> tuple[int, int]:
        highest = self.time_index.last
        for header in self.walk(self.place_before(highest[1])):
            if header.max_timestamp > highest[0]:
                highest = (header.max_timestamp, header.last_offset)
        return highest

    def drop_tail(self) -> None:
        """Removes bytes behind the last batch, which a failed write may have left."""
        if self.log.size() != self.size:
            self.log.truncate(self.size)

    def forget(self) -> None:
        """What was read from the files is not to be believed any more."""
        self.seal = None
        self._max_timestamp = None
        self.known_first_timestamp = None
        self._forget_recent()
        self._read_on = (-1, 0)
        self.bytes_since_index = 0
        self.index_entries = -1

    def write_waiting(self) -> None:
        """Puts index entries that wait in memory into their files."""
        if self._index is not None:
            self._index.write_waiting()
        if self._time_index is not None:
            self._time_index.write_waiting()

    def write_aborted(self) -> bool:
        """Puts aborted transactions into their file; False when the segment has none."""
        if self._txn_index is None or not self._txn_index.entries:
            return False
        self._txn_index.write_waiting()
        return True

    def close(self) -> None:
        self.log.close()
        for index in (self._index, self._time_index):
            if index is not None:
                index.close()

    def moved(self, directory: str, suffix: str) -> None:
        """The files have other names now."""
        self.directory = directory
        self.suffix = suffix
        self.log.path = self.path(LOG)
        if self._index is not None:
            self._index.moved(self.path(INDEX))
        if self._time_index is not None:
            self._time_index.moved(self.path(TIME_INDEX))
        if self._txn_index is not None:
            self._txn_index.path = self.path(TXN_INDEX)
