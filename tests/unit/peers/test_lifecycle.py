"""A broker's place in its cluster, kept through refusals, and what it asks in which life."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.coordinators.cluster.brokers import AllocateProducerIds, AssignDirectories
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.peers.lifecycle import Lifecycle, Times
from kafkalite.peers.wire_controller import WireController
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AllocateProducerIdsResponse,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

TIMES = Times(heartbeat_ms=500, session_ms=2_000, registration_ms=5_000)
FOREVER_MS = 3_600_000


class Asked:
    """A channel to a controller, whose answers the test gives."""

    def __init__(self) -> None:
        self.open: list[tuple[Any, Later[Any]]] = []

    def ask(self, request: Any, versions: range) -> Later[Any]:
        self.open.append((request, Later()))
        return self.open[-1][1]

    def next(self, kind: type) -> Any:
        [(request, _)] = self.open
        assert type(request) is kind
        return request

    def answer(self, response: Any) -> None:
        [(_, later)] = self.open
        self.open.clear()
        later.resolve(response)


class Member:
    def __init__(self) -> None:
        self.clock, self.channel = ManualClock(), Asked()
        self.lifecycle = Lifecycle(self.clock, self.channel, TIMES, lambda: 7)  # type: ignore[arg-type]

    def enter(self, epoch: int) -> None:
        self.channel.next(BrokerRegistrationRequest)
        self.channel.answer(BrokerRegistrationResponse(broker_epoch=epoch))
        self.clock.advance(0)
        assert self.channel.next(BrokerHeartbeatRequest).broker_epoch == epoch

    def is_forgotten(self) -> None:
        self.channel.answer(BrokerHeartbeatResponse(error_code=Error.BROKER_ID_NOT_REGISTERED))


@pytest.fixture
def member() -> Iterator[Member]:
    made = Member()
    yield made
    made.lifecycle.stop()


@pytest.mark.parametrize(
    "refusal", [Error.UNSUPPORTED_VERSION, Error.INVALID_REGISTRATION, Error.NOT_CONTROLLER]
)
def test_a_member_that_is_not_taken_back_asks_until_it_is(
    member: Member, refusal: Error, caplog: pytest.LogCaptureFixture
) -> None:
    member.lifecycle.register(BrokerRegistrationRequest(broker_id=1))
    member.enter(5)
    member.is_forgotten()
    for _ in range(FOREVER_MS // 100_000):
        member.channel.next(BrokerRegistrationRequest)
        member.channel.answer(BrokerRegistrationResponse(error_code=refusal))
        assert member.channel.open == []
        member.clock.advance(TIMES.heartbeat_ms)
    assert sum(refusal.name in line for line in caplog.text.splitlines()) == 1
    member.enter(9)


def test_each_kind_of_trouble_is_told(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member.lifecycle.register(BrokerRegistrationRequest(broker_id=1))
    member.enter(5)
    member.channel.answer(BrokerHeartbeatResponse(error_code=Error.NOT_CONTROLLER))
    member.clock.advance(TIMES.heartbeat_ms)
    member.is_forgotten()
    member.channel.answer(BrokerRegistrationResponse(error_code=Error.UNSUPPORTED_VERSION))
    assert "is heard of later: NOT_CONTROLLER" in caplog.text
    assert "registers later: UNSUPPORTED_VERSION" in caplog.text


@pytest.mark.parametrize("refusal", [Error.STALE_BROKER_EPOCH, Error.BROKER_ID_NOT_REGISTERED])
@pytest.mark.parametrize("event", [AllocateProducerIds(1), AssignDirectories(1, {})])
def test_what_was_asked_in_an_earlier_life_is_asked_in_the_next(
    member: Member, event: Any, refusal: Error
) -> None:
    asking = Asked()
    controller = WireController(member.clock, Asked(), asking, member.lifecycle)  # type: ignore[arg-type]
    member.lifecycle.epoch = 5
    answer = controller.submit(event)
    is_ids = isinstance(event, AllocateProducerIds)
    response = AllocateProducerIdsResponse if is_ids else AssignReplicasToDirsResponse
    assert asking.open[0][0].broker_epoch == 5
    asking.answer(response(error_code=refusal))
    member.lifecycle.epoch = 9
    member.clock.advance(100)
    assert asking.open[0][0].broker_epoch == 9
    asking.answer(
        AllocateProducerIdsResponse(producer_id_start=1_000, producer_id_len=1_000)
        if is_ids
        else AssignReplicasToDirsResponse()
    )
    assert answer.value == (range(1_000, 2_000) if is_ids else None)
