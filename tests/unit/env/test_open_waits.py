"""Which slots are open is known, and where they were made, while somebody watches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later, forget_waits, open_waits, watch_waits
from kafkalite.env.slicing import STEPS_AT_ONCE, Slices, Steps

HERE = "tests"


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    watch_waits()
    yield
    watch_waits(False)


def test_an_open_slot_is_named_by_where_it_was_made() -> None:
    later: Later[int] = Later()
    [(place, count)] = open_waits(HERE).items()
    assert place.startswith(f"{__name__}:")
    assert count == 1
    later.resolve(1)
    assert not open_waits(HERE)


def test_slots_of_one_kind_are_counted_together() -> None:
    made: list[Later[int]] = [Later() for _ in range(3)]
    assert list(open_waits(HERE).values()) == [3]
    made.pop()  # nobody holds it any more, and nobody will ever fill it
    assert list(open_waits(HERE).values()) == [3]


def test_what_a_slot_is_changed_into_counts_for_who_changed_it() -> None:
    first: Later[int] = Later()
    second = first.map(str)
    assert sum(open_waits(HERE).values()) == 2
    first.resolve(1)
    assert second.value == "1"
    assert not open_waits(HERE)


def test_a_filled_slot_is_never_open() -> None:
    Later.of(1)
    assert not open_waits(HERE)


def test_of_other_packages_nothing_is_told_and_what_is_forgotten_is_not_open() -> None:
    first: Later[int] = Later()
    assert not open_waits("kafkalite")
    forget_waits()
    assert not open_waits(HERE)
    first.resolve(1)


def test_what_is_made_of_slots_counts_for_who_made_it_and_is_closed_by_a_failure() -> None:
    first: Later[int] = Later()
    made = first.map(lambda value: 1 // value)
    asked = made.then_ask(Later.of)
    every = Later.all([made])
    assert all(place.startswith(f"{__name__}:") for place in open_waits(HERE))
    with pytest.raises(ZeroDivisionError):
        first.resolve(0)
    assert not open_waits(HERE)
    assert asked.is_resolved
    assert every.is_resolved


def test_what_is_worked_out_in_slices_counts_for_who_wants_it() -> None:
    def long() -> Steps[int]:
        for _ in range(2 * STEPS_AT_ONCE):
            yield
        return 1

    clock = ManualClock()
    later = Slices(clock).later(long())
    assert [place.partition(":")[0] for place in open_waits(HERE)] == [__name__]
    clock.advance(0)
    assert later.value == 1
    assert not open_waits(HERE)
