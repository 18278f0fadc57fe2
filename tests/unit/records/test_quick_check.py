"""The fast look at the records of an uncompressed batch says yes only where the slow one does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.env.slicing import finish
from kafkalite.records.batch import HEADER_BYTES, NO_TIMESTAMP, Compression, read_header
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.full_check import ANYTHING, BatchSummary, scan_window
from kafkalite.records.quick_check import MIN_RUN, highest_delta, highest_delta_in_steps
from kafkalite.records.record import BatchBuilder
from kafkalite.records.window import open_window
from tests.unit.records.building import scan
from tests.unit.records.mutations import mutated

BASE = 1_600_000_000_000
CHANGES_PER_BATCH = 50


def built(records, codec=Compression.NONE):
    builder = BatchBuilder()
    for delta, key, value, headers in records:
        builder.append(BASE + delta, key, value, headers)
    return builder.build(0, compression=codec)


def fast(data):
    body, count = bytes(data[HEADER_BYTES:]), read_header(data).record_count
    found = highest_delta(body, count)
    assert finish(highest_delta_in_steps(body, count)) == found
    return found


def slow(data):
    """The same by the long way: None where that refuses, or takes what the fast look leaves."""
    summary = long_look(data)
    if summary is None or not summary.is_dense:
        return None
    return summary.max_timestamp - read_header(data).base_timestamp


def long_look(data):
    """The summary, record by record; None where the batch is refused."""
    header, summary = read_header(data), BatchSummary()
    try:
        finish(scan_window(open_window(data, header), header, ANYTHING, summary))
    except (CorruptRecords, IndexError):
        return None
    return summary


def scanned(data):
    try:
        return scan(data, read_header(data))
    except CorruptRecords:
        return None


def alike(count, key=b"k", size=100, step=1):
    return [(index // step, key, b"v" * size, ()) for index in range(count)]


def numbered(count):
    """Keys that grow longer, deltas that take more bytes, offsets of every width."""
    return [(index, b"%d" % index, b"v" * (index % 70), ()) for index in range(count)]


@pytest.mark.parametrize(
    "records",
    [
        alike(1), alike(MIN_RUN - 1), alike(MIN_RUN), alike(63), alike(64), alike(65),
        alike(200, key=None), alike(200, key=b""), alike(200, size=0), alike(70, key=b"k" * 70),
        alike(300, size=8_300, step=9), alike(9_000, size=1, step=900), numbered(9_000),
        alike(20_000, size=0), numbered(1_000) + alike(9_000) + numbered(100),
    ],
    ids=lambda records: f"{len(records)} of {len(records[0][2])}",
)  # fmt: skip
def test_whole_records_are_told_with_their_highest_timestamp(records):
    data = built(records)
    assert fast(data) == slow(data) == max(delta for delta, *_ in records)


def test_timestamps_may_fall():
    data = built([(delta, None, b"v", ()) for delta in (40, 3, 0, 62, 9, 41, 40, 39, 1, 2)])
    assert fast(data) == slow(data) == 22


@pytest.mark.parametrize("count", [1, 2, MIN_RUN - 1, MIN_RUN, 64])
def test_all_records_may_be_older_than_the_base(count):
    data = built([(1, None, b"v", ())] * count)
    base = int.from_bytes(data[27:35], "big")
    data[27:35] = (base + 1).to_bytes(8, "big")
    for record in range(count):
        at = HEADER_BYTES + 2 + record * (len(data) - HEADER_BYTES) // count
        assert data[at] == 0  # the delta, as it was built
        data[at] = 1  # zigzag of -1
    assert fast(data) == slow(data) == -1


def test_records_with_headers_are_left_to_the_slow_look():
    data = built([(0, None, b"v", [("h", b"x")])] * 20)
    assert fast(data) is None
    assert slow(data) == 0


records = st.lists(
    st.tuples(
        st.integers(0, 1 << 20) | st.integers(0, 100),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=150),
        st.sampled_from([(), (), (), [("h", b"x")]]),
    ),
    min_size=1,
    max_size=8,
)
shapes = st.builds(
    alike, st.integers(1, 90), st.none() | st.just(b"k"), st.sampled_from([0, 9, 60, 200]),
    st.integers(1, 9),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(records | shapes, st.randoms(use_true_random=False))
def test_changed_batches_are_taken_only_where_the_slow_look_takes_them(entries, chance):
    data = built(entries)
    for _ in range(CHANGES_PER_BATCH):
        changed = mutated(data, chance)
        quick = fast(changed)
        assert quick is None or max(quick, NO_TIMESTAMP - BASE) == slow(changed)
    if not any(headers for *_, headers in entries):
        assert fast(data) == slow(data)


@settings(max_examples=100, deadline=None)
@given(records | shapes, st.sampled_from(Compression), st.randoms(use_true_random=False))
def test_a_scan_says_the_same_with_the_fast_look_as_without(entries, codec, chance):
    data = built(entries, codec)
    assert scanned(data) == long_look(data)
    for _ in range(CHANGES_PER_BATCH):
        changed = mutated(data, chance)
        if read_header(changed).record_count > 0:
            assert scanned(changed) == long_look(changed)


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize(
    "entries", [alike(9_000, size=300), numbered(9_000)], ids=["alike", "not alike"]
)
def test_many_records_in_every_codec(codec, entries):
    data = built(entries, codec)
    assert scanned(data) == long_look(data)
