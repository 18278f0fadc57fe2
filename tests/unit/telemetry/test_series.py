"""Numbers that clients pushed are kept for as long as they push, and no more than there is room."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kafkalite.env.slicing import finish
from kafkalite.telemetry import series as module
from kafkalite.telemetry.payload import Payload, Point
from kafkalite.telemetry.series import LEAST_KEPT_MS, Series

INTERVAL_MS = 100_000


def take(series: Series, *points: Point, by: str = "a", now_ms: int = 0, **how: Any) -> None:
    given = {"interval_ms": INTERVAL_MS, "is_last": False, **how}
    finish(series.take(by, Payload(list(points)), now_ms=now_ms, **given))


def delta(value: float, name: str = "n") -> Point:
    return Point((name, True, ()), value, True)


def gauge(value: float, name: str = "g") -> Point:
    return Point((name, False, ()), value, False)


def shown(series: Series, now_ms: int = 0) -> dict[str, float]:
    return {key[0]: value for key, value in finish(series.taken_down(now_ms))}


def test_what_was_added_is_summed_up_and_the_rest_told_as_it_is() -> None:
    series = Series()
    for value in (3.0, 4.0):
        take(series, delta(value), gauge(value))
    assert shown(series) == {"n": 7.0, "g": 4.0}
    assert len(series) == 2


def test_who_is_silent_is_forgotten() -> None:
    series = Series()
    take(series, gauge(1))
    assert shown(series, 3 * INTERVAL_MS - 1) == {"g": 1}
    assert shown(series, 3 * INTERVAL_MS) == {}
    assert len(series) == 0


def test_who_said_it_goes_is_forgotten_sooner() -> None:
    series = Series()
    take(series, gauge(1))
    take(series, gauge(2), now_ms=10, is_last=True)
    assert shown(series, 10 + LEAST_KEPT_MS - 1) == {"g": 2}
    assert shown(series, 10 + LEAST_KEPT_MS) == {}


def test_who_pushes_often_is_kept_for_some_scrapes() -> None:
    series = Series()
    take(series, gauge(1), interval_ms=100)
    assert shown(series, LEAST_KEPT_MS - 1) == {"g": 1}


def test_of_one_client_there_is_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 2)
    series = Series()
    take(series, *(gauge(1, f"g{number}") for number in range(5)))
    take(series, gauge(9, "g1"))
    assert (shown(series), series.left_out) == ({"g0": 1, "g1": 9}, 3)


def test_of_all_there_is_a_bounded_number_and_those_who_have_gone_give_way() -> None:
    series = Series(most=2)
    for number in range(4):
        take(series, gauge(1, f"g{number}"), by=str(number))
    assert (len(series), series.left_out) == (2, 2)
    take(series, gauge(1, "new"), by="new", now_ms=3 * INTERVAL_MS)
    assert shown(series, 3 * INTERVAL_MS) == {"new": 1}


def test_points_that_were_left_out_before_count() -> None:
    series = Series()
    finish(series.take("a", Payload([], left_out=3), INTERVAL_MS, False, 0))
    assert (series.left_out, len(series)) == (3, 0)


def test_of_very_many_points_some_are_taken_in_each_step() -> None:
    series, points = Series(), [gauge(1, f"g{number}") for number in range(500)]
    steps = series.take("a", Payload(points), INTERVAL_MS, False, 0)
    seen = [0, *(len(series) for _ in steps)]
    assert seen[-1] == len(series) == 500
    assert max(now - before for before, now in pairwise(seen)) <= 64
