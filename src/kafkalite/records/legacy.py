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
from kafkalite.records.packing import Packer
from kafkalite.records.record import Record
from kafkalite.records.window import MAX_RECORD_BYTES, Window

# What a set may hold before it is compressed: whoever reads it may need all of it in memory.
MAX_SET_BYTES = 128 * 1024 * 1024
# What is put into a set between two steps: under a millisecond without a codec.
STEP_BYTES = 256 * 1024

# What a wrapper may hold: a message takes time, however few bytes it was packed into.
MAX_SET_MESSAGES = 5_000_000

_OFFSET_AND_SIZE = Struct(">qi")
NULLABLE_LENGTH = Struct(">i")
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
    if end - position < NULLABLE_LENGTH.size:
        raise InvalidRecords("a message ends inside its fields")
    length = NULLABLE_LENGTH.unpack_from(buffer, position)[0]
    position += NULLABLE_LENGTH.size
    if length < 0:
        return None, position
    if length > end - position:
        raise InvalidRecords(f"a field of {length} bytes in {end - position}")
    return bytes(buffer[position : position + length]), position + length


class MessageSet:
    """A message set that grows: messages side by side, or one wrapper, packed as they come.

    `add` and `take` say when so much was done that others should have their turn.
    """

    __slots__ = (
        "_append_time", "_compression", "_first_offset", "_is_relative", "_last", "_magic",
        "_newest", "_packer", "_size", "_start", "_step_size", "_timestamp_type",
    )  # fmt: skip

    def __init__(
        self,
        magic: int,
        compression: int = Compression.NONE,
        *,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        append_time: int = NO_TIMESTAMP,
        level: int | None = None,
        first_offset: int = 0,
    ) -> None:
        self._magic = magic
        self._compression = compression
        self._timestamp_type = timestamp_type
        is_append_time = timestamp_type == TimestampType.LOG_APPEND_TIME
        self._append_time = append_time if is_append_time else None
        self._first_offset = first_offset
        self._is_relative = compression != Compression.NONE and magic == 1
        self._packer = Packer(compression, level, magic=magic)
        self._size = self._step_size = 0  # before the codec
        self._start: int | None = None  # what offsets are relative to
        self._last, self._newest = 0, NO_TIMESTAMP

    def add(self, record: Record) -> bool:
        """A record, unless it lies before the first offset that is wanted."""
        if record.offset < self._first_offset:
            return False
        place, timestamp = self._placed(record.offset, record.timestamp)
        kind = self._timestamp_type
        return self.take(
            build_message(self._magic, place, timestamp, record.key, record.value, kind)
        )

    def _placed(self, offset: int, timestamp: int) -> tuple[int, int]:
        """The offset and the timestamp that the next message has."""
        if self._start is None:
            self._start = offset if self._is_relative else 0
        timestamp = timestamp if self._append_time is None else self._append_time
        self._last = offset
        self._newest = max(self._newest, timestamp)
        return offset - self._start, timestamp

    def take(self, piece: Buffer) -> bool:
        """Bytes of a message, in their order."""
        self._size += len(piece)
        self._check_size(0)
        has_worked = self._packer.add(piece)
        if not has_worked and self._size - self._step_size < STEP_BYTES:
            return False
        self._step_size = self._size
        return True

    def _check_size(self, coming: int) -> None:
        if self._size + coming > MAX_SET_BYTES:
            raise RecordsTooLarge(f"a message set of more than {MAX_SET_BYTES} bytes")

    def body_front(self, timestamp: int, key_length: int) -> bytes:
        """What the checksum covers of a message before its key."""
        timestamp = timestamp if self._append_time is None else self._append_time
        front = _body_front(self._magic, timestamp, self._timestamp_type)
        return front + NULLABLE_LENGTH.pack(key_length)

    def begin(self, offset: int, timestamp: int, body_size: int, checksum: int) -> None:
        """A message whose body comes in pieces."""
        place, _ = self._placed(offset, timestamp)
        self._check_size(body_size)
        self.take(_OFFSET_AND_SIZE.pack(place, _CRC.size + body_size) + _CRC.pack(checksum))

    def finish(self) -> bytearray:
        """What came of it; the rest of the codec's work is done here."""
        if self._start is None:
            return bytearray()
        packed = self._packer.finish()
        if self._compression == Compression.NONE:
            assert isinstance(packed, bytearray)
            return packed
        return build_message(
            self._magic, self._last, self._newest, None, packed, self._timestamp_type,
            self._compression,
        )  # fmt: skip


def build_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: Buffer | None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    compression: int = Compression.NONE,
) -> bytearray:
    """One message; the timestamp and its type are left out of magic 0, which has neither."""
    front = _body_front(magic, timestamp, timestamp_type, compression)
    body = b"".join((front, *_nullable(key), *_nullable(value)))
    message = bytearray(_OFFSET_AND_SIZE.pack(offset, _CRC.size + len(body)))
    message += _CRC.pack(zlib.crc32(body))
    message += body
    return message


def _body_front(
    magic: int, timestamp: int, timestamp_type: TimestampType, compression: int = Compression.NONE
) -> bytes:
    attributes = int(compression)
    if magic == 1 and timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    return _FRONT[magic].pack(*((magic, attributes, timestamp)[: 2 + magic]))


def _nullable(field: Buffer | None) -> Iterable[Buffer]:
    if field is None:
        return (NULLABLE_LENGTH.pack(-1),)
    return NULLABLE_LENGTH.pack(len(field)), field
