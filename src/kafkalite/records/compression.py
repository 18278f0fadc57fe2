"""The codecs of Apache Kafka, in pieces of bounded size.

Owns gzip and zstd, and chooses among these, snappy.py and lz4_frame.py. Never inflates more than
one chunk ahead of its reader. Invariant: no size that a peer declares is allocated before it is
held against what the compressed bytes can give and against the caller's limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import zstandard

from kafkalite.records import lz4_frame, snappy
from kafkalite.records.batch import Buffer, Compression
from kafkalite.records.errors import RecordsTooLarge, UndecodableRecords

# What decompress() inflates at most when the caller names no limit of its own.
MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024
# One step of a streaming decompressor; larger ones cost page faults, smaller ones calls.
CHUNK_BYTES: Final = 64 * 1024
# zlib hands back the input that it did not use as a copy, so it is fed in small slices.
INPUT_BYTES: Final = 16 * 1024
# The largest window that zstd's own decoder takes by default, and so Apache Kafka's.
ZSTD_WINDOW_BYTES: Final = 1 << 27
# So much of its input zstd-jni takes at a time.
ZSTD_JAVA_INPUT_BYTES: Final = 131_075
# Idle zstd decompressors: making one costs more than most batches.
MAX_IDLE: Final = 4

GZIP_DEFAULT_LEVEL: Final = -1
ZSTD_DEFAULT_LEVEL: Final = 3

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50  # and the 15 after it

GZIP_HEADER_BYTES: Final = 10  # at least
GZIP_WBITS: Final = 31  # a window of 32 KB, with gzip's header and trailer
_idle: list[zstandard.ZstdDecompressor] = []


def compress(codec: int, data: Buffer, level: int | None = None, *, magic: int = 2) -> Buffer:
    """The bytes as a producer of this codec writes them; level None is the codec's default."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            gzip = zlib.compressobj(
                GZIP_DEFAULT_LEVEL if level is None else level, wbits=GZIP_WBITS
            )
            return gzip.compress(data) + gzip.flush()
        case Compression.SNAPPY:
            return snappy.compress(data)
        case Compression.LZ4:
            return lz4_frame.compress(data, level, magic=magic)
        case Compression.ZSTD:
            zstd = zstandard.ZstdCompressor(ZSTD_DEFAULT_LEVEL if level is None else level)
            return zstd.compress(data)
    raise UndecodableRecords(f"unknown compression codec {codec}")


def decompress(
    codec: int, data: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES, magic: int = 2
) -> bytes:
    """All of it, or RecordsTooLarge before more than max_bytes and a chunk are inflated."""
    parts: list[bytes] = []
    total = 0
    for chunk in decompress_chunks(codec, data, magic=magic, max_bytes=max_bytes):
        total += len(chunk)
        if total > max_bytes:
            raise RecordsTooLarge(f"more than {max_bytes} bytes when decompressed")
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decompress_chunks(
    codec: int, data: Buffer, *, magic: int = 2, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[bytes]:
    """Pieces of CHUNK_BYTES at most, none of them empty, until the end of the stream.

    Snappy has no stream inside a block, so its pieces are blocks; max_bytes bounds one.
    """
    view = memoryview(data)
    match codec:
        case Compression.NONE:
            return iter((bytes(view),) if len(view) else ())
        case Compression.GZIP:
            return _gunzip(view)
        case Compression.SNAPPY:
            return snappy.decompress_blocks(view, max_bytes)
        case Compression.LZ4:
            return lz4_frame.decompress_chunks(view, CHUNK_BYTES, magic=magic)
        case Compression.ZSTD:
            return _unzstd(view)
    raise UndecodableRecords(f"unknown compression codec {codec}")


def _gunzip(view: memoryview) -> Iterator[bytes]:
    """Members follow each other as one stream; what follows them and is none is left alone."""
    slices = (bytes(view[at : at + INPUT_BYTES]) for at in range(0, len(view), INPUT_BYTES))
    pending = next(slices, b"")
    is_first, rest = True, len(view)
    while is_first or pending:
        member = zlib.decompressobj(GZIP_WBITS)
        has_output = False
        while not member.eof:
            try:
                chunk = member.decompress(pending, CHUNK_BYTES)
            except zlib.error as error:
                if is_first or has_output:
                    raise UndecodableRecords(f"gzip: {error}") from None
                return
            if chunk:
                yield chunk
                has_output = True
            elif not pending:
                if rest < GZIP_HEADER_BYTES and not is_first:
                    return
                raise UndecodableRecords("gzip: the stream ends too early")
            pending = member.unconsumed_tail or next(slices, b"")
        pending = member.unused_data or pending
        is_first, rest = False, len(pending)


def _unzstd(view: memoryview) -> Iterator[bytes]:
    if not view:
        return  # which is whole to Java
    _check_zstd_whole(view)
    try:
        decompressor = _idle.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    try:
        with decompressor.stream_reader(view, read_across_frames=True) as reader:
            while chunk := reader.read(CHUNK_BYTES):
                yield chunk
    except zstandard.ZstdError as error:
        raise UndecodableRecords(f"zstd: {error}") from None
    if len(_idle) < MAX_IDLE:
        _idle.append(decompressor)


def _check_zstd_whole(view: memoryview) -> None:
    """Walk over the frames' blocks without decoding: the reader takes a cut one for its end. So
    does Java where a frame ended before it in the same piece of its input."""
    begin = position = 0
    try:
        while position == 0 or position < len(view):
            begin, position = position, _zstd_frame_end(view, position)
    except IndexError:
        begin, position = position, len(view) + 1
    if position <= len(view):
        return
    piece = begin // ZSTD_JAVA_INPUT_BYTES
    if not begin % ZSTD_JAVA_INPUT_BYTES or piece != (len(view) - 1) // ZSTD_JAVA_INPUT_BYTES:
        raise UndecodableRecords("zstd: the stream ends too early")


def _zstd_frame_end(view: memoryview, position: int) -> int:
    magic = view[position] | view[position + 1] << 8 | view[position + 2] << 16
    magic |= view[position + 3] << 24
    if magic & 0xFFFFFFF0 == ZSTD_SKIPPABLE_MAGIC:
        return position + 8 + int.from_bytes(view[position + 4 : position + 8], "little")
    if magic != ZSTD_MAGIC:
        raise UndecodableRecords(f"zstd: unknown frame {magic:08x}")
    descriptor = view[position + 4]
    is_single_segment = descriptor >> 5 & 1
    content_size_bytes = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    dictionary_id_bytes = (0, 1, 2, 4)[descriptor & 3]
    position += 5 + (1 - is_single_segment) + dictionary_id_bytes + content_size_bytes
    is_last = 0
    while not is_last:
        block = view[position] | view[position + 1] << 8 | view[position + 2] << 16
        is_last = block & 1
        # A run-length block holds one byte, whatever size it stands for.
        position += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return position + (4 if descriptor >> 2 & 1 else 0)
