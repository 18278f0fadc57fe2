"""The topics that coordinators keep their state in: with how many partitions and which settings.

Owns what each is created with. There are never more replicas than live brokers, so that a single
broker serves groups and transactions without being told to.
"""

from __future__ import annotations

from kafkalite.config import BrokerConfig
from kafkalite.protocol.messages import CreateTopicsRequest

Topic = CreateTopicsRequest.Topic
# Topic -> prefix of its settings.
PREFIXES = {
    "__consumer_offsets": "offsets.topic",
    "__transaction_state": "transaction.state.log",
    "__share_group_state": "share.coordinator.state.topic",
}
# Codec numbers of offsets.topic.compression.codec and its like.
CODECS = ("producer", "gzip", "snappy", "lz4", "zstd")


def internal_topic(config: BrokerConfig, name: str, live_brokers: int) -> Topic:
    """What an internal topic is created with."""
    prefix = PREFIXES[name]
    factor = min(config.get_int(f"{prefix}.replication.factor"), max(1, live_brokers))
    settings = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed" if name == "__transaction_state" else "producer",
        "segment.bytes": str(config.get_int(f"{prefix}.segment.bytes")),
    }
    if name == "__share_group_state":
        # Its records are differences; Apache Kafka deletes those before the last whole state.
        settings |= {"cleanup.policy": "delete", "retention.ms": "-1"}
    if name != "__consumer_offsets":
        least_isr = min(config.get_int(f"{prefix}.min.isr"), factor)
        settings["min.insync.replicas"] = str(least_isr)
    if name == "__transaction_state":
        settings["unclean.leader.election.enable"] = "false"
    return Topic(
        name=name,
        num_partitions=config.get_int(f"{prefix}.num.partitions"),
        replication_factor=factor,
        configs=[CreateTopicsRequest.Config(name=key, value=settings[key]) for key in settings],
    )
