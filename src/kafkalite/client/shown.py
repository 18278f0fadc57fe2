"""The records of one batch that are shown to whom reads: one after the other, or all their values
at once.

Owns when that is the same: every record of the batch is shown, and `values_of` can read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kafkalite.env.slicing import finish
from kafkalite.records.batch import BatchHeader
from kafkalite.records.convert import iterate_any
from kafkalite.records.record import Record
from kafkalite.records.walks import values_of
from kafkalite.records.window import open_window

MAGIC = 2  # of batches whose headers say where they begin
MOST_BYTES = 16 << 20  # of a batch that is inflated as a whole


class Shown:
    """Iterate over it for the records, from `first` on and before `end`."""

    __slots__ = ("_buffer", "_end", "_first", "_header")

    def __init__(
        self, buffer: memoryview, header: BatchHeader, first: int, end: float = math.inf
    ) -> None:
        self._buffer, self._header = buffer, header
        self._first, self._end = first, end

    def __iter__(self) -> Iterator[Record]:
        found = iterate_any(self._buffer, self._header)
        if self._is_whole():
            return found
        return (record for record in found if self._first <= record.offset < self._end)

    def _is_whole(self) -> bool:
        header = self._header
        if header.magic != MAGIC or header.base_offset < self._first:
            return False
        return header.last_offset < self._end

    def values(self, null: bytes) -> list[bytes] | None:
        """The values of all records, `null` in the place of none; None when they have to be read
        one after the other, which also tells what is wrong with them."""
        if not self._is_whole():
            return None
        body = self._body()
        return None if body is None else values_of(body, self._header.record_count, null)

    def _body(self) -> bytes | None:
        window = open_window(self._buffer, self._header)
        if window.is_last:
            return window.data
        return finish(window.all_within(MOST_BYTES))
