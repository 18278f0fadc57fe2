"""Conversations that were once answered differently, until kafkalite was mended.

What a test asks of both brokers again and again; each is named for what holds since.
"""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    FetchRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    UpdateFeaturesRequest,
    WriteTxnMarkersRequest,
)
from kafkalite.testing.comparison.names import TOPIC_ID, canonical_id
from tests.differential.batches import TIMESTAMP, Batch
from tests.differential.generating import Step

TOPIC = "apples-RUN"


def created() -> Step:
    topic = CreateTopicsRequest.Topic(name=TOPIC, num_partitions=2, replication_factor=1)
    return Step(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)


def fetch(session_id: int, session_epoch: int, *, forgets: bool = False) -> Step:
    partition = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchRequest.Topic(topic=TOPIC, partitions=[partition])
    forgotten = FetchRequest.ForgottenTopicsData(topic=TOPIC, partitions=[0])
    request = FetchRequest(
        session_id=session_id,
        session_epoch=session_epoch,
        max_bytes=1000,
        isolation_level=1,
        topics=[topic],
        forgotten_topics_data=[forgotten] if forgets else [],
    )
    return Step(request, 9)


def beyond_the_end() -> Step:
    step = fetch(0, -1)
    step.request.topics[0].partitions[0].fetch_offset = 40
    return step


def of_epoch(epoch: int) -> Step:
    step = beyond_the_end()
    step.request.topics[0].partitions[0].current_leader_epoch = epoch
    return step


def markers(producer_id: int, *topics: str) -> Step:
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer_id,
        producer_epoch=0,
        topics=[WriteTxnMarkersRequest.Topic(name=one, partition_indexes=[0]) for one in topics],
    )
    return Step(WriteTxnMarkersRequest(markers=[marker]), 1)


def offsets_of_no_transaction(group_id: str = "readers-RUN") -> Step:
    partition = TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=2)
    topic = TxnOffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(
        TxnOffsetCommitRequest(
            group_id=group_id, producer_id=-1, producer_epoch=-1, topics=[topic]
        ),
        3,
    )


def quorum(*topics: str) -> Step:
    partitions = [DescribeQuorumRequest.Partition(partition_index=0)]
    asked = [DescribeQuorumRequest.Topic(topic_name=one, partitions=partitions) for one in topics]
    return Step(DescribeQuorumRequest(topics=asked), 2)


def earliest() -> Step:
    partition = ListOffsetsRequest.Partition(partition_index=0, timestamp=-2)
    topic = ListOffsetsRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)


def producers(topic: str) -> Step:
    asked = DescribeProducersRequest.Topic(name=topic, partition_indexes=[0])
    return Step(DescribeProducersRequest(topics=[asked]), 0)


def init(transactional_id: str | None, **fields: Any) -> Step:
    fields = {"transaction_timeout_ms": 1000, **fields}
    return Step(InitProducerIdRequest(transactional_id=transactional_id, **fields), 3)


def created_with(name: str, value: str) -> Step:
    step = created()
    step.request.topics[0].configs = [CreateTopicsRequest.Config(name=name, value=value)]
    return step


def produced() -> Step:
    batch = Batch(((TIMESTAMP, None, b"value", ()),))
    data = ProduceRequest.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name=TOPIC, partition_data=[data])
    return Step(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)


def joining(member_id: str, instance_id: str | None) -> Step:
    request = JoinGroupRequest(
        group_id="readers-RUN", session_timeout_ms=10_000, rebalance_timeout_ms=700,
        protocol_type="consumer", member_id=member_id, group_instance_id=instance_id,
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )
    return Step(request, 6)


def copied(topic: str) -> Step:
    asked = AlterReplicaLogDirsRequest.Topic(name=topic, partitions=[0])
    directory = AlterReplicaLogDirsRequest.Dir(path="/nowhere", topics=[asked])
    return Step(AlterReplicaLogDirsRequest(dirs=[directory]), 2)


def refused_member() -> Step:
    """It supports no protocol."""
    request = JoinGroupRequest(
        group_id="readers-RUN", session_timeout_ms=10_000, rebalance_timeout_ms=700,
        protocol_type="consumer",
    )
    return Step(request, 6)


def refused_commit() -> Step:
    partition = OffsetCommitRequest.Partition(
        partition_index=0, committed_offset=3, committed_metadata="x" * 4097
    )
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(OffsetCommitRequest(group_id="readers-RUN", topics=[topic]), 2)


def offset_deletion() -> Step:
    partition = OffsetDeleteRequest.Partition(partition_index=0)
    topic = OffsetDeleteRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(OffsetDeleteRequest(group_id="readers-RUN", topics=[topic]), 0)


def listed(version: int = 7, *, isolation_level: int = 0, timestamp: int = -2) -> Step:
    """The same partition twice."""
    step = earliest()
    partition = ListOffsetsRequest.Partition(partition_index=0, timestamp=timestamp)
    step.request.topics[0].partitions = [partition, partition]
    step.request.isolation_level = isolation_level
    step.version = version
    return step


def end() -> Step:
    step = earliest()
    step.request.topics[0].partitions[0].timestamp = -1
    return step


def at_level(level: int, *, topic: str = TOPIC, version: int = 9) -> Step:
    step = fetch(0, -1)
    step.request.isolation_level, step.version = level, version
    step.request.topics[0].topic = topic
    return step


def by_replica(replica_id: int) -> Step:
    step = fetch(0, -1)
    step.request.replica_id = replica_id
    return step


def by_replica_with_ids(replica_id: int) -> Step:
    step = by_replica(-1)
    step.request.topics[0].topic_id = canonical_id(TOPIC_ID, 1)
    step.request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id)
    step.version = 18
    return step


def of_bytes(max_bytes: int, partition_max_bytes: int, *indexes: int) -> Step:
    step = fetch(0, -1)
    step.request.max_bytes = max_bytes
    step.request.topics[0].partitions = [
        FetchRequest.Partition(
            partition=index, fetch_offset=0, partition_max_bytes=partition_max_bytes
        )
        for index in indexes
    ]
    return step


def produced_to(*places: tuple[str, int], version: int = 9, **fields: Any) -> Step:
    """A batch for each of these partitions; only the last has anything uncommon about it."""
    usual: dict[str, Any] = {"producer_id": -1}
    batches = [
        Batch(((TIMESTAMP, None, b"value", ()),), **(fields if place is places[-1] else usual))
        for place in places
    ]
    topics = [
        ProduceRequest.TopicData(
            name=name, partition_data=[ProduceRequest.PartitionData(index=index, records=batch)]
        )
        for (name, index), batch in zip(places, batches, strict=True)
    ]
    return Step(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), version)


def deleted_before(*offsets: int) -> Step:
    partitions = [
        DeleteRecordsRequest.Partition(partition_index=0, offset=offset) for offset in offsets
    ]
    topic = DeleteRecordsRequest.Topic(name=TOPIC, partitions=partitions)
    return Step(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)


def twice_committed() -> Step:
    partition = OffsetCommitRequest.Partition(
        partition_index=7, committed_offset=3, committed_metadata=""
    )
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(OffsetCommitRequest(group_id="readers-RUN", topics=[topic, topic]), 2)


def twice_committed_in_transaction() -> Step:
    step = offsets_of_no_transaction()
    step.request.topics *= 2
    return step


def twice_deleted() -> Step:
    step = offset_deletion()
    step.request.topics *= 2
    return step


def twice_added(version: int = 3, *, verify_only: bool = False) -> Step:
    topic = AddPartitionsToTxnRequest.Topic(name=TOPIC, partitions=[0, 0])
    who: dict[str, Any] = {"transactional_id": "till-RUN", "producer_id": 77, "producer_epoch": 0}
    one = AddPartitionsToTxnRequest.Transaction(topics=[topic], verify_only=verify_only, **who)
    request = AddPartitionsToTxnRequest(
        transactions=[one, one], v3_and_below_topics=[topic],
        **{f"v3_and_below_{name}": value for name, value in who.items()},
    )  # fmt: skip
    return Step(request, version)


def of_no_epoch(*topics: str) -> Step:
    step = markers(5, *topics)
    step.request.markers[0].producer_epoch = -1
    return step


def twice_copied() -> Step:
    step = copied(TOPIC)
    step.request.dirs[0].topics[0].partitions = [0, 0]
    return step


def of_empty_password() -> Step:
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name="alice-RUN", mechanism=1, iterations=4096, salt=b"s", salted_password=b""
    )
    return Step(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)


def twice_limited() -> Step:
    entity = AlterClientQuotasRequest.Entity(entity_type="user", entity_name="alice_RUN")
    ops = [AlterClientQuotasRequest.Op(key="producer_byte_rate", value=1e9)]
    entry = AlterClientQuotasRequest.Entry(entity=[entity], ops=ops)
    return Step(AlterClientQuotasRequest(entries=[entry, entry], validate_only=True), 1)


def twice_raised() -> Step:
    updates = [
        UpdateFeaturesRequest.FeatureUpdate(
            feature="group.version", max_version_level=level, upgrade_type=1
        )
        for level in (-1, 1)
    ]
    return Step(UpdateFeaturesRequest(feature_updates=updates, validate_only=True), 1)


# Each once differed, until kafkalite was mended.
MENDED: dict[str, list[Step]] = {
    "beyond the end no aborted transactions are told": [created(), beyond_the_end()],
    "an epoch below zero is none": [created(), of_epoch(-2)],
    "an earliest offset of an empty log has an epoch": [created(), earliest()],
    "a topic without partitions has no offsets": [
        Step(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name=TOPIC)]), 7)
    ],
    "a session that forgets all answers what it was asked": [
        fetch(0, 0),
        fetch(1_000_000_001, 1, forgets=True),
    ],
    "markers need a producer": [created(), markers(-1, TOPIC)],
    "markers need a topic before they need a producer": [markers(-1, "nix-RUN")],
    "markers of no partition are not answered": [markers(5)],
    "offsets need a transactional id": [created(), offsets_of_no_transaction()],
    "offsets need a topic before they need a group": [offsets_of_no_transaction("")],
    "half an identity is none": [init(None, producer_epoch=0), init("till-RUN", producer_id=3)],
    "a refused producer has no epoch": [init("till-RUN", transaction_timeout_ms=0)],
    "a quorum is asked for alone": [
        quorum("nix-RUN"),
        quorum(),
        quorum("__cluster_metadata", "nix-RUN"),
    ],
    "producers of an impossible topic": [producers("no good!RUN")],
    "producers of a topic that is not there": [producers("nix-RUN")],
    "a resource of no known type refuses the whole request": [
        Step(
            DescribeConfigsRequest(resources=[
                DescribeConfigsRequest.Resource(resource_type=kind, resource_name=TOPIC)
                for kind in (2, 99)
            ]),
            4,
        )
    ],
    "a topic without a name or an id": [
        Step(MetadataRequest(topics=[MetadataRequest.Topic(name=None)]), version)
        for version in (12, 13)
    ],
    "a topic without a name among topics": [
        Step(
            DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.Topic(name=one) for one in ("", "nix-RUN")]
            ),
            0,
        )
    ],
    "a name that a copy's directory has no room for": [copied("x" * 213), copied("x" * 214)],
    "the first version of UpdateFeatures only raises": [
        Step(
            UpdateFeaturesRequest(feature_updates=[
                UpdateFeaturesRequest.FeatureUpdate(
                    feature="transaction.version", max_version_level=1, allow_downgrade=True
                )
            ]),
            0,
        )
    ],
    "all replicas are enough": [created_with("min.insync.replicas", "2"), produced()],
    "a pending member has no instance id": [
        joining("", None),
        joining("member-1", "static-RUN"),
    ],
    "an election among no partitions": [
        Step(ElectLeadersRequest(election_type=2, topic_partitions=[], timeout_ms=1000), 1)
    ],
    "a group that only a refused commit has named": [
        created(),
        refused_commit(),
        Step(DeleteGroupsRequest(groups_names=["readers-RUN"]), 1),
    ],
    "a group that only a refused member has named": [
        refused_member(),
        Step(DescribeGroupsRequest(groups=["readers-RUN"]), 5),
        Step(ListGroupsRequest(), 4),
        offset_deletion(),
        Step(DeleteGroupsRequest(groups_names=["readers-RUN"]), 2),
        Step(DescribeGroupsRequest(groups=["readers-RUN"]), 5),
    ],
    "offsets of a partition that is named twice are told once": [
        created(),
        listed(),
        listed(1, timestamp=-1),
    ],
    "offsets at no known isolation level": [created(), listed(5, isolation_level=2, timestamp=-4)],
    "a fetch at no known isolation level": [
        created(),
        produced(),
        at_level(2),
        at_level(-1, version=5),
        at_level(2, topic="nix-RUN"),
    ],
    "a fetch by a replica that is none": [
        created(),
        by_replica(5),
        by_replica(1),
        by_replica_with_ids(5),
    ],
    "a fetch of less than no bytes": [
        created(),
        of_bytes(-1, 1000, 0),
        produced(),
        of_bytes(-1, 1000, 0, 1),
        of_bytes(-1, 1000, 1, 0),
        of_bytes(1000, -1, 0),
        of_bytes(-1, 1000, 7, 0),
    ],
    "the first batch of a partition is whole or not there": [
        created(),
        produced_to((TOPIC, 0), (TOPIC, 1)),
        of_bytes(1000, 1, 0, 1),
    ],
    "batches of a topic with zstd go to clients that may not know it": [
        created_with("compression.type", "zstd"),
        produced(),
        at_level(1),
    ],
    "a batch of no known format refuses the whole request": [
        created(),
        produced_to((TOPIC, 0), ("nix-RUN", 0), wrong="magic"),
        end(),
    ],
    "transactional records without a transactional id refuse the whole request": [
        created(),
        produced_to((TOPIC, 0), ("nix-RUN", 0), producer_id=5, is_transactional=True),
        end(),
    ],
    "records of a partition that is named twice are written once": [
        created(),
        produced_to((TOPIC, 0), (TOPIC, 1), (TOPIC, 0)),
        end(),
        produced_to((TOPIC, 0), (TOPIC, 0), wrong="empty"),
        end(),
    ],
    "records of a partition that is named twice are deleted once": [
        created(),
        produced(),
        deleted_before(0, 1),
        earliest(),
        deleted_before(1, 40),
    ],
    "records of a log that is kept for ever are deleted": [
        created_with("cleanup.policy", ""),
        produced(),
        deleted_before(-2),
        deleted_before(1),
    ],
    "offsets of no partition are refused as often as they are named": [
        created(),
        twice_committed(),
        twice_committed_in_transaction(),
        twice_deleted(),
    ],
    "partitions are refused as often as they are added": [
        created(),
        twice_added(),
        twice_added(4),
        twice_added(5, verify_only=True),
    ],
    "markers need an epoch": [created(), of_no_epoch("nix-RUN"), of_no_epoch("nix-RUN", TOPIC)],
    "a replica is moved once": [created(), twice_copied()],
    "nothing can be derived from an empty password": [of_empty_password()],
    "an entity of quotas that is named twice": [twice_limited()],
    "a feature that is named twice": [twice_raised()],
    "an unknown state of transactions is told once": [
        Step(ListTransactionsRequest(state_filters=["nix", "nix"]), 1)
    ],
    "no reassignments": [Step(AlterPartitionReassignmentsRequest(), version) for version in (0, 1)],
}
