"""Every state of a group, whatever comes to it, ends as Apache Kafka ended it: a recorded table.

The table is written by `python -m tests.differential.migrations --record`, from what a running
Apache Kafka said to the cells of `tests.differential.group_cells`, under each migration policy.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.protocol.messages import FindCoordinatorRequest
from tests.compat.brokers import COMMON
from tests.differential.group_cells import POLICIES, Cell, all_cells
from tests.differential.group_exceptions import allowed
from tests.differential.group_record import recorded
from tests.differential.group_scene import PARTITIONS
from tests.differential.group_verdicts import Verdict, judge
from tests.unit.handlers.whole_broker import WholeBroker

TOPIC, POLICY = "orders", "group.consumer.migration.policy"
TABLE = dict(recorded())
# Groups are listed in each cell, so a broker is not to have too many.
CELLS_PER_BROKER = 150
# For the policies other than the default one of so many cells is enough for every day.
SHARE = 10


class MemoryLine:
    """A connection to a broker without sockets."""

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._asked: list[Later[Any]] = []

    def send(self, request: Any, version: int) -> None:
        self._asked.append(self._broker.send(request, version))

    def answer(self, *, must_come: bool) -> Any:
        self.arrive()
        if not self._asked[0].is_resolved:
            assert not must_come, "no answer"
            return None
        return self._asked.pop(0).value

    def arrive(self) -> None:
        self._broker.clock.advance(0)


def judged(policy: str, cells: list[Cell]) -> list[tuple[Cell, Verdict]]:
    broker = WholeBroker({**COMMON, POLICY: policy})
    topic_id = broker.create(TOPIC, PARTITIONS)
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["x"]), 4)
    broker.clock.advance(1_000)
    told = [
        (cell, judge(cell, lambda: MemoryLine(broker), f"cell-{number}", TOPIC, topic_id))
        for number, cell in enumerate(cells)
    ]
    broker.close()
    return told


def compare(policy: str, cells: list[Cell]) -> None:
    """Every cell that ends differently without a reason, together."""
    differing = []
    for start in range(0, len(cells), CELLS_PER_BROKER):
        for cell, ours in judged(policy, cells[start : start + CELLS_PER_BROKER]):
            theirs = TABLE[cell]
            if ours != theirs and allowed(cell, ours, theirs) is None:
                differing.append((str(cell), ours, theirs))
    assert not differing, f"{len(differing)} of {len(cells)} differ, the first: {differing[:2]}"
    assert len(cells) > 200, "too few to prove anything"


@pytest.mark.parametrize("policy", POLICIES)
def test_groups_end_as_apache_kafkas_do(policy: str) -> None:
    compare(policy, list(all_cells((policy,)))[:: 4 if policy == "bidirectional" else SHARE])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_cell_ends_as_apache_kafkas_does(policy: str) -> None:
    compare(policy, list(all_cells((policy,))))


def test_the_table_has_every_cell() -> None:
    assert set(TABLE) == set(all_cells())
