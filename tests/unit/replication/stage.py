"""A partition with its replicas, each on a disk of its own, and a controller that does as told.

Nothing moves by itself: a follower fetches when a scene says so, and whoever is deaf keeps the
metadata that it has. Logs are real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kafkalite.log.config import LogConfig
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.acting import Acts, copy_of, follow, lead, serve
from kafkalite.replication.follower import AskRange, Fetched, FetchFrom, Follower, Range
from kafkalite.replication.leader import (
    Altered,
    AlterPartition,
    Leader,
    Leadership,
    Neighbours,
)
from kafkalite.replication.partition import NO_LEADER, FetchPosition, Partition
from tests.unit.log.making import START_MS, TOPIC_ID, World, batch

MAX_BYTES = 1 << 20
T = TypeVar("T")
HINTED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)

Asked = FetchFrom | AskRange
Answer = Fetched | Range | Error | None


def done(acts: Acts[T]) -> T:
    """What comes of it, where the disk makes nobody wait."""
    while True:
        try:
            next(acts)
        except StopIteration as stop:
            result: T = stop.value
            return result


@dataclass(eq=False)
class Node:
    """A broker with its replica."""

    broker_id: int
    world: World
    partition: Partition
    epoch: int  # in which it fetches
    is_deaf: bool = False
    is_down: bool = False
    has_asked: tuple[Asked, Answer] | None = None

    @property
    def log(self) -> PartitionLog:
        return self.partition.log


class Stage:
    """What a scene acts on; `lines` is what it reads like."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.config = LogConfig()
        self.neighbours = Neighbours()
        self.nodes: dict[int, Node] = {}
        self.said = Leadership(NO_LEADER, 0, 0, (), ())
        self.asked: tuple[Node, AlterPartition] | None = None  # of the controller
        self._told: dict[int, dict[str, str]] = {}

    # --- brokers and metadata ---------------------------------------------------------------------

    @property
    def leader(self) -> Node:
        return self.nodes[self.said.leader_id]

    def now_ms(self) -> int:
        return next(iter(self.nodes.values())).world.clock.monotonic_ms()

    def add(self, broker_id: int) -> None:
        world = World(self.config)
        if self.nodes:
            world.clock.advance(self.now_ms() - world.clock.monotonic_ms())
        partition = self._partition(broker_id, world.log())
        self.nodes[broker_id] = Node(broker_id, world, partition, 10 * broker_id)
        self.neighbours.epochs[broker_id] = 10 * broker_id

    def _partition(self, broker_id: int, log: PartitionLog) -> Partition:
        return Partition("t", 0, TOPIC_ID, broker_id, log, neighbours=self.neighbours)

    def restart(self, broker_id: int) -> None:
        """After its process was killed; what is in its files is there."""
        node = self.nodes[broker_id]
        node.partition = self._partition(broker_id, node.world.restart(clean=False))
        node.has_asked, node.is_down = None, False
        self.hear(node)

    def configure(self, **settings: Any) -> None:
        self.config = replace(self.config, **settings)
        for node in self.nodes.values():
            node.log.config = self.config

    def say(
        self, leader_id: int | None = None, replicas: tuple[int, ...] = (),
        isr: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """A new state of the partition, and all who hear it."""
        said, replicas = self.said, replicas or self.said.replicas
        self.said = Leadership(
            said.leader_id if leader_id is None else leader_id,
            said.leader_epoch + (leader_id is not None),
            said.partition_epoch + 1, replicas, said.isr if isr is None else isr, replicas,
        )  # fmt: skip
        for node in self.nodes.values():
            self.hear(node)

    def hear(self, node: Node) -> None:
        if node.is_deaf or node.is_down:
            return
        said = self.said
        if node.broker_id not in said.replicas:
            said = replace(said, leader_id=NO_LEADER)
        if node.partition.take(said):
            node.partition.begin_epoch()

    def controller_says(self, outcome: Error | None) -> None:
        """To what it was asked last; None means that it agrees."""
        assert self.asked is not None
        node, asked = self.asked
        leader = node.partition.role
        assert isinstance(leader, Leader)
        answer: Altered | Error = outcome or self._alter(asked)
        self.asked = None
        moment = node.partition.moment(self.now_ms())
        self.ask(node, lead(node.partition, leader.altered(asked, answer, moment)))

    def _alter(self, asked: AlterPartition) -> Altered:
        isr = tuple(broker_id for broker_id, _ in asked.isr)
        epoch = self.said.partition_epoch + 1
        self.said = replace(self.said, isr=isr, partition_epoch=epoch)
        return Altered(self.said.leader_epoch, epoch, isr)

    def ask(self, node: Node, asked: list[AlterPartition]) -> None:
        for each in asked:
            isr = " ".join(f"{broker_id}@{epoch}" for broker_id, epoch in each.isr)
            self.lines.append(f"  {node.broker_id} asks for {isr} in sync")
            self.asked = node, each

    # --- records ----------------------------------------------------------------------------------

    def append(self, node: Node, count: int, *, is_all: bool = False, **fields: Any) -> None:
        records = batch([b"x" * 10] * count, timestamp=START_MS, **fields)
        try:
            result = node.partition.append(records, node.world.clock.now_ms(), is_all=is_all)
        except KafkaError as error:
            self.lines.append(f"  {error.code.name}")
            return
        if result.is_duplicate:
            self.lines.append(f"  a duplicate of {result.base_offset}..{result.last_offset}")

    # --- followers --------------------------------------------------------------------------------

    def asks(self, node: Node, max_bytes: int = MAX_BYTES) -> None:
        role = node.partition.role
        assert isinstance(role, Follower)
        if role.state.value == "starting":
            done(follow(node.partition, role.start(copy_of(node.partition)), self.now_ms()))
        asked = role.ask(copy_of(node.partition), self.now_ms())
        if asked is None:
            self.lines.append(f"  {node.broker_id} asks nothing")
            return
        leader = self.nodes[asked.leader_id]
        answer: Answer = None
        if not leader.is_down and isinstance(asked, AskRange):
            answer = self._range(leader, asked)
        elif not leader.is_down and isinstance(asked, FetchFrom):
            answer = self._serve(leader, node, asked, max_bytes)
        node.has_asked = asked, answer

    def _range(self, leader: Node, asked: AskRange) -> Range | Error:
        try:
            leader.partition.check_leader(asked.leader_epoch)
        except KafkaError as error:
            return error.code
        return Range(leader.log.log_start_offset, leader.log.log_end_offset)

    def _serve(self, leader: Node, node: Node, asked: FetchFrom, max_bytes: int) -> Fetched:
        broker_id = node.broker_id
        position = FetchPosition(
            asked.offset, max_bytes, asked.leader_epoch, asked.last_fetched_epoch,
            asked.log_start_offset,
        )  # fmt: skip
        try:
            found, to_ask = serve(leader.partition, broker_id, node.epoch, position, self.now_ms())
        except KafkaError as error:
            self.lines.append(f"  {broker_id} is told {error.code.name}")
            role = leader.partition.role
            hint = (role.leader_id, role.leader_epoch) if error.code in HINTED else None
            return Fetched(error.code, current_leader=hint)
        if found.diverging is not None:
            epoch, end = found.diverging
            self.lines.append(f"  {broker_id} is told that epoch {epoch} ends at {end}")
        self.ask(leader, to_ask)
        records = bytearray(found.records.read()) if found.records is not None else None
        return Fetched(
            Error.NONE, records, found.high_watermark, found.log_start_offset, found.diverging
        )

    def gets_answer(self, node: Node) -> None:
        role, now_ms = node.partition.role, self.now_ms()
        assert isinstance(role, Follower)
        if node.has_asked is None:
            return
        (asked, answer), node.has_asked = node.has_asked, None
        copy = copy_of(node.partition)
        if answer is None:
            effects = role.unanswered(asked, now_ms)
        elif isinstance(asked, AskRange):
            assert isinstance(answer, Range | Error)
            effects = role.told_range(asked, answer, copy, now_ms)
        else:
            assert isinstance(answer, Fetched)
            effects = role.fetched(asked, answer, copy, now_ms)
        for backoff in done(follow(node.partition, effects, now_ms)):
            self.lines.append(f"  {node.broker_id} waits for {backoff.until_ms - now_ms}ms")

    # --- what is told -----------------------------------------------------------------------------

    def tell(self) -> None:
        """What has changed since the last sentence, broker by broker."""
        for broker_id, node in sorted(self.nodes.items()):
            facts = dict(self._facts(node))
            before = self._told.get(broker_id, {})
            news = [f"{name} {value}" for name, value in facts.items() if before.get(name) != value]
            if news:
                self.lines.append(f"  {broker_id}: {', '.join(news)}")
            self._told[broker_id] = facts

    @staticmethod
    def _facts(node: Node) -> Iterator[tuple[str, str]]:
        role, log = node.partition.role, node.log
        if isinstance(role, Leader):
            yield "leads", f"in epoch {role.leader_epoch}"
            pending = role.pending
            wanted = "" if pending is None else f" but asks for {len(pending.isr)}"
            yield "in sync", " ".join(map(str, role.maximal_isr)) + wanted
        elif isinstance(role, Follower):
            yield "follows", f"{role.leader_id} in epoch {role.leader_epoch}"
            yield "is", role.state.value
        else:
            yield "has no role", f"in epoch {role.leader_epoch}"
        yield "log", f"{log.log_start_offset}..{log.log_end_offset}"
        yield "epochs", " ".join(f"{epoch}@{start}" for epoch, start in log.epochs.entries())
        yield "committed", f"to {log.high_watermark}"

    def contents(self, node: Node) -> bytes:
        """All bytes of a replica's records."""
        found, offset = bytearray(), node.log.log_start_offset
        while offset < node.log.log_end_offset:
            read = node.log.read(offset, MAX_BYTES)
            assert read.range is not None
            found += read.range.read()
            offset = read.end_offset
        return bytes(found)
