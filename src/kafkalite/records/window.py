"""The decompressed bytes of a batch's records, a bounded piece at a time.

Owns how much of a batch is inflated at once. Invariant: `data` never holds more than one chunk
beyond the record that was asked for, so memory follows the largest record, not the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.env.slicing import Steps
from kafkalite.records import compression
from kafkalite.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    Buffer,
    Compression,
    codec,
)
from kafkalite.records.errors import InvalidRecords, RecordsTooLarge
from kafkalite.records.varint import MAX_VARINT_BYTES, read_varint

# The largest record that is put together in memory. A producer that sends a larger one has it
# stored (full_check.py checks it as a stream), but nothing in the broker can look at it as a whole.
MAX_RECORD_BYTES = 128 * 1024 * 1024
# Pieces that are inflated between two steps: under a millisecond.
STEP_CHUNKS = 4


class Window:
    """A view that moves over the records of one batch, from start to end."""

    __slots__ = ("_chunks", "_max_record_bytes", "data", "is_last")

    def __init__(self, data: bytes, chunks: Iterator[bytes] | None, max_record_bytes: int) -> None:
        self.data = data
        self._chunks = iter(()) if chunks is None else chunks
        self.is_last = chunks is None
        self._max_record_bytes = max_record_bytes

    def whole_record(self, position: int) -> bytes:
        """Drop what lies before `position`; return bytes that begin with a whole record."""
        length, start = self.length_at(position)
        data = self.at_least(0, start + length)
        if len(data) < start + length:
            raise InvalidRecords(
                f"a record of {length} bytes, but the batch ends after {len(data) - start}"
            )
        return data

    def length_at(self, position: int) -> tuple[int, int]:
        """Drop what lies before `position`, where a record begins; its length, and where that
        ends."""
        data = self.at_least(position, MAX_VARINT_BYTES)
        try:
            length, start = read_varint(data, 0)
        except IndexError:
            raise InvalidRecords("the batch ends before its last record") from None
        if length < 0:
            raise InvalidRecords(f"a record of {length} bytes")
        if length > self._max_record_bytes and not self.is_last:
            raise RecordsTooLarge(
                f"a record of {length} bytes; the limit is {self._max_record_bytes}"
            )
        return length, start

    def at_least(self, position: int, size: int) -> bytes:
        """Drop what lies before `position`; return `size` bytes or more, or all that is left."""
        parts = [self.data[position:]]
        available = len(parts[0])
        while available < size and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            available += len(chunk)
        self.data = parts[0] if len(parts) == 1 else b"".join(parts)
        return self.data

    def all_within(self, size: int) -> Steps[bytes | None]:
        """All there is, None when that is more than `size` bytes; nothing is dropped."""
        parts, available = [self.data], len(self.data)
        while not self.is_last and available <= size:
            chunk = next(self._chunks, b"")
            self.is_last = not chunk
            parts.append(chunk)
            available += len(chunk)
            if len(parts) % STEP_CHUNKS == 0:
                yield
        self.data = b"".join(parts)
        return self.data if available <= size else None

    def next_chunk(self, missing: int) -> bytes:
        """Drop everything and go on with what comes next, of which so many bytes are needed."""
        self.data = next(self._chunks, b"")
        if not self.data:
            raise InvalidRecords(f"the batch ends {missing} bytes too early")
        return self.data

    def check_exhausted(self, position: int) -> None:
        """Nothing may follow the last record."""
        if len(self.at_least(position, 1)) > 0:
            raise InvalidRecords("bytes follow the last record of the batch")


def open_window(
    buffer: Buffer, header: BatchHeader, max_record_bytes: int = MAX_RECORD_BYTES
) -> Window:
    """The records of a batch v2, from the first."""
    records = memoryview(buffer)[header.position + HEADER_BYTES : header.end]
    used = codec(header)
    if used == Compression.NONE:
        # One copy: bytes are twice as fast to index as a memoryview, and keys are cut from them.
        return Window(bytes(records), None, max_record_bytes)
    chunks = compression.decompress_chunks(used, records)
    return Window(next(chunks, b""), chunks, max_record_bytes)
