"""A sample of two mirrors between two clusters, and the count that judges them."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.bad_days.both_ways import MirrorProcess, Reader, Side, run, unlike
from tests.bad_days.counting import Record

SOURCE = [
    Record(number % 2, number // 2, b"k", b"v%d" % number, {"h": b"%d" % number})
    for number in range(6)
]


def test_a_copy_as_its_source_has_no_fault() -> None:
    assert unlike(SOURCE, list(SOURCE), 6) == []


@pytest.mark.parametrize(
    ("source", "copy", "said"),
    [
        (SOURCE, [*SOURCE, SOURCE[2]], "1 twice, 0 missing, 0 of nobody"),
        (SOURCE, SOURCE[1:], "0 twice, 1 missing, 0 of nobody"),
        (SOURCE, [*SOURCE, Record(0, 3, b"k", b"x")], "0 twice, 0 missing, 1 of nobody"),
        (SOURCE[1:], SOURCE[1:], "5 in the source, 5 of them different, 6 sent"),
        (SOURCE, [*SOURCE[2:], *SOURCE[:2]], "not in the order"),
        (SOURCE, [*SOURCE[:5], Record(1, 2, b"z", b"v5", {"h": b"5"})], "or 1 with another key"),
        (SOURCE, [*SOURCE[:5], Record(1, 2, b"k", b"v5", {"h": b"0"})], "or 1 with another key"),
    ],
)
def test_what_is_wrong_with_a_copy_is_told(
    source: list[Record], copy: list[Record], said: str
) -> None:
    assert any(said in each for each in unlike(source, copy, 6))


def test_a_group_that_missed_or_doubled_one_is_told(tmp_path: Path) -> None:
    broker: Any = None
    mirror = MirrorProcess(Side("ours", broker, sent=3), Side("theirs", broker), tmp_path)
    assert Reader("g", mirror, Counter({b"0": 1, b"1": 1, b"2": 1})).faults() == []
    assert Reader("g", mirror, Counter({b"0": 2, b"1": 1})).faults() == ["g: 1 twice, 1 missing"]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1_200)
@pytest.mark.full
def test_both_sides_end_with_the_same_and_groups_move(tmp_path: Path) -> None:
    assert run(tmp_path, 90.0, random.Random(1)) == []
