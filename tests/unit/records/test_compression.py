"""The codecs: there and back, and the lies that compressed bytes can tell."""

import gzip
import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol.errors import Error
from kafkalite.records import compression, snappy
from kafkalite.records.batch import Compression
from kafkalite.records.compression import compress, decompress, decompress_chunks
from kafkalite.records.errors import RecordsTooLarge, UndecodableRecords
from kafkalite.records.packing import Packer

CODECS = list(Compression)
REAL_CODECS = CODECS[1:]
MEBIBYTE = 1 << 20


@given(st.binary() | st.builds(bytes, st.integers(0, 300_000)), st.sampled_from(CODECS))
def test_bytes_survive_a_codec(data: bytes, codec: Compression) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(bytes(packed))) == data
    pieces = list(decompress_chunks(codec, packed))
    assert b"".join(pieces) == data
    assert all(pieces)
    if codec != Compression.NONE:
        assert all(len(piece) <= compression.CHUNK_BYTES for piece in pieces)


@given(st.lists(st.binary() | st.builds(bytes, st.integers(0, 200_000)), max_size=6), st.data())
def test_bytes_that_come_in_pieces_survive_a_codec(
    pieces: list[bytes], data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(CODECS))
    magic = data.draw(st.sampled_from([0, 1, 2]))
    packer = Packer(codec, magic=magic)
    for piece in pieces:
        packer.add(piece)
    assert decompress(codec, packer.finish(), magic=magic) == b"".join(pieces)


LEVELS = {Compression.GZIP: (1, 9), Compression.LZ4: (1, 12), Compression.ZSTD: (-5, 19)}


@pytest.mark.parametrize(
    ("codec", "level"), [(codec, level) for codec, levels in LEVELS.items() for level in levels]
)
def test_levels(codec: Compression, level: int) -> None:
    data = b"".join(b"%d," % number for number in range(20_000))
    assert decompress(codec, compress(codec, data, level)) == data


@given(st.sampled_from(REAL_CODECS), st.data())
def test_cut_and_mutated_streams_are_refused_or_read(
    codec: Compression, data: st.DataObject
) -> None:
    packed = bytearray(compress(codec, b"".join(b"%d," % number for number in range(3_000))))
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 5))):
            packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    else:
        del packed[data.draw(st.integers(0, len(packed) - 1)) :]
    with suppress(UndecodableRecords, RecordsTooLarge):
        assert len(decompress(codec, packed, max_bytes=MEBIBYTE)) <= MEBIBYTE


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_every_cut_of_a_stream_is_seen(codec: Compression) -> None:
    packed = bytes(compress(codec, b"".join(b"%d," % number for number in range(500))))
    for end in range(codec == Compression.ZSTD, len(packed)):  # of zstd nothing at all is whole
        with pytest.raises(UndecodableRecords):
            decompress(codec, packed[:end])


@given(st.sampled_from(CODECS), st.binary(max_size=60))
def test_random_bytes_are_refused_or_read(codec: Compression, data: bytes) -> None:
    with suppress(UndecodableRecords, RecordsTooLarge):
        decompress(codec, data, max_bytes=MEBIBYTE)


def test_an_unknown_codec() -> None:
    for number in (-1, 5, 7):
        with pytest.raises(UndecodableRecords):
            compress(number, b"")
        with pytest.raises(UndecodableRecords):
            decompress(number, b"")


def _bomb(codec: Compression) -> bytes:
    """100 MB of zeros."""
    zeros, rounds = bytes(MEBIBYTE), 100
    match codec:
        case Compression.GZIP:
            packer = zlib.compressobj(wbits=31)
            return b"".join(packer.compress(zeros) for _ in range(rounds)) + packer.flush()
        case Compression.ZSTD:
            zstd = zstandard.ZstdCompressor().compressobj()
            return b"".join(zstd.compress(zeros) for _ in range(rounds)) + zstd.flush()
        case Compression.LZ4:
            with lz4.frame.LZ4FrameCompressor(block_linked=False) as lz:
                return lz.begin() + b"".join(lz.compress(zeros) for _ in range(rounds)) + lz.flush()
    block = bytes(cramjam.snappy.compress_raw(zeros))
    return snappy.XERIAL_HEADER + rounds * (len(block).to_bytes(4, "big") + block)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_a_bomb_is_refused_before_it_is_inflated(codec: Compression) -> None:
    bomb = _bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(RecordsTooLarge) as caught:
            decompress(codec, bomb, max_bytes=MEBIBYTE)
        assert tracemalloc.get_traced_memory()[1] < 4 * MEBIBYTE
    finally:
        tracemalloc.stop()
    assert caught.value.code == Error.MESSAGE_TOO_LARGE


def test_a_raw_snappy_block_that_claims_what_it_cannot_hold() -> None:
    claim = b"\x80\x80\x80\x96\x01"  # 314,572,800
    tracemalloc.start()
    try:
        with pytest.raises(UndecodableRecords):
            decompress(Compression.SNAPPY, claim + bytes(81))
        assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
    finally:
        tracemalloc.stop()


def test_the_densest_snappy_block_is_within_its_bound() -> None:
    data = bytes(10 * MEBIBYTE)
    block = bytes(cramjam.snappy.compress_raw(data))
    assert len(data) <= snappy.MAX_EXPANSION * len(block)
    assert decompress(Compression.SNAPPY, block) == data


def test_snappy_raw_and_chained() -> None:
    data = b"abcdefgh" * 20_000
    raw = bytes(cramjam.snappy.compress_raw(data))
    chained = bytes(compress(Compression.SNAPPY, data))
    assert chained.startswith(snappy.XERIAL_MAGIC)
    assert decompress(Compression.SNAPPY, raw) == data
    assert decompress(Compression.SNAPPY, chained) == data
    assert decompress(Compression.SNAPPY, chained + chained) == data + data
    with pytest.raises(UndecodableRecords):
        decompress(Compression.SNAPPY, chained[:-1])


def test_a_zstd_window_larger_than_the_limit() -> None:
    large = zstandard.ZstdCompressionParameters(window_log=28)
    packer = zstandard.ZstdCompressor(compression_params=large).compressobj()
    frame = packer.compress(b"x") + packer.flush()
    with pytest.raises(UndecodableRecords, match="memory"):
        decompress(Compression.ZSTD, frame)


def test_a_zstd_content_size_that_lies() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(b"0123456789" * 30))
    honest = zstandard.frame_content_size(frame)
    assert frame[5:7] == (honest - 256).to_bytes(2, "little")
    frame[5:7] = (65_000).to_bytes(2, "little")
    with pytest.raises(UndecodableRecords):
        decompress(Compression.ZSTD, frame)


def test_streams_joined_end_to_end() -> None:
    for codec in (Compression.GZIP, Compression.ZSTD):
        packed = bytes(compress(codec, b"one")) + bytes(compress(codec, b"two"))
        assert decompress(codec, packed) == b"onetwo"
    assert decompress(Compression.GZIP, gzip.compress(b"one") + b"no member") == b"one"


def test_lz4_blocks_that_java_cannot_read_are_refused() -> None:
    linked = lz4.frame.compress(b"a" * 200_000, block_linked=True)
    with pytest.raises(UndecodableRecords, match="depend"):
        decompress(Compression.LZ4, linked)


@pytest.mark.parametrize("store_size", [False, True])
def test_the_wrong_lz4_checksum_belongs_to_magic_0(store_size: bool) -> None:
    data = b"old" * 1_000
    frame = lz4.frame.compress(data, block_linked=False, store_size=store_size)
    last = 14 if store_size else 6
    wrong = frame[:last] + bytes((frame[last] ^ 0x55,)) + frame[last + 1 :]
    assert decompress(Compression.LZ4, wrong, magic=0) == data
    assert decompress(Compression.LZ4, frame, magic=0) == data
    for magic in (1, 2):
        with pytest.raises(UndecodableRecords):
            decompress(Compression.LZ4, wrong, magic=magic)
    old = bytes(compress(Compression.LZ4, data, magic=0))
    assert old[6] == 0x1A  # what the first Java producers wrote for these flags
    assert decompress(Compression.LZ4, old, magic=0) == data
