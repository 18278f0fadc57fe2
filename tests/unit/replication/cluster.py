"""Brokers of a world whose replicas copy from each other, and which are killed and come back."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.env.later import Later
from kafkalite.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, ProduceRequest
from kafkalite.replication.partition import Partition
from kafkalite.sim.contents import bytes_until, epochs_until
from tests.unit.handlers.world import Node, Way, World
from tests.unit.log.making import batch

SOME = 20  # turns of the loop, for news to come through


class Cluster(World):
    """Broker 1 is the controller's, and stays."""

    def __init__(
        self, settings: dict[str, str] | None = None, racks: tuple[str, ...] = ()
    ) -> None:
        own = {node_id: {"broker.rack": rack} for node_id, rack in enumerate(racks, 1)}
        super().__init__((1, 2, 3), settings, own=own)
        self.settings = settings or {}

    # --- brokers ----------------------------------------------------------------------------------

    def kill(self, node_id: int, *, is_noticed: bool = True) -> None:
        node = self.nodes.pop(node_id)
        node.replicating.stop()
        node.replicas.stop()
        node.logs.abandon()
        if is_noticed:
            self.controller.decide(FenceBroker(node_id))
        self.turns()

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id] = Node(self.env, node_id, self.settings)
        node.logs.take()
        node.join(self.metadata, self.controller, partial(Way, self))
        self.turns()

    def turns(self, count: int = SOME) -> None:
        for _ in range(count):
            self.clock.advance(0)

    def passes(self, duration_ms: int) -> None:
        """In small pieces, as timers that set each other need it."""
        for _ in range(duration_ms // 50):
            self.clock.advance(50)
        self.turns()

    def create_at(self, *replicas: int, name: str = "t", **settings: str) -> None:
        """A topic with one partition, the first of whose replicas leads it."""
        assignment = CreateTopicsRequest.Assignment(partition_index=0, broker_ids=[*replicas])
        configs = [
            CreateTopicsRequest.Config(name=key.replace("_", "."), value=value)
            for key, value in settings.items()
        ]
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment],
            configs=configs,
        )  # fmt: skip
        [answer] = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        assert answer.error_code == 0, answer
        self.turns()

    def create_many(self, replicas: list[int], count: int, name: str = "t") -> None:
        """A topic with so many partitions, the first of whose replicas leads them."""
        assignments = [
            CreateTopicsRequest.Assignment(partition_index=index, broker_ids=replicas)
            for index in range(count)
        ]
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        [answer] = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        assert answer.error_code == 0, answer
        self.turns()

    # --- one partition ----------------------------------------------------------------------------

    def state(self, topic: str = "t", index: int = 0) -> PartitionState:
        found = self.metadata.image.partition(topic, index)
        assert found is not None
        return found

    @property
    def leader(self) -> int:
        return self.state().leader

    def replica(self, node_id: int, topic: str = "t", index: int = 0) -> Partition:
        found = self.nodes[node_id].partitions.get(topic, index)
        assert found is not None
        return found

    def contents(self, node_id: int) -> bytes:
        """All bytes of a replica up to what is committed."""
        log = self.replica(node_id).log
        return bytes_until(log, log.high_watermark)

    def epochs(self, node_id: int) -> list[tuple[int, int]]:
        """Those with records that are committed."""
        log = self.replica(node_id).log
        return epochs_until(log, log.high_watermark)

    def delete(self, name: str) -> None:
        topic = DeleteTopicsRequest.Topic(name=name)
        [answer] = self.ask(DeleteTopicsRequest(topics=[topic]), 6).responses
        assert answer.error_code == 0, answer
        self.turns()

    def ask_later(self, request: Any, version: int, node_id: int) -> Later[Any]:
        """For what is not answered at once."""
        return Way(self, node_id).ask(request, range(version + 1))

    def produce_later(self, *values: bytes) -> Later[Any]:
        """With acks=all."""
        return self.ask_later(self._request(values, -1), 13, self.leader)

    def produce(
        self, *values: bytes, acks: int = -1, node_id: int | None = None, **more: Any
    ) -> Any:
        """The answer of a leader for one batch; with acks=all when it is committed."""
        request = self._request(values or (b"v",), acks, **more)
        response = self.ask(request, 13, self.leader if node_id is None else node_id)
        [topic] = response.responses
        [answer] = topic.partition_responses
        return answer

    def _request(self, values: tuple[bytes, ...], acks: int, **more: Any) -> ProduceRequest:
        records = batch(values, timestamp=self.clock.now_ms(), **more)
        data = ProduceRequest.TopicData(
            topic_id=self.state().topic_id,
            partition_data=[ProduceRequest.PartitionData(index=0, records=records)],
        )
        return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])

    def check_same(self, *node_ids: int) -> None:
        """What is committed is the same on all of these, bytes and epochs, and nothing is missing
        on any."""
        self.passes(2_000)
        ends = {node_id: self.replica(node_id).high_watermark for node_id in node_ids}
        assert len(set(ends.values())) == 1, ends
        assert len({self.contents(node_id) for node_id in node_ids}) == 1
        assert len({tuple(self.epochs(node_id)) for node_id in node_ids}) == 1
