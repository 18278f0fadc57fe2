"""Requests whose work is counted turn by turn, in calls: the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.env.later import Later
from kafkalite.handlers.call import CloseConnection
from kafkalite.handlers.kept_replies import KeptReplies
from kafkalite.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.whole_broker import WholeBroker, _decoded


def broker_with(names: list[str]) -> WholeBroker:
    """One with these topics, a partition each, and a coordinator of groups."""
    broker = WholeBroker(clock=CountingClock())
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1)
        for name in names
    ]
    broker.ask(CreateTopicsRequest(topics=topics), 7)
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    return broker


def begun(broker: WholeBroker, request: Any, version: int) -> Callable[[], Any]:
    """Has it answered in turns that are counted; what came of it is decoded outside of them."""
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    frame = broker.frame(request, version)
    answer = clock.turn(lambda: broker.broker.dispatcher.answer(frame, broker.connection))

    def came() -> Any:
        outcome = answer.value if isinstance(answer, Later) else answer
        assert not isinstance(outcome, CloseConnection), outcome
        return _decoded(request.API_KEY, version, outcome)

    return came


def asked(broker: WholeBroker, request: Any, version: int, within_ms: int = 0) -> Any:
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    begun(broker, request, version)  # the first has code generated and modules imported
    clock.advance(within_ms)
    broker.context.kept_replies = KeptReplies()
    clock.begin()
    came = begun(broker, request, version)
    clock.advance(within_ms)
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
    return came()


def counted(broker: WholeBroker, request: Any, version: int) -> Any:
    """The answer to what is asked once, for which no turn did more than one may."""
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    clock.begin()
    came = begun(broker, request, version)
    clock.advance(0)
    assert clock.heaviest.calls < MOST_CALLS, clock.heaviest
    return came()
