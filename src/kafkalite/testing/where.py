"""Requests as a test picks them by what they name: a topic, a group, who asks.

Owns how a name is found in a request: a topic also by its id, and the partitions of a fetch that
goes on with its session, which it does not say again. Invariant: whatever a request cannot name is
not in it, so a condition about it is never met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.protocol import spec

# What specs call the number of a partition, beside or below the name of its topic.
PARTITION_FIELDS = frozenset(
    "index partition partition_id partition_index partition_indexes partitions".split()
)
TOPIC, PARTITION, GROUP, TRANSACTIONAL = "topic", "partition", "group", "transactional"
OF_KEY_TYPE = {0: GROUP, 1: TRANSACTIONAL}  # of FindCoordinator

Named = tuple[str, Any]  # one of the four, and its name; of a partition its topic and number


@dataclass(slots=True, frozen=True)
class Known:
    """What a broker knows that a request takes as known."""

    topic_name: Callable[[bytes], str | None]
    in_session: Callable[[int], list[tuple[str, int]]]  # partitions of a session of fetches


@dataclass(slots=True, frozen=True, kw_only=True)
class Where:
    """In the place of a `when`: requests that name all of these, maybe among others."""

    topic: str | None = None
    partition: int | None = None  # of the topic; without one, of any
    group: str | None = None
    client_id: str | None = None
    transactional_id: str | None = None

    def meets(self, message: Any, version: int, client_id: str | None, known: Known) -> bool:
        if self.client_id not in (None, client_id):
            return False
        named = set(names_in(message, version, known))
        return (
            self._meets_topic(named)
            and (self.group is None or (GROUP, self.group) in named)
            and (self.transactional_id is None or (TRANSACTIONAL, self.transactional_id) in named)
        )

    def _meets_topic(self, named: set[Named]) -> bool:
        if self.partition is None:
            return self.topic is None or (TOPIC, self.topic) in named
        return any(
            kind == PARTITION and name[1] == self.partition and self.topic in (None, name[0])
            for kind, name in named
        )


def names_in(message: Any, version: int, known: Known) -> Iterator[Named]:
    """All that a request names, as often as it does."""
    yield from _names(message, message.SPEC.root, version, known)
    api = message.SPEC.api.name
    if api == "Fetch" and message.session_id:
        for topic, index in known.in_session(message.session_id):
            yield TOPIC, topic
            yield PARTITION, (topic, index)
    if api == "FindCoordinator" and message.key_type in OF_KEY_TYPE:
        for key in message.coordinator_keys if version >= 4 else [message.key]:
            yield OF_KEY_TYPE[message.key_type], key


def _names(value: Any, struct: spec.Struct, version: int, known: Known) -> Iterator[Named]:
    topic: str | None = None
    for field in struct.fields:
        part = getattr(value, field.name) if field.is_in(version) else None
        if part is None:
            continue
        for each in part if field.is_array else (part,):
            if field.struct is not None:
                yield from _below(each, field.struct, version, known, topic)
            elif field.resource == TOPIC:
                name = each if isinstance(each, str) else known.topic_name(bytes(each))
                topic = topic if name is None else name
                yield TOPIC, name
            elif field.resource is not None:
                yield field.resource, each
            elif field.name in PARTITION_FIELDS and field.type == "int32":
                yield PARTITION, (topic, each)


def _below(
    value: Any, struct: spec.Struct, version: int, known: Known, topic: str | None
) -> Iterator[Named]:
    """A part without a topic of its own is about the one above it."""
    for kind, name in _names(value, struct, version, known):
        is_of_above = kind == PARTITION and name[0] is None
        yield kind, ((topic, name[1]) if is_of_above else name)
