"""The collector of garbage rests while long work is under way, not for ever, and only if it ran."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.collector import MOST_S, PAUSE_S, Collector
from kafkalite.env.slicing import STEPS_AT_ONCE, Slices


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    gc.enable() if was_on else gc.disable()


def long_work():
    for _ in range(2 * STEPS_AT_ONCE):
        yield


def test_it_rests_while_anything_is_under_way():
    clock, collector = ManualClock(), Collector()
    slices = Slices(clock, collector)
    slices.run(long_work(), lambda _: None)
    assert not gc.isenabled()
    slices.run(long_work(), lambda _: None)
    clock.advance(0)
    assert gc.isenabled()


def test_short_work_does_not_touch_it(monkeypatch):
    monkeypatch.setattr(Collector, "rest", lambda *_: pytest.fail("it was to go on"))
    Slices(ManualClock(), Collector()).run((None for _ in ()), lambda _: None)


def test_it_comes_now_and_then_when_long_work_never_ends(monkeypatch):
    collector, now_s = Collector(), 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    collector.rest("work")
    seen = []
    for now_s in (1.0, MOST_S + PAUSE_S / 2, MOST_S + PAUSE_S + 0.1, 2 * MOST_S):  # noqa: B007
        collector.still()
        seen.append(gc.isenabled())
    assert seen == [False, True, False, False]


def test_who_switched_it_off_finds_it_off():
    gc.disable()
    collector = Collector()
    collector.rest("work")
    collector.go_on("work")
    assert not gc.isenabled()


def test_the_end_of_a_loop_ends_its_rest():
    collector = Collector()
    collector.rest("work that is never done")
    collector.wake()
    assert gc.isenabled()


class Knot:
    """Garbage that only the collector finds."""

    alive = 0

    def __init__(self) -> None:
        Knot.alive += 1
        self.itself = self

    def __del__(self) -> None:
        Knot.alive -= 1


def test_what_was_there_when_it_settled_is_looked_at_no_more():
    Knot()
    collector = Collector()
    collector.settle()
    try:
        Knot()
        gc.collect()
        assert Knot.alive == 1, "the younger one alone was looked at"
    finally:
        collector.unsettle()
    gc.collect()
    assert Knot.alive == 0


def test_who_keeps_objects_from_it_finds_them_kept():
    gc.freeze()
    try:
        kept = gc.get_freeze_count()
        Collector().unsettle()
        assert 0 < gc.get_freeze_count() <= kept  # some may end meanwhile
    finally:
        gc.unfreeze()
