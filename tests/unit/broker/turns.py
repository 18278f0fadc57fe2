"""A broker whose turns of the loop are looked at: what is done in each, and seen between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.env.background import Background
from kafkalite.env.clock import ManualClock, ManualTimer
from kafkalite.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker


class TurnClock(ManualClock):
    """Each callback is a turn of its own."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        super().__init__(now_ms)
        self.turn = 0
        self.between: list[Callable[[], object]] = []

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        def fire() -> None:
            self.turn += 1
            for look in self.between:
                look()
            callback()

        return super().call_later(delay_ms, fire)


class Looked:
    """The broker, and how often something happened in each turn."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, background: Background | None = None
    ) -> None:
        monkeypatch.setattr("kafkalite.env.ManualClock", TurnClock)
        self.broker = WholeBroker(background=background)
        clock = self.broker.env.clock
        assert isinstance(clock, TurnClock)
        self.clock = clock
        self.monkeypatch = monkeypatch

    def count(self, owner: Any, name: str) -> Counter[int]:
        """How often something is called in each turn from now on."""
        counts: Counter[int] = Counter()
        original = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            counts[self.clock.turn] += 1
            return original(*given, **named)

        self.monkeypatch.setattr(owner, name, counted)
        return counts

    def between(self, look: Callable[[], object]) -> None:
        """Has somebody look between any two turns from now on."""
        self.clock.between.append(look)

    def served(self, topic: str) -> int:
        """How many partitions of a topic are served."""
        partitions = self.broker.broker.partitions
        return sum(partitions.get(topic, each.index) is each for each in partitions)

    def seen(self, topic: str) -> int:
        """How many partitions of a topic clients are told of."""
        found = self.broker.context.metadata.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)


def creation(partitions: int, *names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
    )


def deletion(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=1)


def growth(partitions: int, *names: str) -> CreatePartitionsRequest:
    topic = CreatePartitionsRequest.Topic
    return CreatePartitionsRequest(
        topics=[topic(name=name, count=partitions, assignments=None) for name in names],
        timeout_ms=1,
    )
