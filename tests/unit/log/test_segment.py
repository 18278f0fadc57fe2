"""Finding a batch in a segment: by memory, by index and by walking all of it, it is the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.env.memory import MemoryDisk
from kafkalite.log.segment import Segment
from kafkalite.records.batch import patch, read_header
from kafkalite.records.record import BatchBuilder

INDEX_INTERVAL_BYTES = 300

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 400)),
        st.tuples(st.just("look"), st.integers(0, 60)),
        st.tuples(st.just("read on"), st.integers(0, 60)),
        st.tuples(st.just("cut"), st.integers(0, 60)),
    ),
    max_size=40,
)


def append(segment: Segment, offset: int, value_bytes: int) -> int:
    """One batch of one to three records; the offset behind it."""
    builder = BatchBuilder()
    for _ in range(1 + value_bytes % 3):
        builder.append(1, None, bytes(value_bytes))
    records = builder.build()
    header = read_header(records)
    patch(records, header, offset, 0)
    segment.append(records, [header], INDEX_INTERVAL_BYTES)
    return header.next_offset


def by_walking(segment: Segment, offset: int) -> tuple[int, int] | None:
    for header in segment.walk(0):
        if header.last_offset >= offset:
            return header.position, header.size
    return None


@settings(deadline=None)
@given(steps)
def test_a_batch_is_found_where_walking_finds_it(steps: list[tuple[str, int]]) -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    segment = Segment.create(disk, "/t-0", 0, 1)
    end = 0
    for step, number in steps:
        if step == "append":
            for more in range(20):
                end = append(segment, end, number + more)
        elif step == "cut":
            segment.truncate_to(number, 1)
            end = segment.next_offset()
        else:
            for offset in range(number, number + (1 if step == "look" else 12)):
                assert segment.locate(offset) == by_walking(segment, offset)


def test_what_was_found_before_a_cut_is_forgotten() -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    segment = Segment.create(disk, "/t-0", 0, 1)
    end = 0
    for _ in range(30):
        end = append(segment, end, 99)
    segment.finish()
    segment.truncate_to(3, 1)  # finds 3 itself: the next one that a reader asks for is 4
    end = segment.next_offset()
    for _ in range(30):
        end = append(segment, end, 120)
    segment.finish()
    assert segment.locate(4) == by_walking(segment, 4)
