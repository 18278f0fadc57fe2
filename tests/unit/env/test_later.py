"""A value that comes later reaches everyone who waits, once, in order."""

import pytest

from kafkalite.env.later import Later


def test_callbacks_run_in_order_when_the_value_comes():
    later, seen = Later[int](), []
    later.then(lambda value: seen.append(("first", value, later.is_resolved)))
    later.then(lambda value: seen.append(("second", value, later.is_resolved)))
    before = later.is_resolved
    later.resolve(7)
    assert seen == [("first", 7, True), ("second", 7, True)]
    assert (before, later.value) == (False, 7)


def test_a_callback_on_a_filled_slot_runs_at_once():
    seen: list[int] = []
    Later.of(3).then(seen.append)
    assert seen == [3]


def test_resolving_twice_is_a_bug():
    later = Later.of(1)
    with pytest.raises(AssertionError):
        later.resolve(2)


def test_reading_too_early_is_a_bug():
    with pytest.raises(AssertionError):
        _ = Later[int]().value


def dividing(value: int) -> None:
    assert 1 // value


def looking_up(value: int) -> None:
    assert [][value]


def test_a_callback_that_fails_keeps_the_value_from_nobody_behind_it():
    seen: list[int] = []
    later = Later[int]()
    mapped = later.map(lambda value: value + 1)
    later.then(dividing)
    later.then(seen.append)
    then = later.map(lambda value: value + 2)
    with pytest.raises(ZeroDivisionError):
        later.resolve(0)
    assert (seen, mapped.value, then.value) == ([0], 1, 2)


def test_all_that_failed_is_told():
    later = Later[int]()
    later.then(dividing)
    later.then(looking_up)
    with pytest.raises(ExceptionGroup) as found:
        later.resolve(0)
    assert [type(each) for each in found.value.exceptions] == [ZeroDivisionError, IndexError]
