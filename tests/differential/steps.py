"""Single requests for conversations by hand: about one topic and one group, mostly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterClientQuotasRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeShareGroupOffsetsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListOffsetsRequest,
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


def markers(producer_id: int, *topics: str, transaction_version: int = 0) -> Step:
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer_id,
        producer_epoch=0,
        topics=[WriteTxnMarkersRequest.Topic(name=one, partition_indexes=[0]) for one in topics],
        transaction_version=transaction_version,
    )
    return Step(WriteTxnMarkersRequest(markers=[marker]), 2)


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


def without_protocol(member_id: str) -> Step:
    step = joining(member_id, None)
    step.request.protocols = []
    return step


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


def by_replica_of_epoch(epoch: int) -> Step:
    step = of_epoch(epoch)
    step.request.replica_id = 1
    return step


def deleted() -> Step:
    topic = DeleteTopicsRequest.Topic(name=TOPIC)
    return Step(DeleteTopicsRequest(topics=[topic], timeout_ms=10_000), 6)


def fetch_by_id(session_id: int, session_epoch: int) -> Step:
    step = fetch(session_id, session_epoch)
    if session_epoch:
        step.request.topics = []
    else:
        step.request.topics[0].topic_id = canonical_id(TOPIC_ID, 1)
    step.version = 13
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


def produced_to(
    *places: tuple[str, int], version: int = 9, odd: int = -1, **fields: Any
) -> Step:
    """A batch for each of these partitions; only that of number `odd` has these fields."""
    batches = [Batch(((TIMESTAMP, None, b"value", ()),)) for _ in places]
    batches[odd] = replace(batches[odd], **fields)
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


def described_rules(resource_type: int, operation: int) -> Step:
    request = DescribeAclsRequest(
        resource_type_filter=resource_type, operation=operation, permission_type=1,
        pattern_type_filter=1,
    )  # fmt: skip
    return Step(request, 3)


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


def share_coordinator() -> Step:
    key = f"readers-RUN:{'A' * 22}:0"
    return Step(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)


def states_told_twice(kind: Any) -> Step:
    """Of one topic in two places, with a partition that stands in both."""
    topics = [
        kind.Topic(
            topic_id=canonical_id(TOPIC_ID, 1),
            partitions=[kind.Partition(partition=index) for index in indexes],
        )
        for indexes in ([1, 0, 1], [0])
    ]
    return Step(kind(group_id="readers-RUN", topics=topics), kind.SPEC.api.stable[-1])


def offsets_of_shared_twice() -> Step:
    kind = DescribeShareGroupOffsetsRequest
    topics = [kind.Topic(topic_name=TOPIC, partitions=each) for each in ([1, 0, 1], [0])]
    return Step(kind(groups=[kind.Group(group_id="readers-RUN", topics=topics)]), 1)
