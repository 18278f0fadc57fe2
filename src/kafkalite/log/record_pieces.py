"""The records of a batch v2 as pieces of its bytes, for compaction.

Owns what is made of the pieces that `records.walks` finds, and the short way to the keys of records
that are laid out alike. Invariant: the pieces, one behind the other, are the body of the batch.

`keys_of` is for what nearly every batch is, and says nothing of any other: no offset is left out,
each record has a key of less than 64 bytes, and none has 8 KB.
"""

from __future__ import annotations

from struct import pack_into

from kafkalite.records import compression as codecs
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_POSITION,
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
    codec,
)
from kafkalite.records.checksum import crc32c
from kafkalite.records.errors import RecordsTooLarge
from kafkalite.records.varint import encode_varint, read_varint, read_varlong
from kafkalite.records.walks import (
    IS_LONG,
    LARGE,
    LOW_OFFSET_BYTES,
    NO_SHORT_KEY,
    ONE_BYTE_OFFSETS,
    SMALL,
    TWO_BYTE_OFFSETS,
    Piece,
    keys_one_by_one,
)

# A batch of more is read as a stream (see large.py).
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_PIECES = 500_000
_LENGTH_POSITION = 8
_BASE_TIMESTAMP_POSITION = 27
_COUNT_POSITION = 57


def body_of(data: bytes, header: BatchHeader) -> bytes | None:
    """The records' bytes, decompressed; None of old formats, and of what is not to be held as a
    whole."""
    if header.magic < 2 or header.record_count > MAX_PIECES:
        return None
    body = data[header.position + HEADER_BYTES : header.end]
    used = codec(header)
    if used == Compression.NONE:
        return body
    try:
        return bytes(codecs.decompress(used, body, max_bytes=MAX_BODY_BYTES))
    except RecordsTooLarge:
        return None


def is_dense(header: BatchHeader) -> bool:
    """Whether a batch says that it has a record at each of its offsets."""
    return header.magic == 2 and header.record_count == header.last_offset_delta + 1


def keys_of(body: bytes, count: int) -> list[bytes] | None:
    """The keys of all records, which are at the offset deltas 0, 1, 2, …"""
    if count > TWO_BYTE_OFFSETS:
        return None
    try:
        return _keys_alike(body, count) or keys_one_by_one(body, count)
    except IndexError:
        return None


def _keys_alike(body: bytes, count: int) -> list[bytes] | None:
    """The same when all records have the same size, but for the second byte of their offsets."""
    few = min(count, ONE_BYTE_OFFSETS)
    keys, position = _keys_of_run(body, 0, LOW_OFFSET_BYTES[:few])
    if count > few and keys:
        more, position = _keys_of_run(body, position, LOW_OFFSET_BYTES[few:count])
        keys = keys + more if more else []
    return keys if position == len(body) else None


def _keys_of_run(body: bytes, start: int, lows: bytes) -> tuple[list[bytes], int]:
    """The keys of records of one size with these first bytes of their offsets, and where the last
    one ends; none when they are not laid out alike."""
    count = len(lows)
    place = start + 1
    stride = 0
    if (byte := body[start]) < IS_LONG:
        stride = SMALL[byte]
    elif (second := body[place]) < IS_LONG:
        stride = LARGE[byte & 0x7F | second << 7]
        place += 1
    stop = start + count * stride
    if not stride or stop > len(body):
        return [], 0
    while body[place + 1] >= IS_LONG:
        place += 1
        if min(body[place:stop:stride]) < IS_LONG:
            return [], 0
    times, offsets = body[place + 1 : stop : stride], body[place + 2 : stop : stride]
    place += 3 if lows[0] < IS_LONG else 4
    length = body[place]
    is_alike = (
        times.isascii()
        and offsets == lows
        and not length & NO_SHORT_KEY
        and _is_same(body[start:stop:stride])
        and (byte < IS_LONG or _is_same(body[start + 1 : stop : stride]))
        and _is_same(body[place:stop:stride])
    )
    if not is_alike:
        return [], 0
    length >>= 1
    return [body[at : at + length] for at in range(place + 1, stop, stride)], stop


def _is_same(column: bytes) -> bool:
    return column == column[:1] * len(column)


def with_pieces(data: bytes, header: BatchHeader, body: bytes, kept: list[Piece]) -> bytearray:
    """The batch with some of its records."""
    if begins_at_append_time(header):
        records = b"".join([_at_base(body, piece) for piece in kept])
    else:
        records = b"".join([body[start:end] for _, _, _, _, start, end in kept])
    highest = header.base_timestamp + max(piece[3] for piece in kept)
    return patched(data, header, codecs.compress(codec(header), records), len(kept), highest)


def begins_at_append_time(header: BatchHeader) -> bool:
    """Whether what is left of a batch is told from the time of its append: a producer's times in it
    mean nothing, and Apache Kafka writes that time in their place."""
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    return is_append_time and not header.has_delete_horizon


def _at_base(body: bytes, piece: Piece) -> bytes:
    """A record whose time is its batch's base."""
    start, end = piece[4:]
    attributes = read_varint(body, start)[1]
    rest = read_varlong(body, attributes + 1)[1]
    front = encode_varint(end - rest + 2) + body[attributes : attributes + 1] + b"\0"
    return front + body[rest:end]


def patched(
    data: bytes,
    header: BatchHeader,
    packed: Buffer,
    count: int,
    highest_ms: int,
    horizon_ms: int | None = None,
) -> bytearray:
    """The batch with these records: all else in its header stays, but for times and for a delete
    horizon if one is given."""
    batch = bytearray(data[header.position : header.position + HEADER_BYTES])
    batch += packed
    pack_into(">i", batch, _LENGTH_POSITION, len(batch) - LOG_OVERHEAD)
    pack_into(">i", batch, _COUNT_POSITION, count)
    if horizon_ms is not None:
        pack_into(">h", batch, ATTRIBUTES_POSITION, header.attributes | DELETE_HORIZON_BIT)
        pack_into(">q", batch, _BASE_TIMESTAMP_POSITION, horizon_ms)
    elif begins_at_append_time(header):
        pack_into(">q", batch, _BASE_TIMESTAMP_POSITION, header.max_timestamp)
    if header.timestamp_type == TimestampType.CREATE_TIME:
        pack_into(">q", batch, MAX_TIMESTAMP_POSITION, highest_ms)
    with memoryview(batch) as view:
        pack_into(">I", batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
    return batch
