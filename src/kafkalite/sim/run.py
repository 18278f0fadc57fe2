"""One run from one seed: a world, a mix of clients in it, faults, peace, and a verdict.

Owns the plan of a run: which clients, how often they die, when it ends, how what is left is read.
The same seed gives the same run to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from kafkalite.env.clock import ManualClock
from kafkalite.env.later import watch_waits
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetFetchRequest
from kafkalite.sim.checker import Anomalies, Final, check, check_chain
from kafkalite.sim.client import Ask, Client, Script, Sleep
from kafkalite.sim.consumers import Chain, consume, fetch_request, skip_to_start
from kafkalite.sim.crowd import Crowd, read_commits
from kafkalite.sim.history import History, Partition, Reading
from kafkalite.sim.life import SLOWEST_JOB_MS
from kafkalite.sim.members import Membership
from kafkalite.sim.producers import (
    IdempotentProducer,
    PlainProducer,
    Producer,
    TransactionalProducer,
)
from kafkalite.sim.topics import Keeper
from kafkalite.sim.vigil import Vigil
from kafkalite.sim.world import Stuck, World

RUN_MS = 6_000
FAULT_EVERY_MS = 1_200
TRANSACTION_TIMEOUTS_MS = (1_000, 5_000, 60_000)
# Longer than links are late, and than a broker takes to start.
PEACE_MS = 8_000
SOURCE, TARGET = ("in", 0), ("out", 0)
COMPACTED = ("latest", 0)
RENEWED = "renewed"


@dataclass(slots=True)
class Verdict:
    """What came of a seed."""

    seed: int
    anomalies: Anomalies
    counts: dict[str, int]
    logical_ms: int


class Mortal(Protocol):
    """Whoever may die and be followed by another."""

    def strike(self) -> None: ...


@dataclass(slots=True)
class Role:
    """A producer that may die and come back as another incarnation of itself."""

    world: World
    name: str
    make: Callable[[str], Producer]
    may_be_late: bool = True
    incarnations: int = 0
    producer: Producer | None = None
    client: Client | None = None
    clients: list[Client] = field(default_factory=list)

    def live(self) -> None:
        self.incarnations += 1
        producer = self.producer = self.make(f"{self.name}.{self.incarnations}")
        self.client = self.world.client(may_be_late=self.may_be_late)
        self.clients.append(self.client)
        self.client.start(producer.script())

    def strike(self) -> None:
        """The client dies, or lives on as a zombie beside its heir."""
        assert self.client is not None
        if isinstance(self.producer, TransactionalProducer) and self.world.random.random() < 0.5:
            self.producer.is_superseded = True
            self.world.history.count("zombies")
        else:
            self.client.kill()
            self.world.history.count("client kills")
        self.live()


@dataclass(slots=True)
class Renewal:
    """A topic that comes and goes: whoever reads it begins with each of its lives."""

    world: World
    keeper: Keeper
    client: Client

    def begin(self) -> None:
        """Unless it is under way."""
        if not self.client.is_running:
            self.client.start(self._renew())

    def _note_what_is_under_way(self) -> None:
        """In the broker, when its topic is about to be deleted."""
        logs, count = self.world.broker.logs, self.world.history.count
        for index in range(self.keeper.partition_count if self.world.is_up else 0):
            log = logs.get(self.keeper.name, index)
            if log is None:
                continue
            if log.last_stable_offset < log.high_watermark:
                count("deletions under a transaction")
            if log.high_watermark < log.log_end_offset:
                count("deletions under a flush")
            if logs.periodic.cleaner.is_running:
                count("deletions while something is compacted")

    def _renew(self) -> Script:
        self._note_what_is_under_way()
        yield from self.keeper.renew()
        made = self.world.history.topics.current(self.keeper.name)
        if made is not None and not self.world.is_ending:
            _start_consumers(self.world, made.partitions)


def simulate(seed: int, clock: ManualClock | None = None) -> Verdict:
    """Runs it and judges it."""
    durability = "fsync" if seed % 2 else "page-cache"
    return judge(World(seed, durability, clock=clock or ManualClock()), _play)


def judge(world: World, play: Callable[[World, Anomalies], None]) -> Verdict:
    """What comes of it, to a clean stop, and what must hold meanwhile."""
    anomalies = Anomalies()
    vigil = Vigil(world)
    vigil.begin()
    watch_waits()
    try:
        play(world, anomalies)
        _stop(world)
    except Stuck as stuck:
        anomalies.add("stuck", str(stuck))
    else:
        for place, count in world.waits.items():
            anomalies.add("open wait", f"{count} made at {place} were open when the broker stopped")
    finally:
        watch_waits(False)
    for kind, what in vigil.found:
        anomalies.add(kind, what)
    counts = {**world.history.counts, "values": len(world.history.sent)}
    return Verdict(world.seed, anomalies, counts, world.clock.monotonic_ms())


def _play(world: World, anomalies: Anomalies) -> None:
    world.run_until(lambda: world.is_up, "the broker starts")
    shared = [("t", index) for index in range(world.random.randrange(1, 4))]
    world.create_topic("t", len(shared))
    crowd = _begin_group(world, "t", len(shared))
    for name, _ in (SOURCE, TARGET):
        world.create_topic(name, 1)
    world.create_topic(COMPACTED[0], 1, cleanup_policy="compact")
    world.history.compacted.add(COMPACTED)
    shared.append(COMPACTED)
    renewal = _begin_renewals(world)
    shared += [(RENEWED, index) for index in range(renewal.keeper.partition_count)]
    roles = _roles(world, shared)
    for role in roles:
        role.live()
    partitions = [each for each in shared if each[0] != RENEWED] + [SOURCE, TARGET]
    _start_consumers(world, partitions)
    world.begin_faults(FAULT_EVERY_MS)
    begin_strikes(world, roles)
    world.run(RUN_MS)
    clients = [client for role in roles for client in role.clients]
    crowd.membership.is_peaceful = True
    make_peace(world, [*clients, renewal.client], max(TRANSACTION_TIMEOUTS_MS))
    crowd.settle(anomalies)
    found: dict[int, int] = {}
    finish(world, read_commits(crowd.membership, found), "the group's commits are read")
    for kind, what in crowd.check_commits(found):
        anomalies.add(kind, what)
    last = world.history.topics.current(RENEWED)
    assert last is not None, "a topic is made anew whenever it was deleted"
    finals = read_all(world, [*partitions, *last.partitions])
    offset: list[int] = []
    finish(world, _committed_offset(offset), "the group's offset is read")
    check(world.history, finals, anomalies)
    check_chain(finals[SOURCE], finals[TARGET], offset[0], anomalies)


def _begin_group(world: World, topic: str, partition_count: int) -> Crowd:
    topic_id = world.broker.metadata.image.topics[topic].topic_id
    crowd = Crowd(world, Membership(topic, topic_id, partition_count))
    crowd.come()
    world.departures.append(crowd.strike)
    return crowd


def _begin_renewals(world: World) -> Renewal:
    history = world.history
    history.topics.promise(RENEWED)
    keeper = Keeper(history, world.random, RENEWED, world.random.randrange(1, 3))
    renewal = Renewal(world, keeper, world.client())
    renewal.begin()
    world.run_until(lambda: not renewal.client.is_running, "a topic is created")
    world.renewals.append(renewal.begin)
    return renewal


def role(
    world: World, kind: type[Producer], partitions: list[Partition], name: str, **fields: object
) -> Role:
    def make(incarnation: str) -> Producer:
        made = kind(
            incarnation, world.random, world.clock.now_ms, world.history, partitions,
            lambda: world.is_ending,
        )
        for key, value in fields.items():
            setattr(made, key, value)
        return made

    return Role(world, name, make, may_be_late=bool(fields.get("is_new", True)))


def _roles(world: World, shared: list[Partition]) -> list[Role]:
    random = world.random
    roles = [
        role(world, PlainProducer, shared, "plain"),
        role(world, IdempotentProducer, shared, "idempotent"),
        role(world, IdempotentProducer, [SOURCE], "feeder"),
    ]
    roles += [
        role(
            world, TransactionalProducer, shared, f"transactional-{number}",
            is_new=random.random() < 0.6, transactional_id=f"id-{number}",
            timeout_ms=random.choice(TRANSACTION_TIMEOUTS_MS),
        )
        for number in range(random.randrange(1, 4))
    ]
    roles.append(role(
        world, Chain, [TARGET], "chain", is_new=random.random() < 0.6, transactional_id="chain",
    ))
    return roles


def _start_consumers(world: World, partitions: list[Partition]) -> None:
    for partition in partitions:
        for is_committed_only in (True, False):
            reading = world.history.reading(partition, is_committed_only=is_committed_only)
            client = world.client()
            client.start(consume(world.history, reading, lambda _: world.is_ending))


def begin_strikes(world: World, whom: Sequence[Mortal]) -> None:
    def strike() -> None:
        if not world.is_ending:
            world.random.choice(whom).strike()
            world.clock.call_later(world.random.randrange(2 * FAULT_EVERY_MS), strike)

    world.clock.call_later(world.random.randrange(2 * FAULT_EVERY_MS), strike)


def make_peace(world: World, clients: list[Client], longest_ms: int) -> None:
    """No more faults; everybody comes to an end, and what died leaves nothing open."""
    world.is_ending = True
    world.end_trouble(world.trouble)
    world.run_until(lambda: world.is_up, "the broker comes back")
    if world.has_had_trouble:  # a log that could not be opened is tried again at the next start
        _stop(world)
        world.run_until(lambda: world.is_up, "the broker comes back")
    world.network.slowest_ms = 4
    world.life.slowest_job_ms = SLOWEST_JOB_MS
    world.run_until(lambda: not any(each.is_running for each in clients), "every client ends")
    world.run(PEACE_MS + longest_ms)  # until transactions that nobody ends have ended


def _stop(world: World) -> None:
    """A clean stop at the end keeps nobody waiting."""
    world.stop_cleanly()
    world.run_until(lambda: not world.life.is_alive, "the broker stops")


def read_all(world: World, partitions: list[Partition]) -> dict[Partition, Final]:
    finals: dict[Partition, Final] = {}
    for partition in partitions:
        committed, everything = Reading(partition, True), Reading(partition, False)
        tops: list[tuple[int, int]] = []
        reading = _read(world.history, committed, everything, tops)
        finish(world, reading, f"{partition} is read")
        high_watermark, last_stable_offset = tops[0]
        finals[partition] = Final(committed, everything, high_watermark, last_stable_offset)
    return finals


def finish(world: World, script: Script, what: str) -> None:
    client = world.client()
    client.start(script)
    world.run_until(lambda: not client.is_running, what)


def _read(
    history: History, committed: Reading, everything: Reading, tops: list[tuple[int, int]]
) -> Script:
    if everything.partition in history.fading:
        yield from skip_to_start(history.topics, everything)
        if everything.position > 0:
            history.count("records that retention took")
        committed.position = everything.position
    while True:
        [answer] = yield Ask([fetch_request(history.topics, everything)])
        if answer is not None and answer.responses:
            [fetched] = answer.responses[0].partitions
            assert fetched.error_code == Error.NONE, fetched
            tops.append((fetched.high_watermark, fetched.last_stable_offset))
            break
    high_watermark, last_stable_offset = tops[0]
    for reading, end in ((everything, high_watermark), (committed, last_stable_offset)):
        if end:
            yield from consume(history, reading, partial(_has_reached, reading, end))


def _has_reached(reading: Reading, end: int, _: int) -> bool:
    return reading.position >= end


def _committed_offset(found: list[int]) -> Script:
    wanted = OffsetFetchRequest.GroupTopic(name=SOURCE[0], partition_indexes=[SOURCE[1]])
    group = OffsetFetchRequest.Group(group_id=str(Chain.group), topics=[wanted])
    request = OffsetFetchRequest(groups=[group], require_stable=True)
    while not found:
        [answer] = yield Ask([(request, 8)])
        if answer is not None:
            [group_answer] = answer.groups
            if group_answer.error_code == Error.NONE:
                partition = group_answer.topics[0].partitions[0]
                if partition.error_code == Error.NONE:
                    found.append(max(0, partition.committed_offset))
        yield Sleep(20)
