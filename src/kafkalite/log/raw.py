"""The records of a batch v2 as pieces of its bytes, for compaction.

Owns the one loop that compaction spends its time in: it finds where each record begins and ends
and what its key is, and cuts nothing else out. `records.record` reads the same in full; a test
holds the two together. Invariant: the pieces, one behind the other, are the body of the batch.
"""

from __future__ import annotations

from struct import pack_into

from crc32c import crc32c

from kafkalite.records import compression as codecs
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    Compression,
    codec,
)
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.varint import ZIGZAG, read_varint, read_varlong

MAX_BODY_BYTES = 64 * 1024 * 1024  # a batch that inflates to more is read record by record
_LENGTH_POSITION = 8
_MAX_TIMESTAMP_POSITION = 35
_COUNT_POSITION = 57

# Offset delta, key, whether there is a value, timestamp delta, start and end in the body.
Piece = tuple[int, bytes | None, bool, int, int, int]


def body_of(data: bytes, header: BatchHeader) -> bytes:
    """The records' bytes, decompressed; raises RecordsTooLarge for a batch that inflates too
    far."""
    body = data[header.position + HEADER_BYTES : header.end]
    used = codec(header)
    if used == Compression.NONE:
        return body
    return bytes(codecs.decompress(used, body, max_bytes=MAX_BODY_BYTES))


def pieces_of(body: bytes, count: int) -> list[Piece]:  # noqa: C901, the numbers are decoded in line
    """Every record of a body. Varints of one and two bytes, nearly all there are, are in line."""
    pieces: list[Piece] = []
    position, zigzag = 0, ZIGZAG
    try:
        for _ in range(count):
            start = position
            if (byte := body[position]) < 0x80:
                position += 1
                end = position + zigzag[byte]
            elif (second := body[position + 1]) < 0x80:
                position += 2
                end = position + zigzag[byte & 0x7F | second << 7]
            else:
                length, position = read_varint(body, position)
                end = position + length
            position += 1  # the attributes
            if (byte := body[position]) < 0x80:
                timestamp = zigzag[byte]
                position += 1
            elif (second := body[position + 1]) < 0x80:
                timestamp = zigzag[byte & 0x7F | second << 7]
                position += 2
            else:
                timestamp, position = read_varlong(body, position)
            if (byte := body[position]) < 0x80:
                delta = zigzag[byte]
                position += 1
            elif (second := body[position + 1]) < 0x80:
                delta = zigzag[byte & 0x7F | second << 7]
                position += 2
            else:
                delta, position = read_varint(body, position)
            if (byte := body[position]) < 0x80:
                length = zigzag[byte]
                position += 1
            else:
                length, position = read_varint(body, position)
            key = None
            if length >= 0:
                key = body[position : position + length]
                position += length
            pieces.append((delta, key, body[position] & 1 == 0, timestamp, start, end))
            if end <= start:
                raise InvalidRecords(f"a record of {end - start} bytes")
            position = end
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None
    if position != len(body):
        raise InvalidRecords(f"{len(body) - position} bytes follow the last record")
    return pieces


def with_pieces(data: bytes, header: BatchHeader, body: bytes, kept: list[Piece]) -> bytearray:
    """The batch with some of its records: all else in its header stays, but for the largest
    time."""
    records = b"".join([body[start:end] for _, _, _, _, start, end in kept])
    batch = bytearray(data[header.position : header.position + HEADER_BYTES])
    batch += codecs.compress(codec(header), records)
    pack_into(">i", batch, _LENGTH_POSITION, len(batch) - LOG_OVERHEAD)
    pack_into(">i", batch, _COUNT_POSITION, len(kept))
    if not header.timestamp_type:
        highest = header.base_timestamp + max(piece[3] for piece in kept)
        pack_into(">q", batch, _MAX_TIMESTAMP_POSITION, highest)
    with memoryview(batch) as view:
        pack_into(">I", batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
    return batch
