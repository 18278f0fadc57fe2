"""Message sets of magic 0 and 1: what clients before 0.11 send, and what they are sent.

A message is a batch of one; a compressed one wraps a set whose messages it stands for. Wrapped
offsets are absolute in magic 0 and relative in magic 1, where the wrapper has the last one's.
Invariant: a wrapped set is walked through message by message, never inflated as a whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct

from kafkalite.records import compression as codecs
from kafkalite.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
    codec,
    peek_header,
    verify,
)
from kafkalite.records.errors import CorruptRecords, InvalidRecords, RecordsTooLarge
from kafkalite.records.record import Record
from kafkalite.records.scan import STEP_RECORDS
from kafkalite.records.steps import Steps, finish
from kafkalite.records.window import MAX_RECORD_BYTES, Window

# What a set may hold before it is compressed: all of it has to be in memory.
MAX_SET_BYTES = 128 * 1024 * 1024

# What a wrapper may hold: a message takes time, however few bytes it was packed into.
MAX_SET_MESSAGES = 5_000_000

_OFFSET_AND_SIZE = Struct(">qi")
_LENGTH = Struct(">i")
_OFFSET = Struct(">q")
_CRC = Struct(">I")
_FRONT = (Struct(">bb"), Struct(">bbq"))  # magic, attributes, and in magic 1 the timestamp
_BODY_POSITION = (18, 26)  # of the key's length, by magic


def iterate_records(buffer: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The message, or those that it wraps, at their absolute offsets.

    Checksums of wrapped messages are checked here; that of the message itself by batch.verify.
    """
    assert header.magic < 2, "a batch v2 is read by record.iterate_records"
    used = codec(header)
    if used == Compression.NONE:
        yield _read_message(buffer, header)
        return
    if used == Compression.ZSTD:
        raise InvalidRecords(f"zstd does not exist in magic {header.magic}")
    base_offset = _base_offset(buffer, header, used)
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    for record in _wrapped(buffer, header, used):
        record.offset += base_offset
        if is_append_time:
            record.timestamp = header.max_timestamp
        yield record


def first_offset(buffer: Buffer, header: BatchHeader) -> int:
    """The offset of the first record, which a wrapper does not tell by itself."""
    return next(iterate_records(buffer, header)).offset


def patch_offset(buffer: bytearray | memoryview, header: BatchHeader, offset: int) -> None:
    """Set the offset, which lies before the checksum."""
    _OFFSET.pack_into(buffer, header.position, offset)
    header.base_offset = offset


def _base_offset(buffer: Buffer, header: BatchHeader, used: Compression) -> int:
    """What to add to a wrapped offset. Takes a walk of its own: the last one tells it."""
    if header.magic == 0 or header.base_offset == 0:  # some producers leave the wrapper at 0
        return 0
    last = 0
    for record in _wrapped(buffer, header, used):
        last = record.offset
    if header.base_offset < last:
        raise InvalidRecords(
            f"offset {header.base_offset} of a wrapper, but {last} of its last message"
        )
    return header.base_offset - last


def _wrapped(buffer: Buffer, header: BatchHeader, used: Compression) -> Iterator[Record]:
    """The messages of a wrapper with the offsets that they have in it."""
    value = _read_message(buffer, header).value
    if value is None:
        raise InvalidRecords("a compressed message without a value")
    chunks = codecs.decompress_chunks(used, value, magic=header.magic)
    count = 0
    for data, position in _frames(Window(b"", chunks, MAX_RECORD_BYTES)):
        inner = peek_header(data, position)
        if inner.magic != header.magic:
            raise InvalidRecords(f"magic {inner.magic} in a wrapper of magic {header.magic}")
        if inner.attributes & CODEC_MASK:
            raise InvalidRecords("a compressed message in a compressed message")
        verify(data, inner)
        yield _read_message(data, inner)
        count += 1
        if count > MAX_SET_MESSAGES:
            raise RecordsTooLarge(f"a wrapper of more than {MAX_SET_MESSAGES} messages")
    if count == 0:
        raise InvalidRecords("a compressed message that holds none")


def _frames(window: Window) -> Iterator[tuple[bytes, int]]:
    """Bytes and a position in them at which a whole message begins; a cut last one is left out."""
    data, position = window.data, 0
    while True:
        if len(data) - position < LOG_OVERHEAD:
            data, position = window.at_least(position, LOG_OVERHEAD), 0
            if len(data) < LOG_OVERHEAD:
                return
        size = LOG_OVERHEAD + _OFFSET_AND_SIZE.unpack_from(data, position)[1]
        if size < LOG_OVERHEAD + MIN_MESSAGE_BYTES:
            raise CorruptRecords(f"a message of {size} bytes")
        if size > MAX_RECORD_BYTES:
            raise RecordsTooLarge(f"a message of {size} bytes; the limit is {MAX_RECORD_BYTES}")
        if len(data) - position < size:
            data, position = window.at_least(position, size), 0
            if len(data) < size:
                return
        yield data, position
        position += size


def _read_message(buffer: Buffer, header: BatchHeader) -> Record:
    position = header.position + _BODY_POSITION[header.magic]
    key, position = _read_nullable(buffer, position, header.end)
    value, position = _read_nullable(buffer, position, header.end)
    if position != header.end:
        raise InvalidRecords(f"a message's fields end {header.end - position} bytes before it does")
    return Record(header.base_offset, header.base_timestamp, key, value)


def _read_nullable(buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    if end - position < _LENGTH.size:
        raise InvalidRecords("a message ends inside its fields")
    length = _LENGTH.unpack_from(buffer, position)[0]
    position += _LENGTH.size
    if length < 0:
        return None, position
    if length > end - position:
        raise InvalidRecords(f"a field of {length} bytes in {end - position}")
    return bytes(buffer[position : position + length]), position + length


def build_message_set(
    records: Iterable[Record],
    magic: int,
    compression: int = Compression.NONE,
    *,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
    level: int | None = None,
) -> bytearray:
    """The records at their offsets: one message each, or one wrapper. Headers are left out.

    No records, no bytes. Raises RecordsTooLarge behind MAX_SET_BYTES.
    """
    return finish(
        build_in_steps(
            records, magic, compression,
            timestamp_type=timestamp_type, append_time=append_time, level=level,
        )
    )  # fmt: skip


def build_in_steps(
    records: Iterable[Record],
    magic: int,
    compression: int = Compression.NONE,
    *,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
    level: int | None = None,
    first_offset: int = 0,
) -> Steps[bytearray]:
    """The same of the records from an offset on, giving way after some; the codec's work at the end
    is one step."""
    is_append_time = timestamp_type == TimestampType.LOG_APPEND_TIME
    is_relative = compression != Compression.NONE and magic == 1
    out = bytearray()
    start: int | None = None
    last, newest = 0, NO_TIMESTAMP
    for number, record in enumerate(records, 1):
        if number % STEP_RECORDS == 0:
            yield
        if record.offset < first_offset:
            continue
        if start is None:
            start = record.offset if is_relative else 0
        last = record.offset
        timestamp = append_time if is_append_time else record.timestamp
        newest = max(newest, timestamp)
        out += build_message(
            magic, last - start, timestamp, record.key, record.value, timestamp_type
        )
        if len(out) > MAX_SET_BYTES:
            raise RecordsTooLarge(f"a message set of more than {MAX_SET_BYTES} bytes")
    if compression == Compression.NONE or start is None:
        return out
    packed = bytes(codecs.compress(compression, out, level, magic=magic))
    return build_message(magic, last, newest, None, packed, timestamp_type, compression)


def build_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    compression: int = Compression.NONE,
) -> bytearray:
    """One message; the timestamp and its type are left out of magic 0, which has neither."""
    attributes = int(compression)
    if magic == 1 and timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    front = _FRONT[magic].pack(*((magic, attributes, timestamp)[: 2 + magic]))
    body = b"".join((front, *_nullable(key), *_nullable(value)))
    message = bytearray(_OFFSET_AND_SIZE.pack(offset, _CRC.size + len(body)))
    message += _CRC.pack(zlib.crc32(body))
    message += body
    return message


def _nullable(field: bytes | None) -> Iterable[bytes]:
    if field is None:
        return (_LENGTH.pack(-1),)
    return _LENGTH.pack(len(field)), field
