"""Compression of what comes in pieces, so that nobody needs all of it in memory or in one go.

Owns what is waiting for the codec, at most a piece. What comes out is what `compression.compress`
makes of the same bytes, or as good.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard

from kafkalite.records import lz4_frame, snappy
from kafkalite.records.batch import Buffer, Compression
from kafkalite.records.compression import (
    CHUNK_BYTES,
    GZIP_DEFAULT_LEVEL,
    GZIP_WBITS,
    ZSTD_DEFAULT_LEVEL,
    compress,
)
from kafkalite.records.errors import UndecodableRecords


class _Writer(Protocol):
    """A codec that is given what it packs bit by bit, as zlib says it."""

    def compress(self, data: Buffer, /) -> Buffer: ...

    def flush(self) -> Buffer: ...


class Packer:
    """Bytes in, in pieces; all that came of them out at last."""

    __slots__ = ("_codec", "_level", "_magic", "_out", "_pending", "_writer")

    def __init__(self, codec: int, level: int | None = None, *, magic: int = 2) -> None:
        self._codec = codec
        self._level = level
        self._magic = magic
        self._writer: _Writer | None = None
        self._out = bytearray()
        self._pending = bytearray()

    def add(self, data: Buffer) -> bool:
        """Whether the codec had work to do."""
        self._pending += data
        if len(self._pending) < CHUNK_BYTES or self._codec == Compression.NONE:
            return False
        if self._writer is None:
            self._writer = _writer(self._codec, self._level, self._magic)
        self._out += self._writer.compress(bytes(self._pending))
        self._pending.clear()
        return True

    def finish(self) -> Buffer:
        pending = self._pending
        if self._writer is None:  # the usual case, in which the codec is set up for nothing more
            return compress(self._codec, pending, self._level, magic=self._magic)
        self._out += self._writer.compress(bytes(pending))
        self._out += self._writer.flush()
        return self._out


def _writer(codec: int, level: int | None, magic: int) -> _Writer:
    match codec:
        case Compression.GZIP:
            level = GZIP_DEFAULT_LEVEL if level is None else level
            return zlib.compressobj(level, wbits=GZIP_WBITS)
        case Compression.SNAPPY:
            return snappy.Chain()
        case Compression.LZ4:
            return lz4_frame.FrameWriter(level, magic=magic)
        case Compression.ZSTD:
            level = ZSTD_DEFAULT_LEVEL if level is None else level
            return zstandard.ZstdCompressor(level).compressobj()
    raise UndecodableRecords(f"unknown compression codec {codec}")
