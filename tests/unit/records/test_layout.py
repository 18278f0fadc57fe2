"""The header that the room reads by hand is the one that protocol_specs/record_batch.spec says."""

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol import codec
from kafkalite.protocol.messages import RecordBatch
from kafkalite.records import batch
from kafkalite.records.batch import TimestampType
from kafkalite.records.legacy import build_message
from kafkalite.records.record import Record
from tests.unit.records import samples
from tests.unit.records.building import build_batch

SHARED = (
    "base_offset",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


@given(samples.records(), st.integers(0, 2**31 - 1), st.integers(-1, 2**62), st.booleans())
def test_a_batch_has_the_layout_of_the_spec(
    records: list[Record], number: int, producer_id: int, flag: bool
) -> None:
    built = build_batch(
        records,
        partition_leader_epoch=number,
        producer_id=producer_id,
        producer_epoch=number % 30_000,
        base_sequence=number,
        is_transactional=flag,
        is_control=not flag,
        timestamp_type=TimestampType(flag),
    )
    header = batch.read_header(built)
    by_spec, end = codec.decode_prefix(RecordBatch, 2, built)
    assert end == batch.HEADER_BYTES
    assert by_spec.length == header.size - batch.LOG_OVERHEAD
    for name in SHARED:
        assert getattr(header, name) == getattr(by_spec, name), name


@given(
    st.sampled_from([0, 1]),
    st.integers(0, 2**62),
    samples.timestamps,
    samples.maybe_bytes,
    samples.maybe_bytes,
)
def test_a_message_has_the_layout_of_the_spec(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> None:
    built = build_message(magic, offset, timestamp, key, value)
    header = batch.read_header(built)
    by_spec = codec.decode(RecordBatch, magic, built)
    assert (by_spec.base_offset, by_spec.magic) == (header.base_offset, magic)
    assert (by_spec.message_crc, by_spec.message_attributes) == (header.crc, header.attributes)
    assert by_spec.timestamp == header.max_timestamp
    assert (by_spec.key, by_spec.value) == (key, value)
    assert codec.encode(by_spec, magic) == built
