"""The sparse indexes of a segment: offset to position, and timestamp to offset.

Owns the two files and how they are searched. Entries wait in memory until some have gathered or a
flush asks for them: what a crash loses is rebuilt from the segment. It never reads the segment
itself. Invariant: keys rise from entry to entry, in the file and from the file into what waits.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct

from kafkalite.env.disk import Disk, File

_OFFSET_ENTRY = Struct(">II")  # offset relative to the segment's base, position in the segment
_TIME_ENTRY = Struct(">qI")  # timestamp, offset relative to the segment's base
OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = _OFFSET_ENTRY.size, _TIME_ENTRY.size
_WAITING_BYTES = 4096  # this much gathers in memory before it is written
_PAGE_ENTRIES = 256  # kept in memory of what is in the file: those around the last search
NO_TIMESTAMP = -1


class Index:
    """Entries of one size, sorted, in a file and a tail in memory."""

    __slots__ = (
        "_disk", "_entry", "_file", "_file_bytes", "_page", "_page_slot", "_waiting",
        "base_offset", "path",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str, base_offset: int, entry: Struct) -> None:
        self._disk = disk
        self._entry = entry
        self._file: File | None = None
        self._file_bytes = -1  # not looked at yet
        self._waiting = bytearray()
        self._page = b""  # a copy of stored entries, of which the first has this slot
        self._page_slot = 0
        self.base_offset = base_offset
        self.path = path

    # --- the file ---------------------------------------------------------------------------------

    def create(self) -> None:
        """Starts with no entries, whatever was there."""
        self._file = self._disk.create(self.path)
        self._file_bytes = 0
        self._page = b""
        self._waiting.clear()

    def _open(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    def _stored_bytes(self) -> int:
        if self._file_bytes < 0:
            self._file_bytes = self._find_end(self._disk.size_of(self.path))
        return self._file_bytes

    def _find_end(self, size: int) -> int:
        """The bytes in use. Apache Kafka preallocates its active indexes: zeros follow the last
        entry then."""
        width = self._entry.size
        count = size // width
        if count < 2 or self._fetch_stored(count - 1) != (0, 0):
            return count * width
        low, high = 1, count - 1  # the first entry may be zeros by right, later ones never
        while low < high:
            middle = (low + high) // 2
            if self._fetch_stored(middle) == (0, 0):
                high = middle
            else:
                low = middle + 1
        return (low if low > 1 or self._fetch_stored(0) != (0, 0) else 0) * width

    def _fetch_stored(self, slot: int) -> tuple[int, int]:
        width = self._entry.size
        first, second = self._entry.unpack(self._open().read_at(slot * width, width))
        return first, second

    def write_waiting(self) -> None:
        """Puts what waits into the file (not onto the platter)."""
        if self._waiting:
            stored = self._stored_bytes()
            self._open().write_at(stored, self._waiting)
            self._file_bytes = stored + len(self._waiting)
            self._waiting.clear()

    def trim(self) -> None:
        """Cuts the file to the entries in use."""
        self.write_waiting()
        if self._disk.size_of(self.path) != self._stored_bytes():
            self._open().truncate(self._stored_bytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def moved(self, path: str) -> None:
        """The file has another name now."""
        self.path = path
        if self._file is not None:
            self._file.path = path

    # --- entries ----------------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        return (self._stored_bytes() + len(self._waiting)) // self._entry.size

    def fetch(self, slot: int) -> tuple[int, int]:
        """An entry as it is stored, with its relative offset."""
        position = slot * self._entry.size - self._stored_bytes()
        if position >= 0:
            first, second = self._entry.unpack_from(self._waiting, position)
            return first, second
        position = (slot - self._page_slot) * self._entry.size
        if 0 <= position < len(self._page):
            first, second = self._entry.unpack_from(self._page, position)
            return first, second
        return self._fetch_stored(slot)

    def _append(self, first: int, second: int) -> None:
        self._waiting += self._entry.pack(first, second)
        if len(self._waiting) >= _WAITING_BYTES:
            # The batch is in the log already: a full disk must not refuse it now.
            with suppress(OSError):
                self.write_waiting()

    def _last_slot_up_to(self, key: int, field: int = 0) -> int:
        """The last slot whose field is not above the key, or -1."""
        slot = self._slot_on_page(key, field)
        if slot < 0:
            slot = self._find_last_slot(key, field)
            self._turn_page(slot)
        return slot

    def _find_last_slot(self, key: int, field: int) -> int:
        stored = self._stored_bytes() // self._entry.size
        if self._waiting and self._entry.unpack_from(self._waiting)[field] <= key:
            low, high = stored, self.entries
        else:
            low, high = 0, stored
        while low < high:
            middle = (low + high) // 2
            if self.fetch(middle)[field] <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _slot_on_page(self, key: int, field: int) -> int:
        """The same from the page alone: where who reads on finds its next place. -1: not there."""
        page, width, unpack = self._page, self._entry.size, self._entry.unpack_from
        low, high = 0, len(page) // width - 1
        if high < 1 or not unpack(page)[field] <= key < unpack(page, high * width)[field]:
            return -1
        while high - low > 1:  # the key is not below low's and is below high's
            middle = (low + high) // 2
            if unpack(page, middle * width)[field] <= key:
                low = middle
            else:
                high = middle
        return self._page_slot + low

    def _turn_page(self, slot: int) -> None:
        """Keeps the stored entries from a slot on."""
        start = slot * self._entry.size
        size = min(_PAGE_ENTRIES * self._entry.size, self._stored_bytes() - start)
        if start >= 0 and size > 0:
            page = self._open().read_at(start, size)
            self._page, self._page_slot = page, slot

    def _keep(self, entries: int) -> None:
        self.write_waiting()
        size = entries * self._entry.size
        if size < self._stored_bytes():
            self._open().truncate(size)
            self._file_bytes = size
        self._page = b""

    def truncate(self, offset: int, field: int) -> None:
        """Forgets entries at or after an offset."""
        self._keep(self._last_slot_up_to(offset - self.base_offset - 1, field) + 1)


class OffsetIndex(Index):
    """Offset of a batch's last record to the position of that batch."""

    __slots__ = ("_last_offset",)

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        super().__init__(disk, path, base_offset, _OFFSET_ENTRY)
        self._last_offset: int | None = None

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset when there is none."""
        if self._last_offset is None:
            entries = self.entries
            self._last_offset = self.base_offset + (self.fetch(entries - 1)[0] if entries else 0)
        return self._last_offset

    def append(self, offset: int, position: int) -> None:
        self._append(offset - self.base_offset, position)
        self._last_offset = offset

    def entry_up_to(self, offset: int) -> tuple[int, int]:
        """Last offset and position of the last batch in the index that begins at or before the one
        which holds an offset; those of nothing at all when there is none."""
        slot = self._last_slot_up_to(offset - self.base_offset)
        if slot < 0:
            return self.base_offset, 0
        delta, position = self.fetch(slot)
        return self.base_offset + delta, position

    def lookup(self, offset: int) -> int:
        """A position at or before the batch that holds an offset."""
        return self.entry_up_to(offset)[1]

    def place_of(self, offset: int) -> int:
        """The position of the batch that begins at an offset, if it and the one that ends right
        before are indexed; else -1."""
        before = offset - 1 - self.base_offset
        slot = self._last_slot_up_to(before)
        if slot < 0 or slot + 1 >= self.entries or self.fetch(slot)[0] != before:
            return -1
        return self.fetch(slot + 1)[1]

    def entry_after(self, position: int) -> tuple[int, int] | None:
        """Last offset and position of the first indexed batch at or after a position."""
        slot = self._last_slot_up_to(position - 1, 1) + 1
        if slot >= self.entries:
            return None
        delta, found = self.fetch(slot)
        return self.base_offset + delta, found

    def truncate_to(self, offset: int) -> None:
        self.truncate(offset, 0)
        self._last_offset = None


class TimeIndex(Index):
    """Largest timestamp so far to the last offset of the batch that brought it."""

    __slots__ = ("_last",)

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        super().__init__(disk, path, base_offset, _TIME_ENTRY)
        self._last: tuple[int, int] | None = None

    @property
    def last(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (-1, base offset) when there is none."""
        if self._last is None:
            entries = self.entries
            timestamp, delta = self.fetch(entries - 1) if entries else (NO_TIMESTAMP, 0)
            self._last = (timestamp, self.base_offset + delta)
        return self._last

    def append(self, timestamp: int, offset: int) -> None:
        """Adds an entry when time has moved on since the last."""
        if timestamp > self.last[0]:
            self._append(timestamp, offset - self.base_offset)
            self._last = (timestamp, offset)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry at or before a timestamp; (-1, base offset) when there is none."""
        slot = self._last_slot_up_to(timestamp)
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        found, delta = self.fetch(slot)
        return found, self.base_offset + delta

    def truncate_to(self, offset: int) -> None:
        self.truncate(offset, 1)
        self._last = None
