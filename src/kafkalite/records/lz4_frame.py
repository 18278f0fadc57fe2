"""LZ4 frames, with the wrong header checksum that messages of magic 0 carry.

Apache Kafka's first LZ4 writer took the checksum of the frame's descriptor over the frame's magic
number too; its readers ignore the checksum in magic 0, and so does this one, by mending it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import lz4.frame

from kafkalite.records.errors import UndecodableRecords

MAGIC: Final = b"\x04\x22\x4d\x18"
# Apache Kafka's default level means the fast compressor, which here is level 0.
DEFAULT_LEVEL: Final = 9
INPUT_BYTES: Final = 16 * 1024  # the library keeps what it did not use as a copy

_VERSION_MASK = 0xC0
_VERSION = 0x40
_INDEPENDENT_BLOCKS = 0x20
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_CHECKSUM_BYTES = 4
_RESERVED = 0x03
_MIN_HEADER_BYTES = 7


def compress(
    data: bytes | bytearray | memoryview, level: int | None = None, *, magic: int = 2
) -> bytes:
    frame: bytes = lz4.frame.compress(data, store_size=False, **_settings(level))
    return frame if magic > 0 else _with_old_checksum(frame)


class FrameWriter:
    """A frame that grows."""

    __slots__ = ("_front", "_writer")

    def __init__(self, level: int | None = None, *, magic: int = 2) -> None:
        self._writer = lz4.frame.LZ4FrameCompressor(**_settings(level))
        front: bytes = self._writer.begin()
        self._front = front if magic > 0 else _with_old_checksum(front)

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        front, self._front = self._front, b""
        packed: bytes = self._writer.compress(data)
        return front + packed

    def flush(self) -> bytes:
        end: bytes = self._writer.flush()
        return self._front + end


def _settings(level: int | None) -> dict[str, int]:
    return {
        "compression_level": 0 if level is None or level == DEFAULT_LEVEL else level,
        "block_size": lz4.frame.BLOCKSIZE_MAX64KB,
        "block_linked": False,
    }


def _with_old_checksum(frame: bytes) -> bytes:
    return frame[:6] + bytes((_checksum(frame[:6]),)) + frame[7:]


def decompress_chunks(view: memoryview, chunk_bytes: int, *, magic: int) -> Iterator[bytes]:
    """The first frame's content; what follows its end mark is left alone, as Java does: also a
    content checksum, which only has to be there."""
    pending, position = _checked_header(view, mend=magic == 0)
    has_checksum = view[len(MAGIC)] & _CONTENT_CHECKSUM
    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        while not decompressor.eof:
            chunk = decompressor.decompress(pending, chunk_bytes)
            pending = b""
            if chunk:
                yield chunk
            elif decompressor.needs_input and not decompressor.eof:
                pending = bytes(view[position : position + INPUT_BYTES])
                position += len(pending)
                if not pending:
                    raise UndecodableRecords("lz4: the stream ends too early")
    except RuntimeError as error:
        raise UndecodableRecords(f"lz4: {error}") from None
    behind = len(view) - position + len(decompressor.unused_data or b"")
    if has_checksum and behind < _CHECKSUM_BYTES:
        raise UndecodableRecords("lz4: the stream ends too early")


def _checked_header(view: memoryview, *, mend: bool) -> tuple[bytes, int]:
    """The frame's header, and where it ends. Refuses what Java's reader does, since consumers could
    not read it; what that leaves alone is not in the header that is made: size and checksum of the
    whole content."""
    if len(view) < _MIN_HEADER_BYTES or bytes(view[:4]) != MAGIC:
        raise UndecodableRecords("lz4: not a frame")
    flags = view[4]
    if flags & _VERSION_MASK != _VERSION or flags & _RESERVED:
        raise UndecodableRecords(f"lz4: unknown flags {flags:#04x}")
    if not flags & _INDEPENDENT_BLOCKS:
        raise UndecodableRecords("lz4: blocks that depend on each other")
    size = _MIN_HEADER_BYTES + (8 if flags & _CONTENT_SIZE else 0)
    header = bytes(view[:size])
    if len(header) < size:
        raise UndecodableRecords("lz4: the stream ends too early")
    if not mend and header[-1] != _checksum(header[len(MAGIC) : -1]):
        raise UndecodableRecords("lz4: the header's checksum is wrong")
    if not mend and not flags & (_CONTENT_SIZE | _CONTENT_CHECKSUM):
        return header, size
    descriptor = bytes((flags & ~(_CONTENT_SIZE | _CONTENT_CHECKSUM), view[5]))
    return MAGIC + descriptor + bytes((_checksum(descriptor),)), size


def _checksum(data: bytes) -> int:
    """The second byte of xxHash32 with seed 0, of less than 16 bytes."""
    mask = 0xFFFFFFFF
    number = 374761393 + len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        number += int.from_bytes(data[start : start + 4], "little") * 3266489917
        number = _rotate(number & mask, 17) * 668265263 & mask
    for byte in data[whole:]:
        number += byte * 374761393
        number = _rotate(number & mask, 11) * 2654435761 & mask
    number = (number ^ number >> 15) * 2246822519 & mask
    number = (number ^ number >> 13) * 3266489917 & mask
    return (number ^ number >> 16) >> 8 & 0xFF


def _rotate(number: int, bits: int) -> int:
    return number << bits & 0xFFFFFFFF | number >> (32 - bits)
