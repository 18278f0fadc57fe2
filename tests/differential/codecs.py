"""Batches whose compressed bytes are odd: cut, followed by others, flipped, of unusual headers.

A broker looks into them before it takes them. `python -m tests.differential.codecs` records what
Apache Kafka says of each, which kafkalite has to say too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam
import lz4.frame
import zstandard

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateTopicsRequest, ProduceRequest
from kafkalite.records.batch import (
    CRC,
    CRC_POSITION,
    HEADER_BYTES,
    Compression,
    checksum,
    read_header,
)
from kafkalite.records.record import BatchBuilder
from kafkalite.records.snappy import XERIAL_BLOCK_BYTES, XERIAL_HEADER, XERIAL_MAGIC
from kafkalite.testing.comparison.names import Names
from kafkalite.testing.comparison.side import Side
from tests.differential.batches import TIMESTAMP

RECORDS, VERSION = 3, 9
_FLIPPED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 18, 20, 24, -9, -8, -6, -5, -4, -3, -2, -1)


@dataclass(frozen=True, slots=True)
class Packed:
    """Records of a request, already compressed; `count` is what the batch says there are."""

    name: str
    codec: int
    body: bytes
    count: int = RECORDS
    producer_id: int = -1
    epoch: int = -1

    def build(self, names: Names) -> bytes:
        header = bytes(_plain().build(compression=Compression.NONE))[:HEADER_BYTES]
        batch = bytearray(header + self.body)
        batch[8:12] = (len(batch) - 12).to_bytes(4)
        batch[21:23] = self.codec.to_bytes(2)
        batch[23:27] = (RECORDS - 1).to_bytes(4)
        batch[57:61] = self.count.to_bytes(4, signed=True)
        CRC.pack_into(batch, CRC_POSITION, checksum(batch, read_header(batch)))
        return bytes(batch)


def _plain() -> BatchBuilder:
    builder = BatchBuilder()
    for number in range(RECORDS):
        builder.append(TIMESTAMP + number, b"key %d" % number, b"value " * 30, ())
    return builder


def payload() -> bytes:
    return bytes(_plain().build())[HEADER_BYTES:]


def corpus() -> list[Packed]:
    found = [*_gzip(), *_snappy(), *_lz4(), *_zstd()]
    assert len({each.name for each in found}) == len(found)
    return found


def _common(name: str, codec: int, body: bytes) -> Iterator[Packed]:
    """What can be done to the bytes of any codec."""
    yield Packed(f"{name}, whole", codec, body)
    yield Packed(f"{name}, nothing", codec, b"")
    yield Packed(f"{name}, one record more", codec, body, RECORDS + 1)
    yield Packed(f"{name}, one record less", codec, body, RECORDS - 1)
    for size in (1, 2, 4, 5, 8, 12, len(body) // 2, len(body) - 1):
        yield Packed(f"{name}, cut by {size}", codec, body[:-size])
    for junk in (b"\0", b"\0" * 3, b"\0" * 4, b"\0" * 5, b"\0" * 20, b"junk", b"\xff" * 12):
        yield Packed(f"{name}, then {junk.hex()}", codec, body + junk)
    for at in _FLIPPED:
        flipped = bytearray(body)
        flipped[at] ^= 1
        yield Packed(f"{name}, flipped at {at}", codec, bytes(flipped))


def _gzip() -> Iterator[Packed]:
    codec, plain = int(Compression.GZIP), payload()
    whole = gzip.compress(plain, mtime=0)
    yield from _common("gzip", codec, whole)
    halves = gzip.compress(plain[:40], mtime=0), gzip.compress(plain[40:], mtime=0)
    yield Packed("gzip, two members", codec, b"".join(halves))
    yield Packed("gzip, an empty member last", codec, whole + gzip.compress(b"", mtime=0))
    yield Packed("gzip, an empty member first", codec, gzip.compress(b"", mtime=0) + whole)
    yield Packed("gzip, records twice", codec, gzip.compress(plain * 2, mtime=0))
    yield Packed("gzip, a byte more inside", codec, gzip.compress(plain + b"\0", mtime=0))
    yield Packed("gzip of nothing", codec, gzip.compress(b"", mtime=0))
    named = whole[:3] + b"\x08" + whole[4:10] + b"name\0" + whole[10:]
    yield Packed("gzip, with a name", codec, named)
    yield Packed("gzip, zlib instead", codec, zlib.compress(plain))


def _chain(*blocks: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4) + each for each in blocks)


def _block(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def _snappy() -> Iterator[Packed]:
    codec, plain = int(Compression.SNAPPY), payload()
    chain = XERIAL_HEADER + _chain(_block(plain))
    yield from _common("xerial", codec, chain)
    yield from _common("snappy block", codec, _block(plain))
    for size in range(1, 17):
        yield Packed(f"xerial, then {size} bytes of another", codec, chain + XERIAL_HEADER[:size])
    odd = {
        "header alone": XERIAL_HEADER,
        "two blocks": XERIAL_HEADER + _chain(_block(plain[:50]), _block(plain[50:])),
        "two chains": XERIAL_HEADER + _chain(_block(plain[:50])) + XERIAL_HEADER
        + _chain(_block(plain[50:])),
        "an empty block first": XERIAL_HEADER + _chain(_block(b""), _block(plain)),
        "an empty block last": XERIAL_HEADER + _chain(_block(plain), _block(b"")),
        "a block of no bytes first": XERIAL_HEADER + _chain(b"", _block(plain)),
        "a block of no bytes last": XERIAL_HEADER + _chain(_block(plain), b""),
        "a negative size last": chain + b"\xff\xff\xff\xff",
        "a broken block last": chain + _chain(b"\x05\xff\xff"),
        "a long size last": chain + b"\x00\x00\x10\x00" + b"abc",
        "version 0": XERIAL_MAGIC + bytes(4) + (1).to_bytes(4) + chain[16:],
        "compatible with 2": XERIAL_MAGIC + (1).to_bytes(4) + (2).to_bytes(4) + chain[16:],
        "version 2": XERIAL_MAGIC + (2).to_bytes(4) + (1).to_bytes(4) + chain[16:],
        "a byte more inside": XERIAL_HEADER + _chain(_block(plain + b"\0")),
        "a block of junk behind": XERIAL_HEADER + _chain(_block(plain), _block(b"junk")),
        "large blocks": XERIAL_HEADER + _chain(_block(plain + bytes(2 * XERIAL_BLOCK_BYTES))),
    }
    for name, body in odd.items():
        yield Packed(f"xerial, {name}", codec, body)


def _lz4() -> Iterator[Packed]:
    codec, plain = int(Compression.LZ4), payload()

    def frame(data: bytes, **fields: Any) -> bytes:
        settings = {"store_size": False, "block_linked": False, **fields}
        return bytes(lz4.frame.compress(data, **settings))

    whole = frame(plain)
    yield from _common("lz4", codec, whole)
    yield from _common("lz4 with content checksum", codec, frame(plain, content_checksum=True))
    yield from _common("lz4 with block checksum", codec, frame(plain, block_checksum=True))
    odd = {
        "content size": frame(plain, store_size=True),
        "content size and checksum": frame(plain, store_size=True, content_checksum=True),
        "linked blocks": frame(plain, block_linked=True),
        "two frames": frame(plain[:50]) + frame(plain[50:]),
        "whole and an empty frame": whole + frame(b""),
        "an empty frame first": frame(b"") + whole,
        "skippable first": b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + whole,
        "skippable last": whole + b"\x50\x2a\x4d\x18\x04\0\0\0abcd",
        "of nothing": frame(b""),
        "a byte more inside": frame(plain + b"\0"),
        "no end mark": whole[:-4],
        "a second block of junk": whole[:-4] + b"\x04\0\0\x80junk" + whole[-4:],
        "a broken block behind": whole[:-4] + b"\x04\0\0\0\xff\xff\xff\xff" + whole[-4:],
    }
    for name, body in odd.items():
        yield Packed(f"lz4, {name}", codec, body)
    sized = bytearray(frame(plain, store_size=True))
    sized[6] ^= 1
    yield Packed("lz4, a wrong content size", codec, bytes(sized))


def _zstd() -> Iterator[Packed]:
    codec, plain = int(Compression.ZSTD), payload()

    def frame(data: bytes, **fields: Any) -> bytes:
        return zstandard.ZstdCompressor(**fields).compress(data)

    whole = frame(plain)
    summed = frame(plain, write_checksum=True)
    yield from _common("zstd", codec, whole)
    yield from _common("zstd with checksum", codec, summed)
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    odd = {
        "of nothing": frame(b""),
        "two frames": frame(plain[:50]) + frame(plain[50:]),
        "an empty frame last": whole + frame(b""),
        "an empty frame first": frame(b"") + whole,
        "skippable first": skippable + whole,
        "skippable last": whole + skippable,
        "skippable alone": skippable,
        "skippable cut": whole + skippable[:-1],
        "half a magic behind": whole + whole[:3],
        "half a frame behind": whole + whole[:12],
        "a byte more inside": frame(plain + b"\0"),
        "no content size": frame(plain, write_content_size=False),
        "junk inside behind": frame(plain) + frame(b"junk"),
    }
    for name, body in odd.items():
        yield Packed(f"zstd, {name}", codec, body)


# --- what becomes of them -------------------------------------------------------------------------

VERDICTS = Path(__file__).parent / "codec_verdicts.json"  # of Apache Kafka 4.3.1
_LENGTH = (
    "a record whose length is not that of its fields: Apache Kafka passes over it, and no Java"
    " consumer can read the batch"
)
# Where kafkalite judges otherwise, how, and why.
EXCEPTIONS: dict[str, tuple[str, str]] = {
    "gzip, flipped at -9": (
        "UNKNOWN_SERVER_ERROR",
        "refused by both: the stream and the records in it are wrong, and either is found first",
    ),
    **dict.fromkeys(
        (
            "xerial, flipped at 24",
            "snappy block, flipped at 3",
            "snappy block, flipped at 4",
            "lz4, flipped at 14",
            "lz4 with content checksum, flipped at 14",
        ),
        ("INVALID_RECORD", _LENGTH),
    ),
    "snappy block, flipped at 7": (
        "NONE",
        "offsets that are not 0, 1, 2: Apache Kafka fails at numbering compressed records anew",
    ),
}


def verdict(side: Side, topic: str, packed: Packed) -> str:
    """What a broker says of a batch: the name of its error."""
    data = ProduceRequest.PartitionData(index=0, records=packed.build(side.names))
    asked = ProduceRequest.TopicData(name=topic, partition_data=[data])
    answer = side.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[asked]), VERSION)
    return Error(answer.responses[0].partition_responses[0].error_code).name


def create(side: Side, topic: str) -> None:
    asked = CreateTopicsRequest.Topic(name=topic, num_partitions=1, replication_factor=1)
    side.ask(CreateTopicsRequest(topics=[asked], timeout_ms=10_000), 5)


def verdicts(side: Side, topic: str) -> dict[str, str]:
    create(side, topic)
    return {each.name: verdict(side, topic, each) for each in corpus()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.codecs")
    parser.add_argument("--apache-kafka", metavar="HOST:PORT", required=True)
    host, _, port = parser.parse_args().apache_kafka.rpartition(":")
    with closing(Side(host, int(port))) as side:
        told = verdicts(side, f"codecs-{time.time_ns()}")
    VERDICTS.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{len(told)} batches judged")
    return not told


if __name__ == "__main__":
    raise SystemExit(main())
