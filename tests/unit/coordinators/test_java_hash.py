"""What Java 17 printed for sets of such names is what we make of them."""

import pytest

from kafkalite.coordinators.java_hash import in_hash_order, java_hash

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
