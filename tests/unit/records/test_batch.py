"""The header view: what it reads, what it refuses, and what patching leaves right."""

import struct

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.records import batch
from kafkalite.records.batch import TimestampType
from kafkalite.records.errors import CorruptRecords, InvalidRecords, TruncatedRecords
from kafkalite.records.record import BatchBuilder, Record, iterate_records
from tests.unit.records.building import build_batch

RECORDS = [
    Record(7, 1_000, b"k", b"v"),
    Record(8, 1_500, None, b"", ((b"h", None),)),
    Record(10, 900, b"", None),
]


def test_a_header_tells_what_was_built() -> None:
    built = build_batch(
        RECORDS,
        partition_leader_epoch=3,
        producer_id=9,
        producer_epoch=2,
        base_sequence=5,
        is_transactional=True,
    )
    header = batch.read_header(built)
    batch.verify(built, header)
    assert (header.size, header.end) == (len(built), len(built))
    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 10, 11)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_500)
    assert (header.producer_id, header.producer_epoch, header.partition_leader_epoch) == (9, 2, 3)
    assert (header.base_sequence, header.last_sequence) == (5, 8)
    assert header.is_transactional
    assert header.is_idempotent
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.timestamp_type == TimestampType.CREATE_TIME


@pytest.mark.parametrize(("first", "count", "last"), [(0, 1, 0), (2**31 - 1, 2, 0), (-1, 4, -1)])
def test_sequences_wrap_to_zero(first: int, count: int, last: int) -> None:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(0, None, None)
    built = builder.build(producer_id=1, producer_epoch=0, base_sequence=first)
    assert batch.read_header(built).last_sequence == last


def test_batches_are_found_one_behind_the_other_and_a_cut_one_is_left_out() -> None:
    one, two = build_batch(RECORDS[:1]), build_batch(RECORDS[1:])
    whole = bytes(one + two)
    assert [header.position for header in batch.iterate_headers(whole)] == [0, len(one)]
    for end in range(len(one), len(whole)):
        assert [header.size for header in batch.iterate_headers(whole[:end])] == [len(one)]
        with pytest.raises(TruncatedRecords):
            batch.read_header(whole, len(one), end)


def test_a_header_can_be_read_before_its_records_are_there() -> None:
    built = bytes(build_batch(RECORDS))
    assert batch.peek_header(built[: batch.HEADER_BYTES]).size == len(built)
    with pytest.raises(TruncatedRecords):
        batch.peek_header(built[: batch.HEADER_BYTES - 1])


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_a_length_that_no_batch_has_is_corrupt(length: int) -> None:
    built = build_batch(RECORDS)
    struct.pack_into(">i", built, 8, length)
    for end in (len(built), 20):
        with pytest.raises(CorruptRecords) as caught:
            batch.read_header(built, 0, end)
        assert caught.value.code == Error.CORRUPT_MESSAGE
        assert not isinstance(caught.value, TruncatedRecords)
    with pytest.raises(CorruptRecords):
        list(batch.iterate_headers(built))


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    built = build_batch(RECORDS)
    struct.pack_into(">b", built, batch.MAGIC_POSITION, magic)
    with pytest.raises(CorruptRecords, match="magic"):
        batch.read_header(built)


def test_every_flipped_bit_under_the_checksum_is_seen() -> None:
    built = build_batch(RECORDS)
    header = batch.read_header(built)
    batch.verify(built, header)
    for position in range(batch.CRC_POSITION, len(built)):
        for bit in range(8):
            built[position] ^= 1 << bit
            with pytest.raises(CorruptRecords):
                batch.verify(built, batch.read_header(built))
            built[position] ^= 1 << bit
    batch.verify(built, header)


def test_assigning_an_offset_leaves_the_checksum_right() -> None:
    buffer = bytearray(b"before") + build_batch(RECORDS, base_offset=7)
    header = batch.read_header(buffer, 6)
    batch.patch(memoryview(buffer), header, 2**40, 11)
    again = batch.read_header(buffer, 6)
    assert again == header
    assert (again.base_offset, again.partition_leader_epoch) == (2**40, 11)
    batch.verify(buffer, again)
    offsets = [record.offset for record in iterate_records(buffer, again)]
    assert offsets == [2**40, 2**40 + 1, 2**40 + 3]
    assert buffer[:6] == b"before"


def test_log_append_time_replaces_every_timestamp() -> None:
    buffer = build_batch(RECORDS)
    header = batch.read_header(buffer)
    batch.patch_timestamps(buffer, header, TimestampType.LOG_APPEND_TIME, 5_000)
    again = batch.read_header(buffer)
    assert again == header
    batch.verify(buffer, again)
    assert {record.timestamp for record in iterate_records(buffer, again)} == {5_000}
    batch.patch_timestamps(buffer, header, TimestampType.CREATE_TIME, 1_500)
    assert buffer == build_batch(RECORDS)


def test_timestamps_that_are_right_already_are_not_touched() -> None:
    built = bytes(build_batch(RECORDS))
    header = batch.read_header(built)
    read_only = memoryview(built)
    batch.patch_timestamps(read_only, header, TimestampType.CREATE_TIME, header.max_timestamp)


@pytest.mark.parametrize(
    "fields",
    [
        {"last_offset_delta": 3},
        {"last_offset_delta": 1},
        {"is_control": True},
        {"producer_id": 4, "producer_epoch": 0},
    ],
)
def test_what_a_client_may_not_claim(fields: dict[str, int]) -> None:
    builder = BatchBuilder()
    for _ in range(3):
        builder.append(0, None, b"v")
    batch.check_produced(batch.read_header(builder.build()))
    with pytest.raises(InvalidRecords) as caught:
        batch.check_produced(batch.read_header(builder.build(**fields)))  # type: ignore[arg-type]
    assert caught.value.code == Error.INVALID_RECORD


def test_a_batch_without_records_may_not_be_produced() -> None:
    with pytest.raises(InvalidRecords):
        batch.check_produced(batch.read_header(BatchBuilder().build()))
