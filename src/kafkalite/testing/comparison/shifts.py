"""Counters that stood elsewhere when a trace was recorded: offsets, epochs and generations.

A client sends back what it was told. Where both brokers tell the same number and the trace another,
the distance is learned, for each partition, producer and group, and requests are sent that much
further on. What the two brokers tell is compared as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

OFFSET, LEADER_EPOCH, PRODUCER_EPOCH, GENERATION = range(4)
_KINDS: dict[str, int] = {
    **dict.fromkeys(
        "offset fetch_offset base_offset committed_offset high_watermark last_stable_offset"
        " end_offset".split(),
        OFFSET,
    ),
    **dict.fromkeys(
        "leader_epoch current_leader_epoch last_fetched_epoch committed_leader_epoch".split(),
        LEADER_EPOCH,
    ),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), PRODUCER_EPOCH),
    **dict.fromkeys(
        ("generation_id", "generation_id_or_member_epoch", "member_epoch"), GENERATION
    ),
}
# Batches that were there before: more in the trace, perhaps, than now.
_TELL_NOTHING = frozenset(("records",))
_TOPIC = ("topic", "topic_name", "name", "topic_id")
_PARTITION = ("partition_index", "index", "partition", "partition_id")
_PRODUCER = ("producer_id", "v3_and_below_producer_id")
NOWHERE_YET = 2**62  # a high watermark that means none


@dataclass(frozen=True, slots=True)
class Scope:
    """What a counter belongs to, as far as the fields around it tell."""

    topic: Any = None
    partition: Any = None
    producer: Any = None
    group: Any = None

    def inside(self, fields: dict[str, Any]) -> Scope:
        """The scope within a struct of these fields."""
        return Scope(
            _first(fields, _TOPIC, self.topic),
            _first(fields, _PARTITION, self.partition),
            _first(fields, _PRODUCER, self.producer),
            _first(fields, ("group_id",), self.group),
        )

    def key(self, kind: int) -> tuple[Any, ...]:
        if kind == PRODUCER_EPOCH:
            return kind, self.producer
        return (kind, self.group) if kind == GENERATION else (kind, self.topic, self.partition)


class Shifts:
    """How much further on each counter is than in the trace."""

    def __init__(self) -> None:
        self._distances: dict[tuple[Any, ...], int] = {}
        self._topics: dict[bytes, str] = {}

    def learn(self, request: Any, answer: Any, recorded: Any) -> None:
        """From the view of an answer that both brokers gave, and that of the trace's."""
        outermost = Scope().inside(_fields(request))
        for scope, name, actual, then in self._pairs(outermost, answer, recorded):
            if min(actual, then) >= 0:
                self._distances[self._key(scope, _KINDS[name])] = actual - then

    def apply(self, message: Any) -> None:
        """Changes a request of the trace to what its client would send now."""
        self._move(Scope(), message)

    def producer_epoch(self, producer_id: int, epoch: int) -> int:
        """Of the batches of a producer of the trace."""
        return epoch + self._distances.get(Scope(producer=producer_id).key(PRODUCER_EPOCH), 0)

    def _move(self, scope: Scope, value: Any) -> None:
        fields = _fields(value)
        scope = scope.inside(fields)
        for name, inner in fields.items():
            if isinstance(inner, list) or hasattr(inner, "__slots__"):
                for each in inner if isinstance(inner, list) else [inner]:
                    if hasattr(each, "__slots__"):
                        self._move(scope, each)
            elif name in _KINDS and isinstance(inner, int) and 0 <= inner < NOWHERE_YET:
                distance = self._distances.get(self._key(scope, _KINDS[name]), 0)
                setattr(value, name, inner + distance)

    def _pairs(
        self, scope: Scope, now: Any, then: Any
    ) -> Iterator[tuple[Scope, str, int, int]]:
        if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
            for left, right in zip(now, then, strict=True):
                yield from self._pairs(scope, left, right)
        elif isinstance(now, dict) and isinstance(then, dict):
            inside = scope.inside(now)
            if now.get("name") and isinstance(now.get("topic_id"), bytes):
                self._topics[now["topic_id"]] = now["name"]
            for name, value in now.items():
                other = then.get(name)
                if name in _KINDS and isinstance(value, int) and isinstance(other, int):
                    yield inside, name, value, other
                elif name not in _TELL_NOTHING:
                    yield from self._pairs(inside, value, other)

    def _key(self, scope: Scope, kind: int) -> tuple[Any, ...]:
        if isinstance(scope.topic, bytes):
            scope = replace(scope, topic=self._topics.get(scope.topic, scope.topic))
        return scope.key(kind)


def _fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__slots__}


def _first(fields: dict[str, Any], names: tuple[str, ...], otherwise: Any) -> Any:
    """The first of these fields that is set."""
    found = (fields[name] for name in names if fields.get(name) not in (None, "", bytes(16)))
    return next(found, otherwise)
