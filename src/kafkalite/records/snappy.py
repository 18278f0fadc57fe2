"""Snappy in its two dresses: one raw block, and the chain of blocks that Java writes (xerial).

Apache Kafka and most clients write the chain; some others a raw block, and Java's reader takes
both. Invariant: a block's declared length is allocated only when its bytes can give so much.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

import cramjam

from kafkalite.records.errors import RecordsTooLarge, UndecodableRecords

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
XERIAL_BLOCK_BYTES: Final = 32 * 1024
# The densest element copies 64 bytes for 3, so no block gives more than this for each of its own.
MAX_EXPANSION: Final = 22

_SIZE = Struct(">i")


def compress(data: bytes | bytearray | memoryview) -> bytearray:
    """A chain of blocks, as Java's SnappyOutputStream."""
    return Chain().compress(data)


class Chain:
    """A chain of blocks that grows; each piece begins a new block."""

    __slots__ = ("_front",)

    def __init__(self) -> None:
        self._front = XERIAL_HEADER

    def compress(self, data: bytes | bytearray | memoryview) -> bytearray:
        view = memoryview(data)
        out, self._front = bytearray(self._front), b""
        for start in range(0, len(view), XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
            out += _SIZE.pack(len(block))
            out += block
        return out

    def flush(self) -> bytes:
        return self._front


def decompress_blocks(view: memoryview, max_bytes: int) -> Iterator[bytes]:
    """One piece for each block; max_bytes bounds each."""
    if len(view) < len(XERIAL_HEADER) or bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        yield _decompress_block(view, max_bytes)
        return
    position = len(XERIAL_HEADER)
    while position < len(view):
        if len(view) - position < _SIZE.size:
            return  # Java takes what is no size any more for the end
        if bytes(view[position : position + _SIZE.size]) == XERIAL_MAGIC[: _SIZE.size]:
            front = view[position : position + len(XERIAL_HEADER)]  # of a chain that was joined on
            if len(front) < len(XERIAL_HEADER):
                raise UndecodableRecords("snappy: the stream ends too early")
            if bytes(front[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
                return
            position += len(XERIAL_HEADER)
            continue
        size = _SIZE.unpack_from(view, position)[0]
        position += _SIZE.size
        if not 0 <= size <= len(view) - position:
            raise UndecodableRecords(f"snappy: a block of {size} bytes")
        if piece := _decompress_block(view[position : position + size], max_bytes):
            yield piece
        position += size


def _decompress_block(block: memoryview, max_bytes: int) -> bytes:
    declared = _declared_length(block)
    if declared > MAX_EXPANSION * len(block):
        raise UndecodableRecords(f"snappy: {len(block)} bytes cannot hold {declared}")
    if declared > max_bytes:
        raise RecordsTooLarge(f"a block of {declared} bytes; the limit is {max_bytes}")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise UndecodableRecords(f"snappy: {error}") from None


def _declared_length(block: memoryview) -> int:
    length = 0
    for index, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    raise UndecodableRecords("snappy: a block without a length")
