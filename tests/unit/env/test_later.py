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
