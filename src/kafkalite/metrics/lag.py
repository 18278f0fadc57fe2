"""Lag in records and in seconds, in the names of kafka-lag-exporter."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.client.survey import Group, Survey
from kafkalite.metrics.families import Families
from kafkalite.metrics.lag_seconds import Ends

_OF_GROUP = ("cluster_name", "group", "topic", "partition")


def lag_families(found: Survey, ends: Ends, cluster_name: str) -> Families:
    families = Families()
    begin = families.begin
    begin("kafka_partition_latest_offset", "Where a partition ends.",
          "cluster_name", "topic", "partition")  # fmt: skip
    begin("kafka_consumergroup_group_offset", "What a group has committed.", *_OF_GROUP)
    begin("kafka_consumergroup_group_lag", "How many records a group is behind.", *_OF_GROUP)
    begin("kafka_consumergroup_group_lag_seconds", "How long ago what a group reads next came.",
          *_OF_GROUP)  # fmt: skip
    begin("kafka_consumergroup_group_max_lag", "The largest lag of a group, in records.",
          *_OF_GROUP[:2])  # fmt: skip
    begin("kafka_consumergroup_group_max_lag_seconds", "The largest lag of a group, in seconds.",
          *_OF_GROUP[:2])  # fmt: skip
    for topic in found.topics.values():
        for index, partition in topic.partitions.items():
            if partition.ends is not None:
                families.add("kafka_partition_latest_offset", partition.ends, cluster_name,
                             topic.name, index)  # fmt: skip
    for group in found.groups.values():
        _add(families, group, list(_lags(found, ends, group)), cluster_name)
    return families


def _lags(
    found: Survey, ends: Ends, group: Group
) -> Iterator[tuple[tuple[str, int], int, int, float | None]]:
    """Each partition, what is committed there, and how far that is behind in records and time."""
    for place, committed in group.committed.items():
        end = found.end(place)
        if end is not None:
            seconds = ends.lag_seconds(place, committed, found.at_ms)
            yield place, committed, max(end - committed, 0), seconds


def _add(
    families: Families,
    group: Group,
    lags: list[tuple[tuple[str, int], int, int, float | None]],
    cluster_name: str,
) -> None:
    prefix, name = "kafka_consumergroup_group", group.group_id
    for place, committed, records, seconds in lags:
        families.add(f"{prefix}_offset", committed, cluster_name, name, *place)
        families.add(f"{prefix}_lag", records, cluster_name, name, *place)
        if seconds is not None:
            families.add(f"{prefix}_lag_seconds", seconds, cluster_name, name, *place)
    if lags:
        most = max(records for _, _, records, _ in lags)
        families.add(f"{prefix}_max_lag", most, cluster_name, name)
    known = [seconds for *_, seconds in lags if seconds is not None]
    if known:
        families.add(f"{prefix}_max_lag_seconds", max(known), cluster_name, name)
