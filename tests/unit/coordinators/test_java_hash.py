"""What Java 17 printed for sets of such names is what we make of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.java_hash import in_hash_order, java_hash, some_in_hash_order
from kafkalite.env.slicing import ELEMENTS_PER_STEP, finish

PRINTED = {
    5: "838 0 757 676 919",
    12: "352 838 433 0 757 514 190 676 109 271 595 919",
    13: "838 0 757 514 109 919 352 433 28 190 676 271 595",
}


@pytest.mark.parametrize("count", PRINTED)
def test_names_come_in_the_order_of_a_hash_set(count: int) -> None:
    names = [f"topic-{number * 7919 % 1000}é" for number in range(count)]
    expected = [f"topic-{each}é" for each in PRINTED[count].split()]
    assert in_hash_order(names) == expected
    assert in_hash_order(names + names) == expected


def test_hashes_have_a_sign() -> None:
    assert (java_hash(""), java_hash("a"), java_hash("polygenelubricants")) == (0, 97, -(1 << 31))


@given(st.lists(st.text(max_size=4), unique=True, max_size=200), st.integers(1, 5))
def test_some_of_them_are_in_the_order_of_all(texts: list[str], step: int) -> None:
    some = texts[::step]
    expected = [each for each in in_hash_order(texts) if each in some]
    assert finish(some_in_hash_order(some, len(texts))) == expected


def test_thousands_are_hashed_some_in_each_step() -> None:
    texts = [f"topic-{number}" for number in range(1_000)]
    assert len(list(some_in_hash_order(texts, 1_000))) > 1_000 / ELEMENTS_PER_STEP
