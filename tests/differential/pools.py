"""The values of which requests are made: mostly those that fit, sometimes those that do not.

A pool is asked by field name, or by API and field name. RUN in a text becomes the conversation's
own word when it is sent, so that conversations on one broker do not meet; a group or transaction
without a name, which they would share, is only named where it is refused. Not asked at all are
UnregisterBroker, which would end the broker, and SASL, whose conversations are tests/compat's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kafkalite.testing.comparison.names import OTHER_ID, canonical_id
from tests.differential.batches import TIMESTAMP, Batch, random_batch
from tests.differential.memory import Memory

TOPICS = ("apples-RUN", "apples-RUN", "pears-RUN", "plums-RUN")
ODD_TOPICS = ("nix-RUN", "", "..", "apples.RUN", "apples_RUN", "no good!RUN", "RUN" + "x" * 250)
GROUPS = ("readers-RUN", "readers-RUN", "clerks-RUN")
TRANSACTIONS = ("till-RUN", "till-RUN", "bank-RUN")
SETTINGS = (
    ("retention.ms", ("-1", "864000000", "-2", "x")),
    ("cleanup.policy", ("delete", "compact", "compact,delete", "shred", "")),
    ("min.insync.replicas", ("1", "2", "0")),
    ("compression.type", ("producer", "gzip", "zstd", "uncompressed", "rar")),
    ("max.message.bytes", ("1048588", "150", "-1")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "Never")),
    ("message.timestamp.after.max.ms", ("3600000", "1")),
    ("segment.bytes", ("1048576", "14")),
    ("preallocate", ("false", "maybe")),
    ("unclean.leader.election.enable", ("true", "false")),
    ("no.such.setting", ("1",)),
)

REBALANCE_TIMEOUT_MS = 700
STRANGER = 10**15  # the id of a producer that no broker will ever have given out
UNKNOWN_ID = canonical_id("topic id", 99)


class Pools:
    """Chance, what is known so far, and whom the request at hand speaks for."""

    def __init__(self, rng: random.Random, memory: Memory) -> None:
        self.rng, self.memory = rng, memory
        self.begin()

    def begin(self) -> None:
        """A new request: one member, producer, session and setting for all of its fields."""
        rng, memory = self.rng, self.memory
        self.member = _last(rng, memory.members, ("", -1))
        self.producer = _last(rng, memory.producers, (-1, -1))
        self.session = _last(rng, memory.sessions, (0, -1))
        self.setting = rng.choice(SETTINGS)
        self.group = rng.choice(GROUPS)

    def often(self, usual: Any, *odd: Any, chance: float = 0.12) -> Any:
        return self.rng.choice(odd) if odd and self.rng.random() < chance else usual

    def one_of(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def topic(self) -> str:
        return str(self.often(self.one_of(*TOPICS), *ODD_TOPICS, chance=0.08))

    def topic_id(self) -> bytes:
        unknown = (UNKNOWN_ID, bytes(16))
        if not self.memory.topic_ids:
            return self.rng.choice(unknown)
        known = self.rng.choice(list(self.memory.topic_ids))
        return bytes(self.often(known, *unknown, chance=0.08))

    def partition(self) -> int:
        return int(self.often(self.one_of(0, 0, 0, 1), 2, 7, -1))

    def group_id(self) -> str:
        return str(self.often(self.group, "nix-RUN", chance=0.06))

    def transactional_id(self) -> str:
        return str(self.often(self.one_of(*TRANSACTIONS), "nix-RUN", chance=0.06))

    def member_id(self) -> str:
        return str(self.often(self.member[0], "", "stranger"))

    def generation(self) -> int:
        return int(self.often(self.member[1], 0, 1, -1, -2, 99))

    def producer_id(self) -> int:
        return int(self.often(self.producer[0], -1, STRANGER, -7, chance=0.06))

    def producer_epoch(self) -> int:
        epoch = self.producer[1]
        return int(self.often(epoch, epoch + 1, max(-1, epoch - 1), -1, chance=0.08))

    def offset(self) -> int:
        return int(self.often(self.one_of(0, 0, 1, 2, 3), -1, 5, 40, -2, 2**40))

    def records(self, *, transactional: bool = False) -> Batch:
        return random_batch(self.rng, self.memory, transactional=transactional)

    def setting_value(self) -> str:
        return str(self.rng.choice(self.setting[1]))


def _last(rng: random.Random, known: Any, nobody: Any) -> Any:
    """Mostly the newest, sometimes an older one."""
    if not known:
        return nobody
    return known[-1] if rng.random() < 0.8 else rng.choice(list(known))


Pool = Callable[[Pools], Any]

# By field name, or API.field name; of an array of scalars, its element.
POOLS: dict[str, Pool] = {
    "name": Pools.topic,
    "topic": Pools.topic,
    "topic_name": Pools.topic,
    "topic_names": Pools.topic,
    "topic_id": Pools.topic_id,
    "index": Pools.partition,
    "partition": Pools.partition,
    "partition_index": Pools.partition,
    "partition_indexes": Pools.partition,
    "partitions": Pools.partition,
    "group_id": Pools.group_id,
    "group_ids": Pools.group_id,
    "groups": Pools.group_id,
    "groups_names": Pools.group_id,
    "group_instance_id": lambda p: p.often(None, "static-RUN"),
    "instance_id": lambda p: p.often(None, "static-RUN"),
    "transactional_id": Pools.transactional_id,
    "transactional_ids": Pools.transactional_id,
    "v3_and_below_transactional_id": Pools.transactional_id,
    "member_id": Pools.member_id,
    "generation_id": Pools.generation,
    "generation_id_or_member_epoch": Pools.generation,
    "member_epoch": Pools.generation,
    "producer_id": Pools.producer_id,
    "v3_and_below_producer_id": Pools.producer_id,
    "producer_epoch": Pools.producer_epoch,
    "v3_and_below_producer_epoch": Pools.producer_epoch,
    "offset": Pools.offset,
    "fetch_offset": Pools.offset,
    "committed_offset": Pools.offset,
    "committed_metadata": lambda p: p.often(p.one_of("", "note"), None, "x" * 4097),
    "committed_leader_epoch": lambda p: p.often(-1, 0, 5),
    "current_leader_epoch": lambda p: p.often(-1, 0, 1, -2, chance=0.2),
    "leader_epoch": lambda p: p.often(0, -1, 1, 7, chance=0.3),
    "last_fetched_epoch": lambda p: p.often(-1, 0, 1),
    "timestamp": lambda p: p.one_of(
        -1, -2, -3, -4, -5, TIMESTAMP, TIMESTAMP + 5000, 2**50, -6
    ),
    "isolation_level": lambda p: p.often(p.one_of(0, 1), 2, -1, chance=0.03),
    "replica_id": lambda p: p.often(-1, -2, 1, 5, chance=0.04),
    "timeout_ms": lambda p: p.often(10_000, 1000),
    "validate_only": lambda p: p.rng.random() < 0.15,
    "broker_ids": lambda p: p.often(1, 2, -1),
    "replicas": lambda p: p.often(1, 2, -1, chance=0.3),
    "configuration_keys": lambda p: p.setting[0],
    "value": Pools.setting_value,
    "resource_type": lambda p: p.often(2, 0, 4, 8, 16, 32, 99, chance=0.1),
    "resource_name": Pools.topic,
    "config_operation": lambda p: p.often(0, 1, 2, 3, chance=0.4),
    "Produce.transactional_id": lambda p: None,
    "Produce.acks": lambda p: p.often(p.one_of(-1, 1), 0, 2, -2, chance=0.06),
    "Fetch.max_wait_ms": lambda p: p.often(0, 20, -1),
    "Fetch.min_bytes": lambda p: p.often(p.one_of(0, 1), -1, chance=0.05),
    "Fetch.max_bytes": lambda p: p.often(1 << 20, 0, 1, 100, -1),
    "Fetch.partition_max_bytes": lambda p: p.often(1 << 20, 0, 1, 100, -1),
    "Fetch.session_id": lambda p: p.often(p.session[0], 0, 77),
    "Fetch.session_epoch": lambda p: p.often(p.session[1], 0, -1, 1, 2, chance=0.3),
    "Fetch.replica_id": lambda p: p.often(-1, -2, 1, 5, chance=0.02),
    "Fetch.log_start_offset": lambda p: p.often(-1, 0, 5, -2),
    "Fetch.high_watermark": lambda p: p.often(2**63 - 1, 0, -1),
    "Fetch.cluster_id": lambda p: p.often(None, "another"),
    "Fetch.rack_id": lambda p: p.often("", "rack"),
    "FindCoordinator.key": lambda p: p.one_of(*GROUPS, *TRANSACTIONS, ""),
    "FindCoordinator.coordinator_keys": lambda p: p.one_of(*GROUPS, *TRANSACTIONS, ""),
    "FindCoordinator.key_type": lambda p: p.often(p.one_of(0, 1), 2, -1, 9),
    **{
        f"{api}.group_id": lambda p: p.often(p.group_id(), "", chance=0.04)
        for api in ("JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat")
    },
    # In version 0 others wait for a member as long as that.
    "JoinGroup.session_timeout_ms": lambda p: p.often(8_000, 0, 5, 10_000_000),
    "JoinGroup.rebalance_timeout_ms": lambda p: REBALANCE_TIMEOUT_MS,
    "JoinGroup.protocol_type": lambda p: p.often("consumer", "", "connect"),
    "JoinGroup.Protocol.name": lambda p: p.often("range", "roundrobin", ""),
    "JoinGroup.metadata": lambda p: b"\0\1\0\0\0\1\0\6apples\0\0\0\0\0\0\0\0",
    "SyncGroup.protocol_type": lambda p: p.often("consumer", "connect", None),
    "SyncGroup.protocol_name": lambda p: p.often("range", "roundrobin", None),
    "SyncGroup.assignment": lambda p: p.one_of(b"", b"mine"),
    "ListGroups.states_filter": lambda p: p.one_of("Stable", "Empty", "stable", "Dead", "nix"),
    "ListGroups.types_filter": lambda p: p.one_of("classic", "consumer", "Classic", "nix"),
    "CreateTopics.num_partitions": lambda p: p.often(p.one_of(1, 2, 3), -1, 0, -2, chance=0.2),
    "CreateTopics.replication_factor": lambda p: p.often(p.one_of(1, -1), 0, 2, -2),
    "CreateTopics.Config.name": lambda p: p.setting[0],
    "AlterConfigs.Config.name": lambda p: p.setting[0],
    "IncrementalAlterConfigs.Config.name": lambda p: p.setting[0],
    "CreatePartitions.count": lambda p: p.often(p.one_of(2, 3, 4), 1, 0, -1),
    "InitProducerId.transactional_id": lambda p: p.often(p.transactional_id(), None, chance=0.3),
    "InitProducerId.transaction_timeout_ms": lambda p: p.often(60_000, 0, -1, 10_000_000),
    "InitProducerId.producer_id": lambda p: p.often(-1, p.producer[0], STRANGER, chance=0.4),
    "InitProducerId.producer_epoch": lambda p: p.often(-1, p.producer[1], 5, chance=0.4),
    "AddPartitionsToTxn.verify_only": lambda p: p.rng.random() < 0.2,
    "WriteTxnMarkers.coordinator_epoch": lambda p: p.often(0, 1, -1),
    "WriteTxnMarkers.transaction_version": lambda p: p.often(0, 1, 2, 3),
    "Dir.path": lambda p: "/nowhere",
    "ElectLeaders.election_type": lambda p: p.often(p.one_of(0, 1), 2),
    "DescribeClientQuotas.entity_type": lambda p: p.often(p.one_of("user", "client-id"), "ip", "x"),
    "DescribeClientQuotas.match_type": lambda p: p.often(p.one_of(0, 1, 2), 3, -1),
    "DescribeClientQuotas.match": lambda p: p.one_of("alice_RUN", None, "bob_RUN"),
    "AlterClientQuotas.entity_type": lambda p: p.often(p.one_of("user", "client-id"), "ip", "x"),
    "AlterClientQuotas.entity_name": lambda p: p.often(
        p.one_of("alice_RUN", "bob_RUN", ""), "localhost", "127.0.0.1", "1.2.3"
    ),
    "AlterClientQuotas.key": lambda p: p.often(
        p.one_of("producer_byte_rate", "consumer_byte_rate", "request_percentage"), "nix", ""
    ),
    # A lower one would hold up the other conversations, if it is set for who has none of its own.
    "AlterClientQuotas.value": lambda p: p.often(p.one_of(1e9, 1e8), 0.0, -1.0, 1e9 + 0.5, 1e300),
    "DescribeUserScramCredentials.name": lambda p: p.one_of("alice-RUN", "bob-RUN", ""),
    "AlterUserScramCredentials.name": lambda p: p.often(p.one_of("alice-RUN", "bob-RUN"), ""),
    "AlterUserScramCredentials.mechanism": lambda p: p.often(p.one_of(1, 2), 0, 3, -1),
    "AlterUserScramCredentials.iterations": lambda p: p.often(4096, 4095, 16384, 16385, 0),
    "AlterUserScramCredentials.salt": lambda p: p.often(b"salt", b""),
    "AlterUserScramCredentials.salted_password": lambda p: p.often(b"p" * 32, b""),
    "UpdateFeatures.feature": lambda p: p.one_of("nix", "group.version", "transaction.version"),
    "UpdateFeatures.max_version_level": lambda p: p.one_of(0, 1, 2, 99, -1),
    "UpdateFeatures.upgrade_type": lambda p: p.often(1, 2, 3, 0, 9),
    "UpdateFeatures.validate_only": lambda p: True,
    "DescribeCluster.endpoint_type": lambda p: p.often(1, 3, 0),
    "ListTransactions.state_filters": lambda p: p.one_of("Ongoing", "Empty", "nix"),
    "ListTransactions.producer_id_filters": Pools.producer_id,
    "ListTransactions.duration_filter": lambda p: p.often(-1, 10_000_000, 0),
    "ListTransactions.transactional_id_pattern": lambda p: p.one_of(None, ".*RUN", "(", ""),
    "ConsumerGroupHeartbeat.rebalance_timeout_ms": lambda p: p.often(5000, -1, 0),
    "ConsumerGroupHeartbeat.subscribed_topic_names": Pools.topic,
    "ConsumerGroupHeartbeat.subscribed_topic_regex": lambda p: p.often(None, "apples.*RUN", "("),
    "ConsumerGroupHeartbeat.server_assignor": lambda p: p.often(None, "uniform", "range", "nix"),
    "ConsumerGroupHeartbeat.member_id": lambda p: p.often(
        p.member[0] or p.one_of("anna-RUN", "bert-RUN"), "", "anna-RUN", "bert-RUN", chance=0.4
    ),
    "ConsumerGroupHeartbeat.member_epoch": lambda p: p.often(
        p.one_of(0, p.member[1], p.member[1]), -1, -2, 1, 2, 99, -3
    ),
    "DescribeTopicPartitions.response_partition_limit": lambda p: p.often(2000, 1, 2, 0, -1),
    "PushTelemetry.subscription_id": lambda p: p.one_of(0, 5),
    "PushTelemetry.compression_type": lambda p: p.often(0, 1, 9),
    "client_instance_id": lambda p: p.one_of(bytes(16), canonical_id(OTHER_ID, 9)),
    "client_software_name": lambda p: p.often("compare", "", "bad name!", "-x"),
    "client_software_version": lambda p: p.often("1.0", "", "1 0"),
    "resource_types": lambda p: p.one_of(2, 4, 16, 32, 8, 0, 9),
    "resource_type_filter": lambda p: p.often(p.one_of(1, 2, 3), 0, 9),
    "pattern_type_filter": lambda p: p.often(p.one_of(1, 3, 4), 0, 9),
    "operation": lambda p: p.often(p.one_of(1, 2, 3), 0, 99),
    "permission_type": lambda p: p.often(p.one_of(1, 3), 0, 9),
    "principal": lambda p: p.often("User:alice", "alice", ""),
    "host": lambda p: "*",
    "feature_updates": lambda p: None,
    "records": Pools.records,
}
