"""Messages of magic 0 and 1: plain, wrapped, and broken."""

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol.errors import Error
from kafkalite.records import batch, compression, legacy
from kafkalite.records.batch import Compression, TimestampType
from kafkalite.records.errors import CorruptRecords, InvalidRecords
from kafkalite.records.legacy import build_message, iterate_records
from kafkalite.records.record import Record
from tests.unit.records import samples
from tests.unit.records.building import build_message_set

LEGACY_CODECS = [Compression(number) for number in samples.LEGACY_CODECS]
RECORDS = [
    Record(40, 1_000, b"k", b"v"),
    Record(41, 1_500, None, b""),
    Record(45, 900, b"", None),
]


def read_all(buffer: bytes | bytearray) -> list[Record]:
    result: list[Record] = []
    for header in batch.iterate_headers(buffer):
        batch.verify(buffer, header)
        result.extend(iterate_records(buffer, header))
    return result


@given(samples.records(), st.sampled_from([0, 1]), st.sampled_from(LEGACY_CODECS), st.booleans())
def test_records_survive_a_message_set(
    records: list[Record], magic: int, codec: Compression, is_append_time: bool
) -> None:
    built = build_message_set(
        records,
        magic,
        codec,
        timestamp_type=TimestampType(is_append_time),
        append_time=77,
    )
    expected = samples.without_headers(records)
    for record in expected:
        record.timestamp = -1 if magic == 0 else 77 if is_append_time else record.timestamp
    assert read_all(built) == expected
    headers = list(batch.iterate_headers(built))
    assert [header.magic for header in headers] == [magic] * len(headers)
    assert headers[-1].last_offset == records[-1].offset
    assert legacy.first_offset(built, headers[0]) == records[0].offset
    assert headers[0].timestamp_type == int(is_append_time and magic == 1)


def test_the_bytes_of_a_message() -> None:
    body = bytes.fromhex("01 00 00000000000003e8 00000001 6b ffffffff")
    expected = struct.pack(">qiI", 9, 4 + len(body), zlib.crc32(body)) + body
    assert build_message(1, 9, 1_000, b"k", None) == expected


def test_relative_offsets_hold_after_the_broker_moves_the_wrapper() -> None:
    built = build_message_set(RECORDS, 1, Compression.GZIP)
    header = batch.read_header(built)
    struct.pack_into(">q", built, header.position, 1_005)
    batch.verify(built, batch.read_header(built))
    assert [record.offset for record in read_all(built)] == [1_000, 1_001, 1_005]


def test_a_wrapper_at_offset_zero_leaves_the_offsets_as_they_are() -> None:
    """Some producers number the wrapped messages and leave the wrapper at 0."""
    built = build_message_set(RECORDS, 1, Compression.GZIP)
    struct.pack_into(">q", built, 0, 0)
    assert [record.offset for record in read_all(built)] == [0, 1, 5]


def test_patching_the_timestamp_renews_the_checksum() -> None:
    built = build_message_set(RECORDS, 1, Compression.LZ4)
    header = batch.read_header(built)
    batch.patch_timestamps(built, header, TimestampType.LOG_APPEND_TIME, 5_000)
    assert batch.read_header(built) == header
    assert {record.timestamp for record in read_all(built)} == {5_000}


def _wrap(inner: bytes | bytearray, magic: int = 1, codec: int = 1, offset: int = 9) -> bytearray:
    packed = bytes(compression.compress(codec, inner, magic=magic))
    return build_message(magic, offset, 5, None, packed, TimestampType.CREATE_TIME, codec)


def _with_bad_checksum() -> bytes:
    message = build_message(1, 0, 0, None, b"v")
    message[-1] ^= 1
    return bytes(message)


WRAPPED: dict[str, bytearray] = {
    "a wrapper in a wrapper": _wrap(_wrap(build_message(1, 0, 0, None, b"v"))),
    "another magic": _wrap(build_message(0, 0, 0, None, b"v")),
    "nothing": _wrap(b""),
    "half a message": _wrap(build_message(1, 0, 0, None, b"v")[:-1]),
    "offsets behind the wrapper's": _wrap(build_message(1, 10, 0, None, b"v")),
    "zstd": _wrap(build_message(1, 0, 0, None, b"v"), codec=4),
    "no value": build_message(1, 0, 0, None, None, TimestampType.CREATE_TIME, 1),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_broken_wrapper_is_invalid(name: str) -> None:
    with pytest.raises(InvalidRecords):
        read_all(WRAPPED[name])


@pytest.mark.parametrize("inner", [_with_bad_checksum(), bytes(11) + b"\x05" + bytes(20)])
def test_a_corrupt_message_in_a_wrapper_is_corrupt(inner: bytes) -> None:
    with pytest.raises(CorruptRecords) as caught:
        read_all(_wrap(inner))
    assert caught.value.code == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("field", [18, 22])
@pytest.mark.parametrize("length", [3, 2**31 - 1])
def test_a_field_that_runs_over_the_message_is_invalid(field: int, length: int) -> None:
    message = build_message(0, 0, -1, None, None)
    struct.pack_into(">i", message, field, length)
    with pytest.raises(InvalidRecords):
        list(iterate_records(message, batch.read_header(message)))


@given(st.sampled_from([0, 1]), st.sampled_from(LEGACY_CODECS), st.data())
def test_mutated_sets_are_read_or_refused(
    magic: int, codec: Compression, data: st.DataObject
) -> None:
    built = build_message_set(RECORDS, magic, codec)
    for _ in range(data.draw(st.integers(1, 4))):
        built[data.draw(st.integers(0, len(built) - 1))] = data.draw(st.integers(0, 255))
    del built[data.draw(st.integers(len(built) // 2, len(built))) :]
    with suppress(CorruptRecords):
        for header in batch.iterate_headers(built):
            if header.magic < 2:
                list(iterate_records(built, header))
