"""The loop of compaction reads the same as the one that reads records in full."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.raw import body_of, pieces_of, with_pieces
from kafkalite.records.batch import Compression, TimestampType, read_header, verify
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.record import BatchBuilder, iterate_records

FIELDS = st.tuples(
    st.integers(0, 1 << 40),
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=300),
    st.booleans(),
    st.integers(1, 200),
)


def built(rows, codec, timestamp_type):
    builder = BatchBuilder()
    offset = -1
    for timestamp, key, value, has_header, gap in rows:
        offset += gap
        builder.append(timestamp, key, value, [("h", b"x")] if has_header else [], offset)
    return bytes(
        builder.build(7, 3, compression=codec, timestamp_type=timestamp_type, producer_id=5)
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(FIELDS, min_size=1, max_size=30),
    st.sampled_from(Compression),
    st.sampled_from(TimestampType),
    st.data(),
)
def test_pieces_are_the_records(rows, codec, timestamp_type, data):
    batch = built(rows, codec, timestamp_type)
    header = read_header(batch)
    body = body_of(batch, header)
    pieces = pieces_of(body, header.record_count)
    records = list(iterate_records(batch, header))
    assert [(7 + p[0], p[1], p[2]) for p in pieces] == [
        (record.offset, record.key, record.value is not None) for record in records
    ]
    keep = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    if not any(keep):
        return
    kept = with_pieces(
        batch, header, body, [p for p, is_kept in zip(pieces, keep, strict=True) if is_kept]
    )
    after = read_header(kept)
    verify(kept, after)
    wanted = [record for record, is_kept in zip(records, keep, strict=True) if is_kept]
    assert list(iterate_records(kept, after)) == wanted
    assert (after.base_offset, after.last_offset) == (header.base_offset, header.last_offset)
    assert (after.producer_id, after.partition_leader_epoch) == (5, 3)
    if timestamp_type == TimestampType.CREATE_TIME:
        assert after.max_timestamp == max(record.timestamp for record in wanted)
    else:
        assert after.max_timestamp == header.max_timestamp


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_any_bytes_are_records_or_refused(body, count):
    try:
        pieces = pieces_of(body, count)
    except InvalidRecords:
        return
    assert pieces[-1][5] == len(body)


def test_bytes_behind_the_records_are_refused():
    with pytest.raises(InvalidRecords):
        pieces_of(b"\x0c\0\0\0\1\1\0" + b"x", 1)
