"""Whoever waits for a disk is told in the end: when it is slow, and when the topic is deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.cluster.events import DeleteTopics
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.events import ProducerIdentity
from kafkalite.coordinators.transactions.front import TRANSACTIONS_TOPIC
from kafkalite.coordinators.transactions.transaction import State
from kafkalite.env.later import Later
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DeleteTopicsRequest, FetchRequest
from kafkalite.sim.world import World
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.log.making import batch

ID = "an id"
VERSION = 2
LONG_MS = 60_000
NOBODY = ProducerIdentity(-1, -1)
SLOW_FLUSH_MS = 8_000  # more than a coordinator's clients wait


def started(directories: str = "/data,/more") -> World:
    world = World(1, durability="fsync", directories=directories)
    world.run_until(lambda: world.is_up, "the broker comes up")
    world.broker.context.auto_creation.create_internal(TRANSACTIONS_TOPIC)
    for topic in ("kept", "lost"):
        world.create_topic(topic, 1)
    return world


def answer_of(world: World, later: Later[Any], what: str) -> Any:
    world.run_until(lambda: later.is_resolved, what)
    return later.value


def delete(world: World, *, again: bool = False) -> None:
    """Deletes the topic, without waiting for the answer; perhaps another of its name comes."""
    world.broker.controller.submit(DeleteTopics(DeleteTopicsRequest(topic_names=["lost"])))
    if again:
        world.broker.create_topic("lost", 1)


# --- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("directories", ["/data", "/data,/more"])
@pytest.mark.parametrize("after_ms", [0, 1, 4, 9, 14, 40])
def test_who_waits_for_a_record_is_told_when_its_topic_is_deleted(
    directories: str, after_ms: int, again: bool
) -> None:
    world = started(directories)
    partition, now_ms = world.broker.partitions.find("lost", 0), world.clock.now_ms()
    partition.append(batch([b"value"], timestamp=now_ms), now_ms)
    committed = partition.when_committed(1)
    world.run(after_ms)
    was_committed = committed.is_resolved
    delete(world, again=again)
    world.run(LONG_MS)
    assert committed.is_resolved
    assert was_committed or _code(committed.value) == Error.UNKNOWN_TOPIC_OR_PARTITION
    late = partition.when_committed(2).value
    assert _code(late) == Error.NOT_LEADER_OR_FOLLOWER


def test_who_waits_for_a_record_is_told_when_the_role_is_lost() -> None:
    world = started()
    partition, now_ms = world.broker.partitions.find("kept", 0), world.clock.now_ms()
    partition.append(batch([b"value"], timestamp=now_ms), now_ms)
    committed = partition.when_committed(1)
    world.broker.controller.decide(FenceBroker(1))
    assert not committed.is_resolved  # nothing happens within the change of metadata
    world.run(0)
    assert _code(committed.value) == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("after_ms", range(0, 40, 2))
def test_who_waits_for_a_record_is_not_disturbed_by_a_move(after_ms: int) -> None:
    world = started()
    partition = world.broker.partitions.find("kept", 0)
    target = "/more" if partition.log.home.path == "/data" else "/data"
    logs, waiting = world.broker.logs, []
    for number in range(30):
        now_ms = world.clock.now_ms()
        partition.append(batch([b"value"], timestamp=now_ms), now_ms)
        waiting.append(partition.when_committed(number + 1))
        world.run(2)
        if 2 * number == after_ms:
            logs.move("kept", 0, target, partition.moved)
    world.run(LONG_MS)
    assert partition.log.home.path == target
    assert [committed.value for committed in waiting] == [None] * 30


@pytest.mark.parametrize("every_ms", [1, 2, 3, 5])
def test_who_waits_in_the_moment_of_a_move_is_told_by_the_log_that_took_over(every_ms: int) -> None:
    world = started()
    partition = world.broker.partitions.find("kept", 0)
    waiting: list[Later[KafkaError | None]] = []
    there: list[int] = []  # how many waited when the other log came

    def moved(log: PartitionLog) -> None:
        there.append(sum(not each.is_resolved for each in waiting))
        partition.moved(log)

    target = "/more" if partition.log.home.path == "/data" else "/data"
    world.broker.logs.move("kept", 0, target, moved)
    while not there:
        now_ms = world.clock.now_ms()
        end = partition.append(batch([b"value"], timestamp=now_ms), now_ms).base_offset + 1
        waiting.append(partition.when_committed(end))
        assert len(waiting) < 2_000
        world.run(every_ms)
    world.run(LONG_MS)
    assert there[0] > 0
    assert [committed.value for committed in waiting] == [None] * len(waiting)


def _code(outcome: KafkaError | None) -> Error | None:
    return None if outcome is None else Error(outcome.code)


# --- a stop ---------------------------------------------------------------------------------------


def test_a_stop_answers_who_waits() -> None:
    broker = WholeBroker()
    broker.create("t")
    wanted = FetchRequest.Partition(partition=0, partition_max_bytes=1_000)
    topic = FetchRequest.Topic(topic="t", partitions=[wanted])
    fetch = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, max_bytes=1_000, topics=[topic])
    waiting = broker.send(fetch, 12)
    broker.clock.advance(1)
    assert not waiting.is_resolved
    broker.close()
    assert waiting.is_resolved


# --- transactions ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Transactional:
    """A producer with one transaction over both topics."""

    world: World
    who: ProducerIdentity = NOBODY

    def submit(self, event: Any) -> Later[Any]:
        return self.world.broker.context.transactions.submit(ID, event)

    def ask(self, event: Any) -> Any:
        return answer_of(self.world, self.submit(event), type(event).__name__)

    def begin(self) -> None:
        self.who = self.ask(events.InitProducerId(ID, 60_000))
        partitions = (("kept", 0), ("lost", 0))
        added = events.AddPartitions(ID, *self._who, partitions, VERSION)
        assert self.ask(added) is None
        now_ms = self.world.clock.now_ms()
        for topic, index in partitions:
            data = batch(
                [b"value"], timestamp=now_ms, producer_id=self.who.producer_id,
                producer_epoch=self.who.producer_epoch, base_sequence=0, is_transactional=True,
            )
            self.world.broker.partitions.find(topic, index).append(data, now_ms)

    def end(self) -> Later[Any]:
        return self.submit(events.EndTransaction(ID, *self._who, True, VERSION))

    @property
    def _who(self) -> tuple[int, int]:
        return self.who.producer_id, self.who.producer_epoch

    @property
    def state(self) -> State:
        found = self.ask(events.Describe(ID))
        assert not isinstance(found, KafkaError), found
        state: State = found.state
        return state


def ended(world: World, meanwhile: Callable[[], None]) -> Transactional:
    """A transaction whose commit is asked for, and what else happens then."""
    producer = Transactional(world)
    producer.begin()
    world.run(1_000)
    world.life.slowest_job_ms = 40
    producer.end()
    meanwhile()
    world.life.slowest_job_ms = 5
    world.run(LONG_MS)
    return producer


def is_readable(world: World, topic: str) -> bool:
    partition = world.broker.partitions.find(topic, 0)
    return partition.last_stable_offset == partition.high_watermark


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("after_ms", range(0, 100, 2))
def test_a_transaction_ends_when_a_topic_of_it_is_deleted(after_ms: int, again: bool) -> None:
    world = started()

    def meanwhile() -> None:
        world.run(after_ms)
        delete(world, again=again)

    producer = ended(world, meanwhile)
    assert producer.state is State.COMPLETE_COMMIT
    assert is_readable(world, "kept")
    assert not again or is_readable(world, "lost")
    assert isinstance(producer.ask(events.InitProducerId(ID, 60_000)), ProducerIdentity)


@pytest.mark.parametrize("slow_ms", [SLOW_FLUSH_MS, 2 * SLOW_FLUSH_MS])
def test_a_transaction_ends_though_flushes_take_longer_than_clients_wait(slow_ms: int) -> None:
    world = started()

    def meanwhile() -> None:
        world.life.slowest_job_ms = slow_ms
        world.run(4 * slow_ms)

    producer = ended(world, meanwhile)
    assert producer.state is State.COMPLETE_COMMIT
    assert is_readable(world, "kept")
    assert is_readable(world, "lost")
