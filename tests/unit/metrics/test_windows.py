"""Burrow's rules over windows of commits that are made up."""

from __future__ import annotations

import pytest

from kafkalite.coordinators.groups.records import offset_tombstone
from kafkalite.metrics.commits import commit_in
from kafkalite.metrics.windows import WINDOW, Status, Windows, of_group
from kafkalite.records.record import Record

PLACE = ("orders", 0)


def status(*commits: tuple[int, int | None], end: int = 1_000, after_s: int = 1) -> Status:
    """Offsets and where the partition ended, ten seconds apart; and looked at so long after."""
    windows = Windows()
    for number, (offset, end_then) in enumerate(commits):
        windows.commit("readers", PLACE, offset, 10_000 * number, end_then)
    now_ms = 10_000 * (len(commits) - 1) + 1_000 * after_s
    [found] = windows.look("readers", {PLACE: end}, now_ms)
    return found.status


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (status((10, 20), (20, 40), (30, 60)), Status.WARN),
        (status((10, 20), (20, 30), (30, 40)), Status.WARN),
        (status((10, 20), (20, 25), (30, 60)), Status.OK),
        (status((10, 20), (20, 20), (30, 60)), Status.OK),
        (status((10, 20), (20, 40), end=20), Status.OK),
        (status((10, 20), (10, 40), (10, 60)), Status.STALL),
        (status((30, 60), (20, 60), (40, 60)), Status.REWIND),
        (status((10, 20), (20, 40), after_s=11), Status.STOP),
        (status((10, 20), (20, 40), after_s=10), Status.WARN),
        (status((10, None), (20, 40), (30, 60)), Status.OK),
        (status((10, None), (10, None)), Status.STALL),
    ],
    ids=[
        "falls behind", "keeps its distance", "caught up once", "had no lag once", "has none now",
        "the same again and again", "went back", "commits no more", "just not yet",
        "nobody knows how far it was behind", "stalled before anybody looked",
    ],
)  # fmt: skip
def test_the_first_rule_that_holds(found: Status, expected: Status) -> None:
    assert found is expected


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    windows = Windows()
    assert of_group(windows.look("readers", {}, 0)) is Status.NOTFOUND
    for partition, offsets in enumerate([(1, 100), (5, 5)]):
        for number, offset in enumerate(offsets):
            windows.commit("readers", ("orders", partition), offset, 10_000 * number, 100)
    ends = {("orders", 0): 100, ("orders", 1): 100}
    assert of_group(windows.look("readers", ends, 10_001)) is Status.ERR
    windows.forget("readers", ("orders", 1))
    assert of_group(windows.look("readers", ends, 10_001)) is Status.OK


def test_windows_are_bounded() -> None:
    windows = Windows()
    for number in range(100):
        windows.commit("readers", PLACE, number, 1_500 * number, None)
    assert len(windows.groups["readers"][PLACE]) == WINDOW
    windows.commit("quick", PLACE, 0, 0, None)
    for number in range(1, 100):
        windows.commit("quick", PLACE, number, number, None)
    assert [each.offset for each in windows.groups["quick"][PLACE]] == [0, 99]
    windows.commit("quick", PLACE, 5, 50, None)
    assert windows.groups["quick"][PLACE][-1].offset == 99, "it was told late"
    windows.keep([])
    assert not windows.groups


def test_what_a_record_tells() -> None:
    gone = offset_tombstone("readers", "orders", 3)
    record = Record(offset=0, timestamp=7, key=gone.key, value=None, headers=())
    assert commit_in(record) == ("readers", ("orders", 3), None, 7)
    for key in (None, b"", b"\0\2", b"\0\1\0", b"\x7f\x7fabc"):
        strange = Record(offset=0, timestamp=7, key=key, value=b"\x7f\x7f", headers=())
        assert commit_in(strange) is None
