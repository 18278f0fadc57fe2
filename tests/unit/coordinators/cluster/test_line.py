"""Every event in line is answered once, whatever fails, and the line goes on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kafkalite.coordinators.cluster.line import Line
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.slicing import STEPS_AT_ONCE, Slices, Steps
from kafkalite.protocol.errors import Error, KafkaError

STOPPING = KafkaError(Error.NOT_CONTROLLER)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Deciding:
    """Decides events by name; some of them go wrong."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.line: Line[str] = Line(Slices(self.clock), self.enact, self.enacted)
        self.decided: list[str] = []
        self.answers: list[tuple[str, Any]] = []

    def submit(self, *events: str) -> None:
        for event in events:
            self.line.submit(event).then(partial(self.told, event))
        self.clock.advance(0)

    def told(self, event: str, answer: Any) -> None:
        code = answer.code if isinstance(answer, KafkaError) else answer
        self.answers.append((event, code))
        if event == "ill received":
            raise ValueError(event)

    def enact(self, event: str) -> Steps[str]:
        for _ in range(2 * STEPS_AT_ONCE):
            yield
        if event == "ill decided":
            raise ValueError(event)
        if event == "last":
            self.line.stop(STOPPING)
        self.decided.append(event)
        return event

    def enacted(self, event: str, answer: Later[Any]) -> None:
        if event == "ill followed":
            raise ValueError(event)
        answer.resolve(event)


@pytest.mark.parametrize("ill", ["ill decided", "ill followed", "ill received"])
def test_what_goes_wrong_about_one_event_is_told_and_the_line_goes_on(ill: str) -> None:
    deciding = Deciding()
    deciding.submit(ill, "next")
    answer = ill if ill == "ill received" else Error.UNKNOWN_SERVER_ERROR
    assert deciding.answers == [(ill, answer), ("next", "next")]
    deciding.submit("later")
    assert deciding.answers[2:] == [("later", "later")]


def test_nothing_is_decided_after_the_end_and_who_asks_is_told() -> None:
    deciding = Deciding()
    deciding.line.stop(STOPPING)
    deciding.submit("late")
    assert deciding.answers == [("late", Error.NOT_CONTROLLER)]
    assert deciding.decided == []


def test_an_event_whose_own_step_brings_the_end_is_answered_once() -> None:
    deciding = Deciding()
    deciding.submit("last", "next")
    assert deciding.answers == [("last", STOPPING.code), ("next", STOPPING.code)]
    assert deciding.decided == ["last"]


def test_who_makes_a_mistake_of_a_refusal_keeps_nobody_else_waiting() -> None:
    deciding = Deciding()
    line = deciding.line
    line.hold()
    late = [line.submit("late") for _ in range(2)]
    late[0].then(partial(deciding.told, "ill received"))
    deciding.submit("in time")
    with pytest.raises(ValueError, match="ill received"):
        line.refuse(late, STOPPING)
    assert [each.value for each in late] == [STOPPING, STOPPING]
    line.resume()
    deciding.clock.advance(0)
    assert deciding.answers[1:] == [("in time", "in time")]
    line.hold()
    last = [line.submit("last") for _ in range(2)]
    last[0].then(partial(deciding.told, "ill received"))
    with pytest.raises(ValueError, match="ill received"):
        line.stop(STOPPING)
    assert [each.value for each in last] == [STOPPING, STOPPING]
