"""Groups with thousands of topics that change their protocol: a slice of it per turn."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.groups import consumer_protocol
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import begun, broker_with
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 3_000
NAMES = [f"t-{number}" for number in range(MANY)]
SUBSCRIPTION = b"\0\1" + codec.encode(ConsumerProtocolSubscription(topics=NAMES), 1)
ASSIGNMENT = consumer_protocol.write_assignment({name: [0] for name in NAMES}, 1)


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    return broker_with(NAMES)


class Life:
    """A classic group whose only member has all; somebody joins by the other protocol, and goes."""

    def __init__(self, broker: WholeBroker, group_id: str) -> None:
        self.broker = broker
        self.group_id = group_id
        joined = self.ask(self.joining(""), 3)
        self.generation, self.member_id = joined.generation_id, joined.member_id
        assert self.sync(ASSIGNMENT).assignment == ASSIGNMENT

    def ask(self, request: Any, version: int) -> Any:
        clock = self.broker.clock
        came = begun(self.broker, request, version)
        clock.advance(300)
        answer = came()
        assert answer.error_code == Error.NONE, answer
        return answer

    def joining(self, member_id: str) -> JoinGroupRequest:
        protocol = JoinGroupRequest.Protocol(name="range", metadata=SUBSCRIPTION)
        return JoinGroupRequest(
            group_id=self.group_id, member_id=member_id, session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000, protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip

    def sync(self, assignment: bytes = b"") -> Any:
        given = SyncGroupRequest.Assignment(member_id=self.member_id, assignment=assignment)
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id,
            assignments=[given] if assignment else [],
        )  # fmt: skip
        return self.ask(request, 3)

    def beat(self, epoch: int) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id="new", member_epoch=epoch
        )
        if epoch == 0:
            request.topic_partitions, request.rebalance_timeout_ms = [], 30_000
            request.subscribed_topic_names = NAMES[:1]
        return self.ask(request, 1)


def test_no_turn_of_an_upgrade_or_a_downgrade_is_long(broker: WholeBroker) -> None:
    def live(group_id: str) -> None:
        life = Life(broker, group_id)
        assert life.beat(0).member_epoch == life.generation + 1
        joined = life.ask(life.joining(life.member_id), 3)
        life.generation = joined.generation_id
        kept = consumer_protocol.read_assignment(life.sync().assignment)
        assert kept is not None
        assert len(kept.assigned_partitions) >= MANY - 1
        life.beat(-1)  # the last by this protocol: the group is a classic one again
        beat = HeartbeatRequest(
            group_id=group_id, generation_id=life.generation, member_id=life.member_id
        )
        came = begun(broker, beat, 3)
        broker.clock.advance(0)
        assert came().error_code == Error.REBALANCE_IN_PROGRESS

    live("before")  # has code generated
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    clock.begin()
    live("counted")
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
