"""States of a group, whatever comes to it, on kafkalite and Apache Kafka side by side: a sample of
the cells that `python -m tests.differential.migrations` asks, under the default policy, which the
shared brokers have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.differential.group_cells import Cell, all_cells
from tests.differential.group_exceptions import allowed
from tests.differential.migrations import compare

# One of so many; it shares no factor with the number of acts, so every act has its turn.
SHARE = 17


@pytest.fixture(scope="module")
def pair(run_folder: Path) -> list[Broker]:
    return [brokers.shared(kind, run_folder) for kind in brokers.BROKERS]


def a_sample() -> list[Cell]:
    return list(all_cells(("bidirectional",)))[::SHARE]


def test_groups_end_alike(pair: list[Broker]) -> None:
    told = compare(a_sample(), pair)
    differing = [
        (str(cell), ours, theirs)
        for cell, ours, theirs in told
        if ours != theirs and allowed(cell, ours, theirs) is None
    ]
    assert differing == []
    assert len(told) > 100, "too few to prove anything"


def test_different_cells_are_told_differently(pair: list[Broker]) -> None:
    """A difference in the state or in what comes to it shows."""
    same_act = [each for each in all_cells(("bidirectional",)) if each.act == "a consumer comes"]
    told = [tuple(theirs) for _, _, theirs in compare(same_act[:20], pair)]
    assert len(set(told)) > 10
