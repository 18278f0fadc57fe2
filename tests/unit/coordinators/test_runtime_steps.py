"""What a shard decides in steps, and what it writes in slices: the others wait, and nobody sees
half of it."""

from __future__ import annotations

import heapq
from collections import Counter as Numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from kafkalite.coordinators import by_turns
from kafkalite.coordinators.by_turns import AT_ONCE, PER_STEP
from kafkalite.coordinators.effects import Effects, Producer, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.loading import RECORDS_PER_STEP, STEPS_AT_ONCE
from kafkalite.coordinators.runtime import BUSY_TIMER_MS, Runtime
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock, ManualTimer
from kafkalite.env.later import Later
from kafkalite.env.slicing import STEPS_PER_SLICE, InSteps, Steps
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.fakes import FakePartition

MANY = 5_000
STEPS = 3 * STEPS_PER_SLICE


@dataclass
class Write(Event[Any]):
    """So many records, decided in so many steps; something may go wrong after them."""

    records: int = MANY
    steps: int = STEPS
    failure: Exception | None = None
    atomic: bool = True


@dataclass
class Count(Event[Any]):
    pass


@dataclass
class WriteLater(Event[Any]):
    delay_ms: int
    timer: str = "count"


@dataclass
class Send(Event[Any]):
    """So many errands."""

    errands: int


@dataclass
class Counter:
    """Its state is how many records it has seen, and how many a transaction has pending."""

    seen: int = 0
    pending: int = 0
    counts: list[int] = field(default_factory=list)

    def decide(self, event: Any, now_ms: int) -> Effects | InSteps:
        match event:
            case Write():
                return InSteps(self._write(event))
            case WriteLater(delay_ms, timer):
                return Effects(reply="armed", timers=[Timer(timer, delay_ms, Count())])
            case Send(errands):
                return Effects(reply="sent", sends=list(range(errands)))
        self.counts.append(self.seen)
        return Effects(reply=self.seen)

    def _write(self, event: Write) -> Steps[Effects]:
        for _ in range(event.steps):
            yield
        if event.failure is not None:
            raise event.failure
        records = [Record(b"k", b"v") for _ in range(event.records)]
        return Effects(records, reply="written", atomic=event.atomic)

    def mark(self, event: Any) -> object:
        return self.seen

    def replay(self, record: Record) -> None:
        self.seen += 1
        self.pending += record.producer is not None

    def replay_end_transaction(self, producer: Producer, committed: bool) -> Steps[None]:
        for _ in range(STEPS):
            yield
        self.pending = 0

    def loaded(self, now_ms: int) -> Effects:
        return Effects()


class TurningClock(ManualClock):
    """One callback at a time, each a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        def fire() -> None:
            self.turns += 1
            callback()

        return super().call_later(delay_ms, fire)

    def turn(self) -> None:
        if self.next_due_ms() == 0:
            timer = heapq.heappop(self._timers)[2]
            assert timer.callback is not None
            timer.callback()


class World:
    def __init__(self) -> None:
        self.clock = TurningClock()
        self.env = manual_env(clock=self.clock)
        self.partition = FakePartition()
        self.runtime = self.another(self.partition)

    def another(self, partition: FakePartition) -> Runtime:
        runtime = Runtime(self.env, partition, Counter)
        runtime.load()
        return runtime

    @property
    def shard(self) -> Counter:
        assert isinstance(self.runtime.shard, Counter)
        return self.runtime.shard

    def until_half_replayed(self) -> None:
        for _ in range(1_000):
            if self.shard.seen:
                break
            self.clock.turn()
        assert 0 < self.shard.seen < MANY == self.partition.log.log_end_offset


@pytest.fixture
def world() -> World:
    return World()


def code(later: Later[Any]) -> Any:
    assert isinstance(later.value, KafkaError)
    return later.value.code


def test_what_is_asked_meanwhile_sees_all_of_it(world: World) -> None:
    written = world.runtime.submit(Write())
    counted = world.runtime.submit(Count())
    for _ in range(10):
        world.clock.turn()
        assert not counted.is_resolved
    world.clock.advance(0)
    assert written.value == "written"
    assert world.shard.counts == [MANY]


@pytest.mark.parametrize("atomic", [True, False])
def test_no_turn_replays_more_than_a_slice(world: World, atomic: bool) -> None:
    world.runtime.submit(Write(atomic=atomic))
    seen = 0
    for _ in range(10_000):
        if not len(world.env.slices):
            break
        world.clock.turn()
        assert world.shard.seen - seen <= MANY // 4
        seen = world.shard.seen
    assert world.shard.seen == MANY
    assert len(world.partition.log.batches) == (1 if atomic else 5)


def test_another_shard_is_served_meanwhile(world: World) -> None:
    other = world.another(FakePartition())
    written = world.runtime.submit(Write())
    world.clock.turn()
    assert other.submit(Count()).value == 0
    assert not written.is_resolved
    world.clock.advance(0)
    assert written.value == "written"


def test_a_timer_that_is_due_meanwhile_waits(world: World) -> None:
    world.runtime.submit(WriteLater(0))
    world.runtime.submit(Write())
    world.clock.advance(BUSY_TIMER_MS)
    assert world.shard.counts == [MANY]


def test_a_timer_that_is_due_meanwhile_may_be_armed_anew_by_what_came_before(world: World) -> None:
    """As the session of a member whose heartbeat waits."""
    world.runtime.submit(WriteLater(5))
    world.runtime.submit(Write())
    world.runtime.submit(WriteLater(1_000))
    world.clock.turn()
    world.clock.spend(6)
    world.clock.advance(900)
    assert world.shard.counts == []
    world.clock.advance(200)
    assert world.shard.counts == [MANY]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (KafkaError(Error.ILLEGAL_GENERATION), Error.ILLEGAL_GENERATION),
        (ValueError("a planted bug"), Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_goes_wrong_in_the_middle_changes_nothing(
    world: World, failure: Exception, expected: Error
) -> None:
    refused = world.runtime.submit(Write(failure=failure))
    written = world.runtime.submit(Write())
    before = world.shard
    world.clock.advance(0)
    assert code(refused) == expected
    assert written.value == "written"
    assert world.shard is before
    assert world.partition.log.log_end_offset == world.shard.seen == MANY


def test_an_append_that_fails_changes_nothing(world: World) -> None:
    world.partition.failures.append(KafkaError(Error.NOT_ENOUGH_REPLICAS))
    refused = world.runtime.submit(Write())
    counted = world.runtime.submit(Count())
    world.clock.advance(0)
    assert code(refused) == Error.COORDINATOR_NOT_AVAILABLE
    assert counted.value == 0


def test_a_batch_that_is_too_large_changes_nothing(world: World) -> None:
    world.partition.log.config.max_message_bytes = 1_000
    refused = world.runtime.submit(Write())
    world.clock.advance(0)
    assert code(refused) == Error.UNKNOWN_SERVER_ERROR
    assert world.partition.log.log_end_offset == world.shard.seen == 0


@pytest.mark.parametrize("is_written", [False, True])
def test_a_stop_in_the_middle_answers_and_does_no_more(world: World, is_written: bool) -> None:
    written = world.runtime.submit(Write())
    counted = world.runtime.submit(Count())
    world.clock.turn()
    if is_written:
        world.until_half_replayed()
    world.runtime.unload()
    assert code(written) == code(counted) == Error.NOT_COORDINATOR
    assert len(world.env.slices) == 0
    world.clock.advance(0)
    in_log = MANY if is_written else 0
    assert world.partition.log.log_end_offset == in_log
    world.runtime.load()
    world.clock.advance(0)
    assert world.shard.seen == in_log


def test_a_bug_in_the_middle_of_a_replay_loads_the_log_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(shard: Counter, record: Record) -> None:
        assert record.offset < MANY // 2, "a planted bug"
        shard.seen += 1

    written = world.runtime.submit(Write())
    with monkeypatch.context() as patch:
        patch.setattr(Counter, "replay", fail)
        while not written.is_resolved:
            world.clock.turn()
    assert code(written) == Error.NOT_COORDINATOR
    world.clock.advance(10_000)
    assert world.runtime.submit(Count()).value == MANY


def test_the_end_of_a_large_transaction_is_seen_whole(world: World) -> None:
    ended = world.runtime.end_transaction(Producer(1, 0), 0, True)
    counted = world.runtime.submit(Count())
    world.clock.turn()
    assert not ended.is_resolved
    assert not counted.is_resolved
    world.clock.advance(0)
    assert ended.value is None
    assert counted.value == 0


def seen_by(runtime: Runtime) -> int:
    assert isinstance(runtime.shard, Counter)
    return runtime.shard.seen


def test_one_large_batch_loads_in_steps(world: World) -> None:
    """A turn replays no more than a slice of it, however it was written."""
    world.runtime.submit(Write())
    world.clock.advance(0)
    assert len(world.partition.log.batches) == 1
    again = world.another(world.partition)
    assert seen_by(again) == STEPS_AT_ONCE * RECORDS_PER_STEP
    assert code(again.submit(Count())) == Error.COORDINATOR_LOAD_IN_PROGRESS
    world.clock.advance(0)
    assert again.submit(Count()).value == MANY


def test_a_load_that_is_given_up_goes_no_further(world: World) -> None:
    world.runtime.submit(Write())
    world.clock.advance(0)
    again = world.another(world.partition)
    shard = again.shard
    loaded = seen_by(again)
    again.unload()
    assert len(world.env.slices) == 0
    world.clock.advance(0)
    assert isinstance(shard, Counter)
    assert 0 < shard.seen == loaded < MANY


# --- very many in one moment ----------------------------------------------------------------------

MOST_PER_TURN = AT_ONCE + STEPS_PER_SLICE * PER_STEP


def decided_by_turn(world: World) -> Numbers[int]:
    """How many events are decided in each turn from now on."""
    found: Numbers[int] = Numbers()
    decide = world.shard.decide

    def noted(event: Any, now_ms: int) -> Effects | InSteps:
        found[world.clock.turns] += 1
        return decide(event, now_ms)

    setattr(world.shard, "decide", noted)  # noqa: B010 - of this one
    return found


def noted(told: list[int], number: int, _: object) -> None:
    told.append(number)


def test_what_waited_for_a_long_event_has_its_turn_some_at_a_time_and_in_order(
    world: World,
) -> None:
    world.runtime.submit(Write())
    told: list[int] = []
    for number in range(MANY):
        world.runtime.submit(Count()).then(partial(noted, told, number))
    decided = decided_by_turn(world)
    world.clock.advance(0)
    assert told == list(range(MANY))
    assert sum(decided.values()) == MANY
    assert max(decided.values()) <= MOST_PER_TURN


def test_who_comes_while_many_have_their_turn_comes_behind_them(world: World) -> None:
    world.runtime.submit(Write())
    before = [world.runtime.submit(Count()) for _ in range(MANY)]
    while not before[0].is_resolved:
        world.clock.turn()
    assert not before[-1].is_resolved
    late = world.runtime.submit(Count())
    is_told_at_once = late.is_resolved
    while not late.is_resolved:
        world.clock.turn()
    assert not is_told_at_once
    assert all(each.is_resolved for each in before)


def test_who_waits_when_a_shard_is_given_up_is_told_some_at_a_time(world: World) -> None:
    world.runtime.submit(Write())
    told: Numbers[int] = Numbers()
    for _ in range(MANY):
        world.runtime.submit(Count()).then(lambda _: told.update([world.clock.turns]))
    world.runtime.unload()
    assert 0 < told.total() < MANY
    world.clock.advance(0)
    assert told.total() == MANY
    assert max(told.values()) <= MOST_PER_TURN


def test_a_timer_that_is_due_while_many_have_their_turn_may_be_armed_anew_by_one_of_them(
    world: World,
) -> None:
    world.runtime.submit(WriteLater(5))
    world.runtime.submit(Write())
    before = [world.runtime.submit(Send(0)) for _ in range(MANY)]
    world.runtime.submit(WriteLater(1_000))
    while not before[0].is_resolved:
        world.clock.turn()
    assert not before[-1].is_resolved
    world.clock.spend(6)
    world.clock.advance(900)
    assert all(each.is_resolved for each in before)
    assert world.shard.counts == []
    world.clock.advance(200)
    assert world.shard.counts == [MANY]


def test_a_timer_does_not_wait_for_a_line_that_never_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_turns, "MOST_BEFORE_TIMERS", MANY // 2)
    world.runtime.submit(WriteLater(5))
    world.runtime.submit(Write())
    before = [world.runtime.submit(Send(0)) for _ in range(MANY)]
    while not before[MANY // 2 + MOST_PER_TURN].is_resolved:
        world.clock.turn()
    order: list[type[Any]] = []
    decide = world.shard.decide

    def kept(event: Any, now_ms: int) -> Effects | InSteps:
        order.append(type(event))
        return decide(event, now_ms)

    monkeypatch.setattr(world.shard, "decide", kept)
    world.clock.spend(6)
    world.clock.advance(0)
    assert Count in order
    assert order[-1] is Send


def test_timers_that_are_due_in_one_moment_are_met_some_at_a_time(world: World) -> None:
    for number in range(MANY):
        world.runtime.submit(WriteLater(5, f"timer {number}"))
    decided = decided_by_turn(world)
    world.clock.advance(5)
    assert sum(decided.values()) == len(world.shard.counts) == MANY
    assert max(decided.values()) <= MOST_PER_TURN


def test_another_is_served_between_timers_that_are_due(world: World) -> None:
    for number in range(MANY):
        world.runtime.submit(WriteLater(5, f"timer {number}"))
    world.clock.spend(5)
    world.clock.turn()
    met = len(world.shard.counts)
    assert 0 < met < MANY
    assert world.runtime.submit(Count()).is_resolved
    world.clock.advance(0)
    assert len(world.shard.counts) == MANY + 1


def test_a_stop_between_timers_that_are_due_meets_no_more(world: World) -> None:
    for number in range(MANY):
        world.runtime.submit(WriteLater(5, f"timer {number}"))
    shard = world.shard
    world.clock.spend(5)
    world.clock.turn()
    met = len(shard.counts)
    world.runtime.unload()
    world.clock.advance(10)
    assert len(shard.counts) == met
    assert world.clock.next_due_ms() is None


def test_errands_of_one_event_go_out_some_at_a_time(world: World) -> None:
    sent: Numbers[int] = Numbers()

    def deliver(_: object) -> None:
        sent[world.clock.turns] += 1

    world.runtime.deliver = deliver
    assert world.runtime.submit(Send(MANY)).value == "sent"
    world.clock.advance(0)
    assert sum(sent.values()) == MANY
    assert max(sent.values()) <= MOST_PER_TURN
