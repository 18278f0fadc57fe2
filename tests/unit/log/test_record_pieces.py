"""The loop of compaction reads the same as the one that reads records in full."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.record_pieces import body_of, keys_of, with_pieces
from kafkalite.records.batch import Compression, TimestampType, read_header, verify
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.record import BatchBuilder, iterate_records
from kafkalite.records.varint import encode_varint
from kafkalite.records.walks import pieces_at, pieces_of

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
    assert body is not None
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
        assert after.max_timestamp == after.base_timestamp == header.max_timestamp
        left = body_of(bytes(kept), after)
        assert left is not None
        assert {piece[3] for piece in pieces_of(left, after.record_count)} == {0}


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


ALIKE = st.tuples(
    st.integers(1, 300),  # records
    st.integers(0, 70),  # bytes of each key
    st.integers(0, 200),  # bytes of each value
    st.sampled_from([0, 1, 40, 64, 1000, 1 << 20]),  # milliseconds from one to the next
)


@settings(max_examples=100, deadline=None)
@given(ALIKE, st.lists(st.tuples(st.integers(0, 299), FIELDS), max_size=3), st.data())
def test_the_short_ways_read_the_same(alike, others, data):
    count, key_size, value_size, step = alike
    rows = [
        (number * step, b"%0*d" % (key_size, number) if key_size else b"", b"v" * value_size, False)
        for number in range(count)
    ]
    for index, (timestamp, key, value, has_header, _) in others:
        rows[index % count] = timestamp, key, value, has_header
    batch = built([(*row, 1) for row in rows], Compression.NONE, TimestampType.CREATE_TIME)
    body = body_of(batch, read_header(batch))
    assert body is not None
    pieces = pieces_of(body, count)
    keys = keys_of(body, count)
    assert keys == [piece[1] for piece in pieces] or keys is None
    is_usual = all(piece[1] is not None and len(piece[1]) < 64 for piece in pieces)
    assert (keys is not None) == is_usual
    wanted = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    some = pieces_at(body, count, wanted)
    assert some == [(delta, None, *pieces[delta][2:]) for delta in wanted] or some is None
    assert not is_usual or some is not None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_the_short_ways_take_no_batch_that_the_long_one_refuses(body, count):
    try:
        pieces = pieces_of(body, count)
    except InvalidRecords:
        return
    keys = keys_of(body, count)
    assert keys is None or keys == [piece[1] for piece in pieces]


@pytest.mark.parametrize("deltas", [[0, 2], [1, 2], [0, 64], [0, 0]])
def test_the_short_ways_say_nothing_of_offsets_with_gaps(deltas):
    body = b"".join(record_at(delta) for delta in deltas)
    assert keys_of(body, 2) is None
    assert pieces_at(body, 2, [0, 1]) is None


def record_at(delta: int) -> bytes:
    fields = b"\0\0" + encode_varint(delta) + b"\2k\2v\0"
    return encode_varint(len(fields)) + fields
