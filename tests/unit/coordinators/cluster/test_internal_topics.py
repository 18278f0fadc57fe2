"""Internal topics are created as Apache Kafka creates them: it may have the directory next."""

from __future__ import annotations

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.internal_topics import internal_topic

# What Apache Kafka 4.3.1 gives them.
SETTINGS = {
    "__consumer_offsets": {
        "cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600",
    },
    "__transaction_state": {
        "cleanup.policy": "compact", "compression.type": "uncompressed",
        "min.insync.replicas": "1", "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
    "__share_group_state": {
        "cleanup.policy": "delete", "compression.type": "producer", "min.insync.replicas": "1",
        "retention.ms": "-1", "segment.bytes": "104857600",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_an_internal_topic_has_the_settings_that_apache_kafka_gives_it(name: str) -> None:
    """Records of __share_group_state are differences: compaction would lose all but the last."""
    topic = internal_topic(BrokerConfig({}), name, live_brokers=1)
    assert {one.name: one.value for one in topic.configs} == SETTINGS[name]
