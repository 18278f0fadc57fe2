"""What the group coordinator asks about topics: a small view of the cluster's metadata.

Owns nothing: the image is the cluster's, and changes under us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import Topic
from kafkalite.env.dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class TopicView:
    name: str
    topic_id: bytes
    partition_count: int
    # For each partition the racks of the brokers that hold a replica, one for each of them.
    racks: tuple[tuple[str, ...], ...] = ()


class Topics(Protocol):
    def by_name(self, name: str) -> TopicView | None: ...

    def by_id(self, topic_id: bytes) -> TopicView | None: ...

    def names(self) -> Iterable[str]: ...

    def id_of(self, name: str) -> bytes | None: ...

    def is_known(self, topic_id: bytes) -> bool: ...


@dataclass(slots=True)
class ImageTopics:
    """Topics as the cluster's image has them at the moment of the question."""

    image: Callable[[], Image]

    def by_name(self, name: str) -> TopicView | None:
        topic = self.image().topics.get(name)
        return None if topic is None else self._view(topic)

    def by_id(self, topic_id: bytes) -> TopicView | None:
        topic = self.image().by_id.get(topic_id)
        return None if topic is None else self._view(topic)

    def names(self) -> Iterable[str]:
        return self.image().topics

    def id_of(self, name: str) -> bytes | None:
        topic = self.image().topics.get(name)
        return None if topic is None else topic.topic_id

    def is_known(self, topic_id: bytes) -> bool:
        return topic_id in self.image().by_id

    def _view(self, topic: Topic) -> TopicView:
        brokers = self.image().brokers
        count = len(topic.partitions)
        if not any(broker.rack for broker in brokers.values()):
            return TopicView(topic.name, topic.topic_id, count, ((),) * count)
        racks = []
        for index in range(count):
            replicas = topic.partitions[index].replicas
            known = [brokers[one].rack for one in replicas if one in brokers]
            racks.append(tuple(rack for rack in known if rack is not None))
        return TopicView(topic.name, topic.topic_id, count, tuple(racks))
