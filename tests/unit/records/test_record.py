"""Records of batch v2: there and back, and what lies on the way."""

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol.errors import Error
from kafkalite.records import batch, compression
from kafkalite.records.batch import Compression, TimestampType
from kafkalite.records.errors import CorruptRecords, InvalidRecords, RecordsTooLarge
from kafkalite.records.full_check import (
    ANYTHING,
    MAX_BATCH_HEADERS,
    MAX_BATCH_RECORDS,
    BatchSummary,
    iterate_times,
    scan_window,
    times_in_window,
)
from kafkalite.records.record import (
    BatchBuilder,
    Record,
    build_empty,
    iterate_records,
    iterate_window,
)
from kafkalite.records.varint import encode_varint, read_varint, read_varlong
from kafkalite.records.window import Window
from tests.unit.records import samples
from tests.unit.records.building import build_batch, scan


@given(samples.records(), st.sampled_from(list(Compression)), st.booleans())
def test_records_survive_a_batch(
    records: list[Record], codec: Compression, is_append_time: bool
) -> None:
    kind = TimestampType(is_append_time)
    built = build_batch(records, compression=codec, timestamp_type=kind)
    header = batch.read_header(b"??" + built, 2)
    batch.verify(b"??" + built, header)
    read = list(iterate_records(b"??" + built, header))
    newest = max(record.timestamp for record in records)
    if is_append_time:
        for record in records:
            record.timestamp = newest
    assert read == records
    assert read == samples.read_plainly(b"??" + bytes(built), header)
    summary = scan(b"??" + built, header)
    assert summary.max_timestamp == newest
    offsets = [record.offset - records[0].offset for record in records]
    assert summary.is_dense == (offsets == list(range(len(records))))
    times = [found for found in iterate_times(b"??" + built, header) if found is not None]
    assert times == [(record.offset, record.timestamp) for record in records]


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive_a_varint(number: int) -> None:
    encoded = encode_varint(number)
    assert read_varlong(encoded, 0) == (number, len(encoded))
    if -(2**31) <= number < 2**31:
        assert read_varint(encoded, 0) == (number, len(encoded))
    for end in range(len(encoded)):
        with pytest.raises(IndexError):
            read_varlong(encoded[:end], 0)


def test_overlong_numbers_are_refused() -> None:
    with pytest.raises(InvalidRecords):
        read_varint(b"\xff\xff\xff\xff\xff\x00", 0)
    with pytest.raises(InvalidRecords):
        read_varlong(b"\xff" * 10 + b"\x00", 0)


def test_large_records_are_put_together_from_many_windows() -> None:
    values = [bytes([index]) * size for index, size in enumerate((10, 300_000, 70_000, 0, 65_536))]
    records = [Record(index, index, b"key", value) for index, value in enumerate(values)]
    for codec in Compression:
        built = build_batch(records, compression=codec)
        header = batch.read_header(built)
        assert list(iterate_records(built, header)) == records
        assert scan(built, header).is_dense


def test_a_record_larger_than_the_limit_is_refused() -> None:
    built = build_batch([Record(0, 0, None, bytes(200_000))], compression=Compression.ZSTD)
    header = batch.read_header(built)
    with pytest.raises(RecordsTooLarge) as caught:
        list(iterate_records(built, header, max_record_bytes=100_000))
    assert caught.value.code == Error.MESSAGE_TOO_LARGE


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    records = [Record(3, 50, b"k", None), Record(9, 40, b"l", b"")]
    built = build_batch(records, delete_horizon_ms=7_000_000_000_000, last_offset_delta=20)
    header = batch.read_header(built)
    assert header.delete_horizon_ms == 7_000_000_000_000
    assert header.last_offset == 23
    assert header.max_timestamp == 50
    assert list(iterate_records(built, header)) == records


def test_an_empty_batch_keeps_offsets_and_sequence() -> None:
    built = build_batch(
        [Record(5, 10, None, b"v"), Record(6, 11, None, b"v")],
        producer_id=8,
        producer_epoch=1,
        base_sequence=3,
        is_transactional=True,
        partition_leader_epoch=4,
        compression=Compression.GZIP,
    )
    full = batch.read_header(built)
    buffer = build_empty(full)
    header = batch.read_header(buffer)
    batch.verify(buffer, header)
    assert list(iterate_records(buffer, header)) == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (5, 6, 4)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (8, 1, 11)
    assert header.is_transactional
    assert header.compression == Compression.NONE


def test_header_keys_may_be_given_as_text() -> None:
    builder = BatchBuilder()
    builder.append(0, None, None, [("naïve", b"")])
    built = builder.build()
    (read,) = iterate_records(built, batch.read_header(built))
    assert read.headers == (("naïve".encode(), b""),)


def _record(*parts: bytes | int) -> bytes:
    body = b"".join(encode_varint(part) if isinstance(part, int) else part for part in parts)
    return encode_varint(len(body)) + body


def _batch_of(encoded: bytes, count: int, codec: int = 0, base_timestamp: int = 0) -> bytearray:
    """A batch with a right checksum around bytes that need not be records."""
    packed = compression.compress(codec, encoded)
    built = bytearray(
        batch.HEADER.pack(
            0, 49 + len(packed), -1, 2, 0, codec, count - 1, base_timestamp, 0, -1, -1, -1, count
        )
    )
    built += packed
    struct.pack_into(">I", built, batch.CRC_POSITION, crc32c(bytes(built[21:])))
    return built


GOOD = _record(b"\0", 0, 0, -1, 1, b"v", 0)

BROKEN: dict[str, tuple[bytes, int]] = {
    "fewer records than counted": (GOOD, 2),
    "more records than counted": (GOOD + GOOD, 1),
    "bytes behind the last record": (GOOD + b"\0", 1),
    "a negative count": (GOOD, -1),
    "no bytes at all": (b"", 1),
    "a negative record length": (encode_varint(-1) + GOOD, 1),
    "a record longer than the batch": (encode_varint(len(GOOD)) + GOOD[1:], 1),
    "a record of two gigabytes": (encode_varint(2**31 - 1) + GOOD[1:], 1),
    "an overlong length": (b"\xff" * 5 + GOOD, 1),
    "a record without fields": (b"\0", 1),
    "a record with attributes alone": (_record(b"\0"), 1),
    "a key that runs over the end": (_record(b"\0", 0, 0, 50, b"key", -1, 0), 1),
    "a key of two gigabytes": (_record(b"\0", 0, 0, 2**31 - 1, b"key", -1, 0), 1),
    "a value that runs over the end": (_record(b"\0", 0, 0, -1, 9, b"value", 0), 1),
    "a value into the next record": (_record(b"\0", 0, 0, -1, 3, b"v", 0) + GOOD, 2),
    "bytes behind the headers": (_record(b"\0", 0, 0, -1, -1, 0, b"?"), 1),
    "a negative number of headers": (_record(b"\0", 0, 0, -1, -1, -1), 1),
    "more headers than bytes": (_record(b"\0", 0, 0, -1, -1, 1000, b"ab"), 1),
    "a header without a key": (_record(b"\0", 0, 0, -1, -1, 1, -1, -1), 1),
    "a header value over the end": (_record(b"\0", 0, 0, -1, -1, 1, 1, b"h", 90, b"x"), 1),
    "headers that run over the end": (_record(b"\0", 0, 0, -1, -1, 2, 1, b"h", -1) + GOOD, 2),
    "an overlong timestamp": (_record(b"\0", b"\xff" * 10 + b"\0", 0, -1, -1, 0), 1),
    "an overlong offset": (_record(b"\0", 0, b"\xff" * 5 + b"\0", -1, -1, 0), 1),
}


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_refused_by_both_readers(name: str, codec: Compression) -> None:
    encoded, count = BROKEN[name]
    built = _batch_of(encoded, count, codec)
    header = batch.read_header(built)
    batch.verify(built, header)
    readers: tuple[Callable[[], object], ...] = (
        lambda: list(iterate_records(built, header)),
        lambda: scan(built, header),
    )
    for read in readers:
        with pytest.raises(CorruptRecords) as caught:
            read()
        assert caught.value.code == Error.INVALID_RECORD or "gigabytes" in name


def test_more_records_than_the_limit_are_refused_before_any_is_inflated() -> None:
    built = _batch_of(b"not looked at", MAX_BATCH_RECORDS + 1, Compression.NONE)
    with pytest.raises(RecordsTooLarge):
        scan(built, batch.read_header(built))


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_more_headers_than_the_limit_are_refused(codec: Compression) -> None:
    """They take time to walk through, and compress to nearly nothing."""
    count = MAX_BATCH_HEADERS + 1
    front = b"\0" + encode_varint(0) * 2 + encode_varint(-1) * 2 + encode_varint(count)
    size = len(front) + 2 * count
    encoded = encode_varint(size) + front + bytes(2 * count)
    built = _batch_of(encoded, 1, codec)
    with pytest.raises(RecordsTooLarge):
        scan(built, batch.read_header(built))


def test_a_record_with_many_headers_is_walked_through_across_windows() -> None:
    headers = tuple((b"%d" % number, b"x" * (number % 7)) for number in range(30_000))
    records = [Record(0, 5, b"k", b"v", headers), Record(1, 6, None, None)]
    for codec in Compression:
        built = build_batch(records, compression=codec)
        summary = scan(built, batch.read_header(built))
        assert (summary.max_timestamp, summary.is_dense) == (6, True)
        assert summary.header_count == 30_000


def test_a_negative_length_means_null_as_in_java() -> None:
    built = _batch_of(_record(b"\0", 0, 0, -7, -(2**31), 1, 1, b"h", -9), 1)
    header = batch.read_header(built)
    assert list(iterate_records(built, header)) == [Record(0, 0, None, None, ((b"h", None),))]
    assert scan(built, header).is_dense


def test_a_timestamp_behind_the_last_is_refused() -> None:
    built = _batch_of(_record(b"\0", 1, 0, -1, -1, 0), 1, base_timestamp=2**63 - 1)
    header = batch.read_header(built)
    with pytest.raises(InvalidRecords):
        list(iterate_records(built, header))
    assert [bad.code for bad in scan(built, header).bad] == [Error.INVALID_TIMESTAMP]


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_unknown_codec_is_refused_as_apache_kafka_does(number: int) -> None:
    built = _batch_of(GOOD, 1)
    struct.pack_into(">h", built, batch.ATTRIBUTES_POSITION, number)
    header = batch.read_header(built)
    with pytest.raises(CorruptRecords) as caught:
        list(iterate_records(built, header))
    assert caught.value.code == Error.UNKNOWN_SERVER_ERROR
    with pytest.raises(CorruptRecords) as caught:
        scan(built, header)
    assert caught.value.code == Error.UNKNOWN_SERVER_ERROR


@given(samples.records(), st.integers(1, 40))
def test_windows_may_cut_anywhere(records: list[Record], chunk_bytes: int) -> None:
    built = build_batch(records)
    header = batch.read_header(built)
    data = bytes(built[batch.HEADER_BYTES :])

    def window() -> Window:
        chunks = (data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes))
        return Window(b"", chunks, 1 << 20)

    assert list(iterate_window(window(), header)) == records
    summary = BatchSummary()
    for _ in scan_window(window(), header, ANYTHING, summary):
        pass
    assert summary == scan(built, header)
    times = [found for found in times_in_window(window(), header) if found is not None]
    assert times == [(record.offset, record.timestamp) for record in records]


@given(st.sampled_from(samples.CODECS), st.data())
def test_mutated_batches_are_read_or_refused(codec: int, data: st.DataObject) -> None:
    """Both readers say the same of any bytes, and nothing escapes but the room's own error."""
    records = [Record(i, i * 7, b"k" * i or None, b"v" * i, ((b"h", b"w"),) * i) for i in range(4)]
    built = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(batch.ATTRIBUTES_POSITION, len(built) - 1))
        built[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del built[data.draw(st.integers(batch.HEADER_BYTES, len(built))) :]
        struct.pack_into(">i", built, 8, len(built) - 12)
    struct.pack_into(">I", built, batch.CRC_POSITION, crc32c(bytes(built[21:])))
    header = batch.read_header(built)
    batch.verify(built, header)
    try:
        read: list[Record] | None = list(iterate_records(built, header))
    except CorruptRecords:
        read = None
    try:
        summary = scan(built, header)
    except CorruptRecords:
        summary = None
    if read is not None:
        assert summary is not None
        # Of a batch that says it is empty nobody looks at what follows the header.
        assert read == (
            samples.read_plainly(bytes(built), header) if header.record_count else []
        )
    elif summary is not None:
        assert summary.bad  # a timestamp that no 64 bits hold


def test_a_builder_refuses_a_negative_timestamp() -> None:
    with pytest.raises(InvalidRecords):
        BatchBuilder().append(-2, None, None)


def test_size_is_that_of_the_uncompressed_batch() -> None:
    builder = BatchBuilder()
    builder.append(1, b"key", b"value", (("h", b"x"),))
    assert builder.size == len(builder.build())
