"""What requests have under way ends with an answer, also when it fails."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import STEPS_AT_ONCE, STEPS_PER_SLICE, Slices, Steps
from kafkalite.handlers.long_work import LongWork
from kafkalite.server.connection_info import ConnectionInfo

Told = list[Any]


class Peer:
    has_ended = False


def steps(count: int, error: Exception | None = None) -> Steps[str]:
    for _ in range(count):
        yield
    if error is not None:
        raise error
    return "done"


@pytest.mark.parametrize("count", [1, 2 * STEPS_AT_ONCE, 2 * STEPS_PER_SLICE])
def test_a_request_that_fails_by_a_mistake_ends_and_the_next_one_has_its_turn(count: int) -> None:
    clock, told, peer = ManualClock(), Told(), cast(ConnectionInfo, Peer())
    work = LongWork(Slices(clock))

    def ask(asked: Steps[str]) -> None:
        work.of_connection(peer, asked, told.append, lambda: told.append("lost"))
        clock.advance(0)

    with pytest.raises(ValueError, match="a mistake"):
        ask(steps(count, ValueError("a mistake")))
    assert told == ["lost"]
    assert not work.connections
    ask(steps(count))
    assert told == ["lost", "done"]


def test_a_broker_that_stops_in_a_step_of_a_request_tells_it_once() -> None:
    clock, told, peer = ManualClock(), Told(), cast(ConnectionInfo, Peer())
    work = LongWork(Slices(clock))

    def stopping() -> Steps[str]:
        yield from steps(2 * STEPS_AT_ONCE)
        work.stop()
        return "done"

    work.of_connection(peer, stopping(), told.append, lambda: told.append("lost"))
    clock.advance(0)
    assert told == ["lost"]
    assert not work.connections
