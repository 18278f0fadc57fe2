"""Lists whose order in Apache Kafka's answers means nothing, field by field, with the reason.

Every other list is compared in its order. Of these too all elements are compared, each with that of
the same key.
"""

from __future__ import annotations

from kafkalite.testing.comparison.comparing import ORDER
from kafkalite.testing.comparison.differences import Allowed


def _lists(*places: str) -> tuple[str, ...]:
    return tuple(f"{place}[]{ORDER}" for place in places)


ORDERS: tuple[Allowed, ...] = (
    Allowed(
        "order of a hash table",
        _lists(
            "AddPartitionsToTxn results_by_topic_v3_and_below",
            "AddPartitionsToTxn results_by_topic_v3_and_below[].results_by_partition",
            "AddPartitionsToTxn results_by_transaction[].topic_results",
            "AddPartitionsToTxn results_by_transaction[].topic_results[].results_by_partition",
            "AlterClientQuotas entries",
            "AlterClientQuotas entries[].entity",
            "AlterReplicaLogDirs results",
            "AlterReplicaLogDirs results[].partitions",
            "AlterUserScramCredentials results",
            "ApiVersions finalized_features",
            "ApiVersions supported_features",
            "ConsumerGroupDescribe groups",
            "ConsumerGroupDescribe groups[].members",
            "ConsumerGroupDescribe groups[].members[].assignment.topic_partitions",
            "ConsumerGroupDescribe groups[].members[].subscribed_topic_names",
            "ConsumerGroupDescribe groups[].members[].target_assignment.topic_partitions",
            "ConsumerGroupHeartbeat assignment.topic_partitions",
            "CreatePartitions results",
            "DeleteGroups results",
            "DeleteRecords topics",
            "DeleteRecords topics[].partitions",
            "DeleteShareGroupState results",
            "DeleteShareGroupState results[].partitions",
            "DeleteTopics responses",
            "DescribeClientQuotas entries",
            "DescribeClientQuotas entries[].entity",
            "DescribeClientQuotas entries[].values",
            "DescribeConfigs results[].configs",
            "DescribeGroups groups",
            "DescribeLogDirs results[].topics",
            "DescribeLogDirs results[].topics[].partitions",
            "DescribeShareGroupOffsets groups[].topics",
            "DescribeShareGroupOffsets groups[].topics[].partitions",
            "DescribeUserScramCredentials results",
            "DescribeUserScramCredentials results[].credential_infos",
            "DescribeProducers topics[].partitions[].active_producers",
            "DescribeTransactions transaction_states[].topics",
            "DescribeTransactions transaction_states[].topics[].partitions",
            "ElectLeaders replica_election_results",
            "ElectLeaders replica_election_results[].partition_result",
            "InitializeShareGroupState results",
            "InitializeShareGroupState results[].partitions",
            "ListConfigResources config_resources",
            "ListGroups groups",
            "ListOffsets topics",
            "ListOffsets topics[].partitions",
            "ListTransactions transaction_states",
            "Metadata topics",
            "OffsetFetch groups[].topics",
            "OffsetFetch groups[].topics[].partitions",
            "OffsetFetch topics",
            "OffsetFetch topics[].partitions",
            "Produce responses",
            "Produce responses[].partition_responses",
            "ReadShareGroupState results",
            "ReadShareGroupState results[].partitions",
            "ReadShareGroupStateSummary results",
            "ReadShareGroupStateSummary results[].partitions",
            "StreamsGroupDescribe groups",
            "StreamsGroupDescribe groups[].members",
            "StreamsGroupHeartbeat active_tasks",
            "StreamsGroupHeartbeat partitions_by_user_endpoint",
            "StreamsGroupHeartbeat partitions_by_user_endpoint[].active_partitions",
            "StreamsGroupHeartbeat partitions_by_user_endpoint[].standby_partitions",
            "StreamsGroupHeartbeat standby_tasks",
            "WriteShareGroupState results",
            "WriteShareGroupState results[].partitions",
            "WriteTxnMarkers markers",
            "WriteTxnMarkers markers[].topics",
            "WriteTxnMarkers markers[].topics[].partitions",
        ),
        "Apache Kafka gathers these in a hash table and answers in its order, which changes with"
        " the names in it and with its size.",
    ),
    Allowed(
        "order of a fetch",
        _lists("Fetch responses", "Fetch responses[].partitions"),
        "Apache Kafka answers partitions that it refuses before those that it reads, and where a"
        " topic has both in two places; kafkalite answers each topic once.",
    ),
)
