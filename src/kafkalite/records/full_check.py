"""A look at every record of a batch without making any: what a Produce must know of them.

Checks the same as record.py and collects a summary. Keys and values are stepped over, also while
they are being decompressed, so memory stays within one window however large a record claims to
be. The work comes in steps, so that a caller on the event loop can do other things in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol

from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error
from kafkalite.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
)
from kafkalite.records.errors import InvalidRecords, RecordsTooLarge
from kafkalite.records.quick_check import highest_delta_in_steps
from kafkalite.records.record import (
    MAX_INT64,
    MIN_INT64,
    check_countable,
    check_header_count,
    check_header_key,
)
from kafkalite.records.varint import (
    MAX_VARINT_BYTES,
    MAX_VARLONG_BYTES,
    read_varint,
    read_varlong,
)
from kafkalite.records.walks import read_fields
from kafkalite.records.window import STEP_CHUNKS, Window, open_window

# Records, headers or pieces that are stepped over between two steps: under a millisecond.
STEP_RECORDS = 512
STEP_HEADERS = 2048
# Uncompressed batches of so many records have had a quick look before they come here.
MANY_RECORDS = 4096
# What is looked at quickly is held as a whole.
QUICK_BYTES = 2 * 1024 * 1024
# What takes time to walk through, however few bytes it was sent in. Apache Kafka has no such bound,
# and its request handler is busy for minutes with a batch of two thousand million empty records.
MAX_BATCH_RECORDS = 5_000_000
MAX_BATCH_HEADERS = 10_000_000
# Records that a reply can name as bad; the others are only counted by their batch's refusal.
MAX_BAD_RECORDS = 1000


@dataclass(slots=True)
class RecordRules:
    """What a topic asks of each record that a client produces."""

    needs_key: bool = False  # the topic is compacted
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    oldest_timestamp: int = MIN_INT64  # under CREATE_TIME; a record without one is let through
    newest_timestamp: int = MAX_INT64


@dataclass(slots=True)
class BadRecord:
    """A record that breaks a rule, by its index in the batch."""

    index: int
    code: Error
    message: str


@dataclass(slots=True)
class BatchSummary:
    """What the records of a batch say of themselves."""

    max_timestamp: int = NO_TIMESTAMP
    is_dense: bool = True  # offset deltas are 0, 1, 2, …: else the batch has to be built anew
    header_count: int = 0
    bad: list[BadRecord] = field(default_factory=list)


ANYTHING = RecordRules()


def scan_in_steps(
    buffer: Buffer,
    header: BatchHeader,
    rules: RecordRules = ANYTHING,
    step_records: int = STEP_RECORDS,
) -> Steps[BatchSummary]:
    """The summary of a batch v2, or CorruptRecords where Apache Kafka refuses its structure; gives
    way after every step_records records and every few windows."""
    check_countable(header)
    check_record_count(header.record_count)
    summary = BatchSummary()
    if header.record_count == 0:
        return summary
    window = open_window(buffer, header)
    if _may_be_plain(header, rules) and (yield from _is_plain(window, header)):
        summary.max_timestamp = header.max_timestamp
        return summary
    try:
        yield from scan_window(window, header, rules, summary, step_records)
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        summary.max_timestamp = header.max_timestamp
    if summary.max_timestamp > MAX_INT64 and not summary.bad:
        raise InvalidRecords(f"timestamp {summary.max_timestamp} does not fit in 64 bits")
    return summary


def _may_be_plain(header: BatchHeader, rules: RecordRules) -> bool:
    """Whether a quick look is enough, and worth it: it tells no more than the highest timestamp."""
    return (
        (header.compression != Compression.NONE or header.record_count > MANY_RECORDS)
        and header.timestamp_type == TimestampType.CREATE_TIME
        and not rules.needs_key
        and rules.oldest_timestamp == MIN_INT64
        and 0 <= header.base_timestamp <= header.max_timestamp <= rules.newest_timestamp
    )


def _is_plain(window: Window, header: BatchHeader) -> Steps[bool]:
    body = yield from window.all_within(QUICK_BYTES)
    if body is None:
        return False
    delta = yield from highest_delta_in_steps(body, header.record_count)
    return delta is not None and header.base_timestamp + delta == header.max_timestamp


def check_record_count(count: int) -> None:
    if count > MAX_BATCH_RECORDS:
        raise RecordsTooLarge(f"a batch of more than {MAX_BATCH_RECORDS} records")


def scan_window(
    window: Window,
    header: BatchHeader,
    rules: RecordRules,
    summary: BatchSummary,
    step_records: int = STEP_RECORDS,
) -> Steps[None]:
    """Fill the summary from an open window; IndexError when a record ends inside a field."""
    base_timestamp, needs_key = header.base_timestamp, rules.needs_key
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    oldest, newest = _oldest_and_newest(header, rules)
    data, position, size = window.data, 0, len(window.data)
    index, next_step, cuts = 0, step_records, 0
    while index < header.record_count:
        end, timestamp_delta, offset_delta, _, key_length, value_at, value_length = read_fields(
            data, position, size
        )
        if end >= 0:
            position = value_at + value_length if value_length > 0 else value_at
            if data[position] == 0:
                position += 1
            else:
                position = yield from _after_headers(data, position, end, summary)
            if position != end:
                raise InvalidRecords(f"a record's fields end {position - end} bytes behind its end")
        else:
            timestamp_delta, offset_delta, key_length = yield from scan_across(
                window, position, summary
            )
            data, position, size = window.data, 0, len(window.data)
            cuts += 1
            if cuts % STEP_CHUNKS == 0:
                yield
        timestamp = base_timestamp + timestamp_delta
        if timestamp > summary.max_timestamp:
            summary.max_timestamp = timestamp
        if offset_delta != index:
            summary.is_dense = False
        if (needs_key and key_length < 0) or not oldest <= timestamp <= newest:
            shown = header.max_timestamp if is_append_time else timestamp
            note(summary.bad, judge(header, rules, index, shown, key_length >= 0))
        index += 1
        if index == next_step:
            next_step += step_records
            yield
    window.check_exhausted(position)


def iterate_times(
    buffer: Buffer, header: BatchHeader
) -> Generator[tuple[int, int] | None, None, None]:
    """Offset and timestamp of each record of a batch v2 that was checked before, and None where it
    is time to give way. No record is put together, however large it is."""
    check_countable(header)
    if header.record_count == 0:
        return
    try:
        yield from times_in_window(open_window(buffer, header), header)
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None


def times_in_window(
    window: Window, header: BatchHeader
) -> Generator[tuple[int, int] | None, None, None]:
    """The same of an open window; IndexError when a record ends inside a field."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    data, position, size = window.data, 0, len(window.data)
    cuts = 0
    for number in range(1, header.record_count + 1):
        end, timestamp_delta, offset_delta, *_ = read_fields(data, position, size)
        if end >= 0:
            position = end
        else:
            timestamp_delta, offset_delta, _ = yield from scan_across(
                window, position, BatchSummary()
            )
            data, position, size = window.data, 0, len(window.data)
            cuts += 1
            if cuts % STEP_CHUNKS == 0:
                yield None
        if number % STEP_RECORDS == 0:
            yield None
        timestamp = header.max_timestamp if is_append_time else base_timestamp + timestamp_delta
        yield base_offset + offset_delta, timestamp


def _count_headers(summary: BatchSummary, count: int) -> bool:
    """Whether so many have been seen since the last step that it is time for another."""
    before = summary.header_count
    summary.header_count += count
    if summary.header_count > MAX_BATCH_HEADERS:
        raise RecordsTooLarge(f"a batch of more than {MAX_BATCH_HEADERS} headers")
    return before // STEP_HEADERS != summary.header_count // STEP_HEADERS


def _after_headers(data: bytes, position: int, end: int, summary: BatchSummary) -> Steps[int]:
    count, position = read_varint(data, position)
    check_header_count(count, end - position)
    if _count_headers(summary, count):
        yield
    for number in range(1, count + 1):
        length, position = read_varint(data, position)
        check_header_key(length)
        position += length
        length, position = read_varint(data, position)
        position += max(length, 0)
        if position > end:
            raise InvalidRecords("a record's headers run over its end")
        if number % STEP_HEADERS == 0:
            yield
    return position


class Sink(Protocol):
    """Who is told of a record that windows cut: what its fields are, then their bytes."""

    def key(self, timestamp_delta: int, offset_delta: int, length: int) -> None: ...

    def value(self, length: int) -> None: ...

    def take(self, piece: memoryview) -> None: ...


def scan_across(
    window: Window, position: int, summary: BatchSummary, sink: Sink | None = None
) -> Steps[tuple[int, int, int]]:
    """Timestamp delta, offset delta and key length of a record that windows cut.

    Steps over key, value and headers piece by piece; leaves the window at the next record.
    """
    take = None if sink is None else sink.take
    if window.is_last:  # nothing more will come, so the record is not only cut
        window.whole_record(position)
    cursor = Cursor(window, position)
    length = cursor.read_varint()
    if length < 0:
        raise InvalidRecords(f"a record of {length} bytes")
    start = cursor.consumed
    yield from cursor.skip(1)
    timestamp_delta = cursor.read_varlong()
    offset_delta = cursor.read_varint()
    key_length = cursor.read_varint()
    if sink is not None:
        sink.key(timestamp_delta, offset_delta, key_length)
    yield from cursor.skip(key_length, take)
    value_length = cursor.read_varint()
    if sink is not None:
        sink.value(value_length)
    yield from cursor.skip(value_length, take)
    count = cursor.read_varint()
    check_header_count(count, length - (cursor.consumed - start))
    if _count_headers(summary, count):
        yield
    for number in range(1, count + 1):
        key_size = cursor.read_varint()
        check_header_key(key_size)
        yield from cursor.skip(key_size)
        yield from cursor.skip(cursor.read_varint())
        if number % STEP_HEADERS == 0:
            yield
        if cursor.consumed - start > length:
            break
    if cursor.consumed - start != length:
        raise InvalidRecords("a record's fields do not end where it does")
    cursor.leave()
    return timestamp_delta, offset_delta, key_length


class Cursor:
    """Reads numbers from a window and steps over bytes, counting what it consumed."""

    __slots__ = ("_data", "_position", "_window", "consumed")

    def __init__(self, window: Window, position: int) -> None:
        self._window = window
        self._data = window.data
        self._position = position
        self.consumed = 0

    def read_varint(self) -> int:
        self._need(MAX_VARINT_BYTES)
        return self._advance(*read_varint(self._data, self._position))

    def read_varlong(self) -> int:
        self._need(MAX_VARLONG_BYTES)
        return self._advance(*read_varlong(self._data, self._position))

    def skip(self, size: int, take: Callable[[memoryview], None] | None = None) -> Steps[None]:
        """Step over bytes, which `take` is given if somebody wants them."""
        if size <= 0:
            return
        self.consumed += size
        chunks = 0
        while size > (available := len(self._data) - self._position):
            if take is not None:
                take(memoryview(self._data)[self._position :])
            size -= available
            self._data, self._position = self._window.next_chunk(size), 0
            chunks += 1
            if take is not None or chunks % STEP_CHUNKS == 0:
                yield
        if take is not None:
            take(memoryview(self._data)[self._position : self._position + size])
        self._position += size

    def leave(self) -> None:
        """Put the window at the cursor."""
        self._window.at_least(self._position, 0)

    def _need(self, size: int) -> None:
        if len(self._data) - self._position < size:
            self._data = self._window.at_least(self._position, size)
            self._position = 0

    def _advance(self, number: int, position: int) -> int:
        self.consumed += position - self._position
        self._position = position
        return number


def _oldest_and_newest(header: BatchHeader, rules: RecordRules) -> tuple[int, int]:
    """The timestamps that need no judgement: none, when the batch claims the broker's clock."""
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        return MAX_INT64, MIN_INT64
    if rules.timestamp_type == TimestampType.LOG_APPEND_TIME:
        return MIN_INT64, MAX_INT64
    return rules.oldest_timestamp, rules.newest_timestamp


def judge(
    header: BatchHeader, rules: RecordRules, index: int, timestamp: int, has_key: bool
) -> BadRecord | None:
    """Whether a record breaks a rule; its key is looked at first, as in Apache Kafka."""
    if rules.needs_key and not has_key:
        message = "Compacted topic cannot accept message without key"
        return BadRecord(index, Error.INVALID_RECORD, message)
    if rules.timestamp_type == TimestampType.CREATE_TIME and timestamp != NO_TIMESTAMP:
        if rules.oldest_timestamp <= timestamp <= rules.newest_timestamp:
            return None
        allowed = f"[{rules.oldest_timestamp}, {rules.newest_timestamp}]"
        message = f"Timestamp {timestamp} is not within {allowed}"
    elif header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        message = "A producer may not set the timestamp type to LogAppendTime"
    else:
        return None
    return BadRecord(index, Error.INVALID_TIMESTAMP, message)


def note(bad: list[BadRecord], record: BadRecord | None) -> None:
    """Keep a bad record's name while there is room for it."""
    if record is not None and len(bad) < MAX_BAD_RECORDS:
        bad.append(record)
