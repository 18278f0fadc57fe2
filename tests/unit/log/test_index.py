"""Searching an index: entries in the file, on the page of the last search and in memory are one."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.env.memory import MemoryDisk
from kafkalite.log.index import OffsetIndex, TimeIndex

BASE = 1_000
PATH = "/t-0/00000000000000001000.index"

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 700)),
        st.tuples(st.just("look"), st.integers(0, 8_000)),
        st.tuples(st.just("read on"), st.integers(1, 50)),
        st.tuples(st.just("cut"), st.integers(0, 8_000)),
        st.tuples(st.just("write"), st.just(0)),
        st.tuples(st.just("open again"), st.just(0)),
    ),
    max_size=25,
)


class Model:
    """What an index must find, from a list."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []  # offset and position

    def lookup(self, offset: int) -> int:
        slot = bisect_right(self.entries, offset, key=lambda entry: entry[0]) - 1
        return self.entries[slot][1] if slot >= 0 else 0

    def place_of(self, offset: int) -> int:
        ends = [before + 1 == offset for before, _ in self.entries[:-1]]
        return self.entries[ends.index(True) + 1][1] if True in ends else -1

    def entry_after(self, position: int) -> tuple[int, int] | None:
        return next(((offset, at) for offset, at in self.entries if at >= position), None)


@settings(deadline=None)
@given(steps)
def test_a_search_finds_what_a_list_would(steps: list[tuple[str, int]]) -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    index = OffsetIndex(disk, PATH, BASE)
    index.create()
    model = Model()
    for step, number in steps:
        if step == "append":
            last = model.entries[-1] if model.entries else (BASE, 0)
            size = 40 + number % 5  # what comes after a cut is not what was there before
            for one in range(1, number + 1):
                index.append(last[0] + 3 * one, last[1] + size * one)
                model.entries.append((last[0] + 3 * one, last[1] + size * one))
        elif step in ("look", "read on"):
            for near in range(1 if step == "look" else 4 * number):
                offset = BASE + number + 3 * near
                assert index.lookup(offset) == model.lookup(offset)
                assert index.place_of(offset) == model.place_of(offset)
                assert index.entry_after(40 * number) == model.entry_after(40 * number)
        elif step == "cut":
            index.truncate_to(BASE + number)
            model.entries = [entry for entry in model.entries if entry[0] < BASE + number]
        elif step == "write":
            index.write_waiting()
        else:
            index.write_waiting()
            index.close()
            index = OffsetIndex(disk, PATH, BASE)
    assert index.entries == len(model.entries)


def test_a_page_is_forgotten_when_its_entries_are_cut() -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    index = OffsetIndex(disk, PATH, BASE)
    index.create()
    for number in range(1, 101):
        index.append(BASE + number, 40 * number)
    index.write_waiting()
    assert index.lookup(BASE + 50) == 2_000
    index.truncate_to(BASE + 40)
    assert index.lookup(BASE + 50) == 39 * 40
    for number in range(40, 101):
        index.append(BASE + number, 50 * number)
    assert index.lookup(BASE + 50) == 2_500


def test_times_are_found_on_and_off_the_page() -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    index = TimeIndex(disk, PATH, BASE)
    index.create()
    for number in range(2_000):
        index.append(10 * number + 10, BASE + number)
    assert index.lookup(9) == (-1, BASE)
    for timestamp in (10, 15, 20, 5_000, 5_009, 5_010, 12_345, 19_999, 20_000, 90_000, 25):
        slot = min(timestamp // 10, 2_000) - 1
        assert index.lookup(timestamp) == (10 * slot + 10, BASE + slot)
