"""What a coordinator's writes wait for, and what others give: whatever comes late still comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kafkalite.coordinators.effects import Effects, Producer, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.runtime import APPEND_RETRY_MS, Runtime
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.fakes import FakePartition

A_NUMBER = "a number"
STORAGE = KafkaError(Error.KAFKA_STORAGE_ERROR)


@dataclass
class Send(Event[Any]):
    """Writes one record, and sends an errand after it."""

    errand: str


@dataclass
class Note(Event[Any]):
    """Writes a number, which others give."""

    number: int | None = None


@dataclass
class NoteLater(Event[Any]):
    pass


@dataclass
class Notebook:
    """A shard that writes down what it is told."""

    noted: list[bytes | None] = field(default_factory=list)

    def decide(self, event: Any, now_ms: int) -> Effects:
        match event:
            case Send(errand):
                return Effects([Record(b"k", errand.encode())], reply="sent", sends=[errand])
            case Note(None):
                return Effects(needs=A_NUMBER)
            case Note(number):
                return Effects([Record(b"k", str(number).encode())], reply=number)
            case NoteLater():
                return Effects(reply="armed", timers=[Timer("note", 1, Note())])
        raise AssertionError(event)

    def mark(self, event: Any) -> object:
        return len(self.noted)

    def replay(self, record: Record) -> None:
        self.noted.append(record.value)

    def replay_end_transaction(self, producer: Producer, committed: bool) -> None:
        raise AssertionError("nothing here is transactional")

    def loaded(self, now_ms: int) -> Effects:
        return Effects(sends=[f"after {len(self.noted)}"] if self.noted else [])


class World:
    """A runtime whose errands are taken down, and whose numbers the test gives."""

    def __init__(self) -> None:
        env = manual_env()
        assert isinstance(env.clock, ManualClock)
        self.clock = env.clock
        self.partition = FakePartition()
        self.delivered: list[object] = []
        self.asked: list[tuple[Any, Later[Any]]] = []
        self.runtime = Runtime(
            env, self.partition, Notebook, deliver=self.delivered.append, supply=self._supply
        )
        self.runtime.load()

    def _supply(self, needs: Any, event: Any) -> Later[Any]:
        assert needs == A_NUMBER
        self.asked.append((event, Later()))
        return self.asked[-1][1]

    def give(self, value: int | KafkaError) -> None:
        _, later = self.asked.pop(0)
        later.resolve(value if isinstance(value, KafkaError) else Note(value))

    @property
    def noted(self) -> list[bytes | None]:
        shard = self.runtime.shard
        assert isinstance(shard, Notebook)
        return shard.noted


@pytest.fixture
def world() -> World:
    return World()


def code_of(answer: Later[Any]) -> Error:
    assert isinstance(answer.value, KafkaError)
    return Error(answer.value.code)


# --- what follows a commit ------------------------------------------------------------------------


def test_an_errand_is_sent_when_its_record_is_committed(world: World) -> None:
    world.partition.is_lagging = True
    world.runtime.submit(Send("one"))
    assert world.delivered == []
    world.partition.commit()
    assert world.delivered == ["one"]


@pytest.mark.parametrize("late_ms", [0, 1, 3_600_000])
def test_an_errand_is_sent_however_late_its_record_is_committed(
    world: World, late_ms: int
) -> None:
    world.partition.is_lagging = True
    answers = [world.runtime.submit(Send("one")), world.runtime.submit(Send("two"))]
    world.clock.advance(world.runtime.append_timeout_ms + late_ms)
    assert [code_of(each) for each in answers] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert world.delivered == []
    world.partition.commit()
    assert world.delivered == ["one", "two"]


def test_a_write_behind_a_late_one_has_its_own_time(world: World) -> None:
    world.partition.is_lagging = True
    world.runtime.submit(Send("late"))
    world.clock.advance(world.runtime.append_timeout_ms - 1)
    second = world.runtime.submit(Send("second"))
    world.clock.advance(world.runtime.append_timeout_ms - 1)
    assert not second.is_resolved
    world.clock.advance(1)
    assert code_of(second) == Error.COORDINATOR_NOT_AVAILABLE


def test_an_errand_of_a_shard_that_was_loaded_waits_for_the_commit_too(world: World) -> None:
    world.partition.is_lagging = True
    world.runtime.submit(Send("one"))
    world.runtime.load()
    assert world.delivered == []
    world.partition.commit()
    assert world.delivered == ["after 1"]


def test_who_waits_on_a_partition_that_is_lost_is_told(world: World) -> None:
    world.partition.is_lagging = True
    answer = world.runtime.submit(Send("one"))
    world.partition.end(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))
    assert code_of(answer) == Error.NOT_COORDINATOR
    assert world.delivered == []


def test_who_comes_after_others_were_told_that_it_takes_too_long_hears_of_the_commit(
    world: World,
) -> None:
    world.partition.is_lagging = True
    world.runtime.submit(Send("one"))
    late = world.runtime.submit(NoteLater())
    world.clock.advance(world.runtime.append_timeout_ms)
    assert code_of(late) == Error.COORDINATOR_NOT_AVAILABLE
    answer = world.runtime.submit(NoteLater())
    world.partition.commit()
    assert answer.value == "armed"
    assert world.delivered == ["one"]


# --- what others give -----------------------------------------------------------------------------


def test_an_event_that_lacks_something_is_decided_once_it_has_it(world: World) -> None:
    answer = world.runtime.submit(Note())
    assert world.noted == []
    assert not answer.is_resolved
    world.give(7)
    assert answer.value == 7
    assert world.noted == [b"7"]


def test_others_go_on_while_an_event_lacks_something(world: World) -> None:
    late = world.runtime.submit(Note())
    assert world.runtime.submit(Note(1)).value == 1
    world.give(2)
    assert late.value == 2
    assert world.noted == [b"1", b"2"]


def test_what_cannot_be_given_is_told(world: World) -> None:
    answer = world.runtime.submit(Note())
    world.give(STORAGE)
    assert code_of(answer) == Error.NOT_COORDINATOR
    assert world.noted == []


def test_a_timer_whose_event_was_given_nothing_is_armed_again(world: World) -> None:
    world.runtime.submit(NoteLater())
    world.clock.advance(1)
    world.give(STORAGE)
    assert not world.asked
    world.clock.advance(APPEND_RETRY_MS)
    world.give(3)
    assert world.noted == [b"3"]


def test_who_waits_for_what_is_not_given_by_a_mistake_is_told(world: World) -> None:
    answer = world.runtime.submit(Note())
    _, later = world.asked.pop()
    later.fail(ZeroDivisionError())
    assert code_of(answer) == Error.UNKNOWN_SERVER_ERROR
    world.runtime.supply = lambda *_: later.value
    assert code_of(world.runtime.submit(Note())) == Error.UNKNOWN_SERVER_ERROR
    assert world.noted == []


@pytest.mark.parametrize("is_loaded_again", [True, False])
def test_what_is_given_to_a_dropped_shard_is_ignored(world: World, is_loaded_again: bool) -> None:
    answer = world.runtime.submit(Note())
    world.runtime.unload()
    if is_loaded_again:
        world.runtime.load()
    assert code_of(answer) == Error.NOT_COORDINATOR
    world.give(7)
    assert world.partition.log.log_end_offset == 0


# --- what others do wrong -------------------------------------------------------------------------


def test_what_somebody_makes_of_an_answer_is_no_matter_of_who_comes_next(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(answer: Any) -> None:
        raise ZeroDivisionError(answer)

    world.partition.is_lagging = True
    world.runtime.submit(Send("one")).then(failing)
    behind = world.runtime.submit(Send("two"))
    world.partition.commit()
    assert behind.value == "sent"
    assert world.delivered == ["one", "two"]
    assert "ZeroDivisionError" in caplog.text


def test_an_errand_that_fails_keeps_none_behind_it(world: World) -> None:
    world.runtime.deliver = lambda errand: world.delivered.append(1 // len(str(errand)))
    assert world.runtime.submit(Send("")).value == "sent"
    assert world.runtime.submit(Send("x")).value == "sent"
    assert world.delivered == [1]


def test_all_are_told_of_the_end_whatever_one_of_them_does(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(answer: Any) -> None:
        raise ZeroDivisionError(answer)

    world.partition.is_lagging = True
    world.runtime.submit(Send("one")).then(failing)
    second = world.runtime.submit(Send("two"))
    world.runtime.unload()
    assert code_of(second) == Error.NOT_COORDINATOR
    assert "ZeroDivisionError" in caplog.text
