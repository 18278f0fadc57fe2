"""Batches v2 as message sets of magic 0 or 1, in steps and a window of memory.

Owns what is done with a record that is too large to be put together: it is read twice, since a
message begins with the checksum of what follows. Invariant: beside what comes out, and what came
in, never more than a few pieces are held, however much a batch inflates to.
"""

from __future__ import annotations

import zlib
from collections import deque

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps
from kafkalite.records.batch import BatchHeader, Buffer
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.full_check import STEP_RECORDS, BatchSummary, scan_across
from kafkalite.records.legacy import NULLABLE_LENGTH, MessageSet
from kafkalite.records.record import check_countable, iterate_window
from kafkalite.records.window import Window, open_window

# Records of more than this, when they are cut by a window, are not put together.
LARGE_BYTES = 256 * 1024


def add_batch(messages: MessageSet, buffer: Buffer, header: BatchHeader) -> Steps[None]:
    """Adds the records of a batch v2."""
    check_countable(header)
    if header.record_count == 0:
        return
    try:
        yield from _add_window(messages, buffer, header, open_window(buffer, header))
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None


def _add_window(
    messages: MessageSet, buffer: Buffer, header: BatchHeader, window: Window
) -> Steps[None]:
    large: deque[_Large] | None = None
    for number, record in enumerate(iterate_window(window, header, LARGE_BYTES), 1):
        if record is not None:
            if messages.add(record) or number % STEP_RECORDS == 0:
                yield
            continue
        if large is None:
            large = yield from _measured(messages, header, open_window(buffer, header))
        measured = large.popleft()
        messages.begin(measured.offset, measured.timestamp, measured.size, measured.checksum)
        yield from scan_across(window, 0, BatchSummary(), _Writer(messages, header))


def _measured(messages: MessageSet, header: BatchHeader, window: Window) -> Steps[deque[_Large]]:
    """The large records of a batch, before the first is written."""
    large: deque[_Large] = deque()
    for number, record in enumerate(iterate_window(window, header, LARGE_BYTES), 1):
        if record is None:
            large.append(_Large(messages, header))
            yield from scan_across(window, 0, BatchSummary(), large[-1])
        elif number % STEP_RECORDS == 0:
            yield
    return large


@dataclass(slots=True)
class _Large:
    """What has to be known of a large record before it is written."""

    messages: MessageSet
    header: BatchHeader
    offset: int = 0
    timestamp: int = 0
    size: int = 0
    checksum: int = 0

    def key(self, timestamp_delta: int, offset_delta: int, length: int) -> None:
        self.offset = self.header.base_offset + offset_delta
        self.timestamp = self.header.base_timestamp + timestamp_delta
        self.take(self.messages.body_front(self.timestamp, length))

    def value(self, length: int) -> None:
        self.take(NULLABLE_LENGTH.pack(length))

    def take(self, piece: Buffer) -> None:
        self.size += len(piece)
        self.checksum = zlib.crc32(piece, self.checksum)


@dataclass(slots=True)
class _Writer:
    """The same record, on its way into the set."""

    messages: MessageSet
    header: BatchHeader

    def key(self, timestamp_delta: int, offset_delta: int, length: int) -> None:
        timestamp = self.header.base_timestamp + timestamp_delta
        self.take(self.messages.body_front(timestamp, length))

    def value(self, length: int) -> None:
        self.take(NULLABLE_LENGTH.pack(length))

    def take(self, piece: Buffer) -> None:
        self.messages.take(piece)
