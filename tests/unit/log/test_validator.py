"""What is refused at the door, with the codes of Apache Kafka 4.3.1, and what is built anew."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.env.slicing import finish
from kafkalite.log.append import Append
from kafkalite.log.appending import append_as_leader
from kafkalite.log.config import COMPACT, LOG_APPEND_TIME, LogConfig
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.log.validator import RefusedRecords, accept, check, examine
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import Compression, TimestampType, iterate_headers, read_header
from kafkalite.records.record import BatchBuilder, Record
from tests.unit.log.making import START_MS, World, batch, keyed, marker, read_all
from tests.unit.records.building import build_message_set

CRC_POSITION, ATTRIBUTES_POSITION = 17, 21


def sealed(data):
    """The batch with a checksum that fits its bytes."""
    from crc32c import crc32c

    data = bytearray(data)
    struct.pack_into(">I", data, CRC_POSITION, crc32c(bytes(data[ATTRIBUTES_POSITION:])))
    return memoryview(data)


def patched(data, layout, position, value):
    data = bytearray(data)
    struct.pack_into(layout, data, position, value)
    return sealed(data)


def refusal(data, config=None, **fields):
    log = World(config).log()
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(data, 0, **fields)
    assert log.log_end_offset == 0
    assert log.size == 0
    return refused.value


GOOD = bytes(batch([b"a", b"b", b"c"]))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (memoryview(bytearray(GOOD[:-1] + b"?")), Error.CORRUPT_MESSAGE),
        (patched(GOOD, ">i", 57, 4), Error.INVALID_RECORD),  # count
        (patched(GOOD, ">i", 57, 2), Error.INVALID_RECORD),
        (patched(GOOD, ">i", 57, -1), Error.INVALID_RECORD),
        (patched(patched(GOOD, ">i", 57, 4), ">i", 23, 3), Error.INVALID_RECORD),
        (memoryview(bytearray(GOOD + GOOD)), Error.INVALID_RECORD),
        (memoryview(bytearray(GOOD[:-1])), Error.INVALID_RECORD),
        (memoryview(bytearray()), Error.INVALID_RECORD),
        (patched(GOOD, ">h", 21, 0x20), Error.INVALID_RECORD),  # control
        (patched(GOOD, ">q", 0, 5), Error.INVALID_RECORD),  # base offset
        (patched(GOOD, ">h", 21, 7), Error.UNKNOWN_SERVER_ERROR),  # codec
        (batch([b"a"], producer_id=1, producer_epoch=0), Error.INVALID_RECORD),  # no sequence
        (batch([b"a" * 2_000_000]), Error.MESSAGE_TOO_LARGE),
        (batch([b"a"], timestamp=START_MS + 3_700_000), Error.INVALID_TIMESTAMP),
        (marker(1, 0, commit=True), Error.INVALID_RECORD),
    ],
)
def test_a_client_is_told_why_its_batch_is_refused(data, code):
    assert refusal(data).code == code


def test_a_coordinator_sees_itself_to_the_size_of_its_batches():
    """A tombstone must find its place, however small the limit was made meanwhile."""
    log = World(LogConfig(max_message_bytes=0)).log()
    log.append_as_leader(batch([b"a"]), 0, AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 1


def examined(data):
    """What a Produce before version 3 makes of its messages."""
    append = Append(data, START_MS, leader_epoch=0, is_old_format_taken=True)
    append.checked = finish(examine(append, LogConfig()))
    return append


def test_magic_1_is_refused_unless_the_request_is_of_its_time():
    record = Record(0, START_MS, b"k", b"v")
    data = memoryview(bytearray(build_message_set([record], 1)))
    assert refusal(data).code == Error.INVALID_RECORD
    log = World().log()
    append_as_leader(log, examined(data))
    assert [(r.key, r.value, r.timestamp) for r in read_all(log)] == [(b"k", b"v", START_MS)]
    found = log.read(0, 1000).range
    assert found is not None
    assert next(iterate_headers(found.read())).magic == 2


def test_several_old_messages_become_one_batch():
    records = [Record(index, START_MS, b"k%d" % index, b"v") for index in range(5)]
    for compression in (Compression.NONE, Compression.GZIP):
        log = World().log()
        data = memoryview(bytearray(build_message_set(records, 1, compression)))
        result = append_as_leader(log, examined(data))
        assert (result.base_offset, result.last_offset) == (0, 4)
        assert [record.key for record in read_all(log)] == [record.key for record in records]


def test_an_old_timestamp_is_taken():
    log = World().log()
    log.append_as_leader(batch([b"a"], timestamp=1), 0)
    assert read_all(log)[0].timestamp == 1


def test_bounds_on_timestamps_can_be_set():
    config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=10)
    assert refusal(batch([b"a"], timestamp=START_MS - 1001), config).code == Error.INVALID_TIMESTAMP
    assert refusal(batch([b"a"], timestamp=START_MS + 11), config).code == Error.INVALID_TIMESTAMP
    World(config).log().append_as_leader(batch([b"a"], timestamp=START_MS - 1000), 0)


def test_a_compacted_topic_needs_keys_and_says_which_records_have_none():
    config = LogConfig(cleanup_policy=(COMPACT,))
    data = keyed([(b"k", b"v"), (None, b"v"), (b"k", None), (None, None)])  # type: ignore[list-item]
    refused = refusal(data, config)
    assert isinstance(refused, RefusedRecords)
    assert refused.code == Error.INVALID_RECORD
    assert [record.index for record in refused.records] == [1, 3]


def test_the_topics_codec_replaces_the_producers():
    for wanted in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        for used in Compression:
            log = World(LogConfig(compression_type=wanted)).log()
            log.append_as_leader(keyed([(b"k", b"v" * 100), (b"l", None)], compression=used), 3)
            found = log.read(0, 10_000).range
            assert found is not None
            header = next(iterate_headers(found.read()))
            name = (
                "uncompressed" if header.compression == 0 else Compression(header.compression).name
            )
            assert name.lower() == wanted
            assert header.partition_leader_epoch == 3
            assert [(r.offset, r.key, r.value) for r in read_all(log)] == [
                (0, b"k", b"v" * 100), (1, b"l", None),
            ]  # fmt: skip


def test_producer_fields_survive_another_codec():
    log = World(LogConfig(compression_type="lz4")).log()
    fields: Any = {"producer_id": 4, "producer_epoch": 2, "is_transactional": True}
    log.append_as_leader(batch([b"a"], base_sequence=0, **fields), 0)
    assert log.producers is not None
    assert log.producers.states[4].last_sequence == 0
    assert log.producers.first_unstable == 0


def test_a_torn_second_batch_is_ignored():
    log = World().log()
    log.append_as_leader(memoryview(bytearray(GOOD + GOOD[:30])), 0)
    assert log.log_end_offset == 3
    assert log.size == len(GOOD)


def test_coordinators_may_write_markers():
    log = World().log()
    log.append_as_leader(marker(1, 0, commit=True), 0, AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 1


# --- the short way and the long way agree ---------------------------------------------------------

PLAIN = LogConfig()


def arriving(data):
    return Append(memoryview(bytearray(data)), START_MS, leader_epoch=0)


def long_way(data):
    return check(arriving(data), PLAIN, 0).headers[0]


def short_way(data):
    """The header, changed as in the bytes; None of what needs a closer look."""
    append = arriving(data)
    header = read_header(append.records)
    if not accept(append, header, PLAIN, 0):
        return None
    assert header == read_header(append.records)
    return header


@st.composite
def produced(draw):
    """A batch as a client builds it, perhaps damaged, with a right checksum nevertheless."""
    builder = BatchBuilder()
    count = draw(st.integers(1, 6) | st.integers(17, 70))
    for _ in range(count):
        value = draw(st.none() | st.binary(max_size=150))
        builder.append(
            START_MS + draw(st.integers(0, 1 << 20)),
            draw(st.none() | st.binary(max_size=70)),
            value and value * (draw(st.sampled_from((1, 70))) if count < 3 else 1),
            [("h", b"x")] if draw(st.integers(0, 9)) == 0 else [],
        )
    data = bytearray(builder.build(0))
    for _ in range(draw(st.integers(0, 2))):
        position = draw(st.integers(16, len(data) - 1))
        data[position] = draw(st.integers(0, 255))
    return sealed(data)


@settings(max_examples=100, deadline=None)
@given(produced())
def test_what_is_taken_the_short_way_is_taken_the_long_way(data):
    try:
        short = short_way(data)
    except KafkaError:
        short = None
    if short is None:
        return
    assert long_way(data) == short


@pytest.mark.parametrize("key_size", [None, 0, 1, 63, 64, 8191])
@pytest.mark.parametrize("value_size", [None, 0, 1, 50, 62, 63, 64, 8100, 8191, 8192, 70_000])
@pytest.mark.parametrize("delta", [0, 63, 64, 100_000])
def test_a_lone_record_is_taken_the_short_way(key_size, value_size, delta):
    builder = BatchBuilder()
    builder._base_timestamp = START_MS - delta
    builder.append(START_MS, _zeros(key_size), _zeros(value_size))
    data = builder.build(0)
    assert long_way(data) == short_way(data)
    for size in (len(data) - 1, len(data) + 1):
        other = sealed(data[:size].ljust(size, b"\0"))
        struct.pack_into(">i", other, 8, size - 12)
        assert short_way(sealed(other)) is None


def _zeros(size):
    return None if size is None else bytes(size)


def test_timestamps_set_by_the_broker_may_not_come_from_a_client():
    data = batch([b"a"], timestamp_type=TimestampType.LOG_APPEND_TIME)
    config = LogConfig(message_timestamp_type=LOG_APPEND_TIME)
    assert refusal(data, config).code == Error.INVALID_TIMESTAMP
