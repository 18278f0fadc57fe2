"""Makes random requests: an API of the theme, a version, and fields from the pools."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.classes import default_value
from kafkalite.protocol.messages import CreateTopicsRequest, message_class
from tests.differential.memory import Memory
from tests.differential.pools import POOLS, Pools

NULL_CHANCE, TAG_CHANCE, TWICE_CHANCE = 0.08, 0.3, 0.02
NULL_CHANCES = {"records": 0.001}  # what Apache Kafka never answers takes seconds
# Lists of partitions are rarely empty: no client sends one, and the answers to them vary.
PARTS, FEW_EMPTY = frozenset(("partitions", "partition_data", "partition_indexes")), 0.8
TOPICS_BEGIN = ("apples-RUN", "pears-RUN")

# What a conversation is mostly about; the weights are how often a name stands in its row.
THEMES: dict[str, str] = {
    "log": "Produce Produce Produce Fetch Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch"
    " InitProducerId DescribeProducers DescribeLogDirs Fetch IncrementalAlterConfigs",
    "topics": "CreateTopics CreateTopics DeleteTopics CreatePartitions Metadata Metadata"
    " DescribeTopicPartitions DescribeConfigs IncrementalAlterConfigs AlterConfigs Produce Fetch"
    " ElectLeaders AlterPartitionReassignments ListPartitionReassignments DescribeLogDirs",
    "classic groups": "JoinGroup JoinGroup SyncGroup SyncGroup Heartbeat LeaveGroup OffsetCommit"
    " OffsetFetch OffsetDelete DescribeGroups ListGroups DeleteGroups FindCoordinator OffsetCommit",
    "consumer groups": "ConsumerGroupHeartbeat ConsumerGroupHeartbeat ConsumerGroupHeartbeat"
    " ConsumerGroupDescribe OffsetCommit OffsetFetch OffsetDelete ListGroups DescribeGroups"
    " JoinGroup DeleteGroups LeaveGroup Heartbeat",
    "transactions": "InitProducerId InitProducerId AddPartitionsToTxn AddPartitionsToTxn Produce"
    " Produce Produce AddOffsetsToTxn TxnOffsetCommit TxnOffsetCommit EndTxn EndTxn Fetch"
    " DescribeTransactions ListTransactions DescribeProducers OffsetFetch ListOffsets"
    " WriteTxnMarkers",
    "administration": "DescribeClientQuotas AlterClientQuotas DescribeUserScramCredentials"
    " AlterUserScramCredentials DescribeCluster DescribeConfigs UpdateFeatures ListConfigResources"
    " ApiVersions DescribeQuorum DescribeAcls CreateAcls DeleteAcls GetTelemetrySubscriptions"
    " PushTelemetry AlterReplicaLogDirs FindCoordinator",
}


@dataclass(slots=True)
class Step:
    """One request, canonically, and the version it is sent in."""

    request: Any
    version: int

    @property
    def api(self) -> str:
        return str(self.request.SPEC.api.name)


class Generator:
    """Steps of one conversation. `served` has the versions that both brokers serve, by API."""

    def __init__(
        self, rng: random.Random, memory: Memory, served: Mapping[str, range], theme: str
    ) -> None:
        self.rng, self.memory, self.served = rng, memory, served
        self.pools = Pools(rng, memory)
        self.apis = [name for name in THEMES[theme].split() if name in served]
        self.is_transactional = theme == "transactions"

    def beginning(self) -> list[Step]:
        """Topics that later steps may use; the answer tells their ids."""
        topics = [
            CreateTopicsRequest.Topic(name=name, num_partitions=2, replication_factor=1)
            for name in TOPICS_BEGIN
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        return [Step(request, self.served["CreateTopics"].stop - 1)]

    def step(self) -> Step:
        api = self.rng.choice(self.apis if self.rng.random() < 0.92 else list(self.served))
        version = self.rng.choice(self.served[api])
        self.pools.begin()
        return Step(self.message(message_class(f"{api}Request"), version), version)

    def message(self, cls: type[Any], version: int) -> Any:
        message = _Random(self, cls, version).struct(cls.SPEC.root)
        if cls.__name__ == "ProduceRequest" and self.is_transactional:
            message.transactional_id = self.pools.transactional_id()
        return message


class _Random:
    def __init__(self, generator: Generator, cls: type[Any], version: int) -> None:
        self.generator, self.cls, self.version = generator, cls, version
        self.rng, self.pools = generator.rng, generator.pools
        self.api = cls.SPEC.api.name

    def struct(self, struct: spec.Struct) -> Any:
        cls = self.cls if struct is self.cls.SPEC.root else getattr(self.cls, struct.name)
        return cls(
            **{
                field.name: self.field(field, struct)
                for field in struct.fields
                if field.is_in(self.version)
            }
        )

    def field(self, field: spec.Field, struct: spec.Struct) -> Any:
        if self.version in field.tagged and self.rng.random() > TAG_CHANCE:
            return default_value(self.cls, field)
        if self.version in field.nullable and self.rng.random() < NULL_CHANCES.get(
            field.type, NULL_CHANCE
        ):
            return None
        if field.is_array:
            count = self.rng.choice((1, 1, 1, 1, 2, 0, 3))
            if field.name in PARTS and self.rng.random() < FEW_EMPTY:
                count = count or 1
            made = [self.one(field, struct) for _ in range(count)]
            if made and self.rng.random() < TWICE_CHANCE:
                return [*made, copy.deepcopy(self.rng.choice(made))]
            return _distinct(made)
        return self.one(field, struct)

    def one(self, field: spec.Field, struct: spec.Struct) -> Any:
        if field.struct is not None:
            return self.struct(field.struct)
        if field.type == "records":
            return self.pools.records(transactional=self.generator.is_transactional)
        keys = (f"{self.api}.{struct.name}.{field.name}", f"{struct.name}.{field.name}")
        for key in (*keys, f"{self.api}.{field.name}", field.name):
            if key in POOLS:
                value = POOLS[key](self.pools)
                return value if value is not None or self.version in field.nullable else (
                    default_value(self.cls, field) if field.default != "null" else ""
                )
        if field.type == "bool":
            return self.rng.random() < 0.5
        return self.rng.choice(("", "some")) if field.type == "string" else _plain(field)


def _distinct(made: list[Any]) -> list[Any]:
    """Without what names the same thing twice: a struct's first field, or a topic's id, does."""
    found: dict[str, Any] = {}
    for each in made:
        key = each
        if hasattr(each, "__slots__"):
            key = getattr(each, each.__slots__[0]), getattr(each, "topic_id", None)
        found.setdefault(repr(key), each)
    return list(found.values())


def _plain(field: spec.Field) -> Any:
    """Of fields without a pool, which mean nothing to a broker or are not reached."""
    return {"bytes": b"", "uuid": bytes(16), "float64": 0.0}.get(field.type, 0)
