"""When a partition ended where a group is now."""

from __future__ import annotations

import pytest

from kafkalite.client.survey import Partition, Survey, Topic
from kafkalite.metrics.lag_seconds import SEEN, Ends

PLACE = ("orders", 0)


def seen(*points: tuple[int, int]) -> Ends:
    """Ends that were seen: seconds, and where the partition ended."""
    ends = Ends()
    for second, end in points:
        ends.note(at(second, end))
    return ends


def at(second: int, end: int | None) -> Survey:
    topic = Topic("orders", False, {0: Partition(1, [1], [1], 0, end)})
    return Survey(1000 * second, "", 1, [], {"orders": topic})


@pytest.mark.parametrize(
    ("committed", "lag_s"),
    [(100, 0.0), (120, 0.0), (90, 11.0), (50, 15.0), (0, 20.0)],
    ids=["at the end", "beyond it", "just before", "half-way", "where the first was"],
)
def test_between_two_looks_records_came_evenly(committed: int, lag_s: float) -> None:
    assert seen((0, 0), (10, 100)).lag_seconds(PLACE, committed, 20_000) == lag_s


def test_a_rest_counts() -> None:
    ends = seen((0, 0), (10, 100), (20, 100), (30, 100), (40, 200))
    assert ends.lag_seconds(PLACE, 100, 40_000) == 10.0
    assert ends.lag_seconds(PLACE, 150, 40_000) == 5.0


def test_before_the_first_look_it_is_guessed_from_how_fast_records_come() -> None:
    assert seen((100, 1_000), (110, 1_100)).lag_seconds(PLACE, 900, 110_000) == 20.0


def test_nobody_knows_where_nothing_has_come_since() -> None:
    assert seen((0, 100)).lag_seconds(PLACE, 50, 1_000) is None
    assert Ends().lag_seconds(PLACE, 50, 1_000) is None


def test_a_partition_that_ends_sooner_is_another_one() -> None:
    ends = seen((0, 100), (10, 200), (20, 5), (30, 15))
    assert ends.lag_seconds(PLACE, 5, 30_000) == 10.0


def test_little_is_kept() -> None:
    ends = seen(*((second, second) for second in range(3 * SEEN)))
    assert len(ends._seen[PLACE]) == SEEN
    ends.note(Survey(10**9, "", 1, [], {}))
    assert not ends._seen
    ends.note(at(10**6, None))
    assert not ends._seen
