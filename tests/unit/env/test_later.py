"""A value that comes later reaches everyone who waits, once, in order."""

import ast
from pathlib import Path

import pytest

import kafkalite
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


# --- what is made of a slot -----------------------------------------------------------------------


def test_what_is_asked_with_a_value_answers_in_its_place():
    question, answer = Later[int](), Later[str]()
    asked: list[int] = []

    def ask(value: int) -> Later[str]:
        asked.append(value)
        return answer

    told = question.then_ask(ask)
    question.resolve(7)
    assert (asked, told.is_resolved) == ([7], False)
    answer.resolve("seven")
    assert told.value == "seven"
    assert Later.of(7).then_ask(ask).value == "seven"


def test_all_are_told_in_their_order_when_the_last_one_has_come():
    laters = [Later[int]() for _ in range(3)]
    every = Later.all(laters)
    for each in (2, 0, 1):
        assert not every.is_resolved
        laters[each].resolve(each)
    assert every.value == [0, 1, 2]
    assert Later.all(laters).value == [0, 1, 2]
    assert Later.all([]).value == []


def dividing_by(value: int) -> int:
    return 1 // value


WAYS = {
    "map": lambda later: later.map(dividing_by),
    "map of a map": lambda later: later.map(dividing_by).map(str),
    "then_ask": lambda later: later.then_ask(dividing_by),
    "then_ask who fails": lambda later: Later.of(0).then_ask(lambda _: later.map(dividing_by)),
    "all": lambda later: Later.all([Later.of(1), later.map(dividing_by)]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("is_here", [True, False])
def test_what_fails_on_the_way_ends_the_wait(way, is_here):
    later = Later[int]()
    if is_here:
        later.resolve(0)
    made = way(later)
    told: list[Exception] = []
    if not is_here:
        made.then(pytest.fail, told.append)
        later.resolve(0)
    made.then(pytest.fail, told.append)
    assert [type(each) for each in told] == [ZeroDivisionError] * len(told)
    with pytest.raises(ZeroDivisionError):
        _ = made.value


def test_all_wait_for_the_last_one_also_when_one_has_failed():
    good, bad = Later[int](), Later[int]()
    every = Later.all([bad.map(dividing_by), good])
    bad.resolve(0)
    assert not every.is_resolved
    good.resolve(1)
    with pytest.raises(ZeroDivisionError):
        _ = every.value


def test_a_failure_of_which_nobody_is_told_is_raised():
    seen: list[int] = []
    later = Later[int]()
    later.map(dividing_by).then(seen.append)
    later.then(seen.append)
    with pytest.raises(ZeroDivisionError):
        later.resolve(0)
    assert seen == [0]
    with pytest.raises(ZeroDivisionError):
        later.map(dividing_by).then(seen.append)


@pytest.mark.parametrize("way", ["map", "map of a map", "then_ask"])
def test_a_failure_that_nobody_waits_for_is_raised_where_the_value_came_from(way):
    later = Later[int]()
    made = WAYS[way](later)
    with pytest.raises(ZeroDivisionError):
        later.resolve(0)
    assert made.is_resolved


def test_who_passes_a_value_on_passes_on_what_goes_wrong_too() -> None:
    """Else the slot behind stays open, and whoever waits for it waits for ever."""
    package = Path(kafkalite.__file__).parent
    alone = [
        f"{path.relative_to(package)}:{call.lineno}"
        for path in sorted(package.rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "then"
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Attribute)
        and call.args[0].attr == "resolve"
    ]
    assert alone == []
