"""What kafka_exporter tells of a cluster, in its names: dashboard 7589 and Strimzi's rules know
them.

A group's partitions are all of each topic of which it has committed any; -1 stands for those that
it has not.
"""

from __future__ import annotations

from kafkalite.client.survey import Group, Survey, Topic
from kafkalite.metrics.families import Families

PARTITION = ("topic", "partition")
OF_GROUP = ("consumergroup", "topic", "partition")
NOTHING = -1


def exporter_families(found: Survey) -> Families:
    families = Families()
    _begin(families)
    families.add("kafka_brokers", len(found.brokers))
    for broker in found.brokers:
        address = f"{broker.host}:{broker.port}"
        families.add("kafka_broker_info", 1, broker.node_id, address)
    for topic in found.topics.values():
        _add_topic(families, topic)
    for group in found.groups.values():
        _add_group(families, found, group)
    return families


def _begin(families: Families) -> None:
    begin = families.begin
    begin("kafka_brokers", "Brokers of the cluster.")
    begin("kafka_broker_info", "Each broker and where it is.", "id", "address")
    begin("kafka_topic_partitions", "Partitions of a topic.", "topic")
    for name, help_text in (
        ("current_offset", "Where a partition ends."),
        ("oldest_offset", "Where a partition begins."),
        ("leader", "The broker that leads a partition."),
        ("replicas", "Replicas of a partition."),
        ("in_sync_replica", "Replicas of a partition that are in sync."),
        ("leader_is_preferred", "1 when the first of its replicas leads a partition."),
        ("under_replicated_partition", "1 when not all replicas of a partition are in sync."),
    ):
        begin(f"kafka_topic_partition_{name}", help_text, *PARTITION)
    begin("kafka_consumergroup_members", "Members of a group.", "consumergroup")
    begin("kafka_consumergroup_current_offset", "What a group has committed.", *OF_GROUP)
    begin("kafka_consumergroup_lag", "How many records a group is behind.", *OF_GROUP)
    begin("kafka_consumergroup_current_offset_sum", "What a group has committed of a topic.",
          *OF_GROUP[:2])  # fmt: skip
    begin("kafka_consumergroup_lag_sum", "How many records of a topic a group is behind.",
          *OF_GROUP[:2])  # fmt: skip


def _add_topic(families: Families, topic: Topic) -> None:
    families.add("kafka_topic_partitions", len(topic.partitions), topic.name)
    for index, each in topic.partitions.items():
        is_preferred = each.leader == (each.replicas or [NOTHING])[0] and each.leader >= 0
        for name, value in (
            ("current_offset", each.ends),
            ("oldest_offset", each.begins),
            ("leader", each.leader),
            ("replicas", len(each.replicas)),
            ("in_sync_replica", len(each.in_sync)),
            ("leader_is_preferred", int(is_preferred)),
            ("under_replicated_partition", int(len(each.in_sync) < len(each.replicas))),
        ):
            if value is not None:
                families.add(f"kafka_topic_partition_{name}", value, topic.name, index)


def _add_group(families: Families, found: Survey, group: Group) -> None:
    families.add("kafka_consumergroup_members", len(group.members), group.group_id)
    for name in dict.fromkeys(name for name, _ in group.committed):
        topic = found.topics.get(name)
        known = {} if topic is None else topic.partitions
        committed_sum = lag_sum = 0
        for index, partition in known.items():
            committed = group.committed.get((name, index), NOTHING)
            committed_sum += committed
            families.add(
                "kafka_consumergroup_current_offset", committed, group.group_id, name, index
            )
            if partition.ends is None:
                continue
            lag = NOTHING if committed == NOTHING else partition.ends - committed
            lag_sum += max(lag, 0) if committed == NOTHING else lag
            families.add("kafka_consumergroup_lag", lag, group.group_id, name, index)
        if known:
            families.add(
                "kafka_consumergroup_current_offset_sum", committed_sum, group.group_id, name
            )
            families.add("kafka_consumergroup_lag_sum", lag_sum, group.group_id, name)
