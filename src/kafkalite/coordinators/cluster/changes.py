"""What is different between two images, for those who follow: they open logs and apply settings.

Owns the two ways to know it: noted while records are folded in, or by holding two images side by
side, when one took the other's place. Invariant: the second names what the first does, but for what
is again as it was. No topic id is given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from kafkalite.coordinators.cluster.states import (
    RESOURCE,
    TOPIC,
    BrokerState,
    QuotaEntity,
    Topic,
)
from kafkalite.env.dataclasses import dataclass, field, fields
from kafkalite.security.acl import Acl

K = TypeVar("K")


class Parts(Protocol):
    """An image, as far as it is compared."""

    by_id: dict[bytes, Topic]
    configs: dict[RESOURCE, dict[str, str]]
    brokers: dict[int, BrokerState]
    features: dict[str, int]
    quotas: dict[QuotaEntity, dict[str, float]]

    acl_ids: dict[Acl, bytes]

    @property
    def scram(self) -> Mapping[tuple[str, int], object]: ...

    def topic_id(self, name: str) -> bytes | None: ...


@dataclass(slots=True)
class Changes:
    """What is new, gone or not as it was."""

    created: dict[bytes, Topic] = field(default_factory=dict)
    deleted: dict[bytes, Topic] = field(default_factory=dict)
    # Topic id and index of partitions that are new or have a new state.
    partitions: dict[tuple[bytes, int], None] = field(default_factory=dict)
    configs: dict[RESOURCE, None] = field(default_factory=dict)
    brokers: dict[int, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    quotas: dict[QuotaEntity, None] = field(default_factory=dict)
    credentials: dict[tuple[str, int], None] = field(default_factory=dict)
    acls: dict[Acl, None] = field(default_factory=dict)  # that came or went

    @classmethod
    def between(cls, old: Parts, new: Parts) -> Changes:
        """What somebody has to hear who knows the old image."""
        return cls(
            created={key: new.by_id[key] for key in new.by_id if key not in old.by_id},
            deleted={key: old.by_id[key] for key in old.by_id if key not in new.by_id},
            partitions={
                (topic.topic_id, index): None
                for topic in new.by_id.values()
                for index in _different(_partitions(old, topic), topic.partitions)
            },
            configs={
                key: None
                for key in _different(old.configs, new.configs)
                if key in new.configs or not _went_with_its_topic(old, new, *key)
            },
            brokers=_different(old.brokers, new.brokers),
            features=_different(old.features, new.features),
            quotas=_different(old.quotas, new.quotas),
            credentials=_different(old.scram, new.scram),
            acls=dict.fromkeys(old.acl_ids.keys() ^ new.acl_ids.keys()),
        )

    def add(self, later: Changes) -> None:
        """What changed after these is told with them."""
        for each in fields(self):
            getattr(self, each.name).update(getattr(later, each.name))


def _partitions(image: Parts, topic: Topic) -> Mapping[int, object]:
    known = image.by_id.get(topic.topic_id)
    return {} if known is None else known.partitions


def _went_with_its_topic(old: Parts, new: Parts, kind: int, name: str) -> bool:
    """Nobody has to hear of such settings."""
    topic_id = new.topic_id(name)
    return kind == TOPIC and (topic_id is None or topic_id != old.topic_id(name))


def _different(old: Mapping[K, object], new: Mapping[K, object]) -> dict[K, None]:
    """Keys whose value is not the same, or that only one of the two has."""
    changed = dict.fromkeys(key for key in new if key not in old or old[key] != new[key])
    return changed | dict.fromkeys(key for key in old if key not in new)
