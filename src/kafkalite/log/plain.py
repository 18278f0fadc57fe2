"""The usual Produce in few steps: one uncompressed batch v2 for a topic without special wishes.

Owns no rule: it only recognises batches that `validator` would accept as they are, and says
nothing about any other. Invariant: whatever is accepted here, `validator` accepts with the same
header.
"""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from kafkalite.log.config import LogConfig
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.varint import ZIGZAG, read_varlong
from kafkalite.records.whole import highest_delta

Writable = bytearray | memoryview
# Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, base and
# largest timestamp, producer id and epoch, base sequence, count; the first and the third as they
# came, though others are in the bytes by then.
Fields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

ATTRIBUTES, LAST_OFFSET_DELTA, MAX_TIMESTAMP = 5, 6, 8
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE = 9, 10, 11

_FEW_RECORDS = 3
_read = HEADER.unpack_from
_place = Struct(">qii").pack_into  # offset, length, leader epoch
_UNDER_CRC = slice(ATTRIBUTES_POSITION, None)


def accept(
    records: Writable, config: LogConfig, offset: int, leader_epoch: int, now_ms: int
) -> Fields | None:
    """What the header says of a batch, whose offset and epoch are set; None when it needs a closer
    look."""
    size = len(records)
    if size < HEADER_BYTES:
        return None
    fields: Fields = _read(records)
    (
        base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
        producer_id, _, base_sequence, count,
    ) = fields  # fmt: skip
    if (
        magic != 2
        or length + LOG_OVERHEAD != size
        or size > config.max_message_bytes
        or attributes & ~TRANSACTIONAL_BIT
        or base_offset
        or count <= 0
        or last_delta + 1 != count
        or producer_id >= 0 > base_sequence
        or max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or max_timestamp < base_timestamp
        or base_timestamp < 0
    ):
        return None
    view = records if isinstance(records, memoryview) else memoryview(records)
    if count == 1:
        delta = lone_delta(view, HEADER_BYTES)
    else:
        body = view[HEADER_BYTES:]
        # Bytes are read faster than a view of them, but have to be copied first.
        delta = highest_delta(bytes(body) if count > _FEW_RECORDS else body, count)
    if delta is None or base_timestamp + delta != max_timestamp or crc32c(view[_UNDER_CRC]) != crc:
        return None
    _place(records, 0, offset, length, leader_epoch)
    return fields


def header_of(fields: Fields, size: int, offset: int, leader_epoch: int) -> BatchHeader:
    """The header of a batch that was accepted."""
    return BatchHeader(0, size, offset, leader_epoch, *fields[3:])


def lone_delta(data: memoryview, position: int) -> int | None:  # noqa: C901, numbers in line
    """The timestamp delta of the one record that fills `data` from a position on: what
    `highest_delta` says, where it is not negative."""
    size = len(data)
    try:
        end = data[position]
        position += 1
        if end >= 0x80:
            end = end & 0x7F | data[position] << 7
            position += 1
            if end >= 1 << 14:
                end = end & 0x3FFF | data[position] << 14
                position += 1
        if end != size - position << 1:  # in zigzag; also of four bytes and more
            return None
        delta = data[position + 1]
        position += 2
        if delta < 0x80:
            delta = ZIGZAG[delta]
        else:
            delta, position = read_varlong(data, position - 1)
        if data[position]:
            return None
        length = data[position + 1]  # of the key
        position += 2
        if length >= 0x80:
            length = length & 0x7F | data[position] << 7
            position += 1
        if not length & 1:
            position += length >> 1
        length = data[position]  # of the value
        position += 1
        if length >= 0x80:
            length = length & 0x7F | data[position] << 7
            position += 1
            if length >= 1 << 14:
                length = length & 0x3FFF | data[position] << 14
                position += 1
        if not length & 1:
            position += length >> 1
        if position != size - 1 or data[position] or delta < 0:
            return None
    except (IndexError, InvalidRecords):
        return None
    return delta
