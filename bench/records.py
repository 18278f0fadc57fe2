"""What batches and records cost: the check of a produced batch, reading, building, and bombs.

    python bench/records.py

The first table sets the check of a batch of 16 KB against the bare CRC-32C of the same bytes, in
one run and in turns; the goal is 1.2 times. The second is records a second, the third the time
and the growth in memory (each in a process of its own) of walking through a batch that inflates
to far more than it is.
"""

from __future__ import annotations

import subprocess
import sys
import time
import timeit
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import zstandard
from crc32c import crc32c

from kafkalite.records import batch
from kafkalite.records.batch import Compression
from kafkalite.records.record import BatchBuilder, Record, iterate_records
from kafkalite.records.varint import encode_varint
from tests.unit.records.building import build_batch, scan

ROUNDS = 60
CHECKS = 2_000
READ_ROUNDS = 10
RECORDS = 10_000
BOMBS = ("zstd 2,000 MB in one value", "zstd 1,200,000 empty records", "gzip 900 MB in one value")
MEBIBYTE = 1 << 20


def main() -> None:
    if len(sys.argv) > 1:
        _walk_through(sys.argv[1])
        return
    _check_table()
    _records_table()
    _bombs_table()


def _check_table() -> None:
    buffer = _batch_of_16_kb()
    view, end = memoryview(buffer), len(buffer)
    under_crc = view[batch.ATTRIBUTES_POSITION : end]
    read_header, verify = batch.read_header, batch.verify

    def header_and_verify() -> None:
        verify(view, read_header(view))

    ways: dict[str, Callable[[], object]] = {
        "bare crc32c of a ready slice": lambda: crc32c(under_crc),
        "bare crc32c, cutting the slice": lambda: crc32c(view[batch.ATTRIBUTES_POSITION : end]),
        "read_header + verify": header_and_verify,
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            best[name] = min(best[name], timeit.timeit(way, number=CHECKS) / CHECKS * 1e9)
    bare = best["bare crc32c, cutting the slice"]
    print(f"check of a batch of {end:,} bytes          ns   of bare, cut")
    for name, cost in best.items():
        print(f"  {name:<36} {cost:>6.0f} {cost / bare:>9.2f}")


def _batch_of_16_kb() -> bytearray:
    builder = BatchBuilder()
    while builder.size < 16 * 1024 - 120:
        builder.append(1_700_000_000_000 + builder.count, None, bytes(100))
    return builder.build()


def _records_table() -> None:
    records = [Record(i, 1_700_000_000_000 + 3 * i, None, bytes(100)) for i in range(RECORDS)]
    print(f"\n{RECORDS:,} records of 100 bytes      read /s     scan /s    build /s")
    for codec in Compression:
        buffer = build_batch(records, compression=codec)
        header = batch.read_header(buffer)
        read = _rate(lambda: sum(1 for _ in iterate_records(buffer, header)))  # noqa: B023
        looked = _rate(lambda: scan(buffer, header))  # noqa: B023
        built = _rate(lambda: build_batch(records, compression=codec))  # noqa: B023
        print(f"  {codec.name.lower():<24} {read:>14,.0f} {looked:>11,.0f} {built:>11,.0f}")


def _rate(way: Callable[[], object]) -> float:
    return RECORDS / min(timeit.repeat(way, number=1, repeat=READ_ROUNDS))


def _bombs_table() -> None:
    print("\nbomb                                 bytes   seconds   memory +MB")
    for name in BOMBS:
        call = [sys.executable, __file__, name]
        done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=120)
        print(f"  {name:<31} {done.stdout.strip()}")


def _walk_through(name: str) -> None:
    """In a process of its own, so that the growth of its memory is that of the walk."""
    buffer = _bomb(name)
    header = batch.read_header(buffer)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here (Linux)
    before = _kilobytes("VmRSS")
    start = time.perf_counter()
    scan(buffer, header)
    seconds = time.perf_counter() - start
    grown = (_kilobytes("VmHWM") - before) / 1024
    print(f"{len(buffer):>9,} {seconds:>9.2f} {grown:>12.1f}")


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


def _bomb(name: str) -> bytearray:
    """A batch around records that are compressed as they are made, never all in memory."""
    count = 1_200_000 if "empty" in name else 1
    pieces = _empty_records(count) if "empty" in name else _one_record(_megabytes(name))
    if name.startswith("gzip"):
        codec, packer = Compression.GZIP, cast(Any, zlib.compressobj(wbits=31))
    else:
        codec, packer = Compression.ZSTD, zstandard.ZstdCompressor().compressobj()
    packed = b"".join(packer.compress(piece) for piece in pieces) + packer.flush()
    length = batch.HEADER_BYTES - batch.LOG_OVERHEAD + len(packed)
    header = batch.HEADER.pack(0, length, -1, 2, 0, codec, count - 1, 0, 0, -1, -1, -1, count)
    built = bytearray(header + packed)
    crc = crc32c(bytes(built[batch.ATTRIBUTES_POSITION :]))
    batch.CRC.pack_into(built, batch.CRC_POSITION, crc)
    return built


def _megabytes(name: str) -> int:
    return int(name.split()[1].replace(",", ""))


def _one_record(megabytes: int) -> Iterator[bytes]:
    value_length = encode_varint(megabytes * MEBIBYTE)
    front = b"\0" + encode_varint(0) + encode_varint(0) + encode_varint(-1) + value_length
    yield encode_varint(len(front) + megabytes * MEBIBYTE + 1) + front
    zeros = bytes(MEBIBYTE)
    for _ in range(megabytes):
        yield zeros
    yield b"\0"


def _empty_records(count: int) -> Iterator[bytes]:
    for index in range(count):
        body = b"\0\0" + encode_varint(index) + b"\x01\x01\0"
        yield encode_varint(len(body)) + body


if __name__ == "__main__":
    main()
