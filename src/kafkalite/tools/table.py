"""The tools: their names, the modules here that are them, and Apache Kafka's classes."""

from __future__ import annotations

_PACKAGE = "org.apache.kafka.tools."

# A tool's module has `main(words)`, which gives its exit code.
MODULES: dict[str, str] = {
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-topics": "topics",
}
# What Apache Kafka's scripts start: for `kafka-run-class.sh`, and for the lines of a tool's log.
CLASSES: dict[str, str] = {
    "kafka-broker-api-versions": f"{_PACKAGE}BrokerApiVersionsCommand",
    "kafka-cluster": f"{_PACKAGE}ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": f"{_PACKAGE}consumer.group.ConsumerGroupCommand",
    "kafka-features": f"{_PACKAGE}FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}GroupsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}MetadataQuorumCommand",
    "kafka-topics": f"{_PACKAGE}TopicCommand",
}
