"""What the simulation's producers do with what a sound broker may tell them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import InitProducerIdResponse, ProduceResponse
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.history import History, Partition
from kafkalite.sim.producers import (
    IN_FLIGHT,
    Fenced,
    IdempotentProducer,
    Producer,
    TransactionalProducer,
)

PLACE = ("words", 0)
P = TypeVar("P", bound=Producer)


def made(kind: type[P], history: History, is_ending: Callable[[], bool] = lambda: False) -> P:
    return kind("one", Random(1), lambda: 0, history, [PLACE], is_ending)


def answer(code: Error) -> ProduceResponse:
    partition = ProduceResponse.PartitionResponse(index=0, error_code=code)
    return ProduceResponse(responses=[ProduceResponse.Response(partition_responses=[partition])])


def play(script: Script, *answers: list[Any]) -> None:
    """Answers what the script asks, one after the other; the end of the answers is its end."""
    waiting = list(answers)
    step = next(script)
    while waiting or isinstance(step, Sleep):
        step = script.send(waiting.pop(0) if isinstance(step, Ask) else None)
    script.close()


@pytest.mark.parametrize("fading", [{PLACE}, set()])
def test_a_producer_that_a_log_forgot_is_not_refused(fading: set[Partition]) -> None:
    history = History(fading=fading)
    producer = made(TransactionalProducer, history)
    producer.identity, producer.sequences, producer.begun = (1, 0), {PLACE: 3}, {PLACE}
    with pytest.raises(Fenced):
        play(producer.write(PLACE, [b"v"]), [answer(Error.OUT_OF_ORDER_SEQUENCE_NUMBER)])
    assert bool(history.complaints) is not bool(fading)


class Chosen(Random):
    """Every flight has so many batches, of one record each."""

    def __init__(self, batches: int) -> None:
        super().__init__(1)
        self._batches = batches

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self._batches if stop == IN_FLIGHT + 1 else start


def flight(*codes: Error) -> History:
    """What is known after a first flight of so many batches, when the first is sent again."""
    history, identity = History(), InitProducerIdResponse(producer_id=1, producer_epoch=0)
    producer = made(IdempotentProducer, history)
    producer.random = Chosen(len(codes))
    sent = [answer(code) for code in codes]
    last = [answer(Error.OUT_OF_ORDER_SEQUENCE_NUMBER) for _ in codes]
    is_begun_anew = codes[0] is Error.NOT_LEADER_OR_FOLLOWER and Error.NONE in codes
    play(producer.script(), [identity], sent, [identity] if is_begun_anew else last)
    return history


def test_a_flight_whose_middle_was_first_is_no_fault_of_the_broker() -> None:
    history = flight(Error.NOT_LEADER_OR_FOLLOWER, Error.NONE)
    assert history.complaints == []
    assert history.counts == {"flights whose middle was first at a new leader": 1}


def test_any_other_gap_is() -> None:
    assert flight(Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_LEADER_OR_FOLLOWER).complaints
    assert flight(Error.REQUEST_TIMED_OUT, Error.NONE).complaints
