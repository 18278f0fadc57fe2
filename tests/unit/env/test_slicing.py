"""Long work is done in slices, in turn, and comes to its end whatever is beside it."""

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import (
    LOOKS_PER_STEP,
    SLICE_MS,
    STEPS_AT_ONCE,
    STEPS_PER_SHARE,
    STEPS_PER_SLICE,
    Pace,
    Slices,
    Work,
    emptied,
)

Seen = list[tuple[str, int]]
Done = list[object]
LONG = 2 * STEPS_PER_SLICE


def steps(count, seen, name="", clock=None, step_ms=0):
    for number in range(count):
        seen.append((name, number))
        if clock is not None:
            clock.spend(step_ms)
        yield
    return name or count


class Turns(ManualClock):
    """A clock whose next turn comes when it is called for."""

    def one(self):
        due, self._timers = self._timers, []
        for _, _, timer in sorted(due):
            if timer.callback is not None:
                timer.callback()


class Kept:
    """Counts how many of it there are."""

    left = 0

    def __init__(self):
        Kept.left += 1

    def __del__(self):
        Kept.left -= 1


@pytest.mark.parametrize("make", [list, lambda kept: dict(enumerate(kept))])
def test_some_are_let_go_of_in_each_step(make):
    many = 10 * LOOKS_PER_STEP + 7
    what, freed = make(Kept() for _ in range(many)), []
    before = Kept.left
    for _ in emptied(what):
        freed.append(before - Kept.left)
        before = Kept.left
    freed.append(before - Kept.left)
    assert (sum(freed), max(freed), Kept.left) == (many, LOOKS_PER_STEP, 0)


def test_what_is_short_is_done_at_once():
    slices, seen, done = Slices(ManualClock()), Seen(), Done()
    slices.run(steps(3, seen), done.append)
    assert done == [3]
    assert len(slices) == 0


def test_what_is_long_is_done_in_slices():
    clock, seen, done = Turns(), Seen(), Done()
    slices = Slices(clock)
    slices.run(steps(LONG, seen), done.append)
    assert len(seen) == STEPS_AT_ONCE
    clock.one()
    assert len(seen) == STEPS_AT_ONCE + STEPS_PER_SLICE
    assert not done
    clock.one()
    assert done == [LONG]


def test_who_waits_for_what_is_long_is_told_what_comes_of_it_and_what_goes_wrong():
    clock, seen = Turns(), Seen()
    slices = Slices(clock)

    def failing():
        yield from steps(LONG, seen)
        return 1 // 0

    good, bad = slices.later(steps(LONG, seen, "good")), slices.later(failing())
    assert not good.is_resolved
    clock.advance(0)
    assert good.value == "good"
    with pytest.raises(ZeroDivisionError):
        _ = bad.value


def test_works_take_turns_within_one_slice_for_all():
    clock, seen, done = Turns(), Seen(), Done()
    slices = Slices(clock)
    for name in "abc":
        slices.run(steps(LONG, seen, name), done.append)
    seen.clear()
    clock.one()
    assert len(seen) == STEPS_PER_SLICE
    assert [name for name, _ in seen[::STEPS_PER_SHARE]] == ["a", "b", "c", "a"]
    clock.advance(0)
    assert done == ["a", "b", "c"]


def test_a_slice_ends_when_its_time_is_over():
    clock, seen, done = Turns(), Seen(), Done()
    slices = Slices(clock)
    slices.run(steps(10, seen, clock=clock, step_ms=1), done.append)
    assert len(seen) == 2
    clock.one()
    assert len(seen) == 4
    clock.advance(100)
    assert done == [10]


def test_many_that_come_in_one_turn_do_little_at_once_together():
    clock, seen, done = ManualClock(), Seen(), Done()
    slices = Slices(clock)
    for name in range(20):
        slices.run(steps(1, seen, str(name), clock, 1), done.append)
    assert clock.monotonic_ms() == SLICE_MS
    clock.advance(100)
    assert len(done) == 20


def test_a_line_is_in_order_and_holds_up_no_other():
    clock, seen, done = ManualClock(), Seen(), Done()
    slices = Slices(clock)
    for name, line in (("first", "a"), ("second", "a"), ("elsewhere", "b")):
        count = LONG if name == "first" else 1
        slices.enter(Work(steps(count, seen, name), done.append), line)
    assert "a" in slices.lines
    clock.advance(0)
    assert done == ["elsewhere", "first", "second"]
    assert not slices.lines


def test_what_comes_of_it_may_begin_more():
    clock, seen, done = ManualClock(), Seen(), Done()
    slices = Slices(clock)
    slices.run(steps(2, seen), lambda _: slices.run(steps(5, seen), done.append))
    assert done == [5]


def test_what_nobody_waits_for_any_more_is_dropped():
    clock, seen, done, lost = Turns(), Seen(), Done(), []
    slices, is_there = Slices(clock), True
    work = Work(
        steps(LONG, seen), done.append, lost=lambda: lost.append(1), is_wanted=lambda: is_there,
        held_bytes=7,
    )  # fmt: skip
    slices.begin(work)
    assert slices.held_bytes == 7
    is_there = False
    clock.advance(0)
    assert len(seen) == STEPS_AT_ONCE
    assert (done, lost, slices.held_bytes, len(slices)) == ([], [1], 0, 0)


def test_an_owner_that_ends_takes_its_works_with_it_and_no_others():
    clock, seen, done, lost = ManualClock(), Seen(), Done(), []
    slices, owner = Slices(clock), object()
    for name in ("mine", "too"):
        work = Work(steps(LONG, seen, name), done.append, lambda: lost.append(1), owner=owner)
        slices.enter(work, "line")
    slices.enter(Work(steps(LONG, seen, "other"), done.append), "line")
    slices.drop(owner)
    assert lost == [1, 1]
    clock.advance(0)
    assert done == ["other"]


def test_a_failure_is_its_own_and_nobody_elses():
    clock, seen, done = ManualClock(), Seen(), Done()
    slices = Slices(clock)

    def failing():
        for _ in range(LONG):
            yield
        raise ValueError("a mistake")

    slices.run(failing(), done.append)
    slices.run(steps(2 * LONG, seen), done.append)
    with pytest.raises(ValueError, match="a mistake"):
        clock.advance(0)
    clock.advance(0)
    assert done == [2 * LONG]


def failing(count):
    for _ in range(count):
        yield
    raise ValueError("a mistake")


@pytest.mark.parametrize("count", [1, LONG])
def test_who_waits_for_what_fails_is_told_that_it_is_lost(count):
    clock, done, lost = ManualClock(), Done(), []
    slices = Slices(clock)

    def begin():
        slices.begin(Work(failing(count), done.append, lambda: lost.append(1), held_bytes=7))
        clock.advance(0)

    with pytest.raises(ValueError, match="a mistake"):
        begin()
    assert (done, lost, slices.held_bytes, len(slices)) == ([], [1], 0, 0)


@pytest.mark.parametrize("is_late", [False, True])
def test_an_owner_may_end_in_a_step_of_its_own(is_late):
    clock, done, lost, later = ManualClock(), Done(), [], []
    slices, owner = Slices(clock), object()

    def ending():
        slices.drop(owner)
        yield
        later.append(1)
        yield

    work = Work(ending(), done.append, lambda: lost.append(1), owner=owner, held_bytes=7)
    slices.enter(work) if is_late else slices.begin(work)
    clock.advance(0)
    assert (done, lost, later, slices.held_bytes, len(slices)) == ([], [1], [], 0, 0)


def test_what_is_lost_is_told_to_all_whatever_one_does_with_it():
    clock, done, lost = ManualClock(), Done(), []
    slices, owner = Slices(clock), object()

    def fail():
        raise ValueError("a mistake")

    for tell in (fail, lambda: lost.append(1)):
        slices.enter(Work(steps(LONG, []), done.append, tell, owner=owner))
    slices.enter(Work(steps(LONG, []), done.append))
    with pytest.raises(ValueError, match="a mistake"):
        slices.drop(owner)
    clock.advance(0)
    assert (done, lost) == ([LONG], [1])


def test_a_line_is_in_order_also_when_a_step_of_the_first_adds_to_it():
    clock, done = ManualClock(), Done()
    slices = Slices(clock)

    def adding():
        yield
        assert "line" in slices.lines
        slices.enter(Work(steps(1, [], "third"), done.append), "line")
        yield
        return "first"

    slices.enter(Work(adding(), done.append), "line")
    slices.enter(Work(steps(1, [], "second"), done.append), "line")
    clock.advance(0)
    assert done == ["first", "second", "third"]


def test_a_pace_gives_so_much_in_a_stretch_of_time():
    pace = Pace(10, 5)
    pace.at(1_000)
    pace.left -= 5
    pace.at(1_004)
    assert (pace.left, pace.pause_ms(1_004)) == (0, 6)
    pace.at(1_010)
    assert pace.left == 5
    pace.left = 0
    pace.at(900)  # somebody set the clock back
    assert pace.left == 5
