"""The collector of garbage rests while long work is under way, not for ever, and only if it ran."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.collector import (
    GROWN_BUSY,
    GROWN_IDLE,
    IDLE,
    MOST_S,
    MOST_YOUNG,
    PAUSE_S,
    TEND_S,
    Collector,
    of_process,
)
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


def test_who_switched_it_off_has_nothing_looked_at():
    gc.disable()
    collector = Collector()
    collector.rest("work")
    young = [[number] for number in range(2 * MOST_YOUNG)]
    before = gc.get_stats()
    collector.still()
    assert gc.get_stats() == before
    assert young


def in_another_thread(act: Callable[[], None]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_two_loops_in_one_process_have_it_rest_one_at_a_time(monkeypatch):
    """The other one comes where the first has found that nobody rests: it would find it off."""
    collector, is_enabled = Collector(), gc.isenabled

    def found() -> bool:
        monkeypatch.setattr(gc, "isenabled", is_enabled)
        in_another_thread(lambda: collector.rest("another's work"))
        return is_enabled()

    monkeypatch.setattr(gc, "isenabled", found)
    collector.rest("work")
    assert not is_enabled()
    in_another_thread(collector.wake)
    in_another_thread(lambda: collector.go_on("another's work"))
    assert not is_enabled(), "the other loop's end is not ours"
    collector.go_on("work")
    assert is_enabled()


def test_a_forked_child_has_its_garbage_collected():
    of_process.rest("work that the child does not do")
    try:
        child = os.fork()
        if not child:
            os._exit(gc.isenabled())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert not gc.isenabled()
    finally:
        of_process.wake()


class Knot:
    """Garbage that only the collector finds."""

    alive = 0

    def __init__(self) -> None:
        Knot.alive += 1
        self.itself = self

    def __del__(self) -> None:
        Knot.alive -= 1


@pytest.fixture
def settled() -> Iterator[Collector]:
    """As in a program that is its broker."""
    gc.collect()
    collector = Collector()
    collector.settle()
    yield collector
    collector.unsettle()


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


def test_what_survived_a_look_is_looked_at_no_more(settled):
    knot = Knot()
    gc.collect()
    del knot
    gc.collect()
    assert Knot.alive == 1
    settled.unsettle()
    gc.collect()
    assert Knot.alive == 0


@pytest.mark.parametrize("is_let_go", [False, True])
def test_no_look_is_at_much_however_much_is_made(settled, is_let_go):
    """Python counts what was made less what was let go of, whatever age that was."""
    looked_at = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            young = range(info["generation"] + 1)
            looked_at.append(sum(len(gc.get_objects(generation)) for generation in young))

    old: list[list[int]] = [[number] for number in range(200_000)] if is_let_go else []
    gc.freeze()
    kept: list[list[int]] = []

    def steps():
        for _ in range(400):
            for number in range(500):
                kept.append([number])
                if is_let_go:
                    old.pop()
            yield

    clock, done = ManualClock(), list[None]()
    gc.callbacks.append(look)
    try:
        Slices(clock, settled).run(steps(), done.append)
        clock.advance(0)
        gc.collect()
    finally:
        gc.callbacks.remove(look)
    assert done
    assert len(kept) == 200_000
    assert 0 < max(looked_at) < 25_000


def test_garbage_that_was_left_out_is_found_when_the_process_has_grown(settled, monkeypatch):
    blocks, computed_s, now_s = 1_000_000, 0.0, 0.0
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(time, "process_time", lambda: computed_s)

    def left(grown: float, busy_s: float) -> int:
        nonlocal blocks, computed_s, now_s
        settled.settle()
        Knot()
        gc.freeze()
        before = blocks
        blocks, computed_s, now_s = int(blocks * grown), computed_s + busy_s, now_s + TEND_S
        settled.tend()
        alive, blocks = Knot.alive, before
        gc.unfreeze()
        gc.collect()
        return alive

    settled.tend()
    idle_s, busy_s = TEND_S * IDLE / 2, TEND_S / 2
    assert left(GROWN_IDLE * 1.1, idle_s) == 0
    assert left(GROWN_IDLE * 0.9, idle_s) == 1
    assert left(GROWN_BUSY * 1.1, busy_s) == 0
    assert left(GROWN_BUSY * 0.9, busy_s) == 1


def test_a_process_that_stays_as_it_is_is_not_looked_at_again(settled, monkeypatch):
    settled.tend()
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("it looks at everything"))
    settled.tend()
    settled.tend()
    monkeypatch.undo()


def test_it_goes_on_while_long_work_is_under_way_once_it_has_settled(settled):
    clock = ManualClock()
    Slices(clock, settled).run(long_work(), lambda _: None)
    assert gc.isenabled()
    clock.advance(0)


def test_all_is_as_it_was_when_it_is_unsettled():
    before = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()
    collector = Collector()
    collector.settle()
    collector.settle()
    assert gc.get_threshold() != before[0]
    collector.unsettle()
    assert (gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()) == before


def test_who_keeps_objects_from_it_finds_them_kept():
    gc.freeze()
    try:
        kept = gc.get_freeze_count()
        Collector().unsettle()
        assert 0 < gc.get_freeze_count() <= kept  # some may end meanwhile
    finally:
        gc.unfreeze()
