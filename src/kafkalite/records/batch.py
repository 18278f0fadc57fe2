"""The header of a record batch, read and patched where it lies.

Owns the layout of batch v2 and, as far as a header goes, of the messages before it (magic 0 and
1, whose records legacy.py reads). Never decodes a record and never copies the bytes of one.
Invariant: a header that these functions return lies, with its whole batch, inside the buffer.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import TypeAlias

from kafkalite.records.checksum import crc32c
from kafkalite.records.errors import (
    CorruptRecords,
    InvalidRecords,
    TruncatedRecords,
    UndecodableRecords,
)

Buffer: TypeAlias = bytes | bytearray | memoryview

# base offset, length, partition leader epoch, magic, crc, attributes, last offset delta, base
# timestamp, max timestamp, producer id, producer epoch, base sequence, record count
HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size  # 61
LOG_OVERHEAD = 12  # base offset and length, which the length does not count
MIN_MESSAGE_BYTES = 14  # crc, magic, attributes, key length, value length: the shortest message

MAGIC_POSITION = 16  # the same in all three formats, so a reader can tell them apart
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # everything from here to the end is under the CRC
MAX_TIMESTAMP_POSITION = 35

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
UNKNOWN_COUNT = -1
MAX_SEQUENCE = 0x7FFFFFFF

_FRAME = Struct(">qi")
_ATTRIBUTES = Struct(">h")
CRC = Struct(">I")
_EPOCH = Struct(">i")
_INT64 = Struct(">q")
_MESSAGE = Struct(">qiIbb")  # a message of magic 0 or 1 up to its attributes


class Compression(IntEnum):
    """The codecs, by their number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set the timestamps: the producer, or the broker when it appended."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@dataclass(slots=True)
class BatchHeader:
    """One batch's header. A message of magic 0 or 1 fills the fields that it has.

    Such a message has no count, producer or base offset of its own: base_offset is its offset
    field, which in a compressed one is that of the last message inside.
    """

    position: int
    size: int  # of the whole batch, the 12 bytes of offset and length included
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int  # the delete horizon instead, when has_delete_horizon
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec's number, 0–7: only 0–4 exist (codec() refuses the others)."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & LOG_APPEND_TIME_BIT and self.magic > 0:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic > 1 and self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.magic > 1 and self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.magic > 1 and self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def is_idempotent(self) -> bool:
        """A producer with an id wrote it, so its sequence numbers are checked."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers wrap from 2^31-1 to 0, not to a negative number."""
    return (sequence + increment) & MAX_SEQUENCE


def codec(header: BatchHeader) -> Compression:
    number = header.attributes & CODEC_MASK
    if number > Compression.ZSTD:
        raise UndecodableRecords(f"unknown compression codec {number}")
    return Compression(number)


def read_header(buffer: Buffer, position: int = 0, end: int | None = None) -> BatchHeader:
    """The header of the batch at `position`, which must lie wholly before `end`."""
    limit = len(buffer) if end is None else end
    header = peek_header(buffer, position, limit)
    if header.size > limit - position:
        raise TruncatedRecords(
            f"batch of {header.size} bytes at {position}, but only {limit - position} are there"
        )
    return header


def peek_header(buffer: Buffer, position: int = 0, end: int | None = None) -> BatchHeader:
    """The header of a batch whose records may lie beyond the buffer.

    For readers that fetch a header from a file and then decide whether to fetch the rest.
    """
    available = (len(buffer) if end is None else end) - position
    if available < HEADER_BYTES:
        return _peek_short(buffer, position, available)
    (
        base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    ) = HEADER.unpack_from(buffer, position)  # fmt: skip
    if magic != 2:
        return _peek_message(buffer, position, available)
    if length < HEADER_BYTES - LOG_OVERHEAD:
        raise CorruptRecords(f"batch at {position} declares {length} bytes, less than its header")
    return BatchHeader(
        position, length + LOG_OVERHEAD, base_offset, leader_epoch, magic, crc, attributes,
        last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch,
        base_sequence, count,
    )  # fmt: skip


def _peek_short(buffer: Buffer, position: int, available: int) -> BatchHeader:
    """Fewer bytes than a v2 header: a short message of an old format, or a torn tail."""
    if available < LOG_OVERHEAD:
        raise TruncatedRecords(f"{max(available, 0)} bytes at {position} are no batch")
    length = _FRAME.unpack_from(buffer, position)[1]
    if length < MIN_MESSAGE_BYTES:
        raise CorruptRecords(f"batch at {position} declares {length} bytes")
    if available <= MAGIC_POSITION:
        raise TruncatedRecords(f"the batch at {position} ends before its magic byte")
    if buffer[position + MAGIC_POSITION] == 2:
        if length < HEADER_BYTES - LOG_OVERHEAD:
            raise CorruptRecords(f"batch at {position} declares {length} bytes")
        raise TruncatedRecords(f"the batch at {position} ends inside its header")
    return _peek_message(buffer, position, available)


def _peek_message(buffer: Buffer, position: int, available: int) -> BatchHeader:
    """The header of a message of magic 0 or 1, as a batch of one."""
    if available < _MESSAGE.size:
        raise TruncatedRecords(f"the message at {position} ends inside its header")
    offset, length, crc, magic, attributes = _MESSAGE.unpack_from(buffer, position)
    if length < MIN_MESSAGE_BYTES:
        raise CorruptRecords(f"message at {position} declares {length} bytes")
    if magic not in (0, 1):
        raise CorruptRecords(f"invalid magic {magic} at {position}")
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if length < MIN_MESSAGE_BYTES + 8:
            raise CorruptRecords(f"message of magic 1 at {position} declares {length} bytes")
        if available < _MESSAGE.size + 8:
            raise TruncatedRecords(f"the message at {position} ends inside its header")
        timestamp = _INT64.unpack_from(buffer, position + _MESSAGE.size)[0]
    return BatchHeader(
        position, length + LOG_OVERHEAD, offset, NO_LEADER_EPOCH, magic, crc, attributes, 0,
        timestamp, timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, UNKNOWN_COUNT,
    )  # fmt: skip


def is_message(data: Buffer) -> bool:
    """Whether all of these bytes are one message of magic 0 or 1, as its checksum says: by chance
    bytes between two batches look like the head of one."""
    if len(data) < LOG_OVERHEAD + MIN_MESSAGE_BYTES:
        return False
    crc = int.from_bytes(data[LOG_OVERHEAD : LOG_OVERHEAD + 4], "big")
    return zlib.crc32(data[LOG_OVERHEAD + 4 :]) == crc


def iterate_headers(
    buffer: Buffer, position: int = 0, end: int | None = None
) -> Iterator[BatchHeader]:
    """Every whole batch in order; a cut batch at the end is left out, as Apache Kafka does.

    Raises CorruptRecords at a length or magic byte that no batch can have, since nothing behind
    it can be found.
    """
    limit = len(buffer) if end is None else end
    while position < limit:
        try:
            header = read_header(buffer, position, limit)
        except TruncatedRecords:
            return
        yield header
        position += header.size


def verify(buffer: Buffer, header: BatchHeader) -> None:
    """Compare the stored checksum with that of the bytes; no copy is made."""
    computed = checksum(buffer, header)
    if computed != header.crc:
        raise CorruptRecords(
            f"batch at offset {header.base_offset} is corrupt:"
            f" stored crc {header.crc}, computed crc {computed}"
        )


def checksum(buffer: Buffer, header: BatchHeader) -> int:
    """CRC-32C of a batch from its attributes on; CRC-32 of an old message from its magic on."""
    view = memoryview(buffer)
    if header.magic == 2:
        return crc32c(view[header.position + ATTRIBUTES_POSITION : header.end])
    return zlib.crc32(view[header.position + MAGIC_POSITION : header.end])


def check_produced(header: BatchHeader) -> None:
    """What a client may not claim in the header of a batch v2 that it produces."""
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise InvalidRecords(
            f"{header.record_count} records do not fill the offsets"
            f" {header.base_offset} to {header.last_offset}"
        )
    if header.is_control:
        raise InvalidRecords("clients may not write control records")
    if header.is_idempotent and header.base_sequence < 0:
        raise InvalidRecords(
            f"sequence {header.base_sequence} in a batch of producer {header.producer_id}"
        )


def patch(
    buffer: bytearray | memoryview,
    header: BatchHeader,
    base_offset: int,
    partition_leader_epoch: int,
) -> None:
    """Set what the leader assigns. Both fields lie before the CRC, which stays right."""
    assert header.magic == 2, "only a batch v2 has a leader epoch"
    position = header.position
    _INT64.pack_into(buffer, position, base_offset)
    _EPOCH.pack_into(buffer, position + LOG_OVERHEAD, partition_leader_epoch)
    header.base_offset = base_offset
    header.partition_leader_epoch = partition_leader_epoch


def patch_timestamps(
    buffer: bytearray | memoryview,
    header: BatchHeader,
    timestamp_type: TimestampType,
    max_timestamp: int,
) -> None:
    """Set who set the timestamps and the greatest; both lie under the CRC, so it is renewed."""
    if header.timestamp_type == timestamp_type and header.max_timestamp == max_timestamp:
        return
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    header.attributes = attributes
    header.max_timestamp = max_timestamp
    if header.magic == 2:
        _ATTRIBUTES.pack_into(buffer, header.position + ATTRIBUTES_POSITION, attributes)
        _INT64.pack_into(buffer, header.position + MAX_TIMESTAMP_POSITION, max_timestamp)
        crc_position = CRC_POSITION
    else:
        assert header.magic == 1, "magic 0 has no timestamp"
        buffer[header.position + MAGIC_POSITION + 1] = attributes & 0xFF
        _INT64.pack_into(buffer, header.position + _MESSAGE.size, max_timestamp)
        header.base_timestamp = max_timestamp
        crc_position = LOG_OVERHEAD
    header.crc = checksum(buffer, header)
    CRC.pack_into(buffer, header.position + crc_position, header.crc)
