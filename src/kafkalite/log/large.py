"""Batches that inflate to more than is held in memory, for compaction: read and copied as streams.

A batch of 20 KB may hold a value of 200 MB. Nothing of its size is ever put together: what is known
of a record are its numbers and its key, of a long key a digest. Invariant: a copied record has the
bytes that it had, but for a timestamp that is told from another base.
"""

from __future__ import annotations

from collections.abc import Generator
from hashlib import blake2b

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.log.key_map import DIGEST_BYTES, LONG_KEY
from kafkalite.log.record_pieces import begins_at_append_time, patched
from kafkalite.records.batch import NO_TIMESTAMP, BatchHeader, codec
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.full_check import STEP_RECORDS, Cursor
from kafkalite.records.packing import Packer
from kafkalite.records.varint import encode_varint
from kafkalite.records.window import open_window


@dataclass(slots=True)
class Head:
    """What compaction asks of a record."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None  # or its digest
    has_value: bool


@dataclass(slots=True)
class Choice:
    """Which records of a batch are kept."""

    is_kept: bytearray = field(default_factory=bytearray)
    count: int = 0
    has_tombstones: bool = False
    highest_delta: int | None = None  # of the timestamps

    def add(self, head: Head, *, is_kept: bool) -> None:
        self.is_kept.append(is_kept)
        if is_kept:
            self.count += 1
            self.has_tombstones = self.has_tombstones or not head.has_value
            if self.highest_delta is None or head.timestamp_delta > self.highest_delta:
                self.highest_delta = head.timestamp_delta


def heads_of(data: bytes, header: BatchHeader) -> Generator[Head | None, None, None]:
    """The heads of all records, and None now and then, where it is time to give way."""
    cursor = Cursor(open_window(data, header), 0)
    for number in range(1, header.record_count + 1):
        if number % STEP_RECORDS == 0:
            yield None
        length, start = cursor.read_varint(), cursor.consumed
        yield from cursor.skip(1)
        timestamp_delta, offset_delta = cursor.read_varlong(), cursor.read_varint()
        key = yield from _key_at(cursor)
        has_value = cursor.read_varint() >= 0
        yield from cursor.skip(_left_of(cursor, start, length))
        yield Head(offset_delta, timestamp_delta, key, has_value)


def _key_at(cursor: Cursor) -> Steps[bytes | None]:
    length = cursor.read_varint()
    if length < 0:
        return None
    if length <= LONG_KEY:
        key = bytearray()
        yield from cursor.skip(length, key.extend)
        return bytes(key)
    digest = blake2b(digest_size=DIGEST_BYTES)
    yield from cursor.skip(length, digest.update)
    return digest.digest()


def _left_of(cursor: Cursor, start: int, length: int) -> int:
    left = length - (cursor.consumed - start)
    if left < 0:
        raise InvalidRecords("a record ends inside one of its fields")
    return left


class _Times:
    """Of records in their new batch: from its horizon on, if it is given one now; from the time of
    the append where that is the time of all."""

    def __init__(self, header: BatchHeader, horizon_ms: int | None) -> None:
        base = header.base_timestamp if horizon_ms is None else horizon_ms
        self._shift = header.base_timestamp - base
        self._of_all: int | None = None
        if begins_at_append_time(header):
            self._of_all = 0 if horizon_ms is None else header.max_timestamp - horizon_ms

    def delta(self, old: int) -> int:
        return old + self._shift if self._of_all is None else self._of_all


def copy(
    data: bytes, header: BatchHeader, choice: Choice, horizon_ms: int | None
) -> Steps[bytearray]:
    """The batch with the records that were chosen, and with a delete horizon if one is given."""
    times = _Times(header, horizon_ms)
    cursor = Cursor(open_window(data, header), 0)
    packer = Packer(codec(header))

    def take(piece: memoryview) -> None:
        packer.add(piece)

    for number, is_kept in enumerate(choice.is_kept, 1):
        if number % STEP_RECORDS == 0:
            yield
        length, start = cursor.read_varint(), cursor.consumed
        front = bytearray()
        yield from cursor.skip(1, front.extend)
        front += encode_varint(times.delta(cursor.read_varlong()))
        left = _left_of(cursor, start, length)
        if is_kept:
            packer.add(encode_varint(len(front) + left) + front)
        yield from cursor.skip(left, take if is_kept else None)
    highest = header.base_timestamp + (choice.highest_delta or 0)
    highest = max(highest, NO_TIMESTAMP)
    return patched(data, header, packer.finish(), choice.count, highest, horizon_ms)
