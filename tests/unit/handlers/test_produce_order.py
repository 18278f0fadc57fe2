"""What a transactional producer sends is appended in the order in which it came, however long the
transaction's coordinator takes to answer for one of its requests."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.later import Later
from kafkalite.handlers.call import CloseConnection
from kafkalite.handlers.produce_order import ProduceOrder, Step
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

VERSION = 12


class Coordinator:
    """Answers when the test says."""

    def __init__(self, broker: WholeBroker, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Admission, Later[Any]]] = []
        self._really = broker.context.transactions.ask
        patch.setattr(broker.context.transactions, "ask", self._ask)

    def _ask(self, admission: Admission, *, knows_abortable: bool) -> Later[Any]:
        self.asked.append((admission, Later()))
        return self.asked[-1][1]

    def admit(self) -> None:
        admission, asked = self.asked.pop(0)
        assert self._really(admission, knows_abortable=True).value == {}
        asked.resolve({})

    def refuse(self, error: Error) -> None:
        admission, asked = self.asked.pop(0)
        asked.resolve(dict.fromkeys(admission.partitions, KafkaError(error)))


@pytest.fixture
def pair(broker: WholeBroker) -> WholeBroker:
    broker.create("pair", partitions=2)
    return broker


@pytest.fixture
def coordinator(pair: WholeBroker, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    return Coordinator(pair, monkeypatch)


def send(who: Writer, *indexes: int, values: tuple[bytes, ...] = (b"v",)) -> Later[Any]:
    """A batch for each of these partitions, of the next sequence there."""
    partitions = []
    for index in indexes:
        batch = who.batch(*values, topic="pair", index=index)
        partitions.append(ProduceRequest.PartitionData(index=index, records=batch))
        who.sequences["pair", index] = who.sequences.get(("pair", index), 0) + 1
    topic = ProduceRequest.TopicData(name="pair", partition_data=partitions)
    request = ProduceRequest(transactional_id=who.id, acks=-1, timeout_ms=1_000, topic_data=[topic])
    return who.broker.send(request, VERSION)


def codes(answer: Later[Any]) -> list[Error]:
    assert answer.is_resolved, "it is still waiting"
    return [Error(one.error_code) for one in answer.value.responses[0].partition_responses]


def test_who_is_behind_waits_also_where_the_transaction_has_begun(
    pair: WholeBroker, coordinator: Coordinator
) -> None:
    who, other = writer(pair), writer(pair, "other")
    begun = send(who, 0)
    coordinator.admit()
    assert codes(begun) == [Error.NONE]
    first, second, third = send(who, 0, 1), send(who, 0), send(who, 1)
    assert not second.is_resolved
    stranger = send(other, 0)
    assert [asked.producer_id for asked, _ in coordinator.asked] == [
        who.producer_id, other.producer_id,
    ]  # fmt: skip
    coordinator.admit()
    assert codes(first) == [Error.NONE, Error.NONE]
    assert codes(second) == codes(third) == [Error.NONE]
    assert not stranger.is_resolved
    coordinator.admit()
    assert codes(stranger) == [Error.NONE]
    assert codes(send(who, 0)) == [Error.NONE]
    assert not coordinator.asked


def test_each_has_its_own_answer_from_the_coordinator(
    pair: WholeBroker, coordinator: Coordinator
) -> None:
    who = writer(pair)
    first, second = send(who, 0), send(who, 1)
    assert len(coordinator.asked) == 1
    coordinator.refuse(Error.NOT_ENOUGH_REPLICAS)
    assert codes(first) == [Error.NOT_ENOUGH_REPLICAS]
    assert not second.is_resolved
    coordinator.admit()
    assert codes(second) == [Error.NONE]


@pytest.mark.parametrize("why", [Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_while_the_coordinator_cannot_tell_producers_are_sure_to_ask_again(
    pair: WholeBroker, coordinator: Coordinator, why: Error
) -> None:
    came = send(writer(pair), 0)
    coordinator.refuse(why)
    assert codes(came) == [Error.NOT_ENOUGH_REPLICAS]


@pytest.mark.pure  # it takes the place of something compiled
def test_a_mistake_once_a_large_batch_was_looked_at_is_its_answer(
    pair: WholeBroker, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a planted mistake")

    came = send(writer(pair), 0, values=tuple(b"v" * (number % 3) for number in range(20_000)))
    coordinator.admit()
    assert not came.is_resolved
    monkeypatch.setattr("kafkalite.handlers.produce._appended", fail)
    pair.clock.advance(0)
    assert isinstance(came.value, CloseConnection)


@pytest.mark.pure  # it takes the place of something compiled
def test_a_mistake_holds_nobody_up(
    pair: WholeBroker, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = writer(pair)
    first, second, third = send(who, 0), send(who, 1), send(who, 1)

    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("this never happens")

    with monkeypatch.context() as patched:
        patched.setattr("kafkalite.handlers.produce._append_all", broken)
        coordinator.admit()
    with monkeypatch.context() as patched:
        patched.setattr("kafkalite.handlers.produce.admit", broken)
        coordinator.admit()
    assert isinstance(first.value, CloseConnection)
    assert codes(second) == [Error.NONE]
    assert isinstance(third.value, CloseConnection)
    assert codes(send(who, 1)) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]  # without the third


def test_many_that_wait_go_on_without_recursion() -> None:
    order, done = ProduceOrder(), Done()
    order.enter(7, done.step(-1, is_through=False))
    for number in range(10_000):
        order.enter(7, done.step(number))
    order.enter(8, done.step(-8))  # of another producer
    assert done.numbers == [-1, -8]
    order.over(7)
    assert done.numbers == [-1, -8, *range(10_000)]
    assert not order.is_waiting(7)


def test_one_that_fails_lets_the_next_go_on(caplog: pytest.LogCaptureFixture) -> None:
    order, done = ProduceOrder(), Done()

    def fail() -> bool:
        raise ZeroDivisionError

    order.enter(7, done.step(0, is_through=False))
    order.enter(7, fail)
    order.enter(7, done.step(1, is_through=False))
    order.enter(7, done.step(2))
    order.over(7)
    assert done.numbers == [0, 1]
    order.over(7)
    assert done.numbers == [0, 1, 2]
    assert not order.is_waiting(7)


class Done:
    """What was done, by number."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def step(self, number: int, *, is_through: bool = True) -> Step:
        def act() -> bool:
            self.numbers.append(number)
            return is_through

        return act
