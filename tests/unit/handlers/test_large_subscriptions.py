"""Members of consumer groups with thousands of topics: a slice of their heartbeats per turn."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun, broker_with
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 2_000
NAMES = [f"t-{number}" for number in range(MANY)]


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    return broker_with(NAMES)


class Member:
    def __init__(self, broker: WholeBroker, group_id: str, member_id: str) -> None:
        self.broker = broker
        self.who: dict[str, Any] = {"group_id": group_id, "member_id": member_id}
        self.epoch = 0
        self.assigned: set[bytes] = set()

    def join(self, **subscription: Any) -> None:
        self._beat(rebalance_timeout_ms=60_000, topic_partitions=[], **subscription)

    def beat(self) -> None:
        """Says what it has, which is what it was told last."""
        place = ConsumerGroupHeartbeatRequest.TopicPartitions
        own = [place(topic_id=topic_id, partitions=[0]) for topic_id in self.assigned]
        self._beat(topic_partitions=own)

    def _beat(self, **fields: Any) -> None:
        clock = self.broker.clock
        assert isinstance(clock, CountingClock)
        request = ConsumerGroupHeartbeatRequest(member_epoch=self.epoch, **self.who, **fields)
        came = begun(self.broker, request, 1)
        clock.advance(300)
        answer = came()
        assert answer.error_code == Error.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {one.topic_id for one in answer.assignment.topic_partitions}


def lives(broker: WholeBroker, group_id: str, **subscription: Any) -> None:
    """Three members come one after the other, until each has its share, and one goes."""
    members = [Member(broker, group_id, f"m{number}") for number in range(3)]
    for member in members:
        member.join(**subscription)
    for _ in range(3):
        for member in members:
            member.beat()
    ids = {broker.context.metadata.image.topic_id(name) for name in NAMES}
    assert set.union(*(member.assigned for member in members)) == ids
    shares = sorted(len(member.assigned) for member in members)
    assert shares == ([0, 0, MANY] if "server_assignor" in subscription else [666, 667, 667])
    gone = members.pop(0)
    gone.epoch = -1
    gone._beat()
    for _ in range(3):
        for member in members:
            member.beat()
    assert set.union(*(member.assigned for member in members)) == ids


@pytest.mark.parametrize(
    ("group_id", "subscription"),
    [
        ("names", {"subscribed_topic_names": NAMES}),
        ("pattern", {"subscribed_topic_names": [], "subscribed_topic_regex": "t-.*"}),
        ("range", {"subscribed_topic_names": NAMES, "server_assignor": "range"}),
    ],
)
def test_no_turn_is_long(broker: WholeBroker, group_id: str, subscription: Any) -> None:
    lives(broker, f"before-{group_id}", **subscription)  # has code generated
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    clock.begin()
    lives(broker, group_id, **subscription)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_a_description_of_many_topics(broker: WholeBroker) -> None:
    member = Member(broker, "described", "m")
    member.join(subscribed_topic_names=NAMES)
    member.beat()
    request = ConsumerGroupDescribeRequest(group_ids=["described"])
    (group,) = asked(broker, request, 1).groups
    (found,) = group.members
    for assignment in (found.assignment, found.target_assignment):
        assert {topic.topic_name for topic in assignment.topic_partitions} == set(NAMES)


def test_what_is_asked_meanwhile_sees_the_member(broker: WholeBroker) -> None:
    """The second heartbeat of the group is decided when all of the first is in its log."""
    first = ConsumerGroupHeartbeatRequest(
        group_id="two", member_id="a", member_epoch=0, rebalance_timeout_ms=60_000,
        topic_partitions=[], subscribed_topic_names=NAMES,
    )  # fmt: skip
    came = broker.send(first, 1)
    own = broker.connection
    broker.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000))
    second = ConsumerGroupHeartbeatRequest(
        group_id="two", member_id="b", member_epoch=0, rebalance_timeout_ms=60_000,
        topic_partitions=[], subscribed_topic_names=NAMES[:1],
    )  # fmt: skip
    also = broker.send(second, 1)
    broker.connection = own
    broker.clock.advance(300)
    assert [came.value.error_code, also.value.error_code] == [Error.NONE, Error.NONE]
    assert len(came.value.assignment.topic_partitions) >= MANY - 1
