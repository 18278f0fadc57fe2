"""The arithmetic of offsets, and reading them as Spark writes them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.pipelines.common.offsets import Range, assignment, between, count, dump, parse

OFFSETS = st.dictionaries(
    st.tuples(st.sampled_from(["orders", "ümläut", "a.b-c_d"]), st.integers(0, 40)),
    st.integers(0, 2**62),
)


@given(OFFSETS)
def test_what_is_dumped_is_parsed(offsets: dict[tuple[str, int], int]) -> None:
    assert parse(dump(offsets)) == offsets


def test_dumped_as_spark_takes_it() -> None:
    assert json.loads(dump({("t", 1): 5, ("t", 0): -2})) == {"t": {"0": -2, "1": 5}}
    assert json.loads(assignment([("t", 1), ("t", 0), ("u", 3)])) == {"t": [0, 1], "u": [3]}


@given(OFFSETS, OFFSETS)
def test_ranges_cover_what_lies_between(
    starts: dict[tuple[str, int], int], ends: dict[tuple[str, int], int]
) -> None:
    ranges = between(starts, ends)
    assert all(len(each) > 0 for each in ranges)
    expected = sum(max(0, end - starts.get(each, 0)) for each, end in ends.items())
    assert sum(each.end - each.start for each in ranges) == expected


def test_new_partition_begins_at_zero() -> None:
    assert between({}, {("t", 0): 3}) == [Range("t", 0, 0, 3)]


def test_ranges_are_named_as_people_say_them() -> None:
    assert str(Range("t", 2, 10, 20)) == "t-2 offsets 10..19"
    assert str(Range("t", 2, 10, 11)) == "t-2 offsets 10"
    assert count([Range("t", 2, 10, 20), Range("t", 3, 5, 5)]) == 10
