"""A transaction coordinator over a fake log, with markers that are only taken down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.front import TRANSACTIONS_TOPIC, Transactions
from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.coordinators.transactions.producer_ids import ProducerIds
from kafkalite.coordinators.transactions.shard import Settings
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.fakes import FakePartition

NODE_ID = 1


@dataclass(slots=True)
class FakeMarkers:
    """Takes down the markers that each partition was given; fails as it is told."""

    written: dict[tuple[str, int], list[tuple[Producer, bool]]] = field(default_factory=dict)
    failures: dict[tuple[str, int], list[Error]] = field(default_factory=dict)

    def write(self, marker: Marker) -> Later[Outcomes]:
        return Later.of({one: self._write(marker, one) for one in marker.partitions})

    def _write(self, marker: Marker, where: tuple[str, int]) -> Error:
        failures = self.failures.get(where)
        if failures:
            return failures.pop(0)
        ends = self.written.setdefault(where, [])
        if ends and marker.producer < ends[-1][0]:
            return Error.INVALID_PRODUCER_EPOCH
        if (marker.producer, marker.is_commit) not in ends[-1:]:
            ends.append((marker.producer, marker.is_commit))
        return Error.NONE


class World:
    """One broker's coordinator with one partition of its log."""

    def __init__(self, server_version: int = 2) -> None:
        self.env = manual_env()
        self.clock = ManualClock()
        self.env.clock = self.clock
        self.partition = FakePartition()
        self.markers = FakeMarkers()
        self.last_producer_id = 999
        self.settings = Settings(7 * 86_400_000, 3_600_000, lambda: server_version)
        self.leaders: dict[tuple[str, int], int | None] = {}
        self.who: Any = None  # the producer, for tests that hand it on
        self.start()

    def start(self) -> None:
        """(Re)start the coordinator on the log as it is."""
        self.transactions = Transactions(
            self.env,
            self.settings,
            producer_ids=ProducerIds(self._allocate),
            partition_count=lambda: 1,
            leader_of=self._leader_of,
            markers=self.markers,  # type: ignore[arg-type]
            peer_of=lambda node_id: self.transactions if node_id == NODE_ID else None,
        )
        self.transactions.gained(0, self.partition)

    def stop(self) -> None:
        self.transactions.lost(0)

    def _allocate(self) -> Later[range | KafkaError]:
        self.last_producer_id += 1
        return Later.of(range(self.last_producer_id, self.last_producer_id + 1))

    def _leader_of(self, topic: str, index: int) -> int | None:
        return self.leaders.get((topic, index), NODE_ID)

    def ask(self, event: Any) -> Any:
        """The answer, or the error code of a refusal; the answer must have come."""
        answer = self.transactions.submit(event.transactional_id, event)
        assert answer.is_resolved
        return Error(answer.value.code) if isinstance(answer.value, KafkaError) else answer.value

    def init(self, transactional_id: str = "t", **had: int) -> Any:
        return self.ask(events.InitProducerId(transactional_id, 60_000, **had))

    def add(
        self, who: events.ProducerIdentity, *partitions: tuple[str, int], version: int = 2
    ) -> Any:
        return self.ask(
            events.AddPartitions("t", who.producer_id, who.producer_epoch, partitions, version)
        )

    def end(self, who: events.ProducerIdentity, *, commit: bool, version: int = 2) -> Any:
        return self.ask(
            events.EndTransaction("t", who.producer_id, who.producer_epoch, commit, version)
        )

    def describe(self) -> Any:
        return self.ask(events.Describe("t"))

    @property
    def state(self) -> str:
        return str(self.describe().state.title)


__all__ = ["NODE_ID", "TRANSACTIONS_TOPIC", "FakeMarkers", "World"]
