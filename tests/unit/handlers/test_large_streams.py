"""Streams groups with thousands of subtopologies, or of tasks: a slice of their heartbeats per
turn."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    IncrementalAlterConfigsRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun, broker_with
from tests.unit.handlers.streams_desk import AT_ONCE, GROUP_RESOURCE, subtopology, topology
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 1_000
NAMES = [f"t-{number}" for number in range(MANY)]
Request = StreamsGroupHeartbeatRequest
WIDE = topology(*(subtopology(name, source_topics=[name]) for name in NAMES))
DEEP = topology(subtopology(source_topics=["deep"]))
SMALL = topology(*(subtopology(name, source_topics=[name]) for name in NAMES[:4]))


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    broker = broker_with(NAMES)
    broker.create("deep", MANY)
    return broker


def configure(broker: WholeBroker, group_id: str) -> None:
    kind = IncrementalAlterConfigsRequest
    configs = [
        kind.Config(name=name.removeprefix("group."), config_operation=0, value=value)
        for name, value in AT_ONCE.items()
    ]
    resource = kind.Resource(
        resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs
    )
    (answer,) = broker.ask(kind(resources=[resource]), 1).responses
    assert answer.error_code == Error.NONE, answer


class Member:
    def __init__(self, broker: WholeBroker, group_id: str, member_id: str) -> None:
        self.broker = broker
        self.who: dict[str, Any] = {"group_id": group_id, "member_id": member_id}
        self.epoch = 0
        self.tasks: list[Any] = []

    def join(self, what: Request.Topology) -> None:
        self._beat(
            rebalance_timeout_ms=60_000, topology=what, active_tasks=[], standby_tasks=[],
            warmup_tasks=[], process_id=self.who["member_id"], client_tags=[],
        )  # fmt: skip

    def beat(self) -> None:
        """Says what it has, which is what it was told last."""
        kind = Request.TaskIds
        own = [
            kind(subtopology_id=one.subtopology_id, partitions=one.partitions)
            for one in self.tasks
        ]
        self._beat(active_tasks=own, standby_tasks=[], warmup_tasks=[])

    def _beat(self, **fields: Any) -> None:
        clock = self.broker.clock
        assert isinstance(clock, CountingClock)
        came = begun(self.broker, Request(member_epoch=self.epoch, **self.who, **fields), 0)
        clock.advance(300)
        answer = came()
        assert answer.error_code == Error.NONE, answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = answer.active_tasks


def held(members: list[Member]) -> list[int]:
    return sorted(sum(len(one.partitions) for one in member.tasks) for member in members)


def lives(broker: WholeBroker, group_id: str, what: Request.Topology) -> None:
    """Two members come one after the other, until each has its share, and one goes."""
    configure(broker, group_id)
    members = [Member(broker, group_id, f"m{number}") for number in range(2)]
    for member in members:
        member.join(what)
    for _ in range(2):
        for member in members:
            member.beat()
    first, second = held(members)
    assert first == second
    gone = members.pop(0)
    gone.epoch = -1
    gone._beat()
    members[0].beat()
    assert held(members) == [first + second]


@pytest.mark.parametrize("what", [WIDE, DEEP], ids=["subtopologies", "partitions"])
def test_no_turn_is_long(broker: WholeBroker, what: Request.Topology) -> None:
    name = f"group-{len(what.subtopologies)}"
    lives(broker, f"before-{name}", SMALL)  # has code generated
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    clock.begin()
    lives(broker, name, what)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_a_description_of_many_subtopologies(broker: WholeBroker) -> None:
    configure(broker, "described")
    member = Member(broker, "described", "m")
    member.join(WIDE)
    member.beat()
    (group,) = asked(broker, StreamsGroupDescribeRequest(group_ids=["described"]), 0).groups
    assert len(group.topology.subtopologies) == MANY
    (found,) = group.members
    assert len(found.assignment.active_tasks) == len(found.target_assignment.active_tasks) == MANY
