"""Conversations that were once answered differently, until kafkalite was mended.

What a test asks of both brokers again and again; each is named for what holds since.
"""

from __future__ import annotations

from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteShareGroupStateRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    ProduceRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    UpdateFeaturesRequest,
    WriteShareGroupStateRequest,
)
from tests.differential.generating import Step
from tests.differential.steps import (
    TOPIC,
    at_level,
    beyond_the_end,
    by_replica,
    by_replica_of_epoch,
    by_replica_with_ids,
    copied,
    created,
    created_with,
    deleted,
    deleted_before,
    described_rules,
    earliest,
    end,
    fetch,
    fetch_by_id,
    init,
    joining,
    listed,
    markers,
    of_bytes,
    of_empty_password,
    of_epoch,
    of_no_epoch,
    offset_deletion,
    offsets_of_no_transaction,
    offsets_of_shared_twice,
    produced,
    produced_to,
    producers,
    quorum,
    refused_commit,
    refused_member,
    share_coordinator,
    states_told_twice,
    twice_added,
    twice_committed,
    twice_committed_in_transaction,
    twice_copied,
    twice_deleted,
    twice_limited,
    twice_raised,
    without_protocol,
)

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
    "a session keeps the name of a topic that goes": [
        created(),
        fetch_by_id(0, 0),
        deleted(),
        fetch_by_id(1_000_000_001, 1),
    ],
    "markers need a producer": [created(), markers(-1, TOPIC)],
    "markers need a topic before they need a producer": [markers(-1, "nix-RUN")],
    "markers of no partition are not answered": [markers(5)],
    "a marker that is there is written again": [
        created(),
        *(markers(5, TOPIC, transaction_version=version) for version in (0, 2, 2, 3, 1)),
        end(),
    ],
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
                topics=[DescribeTopicPartitionsRequest.Topic(name=one) for one in ("", "nix-RUN")],
                cursor=cursor,
            ),
            0,
        )
        for cursor in (None, DescribeTopicPartitionsRequest.Cursor(topic_name=""))
    ],
    "a topic that a fetch session knows, made again": [
        created(),
        fetch_by_id(0, 0),
        deleted(),
        created(),
        fetch_by_id(1_000_000_001, 1),
    ],
    "topics without partitions are not answered": [
        created(),
        Step(ProduceRequest(topic_data=[ProduceRequest.TopicData(name=TOPIC)]), 9),
        Step(DeleteRecordsRequest(topics=[DeleteRecordsRequest.Topic(name=TOPIC)]), 2),
    ],
    "why a coordinator of no known kind is not found": [
        Step(FindCoordinatorRequest(key_type=9, key="x", coordinator_keys=["x"]), version)
        for version in (3, 4, 6)
    ],
    "settings of a topic that is not there": [
        Step(
            DescribeConfigsRequest(resources=[
                DescribeConfigsRequest.Resource(resource_type=2, resource_name="nix-RUN")
            ]),
            4,
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
        by_replica_of_epoch(0),
        by_replica_of_epoch(1),
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
        produced_to((TOPIC, 0), (TOPIC, 0), odd=0, producer_id=5, is_transactional=True),
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
    "shared partitions that are named twice are told of once": [
        created(),
        share_coordinator(),
        states_told_twice(InitializeShareGroupStateRequest),
        states_told_twice(WriteShareGroupStateRequest),
        states_told_twice(ReadShareGroupStateRequest),
        states_told_twice(ReadShareGroupStateSummaryRequest),
        offsets_of_shared_twice(),
        states_told_twice(DeleteShareGroupStateRequest),
    ],
    "a replica is moved once": [created(), twice_copied()],
    "nothing can be derived from an empty password": [of_empty_password()],
    "an entity of quotas that is named twice": [twice_limited()],
    "a feature that is named twice": [twice_raised()],
    "an unknown state of transactions is told once": [
        Step(ListTransactionsRequest(state_filters=["nix", "nix"]), 1)
    ],
    "who never was a member cannot join a group that has none": [
        Step(
            ConsumerGroupHeartbeatRequest(
                group_id="readers-RUN", member_id="anna-RUN", rebalance_timeout_ms=5000,
                subscribed_topic_names=[], topic_partitions=[],
            ),
            1,
        ),
        Step(LeaveGroupRequest(group_id="readers-RUN", member_id="anna-RUN"), 1),
        without_protocol("anna-RUN"),
    ],
    "a topic that cannot be created beside another is unknown": [
        Step(MetadataRequest(topics=[MetadataRequest.Topic(name=name)]), 4)
        for name in ("apples_RUN", "apples.RUN", "apples_RUN")
    ],
    "an access rule of no kind that is known": [
        described_rules(2, 3),
        described_rules(2, 0),
        described_rules(0, 3),
        described_rules(2, 9),
    ],
    "no reassignments": [Step(AlterPartitionReassignmentsRequest(), version) for version in (0, 1)],
}
