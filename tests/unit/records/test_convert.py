"""Conversion: what changes on the way up and down, and what may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol.errors import Error
from kafkalite.records import batch, legacy
from kafkalite.records.batch import Compression, TimestampType
from kafkalite.records.control import ControlType, EndTransactionMarker, build_marker_batch
from kafkalite.records.convert import (
    Wanted,
    down_convert_in_steps,
    iterate_any,
)
from kafkalite.records.errors import (
    CorruptRecords,
    InvalidRecords,
    RecordsTooLarge,
    UnsupportedCodec,
)
from kafkalite.records.full_check import RecordRules
from kafkalite.records.legacy import build_message
from kafkalite.records.record import BatchBuilder, Record
from tests.unit.records import samples
from tests.unit.records.building import build_batch, build_message_set, down_convert, up_convert

LEGACY_CODECS = [Compression(number) for number in samples.LEGACY_CODECS]
RECORDS = [
    Record(40, 1_000, b"k", b"v", ((b"h", b"x"),)),
    Record(41, 1_500, b"l", b""),
    Record(45, 900, b"", None),
]


def read_all(buffer: bytes | bytearray) -> list[Record]:
    result: list[Record] = []
    for header in batch.iterate_headers(buffer):
        batch.verify(buffer, header)
        result.extend(iterate_any(buffer, header))
    return result


@given(samples.records(), st.sampled_from([0, 1, 2]), st.sampled_from(LEGACY_CODECS))
def test_what_an_old_producer_sends_becomes_one_dense_batch(
    records: list[Record], magic: int, codec: Compression
) -> None:
    if magic == 2:
        sent = build_batch(records, compression=codec)
    else:
        sent = build_message_set(records, magic, codec)
        records = samples.without_headers(records)
    converted = up_convert(sent, Wanted(base_offset=500, partition_leader_epoch=6))
    (header,) = batch.iterate_headers(converted.batch)
    assert (header.magic, header.compression, header.partition_leader_epoch) == (2, codec, 6)
    for index, record in enumerate(records):
        record.offset = 500 + index
        record.timestamp = record.timestamp if magic else -1
    assert read_all(converted.batch) == records
    assert converted.record_count == len(records)
    assert converted.max_timestamp == max(record.timestamp for record in records)


@given(samples.records(), st.sampled_from([0, 1]), st.sampled_from(LEGACY_CODECS), st.booleans())
def test_what_an_old_consumer_fetches_keeps_its_offsets(
    records: list[Record], magic: int, codec: Compression, is_append_time: bool
) -> None:
    kind = TimestampType(is_append_time)
    stored = build_batch(records, compression=codec, timestamp_type=kind, max_timestamp=2**62)
    sent = down_convert(stored, magic)
    expected = samples.without_headers(records)
    for record in expected:
        record.timestamp = -1 if magic == 0 else 2**62 if is_append_time else record.timestamp
    assert read_all(sent) == expected
    for header in batch.iterate_headers(sent):
        assert header.magic == magic
        assert header.timestamp_type == (kind if magic else TimestampType.CREATE_TIME)


def test_plain_records_before_the_fetch_offset_are_left_out() -> None:
    plain, packed = build_batch(RECORDS), build_batch(RECORDS, compression=Compression.GZIP)
    assert [record.offset for record in read_all(down_convert(plain, 1, 41))] == [41, 45]
    assert [record.offset for record in read_all(down_convert(packed, 1, 41))] == [40, 41, 45]
    assert down_convert(plain, 1, 46) == b""


def test_control_batches_are_left_out() -> None:
    marker = build_marker_batch(
        EndTransactionMarker(ControlType.ABORT, 1), producer_id=1, producer_epoch=0, timestamp=5
    )
    assert down_convert(marker, 0) == b""
    assert read_all(down_convert(marker + build_batch(RECORDS), 1)) == samples.without_headers(
        RECORDS
    )


def test_older_formats_and_cut_batches_on_the_way_down() -> None:
    old, older = build_message_set(RECORDS, 1), build_message_set(RECORDS, 0, Compression.LZ4)
    assert down_convert(old + older, 1) == old + older
    whole = [old[header.position : header.end] for header in batch.iterate_headers(old[:-1])]
    assert down_convert(older + old[:-1], 1) == older + b"".join(whole)
    assert read_all(down_convert(old, 0)) == [
        Record(record.offset, -1, record.key, record.value) for record in RECORDS
    ]


FIELDS = {
    "null": None, "empty": b"", "small": b"small", "large": b"0123456789abcdef" * 20_000
}  # fmt: skip


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("kind", TimestampType)
def test_large_records_go_down_in_pieces(
    codec: Compression, magic: int, kind: TimestampType
) -> None:
    pairs = [(key, value) for key in FIELDS.values() for value in FIELDS.values()]
    records = [
        Record(10 + 3 * number, 1_000 + number, key, value, ((b"h", b"w" * 999),) * (number % 3))
        for number, (key, value) in enumerate(pairs)
    ]
    sent = build_batch(records, compression=codec, timestamp_type=kind)
    steps = down_convert_in_steps(sent, magic)
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            converted = stop.value
            break
        taken += 1
    inflated = sum(len(key or b"") + len(value or b"") for key, value in pairs)
    assert taken > inflated // (1 << 19)
    times = [-1] * len(records) if magic == 0 else [one.timestamp for one in records]
    if kind == TimestampType.LOG_APPEND_TIME and magic == 1:
        times = [records[-1].timestamp] * len(records)
    expected = [
        Record(one.offset, timestamp, one.key, one.value)
        for one, timestamp in zip(records, times, strict=True)
    ]
    assert read_all(converted) == expected


def test_a_set_that_would_be_too_large_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(legacy, "MAX_SET_BYTES", 1 << 20)
    sent = build_batch([Record(0, 0, None, bytes(2 << 20))], compression=Compression.GZIP)
    with pytest.raises(RecordsTooLarge):
        down_convert(sent, 1)


def test_zstd_cannot_go_down() -> None:
    with pytest.raises(UnsupportedCodec) as caught:
        down_convert(build_batch(RECORDS, compression=Compression.ZSTD), 1)
    assert caught.value.code == Error.UNSUPPORTED_COMPRESSION_TYPE


def test_the_topics_codec_and_clock_on_the_way_up() -> None:
    converted = up_convert(
        build_message_set(RECORDS, 1, Compression.GZIP),
        Wanted(compression=Compression.ZSTD, append_time=9_000),
    )
    header = batch.read_header(converted.batch)
    assert header.compression == Compression.ZSTD
    assert header.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert converted.max_timestamp == header.max_timestamp == 9_000
    assert {record.timestamp for record in read_all(converted.batch)} == {9_000}


def test_a_producers_identity_survives_another_codec() -> None:
    sent = build_batch(
        RECORDS, producer_id=3, producer_epoch=1, base_sequence=8, is_transactional=True
    )
    converted = up_convert(sent, Wanted(base_offset=9, compression=Compression.SNAPPY))
    header = batch.read_header(converted.batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 8)
    assert header.is_transactional


def test_bad_records_are_named_and_nothing_is_built() -> None:
    rules = RecordRules(needs_key=True, oldest_timestamp=950, newest_timestamp=1_200)
    sent = build_message_set([*RECORDS, Record(46, 1_000, None, b"v")], 1)
    converted = up_convert(sent, Wanted(base_offset=0, rules=rules))
    assert converted.batch == b""
    assert [(bad.index, bad.code) for bad in converted.bad] == [
        (1, Error.INVALID_TIMESTAMP),
        (2, Error.INVALID_TIMESTAMP),
        (3, Error.INVALID_RECORD),
    ]


def test_a_producer_may_not_set_the_brokers_clock() -> None:
    sent = build_message_set(RECORDS, 1, timestamp_type=TimestampType.LOG_APPEND_TIME)
    rules = RecordRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    converted = up_convert(sent, Wanted(base_offset=0, append_time=5, rules=rules))
    assert {bad.code for bad in converted.bad} == {Error.INVALID_TIMESTAMP}


MESSAGE = bytes(build_message(1, 0, 0, None, b"v"))
PACKED = bytes(build_message_set(RECORDS, 1, Compression.GZIP))
MIXED: dict[str, bytes] = {
    "nothing": b"",
    "half a message": MESSAGE[:-1],
    "two magics": MESSAGE + bytes(build_message(0, 0, 0, None, b"v")),
    "two wrappers": PACKED + PACKED,
    "a wrapper and a message": PACKED + MESSAGE,
    "a message and a wrapper": MESSAGE + PACKED,
    "two batches": bytes(build_batch(RECORDS) + build_batch(RECORDS)),
}


@pytest.mark.parametrize("name", MIXED)
def test_one_partition_takes_one_set(name: str) -> None:
    with pytest.raises(InvalidRecords) as caught:
        up_convert(MIXED[name], Wanted(base_offset=0))
    assert caught.value.code == Error.INVALID_RECORD


def test_an_unknown_codec_is_refused_on_both_ways() -> None:
    sent = BatchBuilder().build(compression=Compression.NONE)
    sent[batch.ATTRIBUTES_POSITION + 1] = 7
    with pytest.raises(CorruptRecords):
        up_convert(sent, Wanted(base_offset=0))
    with pytest.raises(CorruptRecords):
        down_convert(sent, 0)
