"""One run from one seed: a world, a mix of clients in it, faults, peace, and a verdict.

Owns the plan of a run: which clients, how often they die, when it ends, how what is left is read.
The same seed gives the same run to the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetFetchRequest
from kafkalite.sim.checker import Anomalies, Final, check, check_chain
from kafkalite.sim.client import Ask, Client, Script, Sleep
from kafkalite.sim.consumers import FETCH_VERSION, Chain, consume, fetch_request
from kafkalite.sim.history import History, Partition, Reading
from kafkalite.sim.producers import (
    IdempotentProducer,
    PlainProducer,
    Producer,
    TransactionalProducer,
)
from kafkalite.sim.world import Stuck, World

RUN_MS = 6_000
FAULT_EVERY_MS = 1_200
TRANSACTION_TIMEOUTS_MS = (1_000, 5_000, 60_000)
# Longer than links are late, and than a broker takes to start.
PEACE_MS = 8_000
SOURCE, TARGET = ("in", 0), ("out", 0)


@dataclass(slots=True)
class Verdict:
    """What came of a seed."""

    seed: int
    anomalies: Anomalies
    counts: dict[str, int]
    logical_ms: int


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


def simulate(seed: int) -> Verdict:
    """Runs it and judges it."""
    world = World(seed, durability="fsync" if seed % 2 else "page-cache")
    anomalies = Anomalies()
    try:
        finals, committed_offset = _run(world)
    except Stuck as stuck:
        anomalies.add("stuck", str(stuck))
    else:
        anomalies = check(world.history, finals)
        check_chain(finals[SOURCE], finals[TARGET], committed_offset, anomalies)
    counts = {**world.history.counts, "values": len(world.history.sent)}
    return Verdict(seed, anomalies, counts, world.clock.monotonic_ms())


def _run(world: World) -> tuple[dict[Partition, Final], int]:
    world.run_until(lambda: world.is_up, "the broker starts")
    shared = [("t", index) for index in range(world.random.randrange(1, 4))]
    world.create_topic("t", len(shared))
    for name, _ in (SOURCE, TARGET):
        world.create_topic(name, 1)
    roles = _roles(world, shared)
    for role in roles:
        role.live()
    partitions = [*shared, SOURCE, TARGET]
    _start_consumers(world, partitions)
    world.begin_faults(FAULT_EVERY_MS)
    _begin_strikes(world, roles)
    world.run(RUN_MS)
    _make_peace(world, roles)
    return _read_all(world, partitions)


def _roles(world: World, shared: list[Partition]) -> list[Role]:
    def producer(
        kind: type[Producer], partitions: list[Partition], name: str, **fields: object
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

    random = world.random
    roles = [
        producer(PlainProducer, shared, "plain"),
        producer(IdempotentProducer, shared, "idempotent"),
        producer(IdempotentProducer, [SOURCE], "feeder"),
    ]
    roles += [
        producer(
            TransactionalProducer, shared, f"transactional-{number}",
            is_new=random.random() < 0.6, transactional_id=f"id-{number}",
            timeout_ms=random.choice(TRANSACTION_TIMEOUTS_MS),
        )
        for number in range(random.randrange(1, 4))
    ]
    roles.append(producer(
        Chain, [TARGET], "chain", is_new=random.random() < 0.6, transactional_id="chain",
    ))
    return roles


def _start_consumers(world: World, partitions: list[Partition]) -> None:
    for partition in partitions:
        for is_committed_only in (True, False):
            reading = world.history.reading(partition, is_committed_only=is_committed_only)
            client = world.client()
            client.start(consume(world.history, reading, lambda _: world.is_ending))


def _begin_strikes(world: World, roles: list[Role]) -> None:
    def strike() -> None:
        if not world.is_ending:
            world.random.choice(roles).strike()
            world.clock.call_later(world.random.randrange(2 * FAULT_EVERY_MS), strike)

    world.clock.call_later(world.random.randrange(2 * FAULT_EVERY_MS), strike)


def _make_peace(world: World, roles: list[Role]) -> None:
    """No more faults; everybody comes to an end, and what died leaves nothing open."""
    world.is_ending = True
    world.run_until(lambda: world.is_up, "the broker comes back")
    world.network.slowest_ms = 4
    clients = [client for role in roles for client in role.clients]
    world.run_until(lambda: not any(each.is_running for each in clients), "every client ends")
    world.run(PEACE_MS + max(TRANSACTION_TIMEOUTS_MS))


def _read_all(world: World, partitions: list[Partition]) -> tuple[dict[Partition, Final], int]:
    finals: dict[Partition, Final] = {}
    for partition in partitions:
        committed, everything = Reading(partition, True), Reading(partition, False)
        tops: list[tuple[int, int]] = []
        _finish(world, _read(committed, everything, tops), f"{partition} is read")
        high_watermark, last_stable_offset = tops[0]
        finals[partition] = Final(committed, everything, high_watermark, last_stable_offset)
    offset: list[int] = []
    _finish(world, _committed_offset(offset), "the group's offset is read")
    return finals, offset[0]


def _finish(world: World, script: Script, what: str) -> None:
    client = world.client()
    client.start(script)
    world.run_until(lambda: not client.is_running, what)


def _read(committed: Reading, everything: Reading, tops: list[tuple[int, int]]) -> Script:
    while True:
        [answer] = yield Ask([(fetch_request(everything), FETCH_VERSION)])
        if answer is not None and answer.responses:
            [fetched] = answer.responses[0].partitions
            assert fetched.error_code == Error.NONE, fetched
            tops.append((fetched.high_watermark, fetched.last_stable_offset))
            break
    high_watermark, last_stable_offset = tops[0]
    for reading, end in ((everything, high_watermark), (committed, last_stable_offset)):
        if end:
            yield from consume(History(), reading, partial(_has_reached, reading, end))


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
