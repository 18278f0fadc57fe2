"""Values read and written many at a time are those that are read and written one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.records.batch import HEADER_BYTES, read_header
from kafkalite.records.errors import CorruptRecords, InvalidRecords
from kafkalite.records.record import MANY, BatchBuilder, Record, iterate_records
from kafkalite.records.walks import values_of
from tests.unit.records.mutations import mutated
from tests.unit.records.samples import maybe_bytes, records, without_headers

BASE = 1_600_000_000_000
NULL = b"(null)"
sizes = st.sampled_from([0, 1, 62, 63, 64, 8_100, 8_200, 300_000])
times = st.lists(st.integers(-1, 2**62), min_size=1, max_size=100)


def built(given_: list[Record]) -> bytes:
    builder, first = BatchBuilder(), given_[0].offset
    for each in given_:
        builder.append(each.timestamp, each.key, each.value, each.headers, each.offset - first)
    return bytes(builder.build(first))


def at_once(batch: bytes) -> list[bytes] | None:
    return values_of(batch[HEADER_BYTES:], read_header(batch).record_count, NULL)


def one_by_one(batch: bytes) -> list[bytes] | None:
    try:
        found = iterate_records(batch, read_header(batch))
        return [NULL if each.value is None else each.value for each in found]
    except CorruptRecords:
        return None


@given(records())
def test_values_at_once_are_those_of_the_records(given_: list[Record]) -> None:
    for each in (given_, without_headers(given_)):
        batch = built(each)
        assert at_once(batch) in (None, one_by_one(batch))


@given(st.lists(st.tuples(st.integers(0, 1_000_000), maybe_bytes, maybe_bytes), min_size=1))
def test_what_producers_write_is_read_at_once(rows: list[tuple[int, bytes, bytes]]) -> None:
    builder = BatchBuilder()
    for delta, key, value in rows:
        builder.append(BASE + delta, key, value)
    assert at_once(bytes(builder.build())) == [row[2] if row[2] is not None else NULL
                                               for row in rows]  # fmt: skip


@given(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=5))
def test_lengths_of_each_width_are_read_at_once(rows: list[tuple[int, int]]) -> None:
    builder = BatchBuilder()
    for key, value in rows:
        builder.append(BASE, b"k" * key, b"v" * value)
    assert at_once(bytes(builder.build())) == [b"v" * value for _, value in rows]


@settings(max_examples=50, deadline=None)
@given(records(gaps=False), st.randoms(use_true_random=False))
def test_what_is_broken_is_never_read_as_something_else(
    given_: list[Record], chance: random.Random
) -> None:
    batch = bytearray(built(without_headers(given_)))
    for _ in range(20):
        changed = bytes(mutated(batch, chance))
        assert at_once(changed) in (None, one_by_one(changed))


@settings(max_examples=50, deadline=None)
@given(times, st.data())
def test_values_written_at_once_are_those_that_are_appended(
    given_: list[int], data: st.DataObject
) -> None:
    values = [b"v" * data.draw(sizes) for _ in given_]
    alone, together = BatchBuilder(), BatchBuilder()
    for timestamp, value in zip(given_, values, strict=True):
        alone.append(timestamp, None, value)
    half = data.draw(st.integers(0, len(given_)))
    together.extend(given_[:half], values[:half])
    together.extend(given_[half:], values[half:])
    assert together.build() == alone.build()


def test_offsets_of_each_width_are_written_at_once() -> None:
    count = MANY + 10
    alone, together = BatchBuilder(), BatchBuilder()
    for _ in range(count):
        alone.append(BASE, None, b"value")
    together.extend([BASE] * count, [b"value"] * count)
    assert together.build() == alone.build()


def test_a_timestamp_below_none_is_refused() -> None:
    with pytest.raises(InvalidRecords, match="negative"):
        BatchBuilder().extend([BASE, -2], [b"a", b"b"])
