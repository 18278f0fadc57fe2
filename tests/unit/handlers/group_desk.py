"""A broker's group handlers at work: real coordinators on partitions in memory.

Requests and responses go through the codec in the version they are asked in, as on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kafkalite import handlers
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.states import EndPoint, PartitionState, Topic
from kafkalite.coordinators.groups.front import OFFSETS_TOPIC, Groups, settings_of
from kafkalite.coordinators.groups.topics import ImageTopics
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.protocol import codec, messages
from kafkalite.replication.partitions import Partitions
from kafkalite.server.connection_info import ConnectionInfo
from tests.unit.coordinators.fakes import FakePartition
from tests.unit.handlers.in_steps import settled

NODE = 1


def broker_of(node_id: int) -> Any:
    endpoint = EndPoint("PLAINTEXT", "127.0.0.1", 9092, 0)
    return SimpleNamespace(broker_id=node_id, endpoints=(endpoint,), is_fenced=False, rack=None)


@dataclass(slots=True)
class FakeImage:
    """Topics by name and id, as handlers ask for them."""

    topics: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[bytes, Topic] = field(default_factory=dict)
    brokers: dict[int, Any] = field(default_factory=lambda: {NODE: broker_of(NODE)})
    features: dict[str, int] = field(default_factory=lambda: {"group.version": 1})

    def add(self, name: str, partition_count: int) -> bytes:
        topic_id = name.encode().ljust(16, b"\1")[:16]
        topic = Topic(name, topic_id)
        for index in range(partition_count):
            topic.partitions[index] = PartitionState(
                topic_id, index, (NODE,), (NODE,), NODE, leader_epoch=0, partition_epoch=0
            )
        self.topics[name] = self.by_id[topic_id] = topic
        return topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        found = self.by_id.get(topic_id)
        return None if found is None else found.name

    def topic_id(self, name: str) -> bytes | None:
        found = self.topics.get(name)
        return None if found is None else found.topic_id

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def has_partition(self, topic: str, index: int) -> bool:
        return self.partition(topic, index) is not None


@dataclass(slots=True)
class FakeCluster:
    image: FakeImage = field(default_factory=FakeImage)
    created: list[str] = field(default_factory=list)

    def create_internal(self, name: str) -> Later[Any]:
        self.created.append(name)
        self.image.add(name, 2)
        return Later.of(None)


class Desk:
    """Asks handlers, and counts on their answers."""

    def __init__(self, gathers: bool = False, **settings: str) -> None:
        self.env = manual_env()
        assert isinstance(self.env.clock, ManualClock)
        self.clock = self.env.clock
        self.cluster = FakeCluster()
        self.orders = self.cluster.image.add("orders", 3)
        self.cluster.image.add(OFFSETS_TOPIC, 2)
        names = {name.replace("_", "."): value for name, value in settings.items()}
        # Set, so that new groups do not wait for others.
        delay = {} if gathers else {"group.initial.rebalance.delay.ms": "0"}
        self.config = BrokerConfig({**delay, **names})
        self.groups = Groups(
            self.env,
            settings_of(self.config),
            ImageTopics(lambda: self.cluster.image),  # type: ignore[arg-type,return-value]
            lambda: len(self.cluster.image.topics[OFFSETS_TOPIC].partitions),
        )
        self.partitions = [FakePartition(), FakePartition()]
        for index, partition in enumerate(self.partitions):
            self.groups.gained(index, partition)
        self.context: Any = SimpleNamespace(
            env=self.env,
            config=self.config,
            node_id=NODE,
            partitions=Partitions(NODE),
            metadata=self.cluster,
            auto_creation=self.cluster,
            groups=self.groups,
            transactions=None,
            authorizer=None,
        )

    def send(self, request: Any, version: int, port: int = 50_000) -> Later[Any]:
        """The response, when it comes, as the client decodes it, who sends from `port`."""
        kind = type(request)
        key = kind.API_KEY
        request = codec.decode(kind, version, codec.encode(request, version))
        connection = ConnectionInfo("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", port))
        handler = handlers.handler(key)
        assert handler is not None
        answer = settled(
            handler(self.context, Call(key, version, 0, "ana", connection), request)
        )
        response_kind = getattr(messages, kind.__name__.removesuffix("Request") + "Response")
        received: Later[Any] = Later()

        def decode(response: Any) -> None:
            response = settled(response)
            received.resolve(codec.decode(response_kind, version, codec.encode(response, version)))

        answer.then(decode) if isinstance(answer, Later) else decode(answer)
        return received

    def ask(self, request: Any, version: int) -> Any:
        """The response, which must come at once."""
        later = self.send(request, version)
        assert later.is_resolved, f"{type(request).__name__} is still waiting"
        return later.value

    def stop_coordinating(self) -> None:
        for index in range(2):
            self.groups.lost(index)


def versions(name: str) -> range:
    """All versions of an API that are served."""
    served: range = getattr(messages, f"{name}Request").SPEC.api.versions
    return served
