"""Which limit holds for whom, in Apache Kafka's order of precedence."""

from __future__ import annotations

import pytest

from kafkalite.quotas.limits import NOBODY, Key, Limits

ORDER = (
    ("u", "c"), ("u", None), ("u", NOBODY), (None, "c"), (None, None), (None, NOBODY),
    (NOBODY, "c"), (NOBODY, None),
)  # fmt: skip
COUNTED: dict[int, Key] = {
    0: ("u", "c"), 1: ("u", "c"), 2: ("u", ""), 3: ("u", "c"), 4: ("u", "c"), 5: ("u", ""),
    6: ("", "c"), 7: ("", "c"),
}  # fmt: skip


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_special_limit_holds(first: int) -> None:
    limits = Limits()
    for number, entity in enumerate(ORDER[first:], first):
        limits.set(entity[0], entity[1], float(number))
    key = limits.key("u", "c")
    assert key == COUNTED[first]
    assert limits.of(key) == first


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_a_limit_alone_holds_for_whom_it_names(number: int) -> None:
    limits = Limits()
    limits.set(ORDER[number][0], ORDER[number][1], 7.0)
    assert limits.of(limits.key("u", "c")) == 7.0
    others = limits.of(limits.key("other", "another"))
    is_named = "u" in ORDER[number] or "c" in ORDER[number]
    assert others == (None if is_named else 7.0)
    limits.set(ORDER[number][0], ORDER[number][1], None)
    assert len(limits) == 0
    assert limits.of(limits.key("u", "c")) is None


def test_clients_of_a_user_share_its_limit() -> None:
    limits = Limits()
    limits.set("u", NOBODY, 1.0)
    assert limits.key("u", "one") == limits.key("u", "two") == ("u", NOBODY)


def test_a_client_without_a_name_has_no_limit_by_client_ids() -> None:
    limits = Limits()
    limits.set(NOBODY, None, 1.0)
    assert limits.of(limits.key("u", "")) is None
    limits.set(None, NOBODY, 2.0)
    assert limits.of(limits.key("u", "")) == 2.0


def test_a_limit_that_is_given_again_is_another_one() -> None:
    limits = Limits()
    for value in (1.0, 2.0):
        limits.set("u", NOBODY, value)
    limits.set("u", NOBODY, None)
    limits.set("u", NOBODY, None)
    limits.set(NOBODY, "c", 3.0)
    assert limits.key("u", "c") == (NOBODY, "c")
