"""One segment: a file of record batches and its indexes.

Owns the bytes from its base offset on and how a batch in it is found. It never decides when it
ends, and it never checks what is appended. Invariant: `size` is where the last whole batch ends;
bytes behind it are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kafkalite.env.disk import Buffer, Disk, File
from kafkalite.log.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from kafkalite.log.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_name
from kafkalite.log.txn_index import TxnIndex
from kafkalite.records.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, peek_header
from kafkalite.records.errors import CorruptRecords

_WALK_BYTES = 16_384  # read at once while walking from batch to batch
_FIND_BYTES = 4_096  # the same on the short way from an index entry to a batch
_EXTENT = Struct(">qi4xb6xi")  # of a header: base offset, length, magic, last offset delta
_MAX_RELATIVE_OFFSET = 2**31 - 1
_RECENT_BATCHES = 16


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

    def path(self, kind: str) -> str:
        return f"{self.directory}/{offset_name(self.base_offset, kind)}{self.suffix}"

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

    def is_index_full(self, slots: int) -> bool:
        if self._index is None and self.size == 0:
            return False
        self.index_entries = max(self.index.entries, self.time_index.entries + 1)
        return self.index_entries >= slots

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
            start, place = self.index.around(offset)
        found = self._extent_at(place, offset)
        if found is not None:
            return found
        header = self._find_from(start, offset)
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
            start = self.index.lookup(offset)
        return self._find_from(start, offset)

    def _find_from(self, start: int, offset: int) -> BatchHeader | None:
        for header in self.walk(start, read_bytes=_FIND_BYTES):
            if header.last_offset >= offset:
                self._read_on = (header.next_offset, header.end)
                return header
        return None

    def next_offset(self) -> int:
        """The offset after the last record, found by reading."""
        offset = self.base_offset
        for header in self.walk(self.index.lookup(self.index.last_offset)):
            offset = header.next_offset
        return offset

    # --- changing ---------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Removes every batch that reaches an offset or lies behind it."""
        header = self.find(offset)
        self._forget_recent()
        self._read_on = (-1, 0)
        self.index_entries = -1
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
        for header in self.walk(self.index.lookup(highest[1])):
            if header.max_timestamp > highest[0]:
                highest = (header.max_timestamp, header.last_offset)
        return highest

    def drop_tail(self) -> None:
        """Removes bytes behind the last batch, which a failed write may have left."""
        if self.log.size() != self.size:
            self.log.truncate(self.size)

    def forget(self) -> None:
        """What was read from the files is not to be believed any more."""
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
