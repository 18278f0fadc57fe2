"""The tools: their names, the modules here that are them, and Apache Kafka's classes."""

from __future__ import annotations

_PACKAGE = "org.apache.kafka.tools."

# A tool's module has `main(words)`, which gives its exit code.
MODULES: dict[str, str] = {
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "console_consumer",
    "kafka-console-producer": "console_producer",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-delegation-tokens": "delegation_tokens",
    "kafka-delete-records": "delete_records",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "leader_election",
    "kafka-log-dirs": "log_dirs",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-storage": "storage",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
}
# What Apache Kafka's scripts start: for `kafka-run-class.sh`, and for the lines of a tool's log.
CLASSES: dict[str, str] = {
    "kafka-acls": f"{_PACKAGE}AclCommand",
    "kafka-broker-api-versions": f"{_PACKAGE}BrokerApiVersionsCommand",
    "kafka-cluster": f"{_PACKAGE}ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_PACKAGE}consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_PACKAGE}ConsoleProducer",
    "kafka-consumer-groups": f"{_PACKAGE}consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": f"{_PACKAGE}DelegationTokenCommand",
    "kafka-delete-records": f"{_PACKAGE}DeleteRecordsCommand",
    "kafka-features": f"{_PACKAGE}FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}GroupsCommand",
    "kafka-leader-election": f"{_PACKAGE}LeaderElectionCommand",
    "kafka-log-dirs": f"{_PACKAGE}LogDirsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}MetadataQuorumCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": f"{_PACKAGE}TopicCommand",
    "kafka-transactions": f"{_PACKAGE}TransactionsCommand",
}
