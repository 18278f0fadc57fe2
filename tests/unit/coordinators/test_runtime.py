"""The order that the runtime keeps, on a shard that only counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kafkalite.coordinators.asked import State
from kafkalite.coordinators.effects import Effects, Failed, Producer, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.loading import RECORDS_PER_STEP, STEPS_AT_ONCE
from kafkalite.coordinators.runtime import APPEND_RETRY_MS, BUSY_TIMER_MS, FAILED_TIMER_MS, Runtime
from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import read_header
from tests.unit.coordinators.fakes import FakePartition


@dataclass
class Add(Event[Any]):
    amount: int
    producer: Producer | None = None


@dataclass
class Get(Event[Any]):
    pass


@dataclass
class AddLater(Event[Any]):
    amount: int
    delay_ms: int | None


@dataclass
class Open(Event[Any]):
    ticket: int


@dataclass
class Close(Event[Any]):
    ticket: int


@dataclass
class Break(Event[Any]):
    in_replay: bool = False
    is_harmless: bool = False
    subject: str = "readers"


@dataclass
class Twice(Event[Any]):
    """Writes one record, answers a ticket, then wants the second event decided in its place."""

    event: Any
    ticket: int = -1
    pause_ms: int | None = None

    def effects(self) -> Effects:
        answers: list[tuple[int, object]] = [(self.ticket, "answered")]
        return Effects(
            [_record(1)], answers=answers, then_decide=self.event, pause_ms=self.pause_ms
        )


@dataclass
class Spread(Event[Any]):
    """Writes so many records of so many bytes, each for itself."""

    sizes: list[int]
    atomic: bool = False

    def effects(self) -> Effects:
        ones = [Record(b"k", b"1".rjust(size, b"0")) for size in self.sizes]
        return Effects(ones, reply="spread", atomic=self.atomic)


@dataclass
class Noted(Event[Any]):
    name: str


@dataclass
class WithOutcome(Event[Any]):
    name: str


@dataclass
class CountingShard:
    """Its state is a sum; transactional amounts count when their transaction commits."""

    total: int = 0
    pending: dict[Producer, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_touched: bool = False

    def decide(self, event: Any, now_ms: int) -> Effects:
        match event:
            case Add(amount, producer):
                if amount == 0:
                    raise KafkaError(Error.INVALID_REQUEST)
                return Effects([_record(amount)], reply=self.total + amount, producer=producer)
            case Get():
                return Effects(reply=self.total)
            case AddLater(amount, delay_ms):
                return Effects(reply="armed", timers=[Timer("add", delay_ms, Add(amount))])
            case Open(ticket):
                return Effects(ticket=ticket)
            case Close(ticket):
                return Effects(reply="closed", answers=[(ticket, "answered")])
            case Break(in_replay, is_harmless):
                self.is_touched = not is_harmless
                assert in_replay, "a planted bug"
                return Effects([Record(b"k", b"bad")], reply=None)
            case Twice() | Spread():
                return event.effects()
            case WithOutcome(name):
                return Effects(
                    [_record(1)], reply="done", on_committed=Noted(name), on_failed=Noted(name)
                )
            case Noted(name):
                self.notes.append(name)
                return Effects()
            case Failed(Noted(name), error):
                self.notes.append(f"{name} failed: {Error(error.code).name}")
                return Effects()
        raise AssertionError(event)

    def mark(self, event: Any) -> object:
        return self.total, self.is_touched

    def replay(self, record: Record) -> None:
        assert record.value is not None
        assert record.offset >= 0
        amount = int(record.value)
        if record.producer is None:
            self.total += amount
        else:
            held = self.pending.get(record.producer, 0)
            self.pending[record.producer] = held + amount

    def replay_end_transaction(self, producer: Producer, committed: bool) -> None:
        amount = self.pending.pop(producer, 0)
        self.total += amount if committed else 0

    def loaded(self, now_ms: int) -> Effects:
        return Effects()


def _record(amount: int) -> Record:
    return Record(b"k", str(amount).encode())


@dataclass
class World:
    env: Env
    clock: ManualClock
    partition: FakePartition
    runtime: Runtime

    def ask(self, event: Any) -> Any:
        later = self.runtime.submit(event)
        assert later.is_resolved
        return later.value

    def code(self, event: Any) -> Any:
        reply = self.ask(event)
        assert isinstance(reply, KafkaError)
        return reply.code


@pytest.fixture
def world() -> World:
    return start(FakePartition())


def start(partition: FakePartition) -> World:
    env = manual_env()
    assert isinstance(env.clock, ManualClock)
    runtime = Runtime(env, partition, CountingShard)
    runtime.load()
    return World(env, env.clock, partition, runtime)


def resolved(*laters: Later[Any]) -> list[bool]:
    return [later.is_resolved for later in laters]


def test_a_write_is_appended_replayed_and_answered(world: World) -> None:
    assert world.ask(Add(3)) == 3
    assert world.ask(Add(4)) == 7
    assert world.partition.high_watermark == 2


def test_a_refusal_is_the_reply_and_changes_nothing(world: World) -> None:
    assert world.code(Add(0)) == Error.INVALID_REQUEST
    assert world.partition.log.log_end_offset == 0
    assert world.ask(Get()) == 0


def test_a_reply_waits_for_the_high_watermark(world: World) -> None:
    world.partition.is_lagging = True
    first, second = world.runtime.submit(Add(1)), world.runtime.submit(Add(1))
    assert resolved(first, second) == [False, False]
    world.partition.commit(1)
    assert resolved(first, second) == [True, False]
    world.partition.commit()
    assert second.value == 2


def test_a_read_waits_behind_the_last_write(world: World) -> None:
    world.partition.is_lagging = True
    world.runtime.submit(Add(5))
    read = world.runtime.submit(Get())
    assert not read.is_resolved
    world.partition.commit()
    assert read.value == 5


def test_a_write_that_is_not_committed_in_time_is_answered_with_an_error(world: World) -> None:
    world.partition.is_lagging = True
    write = world.runtime.submit(Add(1))
    world.clock.advance(world.runtime.append_timeout_ms)
    assert write.value.code == Error.COORDINATOR_NOT_AVAILABLE
    world.partition.commit()
    assert world.ask(Get()) == 1


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
        (Error.INVALID_REQUIRED_ACKS, Error.INVALID_REQUIRED_ACKS),
    ],
)
def test_a_failed_append_changes_nothing_and_is_told(
    world: World, failure: Error, told: Error
) -> None:
    world.partition.failures.append(KafkaError(failure))
    assert world.code(Add(9)) == told
    assert world.ask(Get()) == 0


def test_a_timer_fires_as_an_event(world: World) -> None:
    world.ask(AddLater(2, 100))
    world.clock.advance(99)
    assert world.ask(Get()) == 0
    world.clock.advance(1)
    assert world.ask(Get()) == 2


def test_arming_again_moves_a_timer_and_none_cancels_it(world: World) -> None:
    world.ask(AddLater(2, 100))
    world.ask(AddLater(3, 200))
    world.clock.advance(150)
    assert world.ask(Get()) == 0
    world.clock.advance(50)
    assert world.ask(Get()) == 3
    world.ask(AddLater(4, 10))
    world.ask(AddLater(4, None))
    world.clock.advance(1_000)
    assert world.ask(Get()) == 3


def test_a_timer_whose_append_failed_is_armed_again(world: World) -> None:
    world.ask(AddLater(2, 100))
    world.partition.failures.append(KafkaError(Error.NOT_ENOUGH_REPLICAS))
    world.clock.advance(100)
    assert world.ask(Get()) == 0
    world.clock.advance(APPEND_RETRY_MS)
    assert world.ask(Get()) == 2


def test_the_clock_is_idle_when_nothing_is_due(world: World) -> None:
    world.ask(Add(1))
    assert world.clock.next_due_ms() is None
    world.ask(AddLater(1, 50))
    assert world.clock.next_due_ms() == 50


def test_a_ticket_is_answered_by_a_later_turn(world: World) -> None:
    opened = world.runtime.submit(Open(7))
    assert not opened.is_resolved
    assert world.ask(Close(7)) == "closed"
    assert opened.value == "answered"
    assert world.ask(Close(7)) == "closed"


def test_the_outcome_of_an_append_is_an_event_for_the_shard(world: World) -> None:
    world.partition.is_lagging = True
    write = world.runtime.submit(WithOutcome("first"))
    shard = world.runtime.shard
    assert isinstance(shard, CountingShard)
    assert shard.notes == []
    world.partition.commit()
    assert shard.notes == ["first"]
    assert write.value == "done"
    world.partition.failures.append(KafkaError(Error.KAFKA_STORAGE_ERROR))
    assert world.code(WithOutcome("second")) == Error.NOT_COORDINATOR
    assert shard.notes == ["first", "second failed: NOT_COORDINATOR"]


def test_then_decide_decides_on_the_replayed_state(world: World) -> None:
    assert world.ask(Twice(Add(4))) == 5


def test_a_first_step_answers_whom_it_names_before_the_second_is_decided(world: World) -> None:
    opened = world.runtime.submit(Open(7))
    assert world.ask(Twice(Add(4), ticket=7)) == 5
    assert opened.value == "answered"


def test_long_work_pauses_between_turns_and_only_the_shard_waits_for_it(world: World) -> None:
    world.ask(AddLater(100, 0))
    work = world.runtime.submit(Twice(Add(4), pause_ms=0))
    behind = world.runtime.submit(Get())
    assert resolved(work, behind) == [False, False]
    world.clock.advance(0)
    assert [work.value, behind.value] == [5, 5]
    world.clock.advance(BUSY_TIMER_MS)
    assert world.ask(Get()) == 105


def test_unloading_ends_work_that_pauses(world: World) -> None:
    work = world.runtime.submit(Twice(Add(4), pause_ms=0))
    world.runtime.unload()
    assert work.value.code == Error.NOT_COORDINATOR
    assert world.clock.next_due_ms() is None


@pytest.mark.parametrize("limit", [0, 61, 100, 150, 1_000, 5_000])
def test_records_that_are_each_for_themselves_fit_any_limit(world: World, limit: int) -> None:
    world.partition.log.config.max_message_bytes = limit
    sizes = [1, 20, 900, 3, 3, 3, 50, 2_000, 1, 1]
    assert world.ask(Spread(sizes)) == "spread"
    assert world.ask(Get()) == len(sizes)
    batches = [read_header(batch) for batch in world.partition.log.batches]
    assert all(one.size <= limit or one.last_offset_delta == 0 for one in batches)


def test_records_that_belong_together_and_exceed_the_limit_are_refused_and_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.partition.log.config.max_message_bytes = 1_000
    assert world.code(Spread([400, 400, 400], atomic=True)) == Error.UNKNOWN_SERVER_ERROR
    assert world.ask(Get()) == 0
    assert "3 records that belong together" in caplog.text
    assert "max.message.bytes is 1000; raise it" in caplog.text
    assert world.ask(Spread([400, 400], atomic=True)) == "spread"


def test_what_was_written_before_an_append_failed_counts(world: World) -> None:
    world.partition.log.config.max_message_bytes = 200
    world.partition.failures = [None, KafkaError(Error.NOT_ENOUGH_REPLICAS)]
    assert world.code(Spread([100, 100, 100])) == Error.COORDINATOR_NOT_AVAILABLE
    assert world.ask(Get()) == 1
    assert start(world.partition).ask(Get()) == 1


def test_what_a_reply_submits_in_turn_waits_for_its_place(world: World) -> None:
    seen: list[Any] = []

    def again(reply: Any) -> None:
        seen.append(reply)
        if len(seen) < 3:
            world.runtime.submit(Add(1)).then(again)

    world.runtime.submit(Add(1)).then(again)
    assert seen == [1, 2, 3]


def test_a_restart_replays_the_log(world: World) -> None:
    for amount in (1, 2, 3):
        world.ask(Add(amount))
    assert start(world.partition).ask(Get()) == 6


def test_transactional_records_count_when_their_marker_says_so(world: World) -> None:
    first, second = Producer(1, 0), Producer(2, 0)
    world.ask(Add(10, first))
    world.ask(Add(20, second))
    assert world.ask(Get()) == 0
    assert world.runtime.end_transaction(first, 0, True).value is None
    assert world.runtime.end_transaction(second, 0, False).value is None
    assert world.ask(Get()) == 10
    assert start(world.partition).ask(Get()) == 10


def test_requests_are_refused_while_loading_and_when_unloaded() -> None:
    partition = FakePartition()
    world = start(partition)
    for _ in range(40):
        world.ask(Add(1))
    partition.log.batches.append(bytearray())  # never reached in the first chunk
    partition.log.batches.pop()
    world.runtime.unload()
    assert world.runtime.state is State.UNLOADED
    assert world.code(Get()) == Error.NOT_COORDINATOR


def test_a_large_log_loads_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalite.coordinators.loading.LOAD_CHUNK_BYTES", 200)
    world = start(FakePartition())
    many = 2 * STEPS_AT_ONCE * RECORDS_PER_STEP
    for _ in range(many):
        world.ask(Add(1))
    again = start(world.partition)
    assert again.code(Get()) == Error.COORDINATOR_LOAD_IN_PROGRESS
    again.clock.advance(0)
    assert again.ask(Get()) == many


def test_unloading_answers_everyone_who_waits(world: World) -> None:
    opened = world.runtime.submit(Open(1))
    world.partition.is_lagging = True
    write = world.runtime.submit(Add(1))
    world.runtime.unload()
    assert opened.value.code == Error.NOT_COORDINATOR
    assert write.value.code == Error.NOT_COORDINATOR
    assert world.clock.next_due_ms() is None


def test_a_broken_invariant_reloads_the_shard_from_its_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.ask(Add(5))
    opened = world.runtime.submit(Open(1))
    before = world.runtime.shard
    world.clock.advance(2_000)
    assert world.code(Break()) == Error.NOT_COORDINATOR
    assert opened.value.code == Error.NOT_COORDINATOR
    assert world.runtime.shard is not before
    assert world.ask(Get()) == 5
    assert "a planted bug" in caplog.text


def test_a_bug_that_has_changed_nothing_ends_its_own_request_only(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.ask(Add(5))
    opened = world.runtime.submit(Open(1))
    before = world.runtime.shard
    assert world.code(Break(is_harmless=True)) == Error.UNKNOWN_SERVER_ERROR
    assert world.runtime.shard is before
    assert not opened.is_resolved
    assert world.ask(Get()) == 5
    assert "failed on Break of 'readers'; nothing has changed" in caplog.text


def test_a_timer_that_met_a_bug_comes_again(world: World) -> None:
    world.runtime.deadlines.arm("broken", 10, Break(is_harmless=True))
    world.clock.advance(10)
    assert world.clock.next_due_ms() == FAILED_TIMER_MS


def test_a_shard_that_keeps_breaking_is_reloaded_once_a_second(world: World) -> None:
    world.clock.advance(2_000)
    assert world.code(Break()) == Error.NOT_COORDINATOR
    assert world.code(Break()) == Error.NOT_COORDINATOR
    assert world.code(Get()) == Error.COORDINATOR_LOAD_IN_PROGRESS
    world.clock.advance(1_000)
    assert world.ask(Get()) == 0


def test_a_log_that_cannot_be_replayed_fails_the_shard(world: World) -> None:
    world.clock.advance(2_000)
    assert world.code(Break(in_replay=True)) == Error.NOT_COORDINATOR
    assert world.runtime.state is State.FAILED
    assert world.code(Get()) == Error.NOT_COORDINATOR


def test_a_late_answer_of_a_dropped_ticket_is_ignored(world: World) -> None:
    later: Later[Any] = world.runtime.submit(Open(1))
    world.runtime.load()
    assert later.value.code == Error.NOT_COORDINATOR
    assert world.ask(Close(1)) == "closed"
