"""Records of batch v2: read one after the other, and built into a batch.

Reading holds one window of decompressed bytes beside the record at hand, so a batch that
inflates to gigabytes is walked through in bounded memory. Invariant: a record is yielded only
when its fields fill exactly the length that it declares. To look at records without making
them, as a Produce does, see full_check.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, cast

from kafkalite.records import compression as codecs
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    CRC,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
)
from kafkalite.records.checksum import crc32c
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.varint import encode_varint, read_varint, small_varint
from kafkalite.records.walks import read_fields
from kafkalite.records.window import MAX_RECORD_BYTES, Window, open_window

RecordHeader: TypeAlias = tuple[bytes, bytes | None]
HeaderLike: TypeAlias = tuple[str | bytes, bytes | None]

MIN_INT64 = -(1 << 63)
MAX_INT64 = (1 << 63) - 1
# Offset deltas that are kept encoded for those who write values alone.
MANY = 1 << 14


@dataclass(slots=True)
class Record:
    """One record. Header keys stay bytes: that they are UTF-8 is only the producer's word."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


def iterate_records(
    buffer: Buffer, header: BatchHeader, *, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record]:
    """The records of a batch v2, decompressed when needed; legacy.py has the older formats.

    max_record_bytes bounds one record, which has to be in memory whole. Raises CorruptRecords.
    """
    assert header.magic == 2, "a message set is read by legacy.iterate_records"
    check_countable(header)
    if header.record_count == 0:  # what compaction leaves to keep a producer's sequence
        return
    window = open_window(buffer, header, max_record_bytes)
    try:
        yield from cast(Iterator[Record], iterate_window(window, header))
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None


def check_countable(header: BatchHeader) -> None:
    """What must hold of a header before its records can be walked through."""
    if header.record_count < 0:
        raise InvalidRecords(f"a batch of {header.record_count} records")


def iterate_window(
    window: Window, header: BatchHeader, large_bytes: int | None = None
) -> Iterator[Record | None]:
    """The records of an open window; IndexError when one ends inside a field.

    None stands for a record of more than `large_bytes` that is not at hand as a whole: the window
    begins with it, and whoever asks takes it from there.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    headers: tuple[RecordHeader, ...]
    data, position, size = window.data, 0, len(window.data)
    remaining = header.record_count
    while remaining:
        end, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length = (
            read_fields(data, position, size)
        )
        if end < 0:
            if large_bytes is not None and window.length_at(position)[0] > large_bytes:
                yield None
                remaining -= 1
                data = window.data
            else:
                data = window.whole_record(position if large_bytes is None else 0)
            position, size = 0, len(data)
            continue
        position = value_at + value_length if value_length > 0 else value_at
        if data[position] == 0:
            position += 1
            headers = ()
        else:
            headers, position = _read_headers(data, position, end)
        if position != end:
            raise InvalidRecords(f"a record's fields end {position - end} bytes behind its end")
        timestamp = header.max_timestamp if is_append_time else base_timestamp + timestamp_delta
        if not MIN_INT64 <= timestamp <= MAX_INT64:
            raise InvalidRecords(f"timestamp {timestamp} does not fit in 64 bits")
        yield Record(
            base_offset + offset_delta,
            timestamp,
            None if key_length < 0 else data[key_at : key_at + key_length],
            None if value_length < 0 else data[value_at : value_at + value_length],
            headers,
        )
        remaining -= 1
    window.check_exhausted(position)


def _read_headers(data: bytes, position: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, position = read_varint(data, position)
    check_header_count(count, end - position)
    headers: list[RecordHeader] = []
    for _ in range(count):
        length, position = read_varint(data, position)
        check_header_key(length)
        key = data[position : position + length]
        position += length
        length, position = read_varint(data, position)
        if length < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + length]))
            position += length
        if position > end:
            raise InvalidRecords("a record's headers run over its end")
    return tuple(headers), position


def check_header_count(count: int, available: int) -> None:
    """Each header takes at least two bytes, Apache Kafka says one; no list is made before."""
    if not 0 <= count <= available:
        raise InvalidRecords(f"{count} headers in {available} bytes")


def check_header_key(length: int) -> None:
    if length < 0:
        raise InvalidRecords(f"a header key of {length} bytes")


class BatchBuilder:
    """Records, encoded as they come, that become one batch v2.

    A delete horizon takes the base timestamp's place, so it must be known before the first.
    """

    __slots__ = (
        "_base_timestamp",
        "_encoded",
        "_has_delete_horizon",
        "_last_delta",
        "count",
        "max_timestamp",
    )

    def __init__(self, delete_horizon_ms: int | None = None) -> None:
        self.count = 0
        self._has_delete_horizon = delete_horizon_ms is not None
        self._encoded = bytearray()
        self._base_timestamp = delete_horizon_ms
        self._last_delta = -1
        self.max_timestamp = NO_TIMESTAMP

    @property
    def size(self) -> int:
        """Bytes of the batch when it is not compressed."""
        return HEADER_BYTES + len(self._encoded)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[HeaderLike] = (),
        offset_delta: int | None = None,
    ) -> None:
        """Add a record at the next offset, or at a later one where compaction left a gap."""
        if timestamp < NO_TIMESTAMP:
            raise InvalidRecords(f"timestamp {timestamp} is negative")
        delta = self._last_delta + 1 if offset_delta is None else offset_delta
        assert delta > self._last_delta, "offsets rise within a batch"
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        body = _encode_body(timestamp - self._base_timestamp, delta, key, value, headers)
        self._encoded += small_varint(len(body)) or encode_varint(len(body))
        self._encoded += body
        self._last_delta = delta
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1

    def extend(self, timestamps: Sequence[int], values: Sequence[bytes]) -> None:
        """What `append` makes of as many values without keys, many times faster."""
        if not timestamps:
            return
        if min(timestamps) < NO_TIMESTAMP:
            raise InvalidRecords(f"timestamp {min(timestamps)} is negative")
        if self._base_timestamp is None:
            self._base_timestamp = timestamps[0]
        first = self._last_delta + 1
        self._encoded += b"".join(_encode_values(
            [each - self._base_timestamp for each in timestamps], first, values
        ))  # fmt: skip
        self._last_delta += len(values)
        self.max_timestamp = max(self.max_timestamp, max(timestamps))
        self.count += len(values)

    def build(
        self,
        base_offset: int = 0,
        partition_leader_epoch: int = NO_LEADER_EPOCH,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        compression: int = Compression.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        max_timestamp: int | None = None,
        last_offset_delta: int | None = None,
    ) -> bytearray:
        """The batch. max_timestamp and last_offset_delta default to those of the records."""
        encoded = codecs.compress(compression, self._encoded, level)
        attributes = (
            compression
            | (LOG_APPEND_TIME_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (DELETE_HORIZON_BIT if self._has_delete_horizon else 0)
        )
        header = HEADER.pack(
            base_offset,
            HEADER_BYTES - LOG_OVERHEAD + len(encoded),
            partition_leader_epoch,
            2,
            0,
            attributes,
            self._last_delta if last_offset_delta is None else last_offset_delta,
            NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            self.max_timestamp if max_timestamp is None else max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        batch = bytearray(header)
        batch += encoded
        with memoryview(batch) as view:
            CRC.pack_into(batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
        return batch


def _encode_body(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[HeaderLike],
) -> bytes:
    if headers == ():  # nearly all there are
        return b"".join((
            b"\0",
            small_varint(timestamp_delta) or encode_varint(timestamp_delta),
            small_varint(offset_delta) or encode_varint(offset_delta),
            b"\x01" if key is None else small_varint(len(key)) or encode_varint(len(key)),
            key or b"",
            b"\x01" if value is None else small_varint(len(value)) or encode_varint(len(value)),
            value or b"",
            b"\0",
        ))  # fmt: skip
    parts = [b"\0", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    _add_nullable(parts, key)
    _add_nullable(parts, value)
    entries = tuple(headers)
    parts.append(encode_varint(len(entries)))
    for name, content in entries:
        _add_nullable(parts, name.encode() if isinstance(name, str) else name)
        _add_nullable(parts, content)
    return b"".join(parts)


def _encode_values(
    deltas: Sequence[int], first: int, values: Sequence[bytes]
) -> list[bytes]:
    """Records of values alone, in parts; what stands before values of one length is looked up."""
    parts: list[bytes] = []
    before: dict[int, tuple[bytes, bytes]] = {}
    last_delta, timestamp, width = 0, encode_varint(0), 0
    for delta, offset, value in zip(deltas, _offsets(first, len(values)), values, strict=True):
        if delta != last_delta or len(offset) != width:
            last_delta, timestamp, width = delta, encode_varint(delta), len(offset)
            before.clear()
        size = len(value)
        if (found := before.get(size)) is None:
            length = b"\x01" + encode_varint(size)
            body_bytes = 1 + len(timestamp) + width + len(length) + size + 1
            begin = b"\0" + encode_varint(body_bytes) + b"\0" + timestamp
            found = before[size] = begin, length
        parts += (found[0], offset, found[1], value)
    parts.append(b"\0")  # no headers, as behind each other one
    parts[0] = parts[0][1:]
    return parts


def _offsets(first: int, count: int) -> Sequence[bytes]:
    """So many offset deltas, encoded."""
    if not first and count <= MANY:
        return _first_offsets()[:count]
    return [encode_varint(each) for each in range(first, first + count)]


@cache
def _first_offsets() -> Sequence[bytes]:
    return [encode_varint(each) for each in range(MANY)]


def _add_nullable(parts: list[bytes], field: bytes | None) -> None:
    if field is None:
        parts.append(b"\x01")  # -1
    else:
        parts.append(encode_varint(len(field)))
        parts.append(field)


def build_empty(header: BatchHeader) -> bytearray:
    """The batch without its records: compaction keeps it for its offsets and its sequence."""
    batch = bytearray(
        HEADER.pack(
            header.base_offset,
            HEADER_BYTES - LOG_OVERHEAD,
            header.partition_leader_epoch,
            2,
            0,
            header.attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT),
            header.last_offset_delta,
            NO_TIMESTAMP,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            0,
        )
    )
    CRC.pack_into(batch, CRC_POSITION, crc32c(bytes(batch[ATTRIBUTES_POSITION:])))
    return batch
