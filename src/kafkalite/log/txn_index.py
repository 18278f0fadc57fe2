"""The transaction index of a segment: the transactions that were aborted in it.

Owns the `.txnindex` file, which exists only when the segment has such transactions. It never
decides what is aborted. Invariant: the last offsets of the entries rise.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kafkalite.env.disk import Disk, read_whole

_ENTRY = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records no committed read may show."""

    producer_id: int
    first_offset: int
    last_offset: int  # of its abort marker
    last_stable_offset: int  # when it was aborted


class TxnIndex:
    """The aborted transactions of one segment, in the order of their markers."""

    __slots__ = ("_disk", "_entries", "_written", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._entries: list[AbortedTransaction] | None = None
        self._written = 0
        self.path = path

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._load() if self._disk.exists(self.path) else []
        return self._entries

    def _load(self) -> list[AbortedTransaction]:
        data = read_whole(self._disk, self.path)
        usable = len(data) // _ENTRY.size * _ENTRY.size
        self._written = usable // _ENTRY.size
        return [AbortedTransaction(*row[1:]) for row in _ENTRY.iter_unpack(data[:usable])]

    def append(self, transaction: AbortedTransaction) -> None:
        """Adds a transaction; into the file it comes with the next flush."""
        self.entries.append(transaction)

    def write_waiting(self) -> None:
        """Puts what is not there yet into the file (not onto the platter)."""
        entries = self.entries
        if len(entries) > self._written:
            path = self.path
            file = self._disk.open(path) if self._disk.exists(path) else self._disk.create(path)
            rows = [_ENTRY.pack(_VERSION, *entry) for entry in entries[self._written :]]
            file.write_at(self._written * _ENTRY.size, b"".join(rows))
            file.close()
            self._written = len(entries)

    def truncate_to(self, offset: int) -> None:
        """Forgets transactions whose marker is at or after an offset."""
        keep = [entry for entry in self.entries if entry.last_offset < offset]
        if len(keep) < len(self.entries):
            self._entries = keep
            if len(keep) < self._written:
                self._written = len(keep)
                file = self._disk.open(self.path)
                file.truncate(len(keep) * _ENTRY.size)
                file.close()

    def reset(self) -> None:
        """Starts again with no entries."""
        self._entries = []
        self._written = 0
        if self._disk.exists(self.path):
            self._disk.remove(self.path)

    def collect(self, first: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions that touch offsets from `first` below `end`, and whether later segments
        cannot add any."""
        found = []
        for entry in self.entries:
            if entry.last_offset >= first and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False
