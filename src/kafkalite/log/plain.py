"""The usual Produce in few steps: one uncompressed batch v2 for a topic without special wishes.

Owns no rule: it only recognises batches that `validator` would accept as they are, and says
nothing about any other. Invariant: whatever is accepted here, `validator` accepts with the same
header.

Apache Kafka reads every field of every record on the way in. Here that is done up to
`FULL_RECORDS` records; of a larger batch only the records' lengths are walked, which finds a
wrong count and broken lengths but not a broken field inside a record, and its timestamps are
those of its header. Reading the fields of 640 records takes ten times as long as writing them.
"""

from __future__ import annotations

from crc32c import crc32c

from kafkalite.log.config import LogConfig
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    patch,
    read_header,
)
from kafkalite.records.errors import CorruptRecords

FULL_RECORDS = 16

Writable = bytearray | memoryview


def accept(
    records: Writable, config: LogConfig, offset: int, leader_epoch: int, now_ms: int
) -> BatchHeader | None:
    """The header of the batch, with its offset and epoch set; None when it needs a closer look."""
    try:
        header = read_header(records)
    except CorruptRecords:
        return None
    count = header.record_count
    if (
        header.magic != 2
        or header.size != len(records)
        or header.size > config.max_message_bytes
        or header.attributes & ~TRANSACTIONAL_BIT
        or header.base_offset
        or count <= 0
        or header.last_offset_delta + 1 != count
        or (header.producer_id >= 0 and header.base_sequence < 0)
        or header.max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or header.max_timestamp < header.base_timestamp
        or header.base_timestamp < 0
    ):
        return None
    if count <= FULL_RECORDS:
        if not has_whole_records(records, header):
            return None
    elif not has_whole_lengths(records, header):
        return None
    if crc32c(memoryview(records)[ATTRIBUTES_POSITION:]) != header.crc:
        return None
    patch(records, header, offset, leader_epoch)
    return header


def has_whole_lengths(records: Writable, header: BatchHeader) -> bool:
    """Whether as many records as announced fill the batch."""
    position, size, left = HEADER_BYTES, header.size, header.record_count
    try:
        while left:
            byte = records[position]
            if byte >= 0x80:
                second = records[position + 1]
                if second < 0x80:
                    position += 2 + ((byte & 0x7F | second << 7) >> 1)
                else:
                    third = records[position + 2]
                    if third >= 0x80:
                        return False
                    position += 3 + ((byte & 0x7F | (second & 0x7F) << 7 | third << 14) >> 1)
            else:
                position += 1 + (byte >> 1)
            if byte & 1:  # a negative length
                return False
            left -= 1
    except IndexError:
        return False
    return position == size


def has_whole_records(records: Writable, header: BatchHeader) -> bool:
    """Whether every record is whole, at its offset, without headers, and the timestamps agree."""
    position, size = HEADER_BYTES, header.size
    highest = 0
    try:
        for index in range(header.record_count):
            if (byte := records[position]) < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2
            else:
                length, position = _varint(records, position)
                end = position + length
                position += 1
                if length <= 0:
                    return False
            if (byte := records[position]) < 0x80:
                delta = byte >> 1 ^ -(byte & 1)
                position += 1
            else:
                delta, position = _varint(records, position)
            if delta > highest:
                highest = delta
            if records[position] != index << 1:  # FULL_RECORDS is small enough for one byte
                return False
            if (byte := records[position + 1]) < 0x80:
                position += 2 + (byte >> 1 if not byte & 1 else 0)
            else:
                length, position = _varint(records, position + 1)
                position += max(length, 0)
            if (byte := records[position]) < 0x80:
                position += 1 + (byte >> 1 if not byte & 1 else 0)
            else:
                length, position = _varint(records, position)
                position += max(length, 0)
            if position + 1 != end or records[position] or end > size:
                return False
            position = end
    except IndexError:
        return False
    return position == size and header.base_timestamp + highest == header.max_timestamp


def _varint(records: Writable, position: int) -> tuple[int, int]:
    """A zigzag varint of up to three bytes and the position behind; IndexError for a longer one."""
    byte = records[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    second = records[position + 1]
    if second < 0x80:
        number = byte & 0x7F | second << 7
        return number >> 1 ^ -(number & 1), position + 2
    third = records[position + 2]
    if third >= 0x80:
        raise IndexError
    number = byte & 0x7F | (second & 0x7F) << 7 | third << 14
    return number >> 1 ^ -(number & 1), position + 3
