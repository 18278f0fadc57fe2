"""What KMinion tells of a cluster, in its names: dashboards 14012, 14013 and 14014 read them."""

from __future__ import annotations

from collections import defaultdict

from kafkalite.client.survey import Group, Survey
from kafkalite.metrics.families import Families

_BROKER = ("broker_id", "address", "port", "rack_id")
_K = "kminion_kafka_"


def kminion_families(found: Survey) -> Families:
    families = Families()
    _begin(families)
    families.add("kminion_exporter_up", 1)
    _add_brokers(families, found)
    _add_topics(families, found)
    for group in found.groups.values():
        _add_group(families, found, group)
    return families


def _begin(families: Families) -> None:
    begin = families.begin
    begin("kminion_exporter_up", "1 while this page can be had.")
    begin(f"{_K}cluster_info", "The cluster.", "cluster_id", "cluster_version", "broker_count",
          "controller_id")  # fmt: skip
    begin(f"{_K}broker_info", "Each broker.", *_BROKER, "is_controller")
    begin(f"{_K}broker_log_dir_size_total_bytes", "Bytes in a broker's log directories.", *_BROKER)
    begin(f"{_K}topic_log_dir_size_total_bytes", "Bytes of a topic, over all replicas.",
          "topic_name")  # fmt: skip
    begin(f"{_K}topic_info", "Each topic.", "topic_name", "partition_count", "replication_factor",
          "cleanup_policy")  # fmt: skip
    for which, what in (("low", "begins"), ("high", "ends")):
        begin(f"{_K}topic_partition_{which}_water_mark", f"Where a partition {what}.",
              "topic_name", "partition_id")  # fmt: skip
        begin(f"{_K}topic_{which}_water_mark_sum", f"The sum of where partitions {what[:-1]}.",
              "topic_name")  # fmt: skip
    begin(f"{_K}consumer_group_info", "1 for a group that is stable.", "group_id", "protocol",
          "protocol_type", "state", "coordinator_id")  # fmt: skip
    begin(f"{_K}consumer_group_members", "Members of a group.", "group_id")
    begin(f"{_K}consumer_group_empty_members", "Members that nothing is assigned to.", "group_id")
    of_topic = ("group_id", "topic_name")
    begin(f"{_K}consumer_group_topic_members", "Members that read a topic.", *of_topic)
    begin(f"{_K}consumer_group_topic_assigned_partitions", "Partitions of a topic that are read.",
          *of_topic)  # fmt: skip
    begin(f"{_K}consumer_group_topic_partition_lag", "How many records a group is behind.",
          *of_topic, "partition_id")  # fmt: skip
    begin(f"{_K}consumer_group_topic_lag", "The same of a whole topic.", *of_topic)
    begin(f"{_K}consumer_group_topic_offset_sum", "What a group has committed of a topic.",
          *of_topic)  # fmt: skip


def _add_brokers(families: Families, found: Survey) -> None:
    held: defaultdict[int, int] = defaultdict(int)
    for (node_id, _, _), size in found.log_bytes.items():
        held[node_id] += size
    count, controller = len(found.brokers), found.controller
    families.add(f"{_K}cluster_info", 1, found.cluster_id, "", count, controller)
    for each in found.brokers:
        labels = (each.node_id, each.host, each.port, each.rack or "")
        is_controller = str(each.node_id == controller).lower()
        families.add(f"{_K}broker_info", 1, *labels, is_controller)
        if each.node_id in held:
            families.add(f"{_K}broker_log_dir_size_total_bytes", held[each.node_id], *labels)


def _add_topics(families: Families, found: Survey) -> None:
    held: defaultdict[str, int] = defaultdict(int)
    for (_, name, _), size in found.log_bytes.items():
        held[name] += size
    for topic in found.topics.values():
        name, partitions = topic.name, topic.partitions
        factor = max((len(each.replicas) for each in partitions.values()), default=0)
        families.add(f"{_K}topic_info", 1, name, len(partitions), factor,
                     topic.cleanup_policy or "")  # fmt: skip
        if name in held:
            families.add(f"{_K}topic_log_dir_size_total_bytes", held[name], name)
        for which, offsets in (
            ("low", {index: each.begins for index, each in partitions.items()}),
            ("high", {index: each.ends for index, each in partitions.items()}),
        ):
            known = {index: offset for index, offset in offsets.items() if offset is not None}
            for index, offset in known.items():
                families.add(f"{_K}topic_partition_{which}_water_mark", offset, name, index)
            if len(known) == len(partitions):
                families.add(f"{_K}topic_{which}_water_mark_sum", sum(known.values()), name)


def _add_group(families: Families, found: Survey, group: Group) -> None:
    name = group.group_id
    families.add(f"{_K}consumer_group_info", int(group.state == "Stable"), name, group.protocol,
                 group.protocol_type, group.state, group.coordinator)  # fmt: skip
    families.add(f"{_K}consumer_group_members", len(group.members), name)
    idle = sum(not any(each.assigned.values()) for each in group.members)
    families.add(f"{_K}consumer_group_empty_members", idle, name)
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for member in group.members:
        for topic, partitions in member.assigned.items():
            readers[topic].append(len(partitions))
    for topic, counts in readers.items():
        families.add(f"{_K}consumer_group_topic_members", len(counts), name, topic)
        families.add(f"{_K}consumer_group_topic_assigned_partitions", sum(counts), name, topic)
    _add_lag(families, found, group)


def _add_lag(families: Families, found: Survey, group: Group) -> None:
    lag: defaultdict[str, int] = defaultdict(int)
    offsets: defaultdict[str, int] = defaultdict(int)
    for (topic, index), committed in group.committed.items():
        offsets[topic] += committed
        end = found.end((topic, index))
        if end is not None:
            behind = max(end - committed, 0)
            lag[topic] += behind
            families.add(f"{_K}consumer_group_topic_partition_lag", behind, group.group_id, topic,
                         index)  # fmt: skip
    for topic, records in lag.items():
        families.add(f"{_K}consumer_group_topic_lag", records, group.group_id, topic)
    for topic, total in offsets.items():
        families.add(f"{_K}consumer_group_topic_offset_sum", total, group.group_id, topic)
