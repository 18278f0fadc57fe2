"""Topics as the page shows them: the list at once, numbers after that, one by itself.

The list takes one request whatever there is; numbers take one per broker and kind.
"""

from __future__ import annotations

from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.reached import reached
from kafkalite.client.survey import Partition, Survey, Topic, survey
from kafkalite.console.given import Given
from kafkalite.protocol.errors import Error


def listed(cluster: Cluster, given: Given) -> dict[str, Any]:
    found = survey(cluster, with_groups=False, with_offsets=False, with_settings=False)
    return {"topics": [_row(each) for each in found.topics.values()], "missing": found.missing}


def _row(topic: Topic) -> dict[str, Any]:
    partitions = topic.partitions.values()
    return {
        "name": topic.name, "internal": topic.is_internal, "partitions": len(topic.partitions),
        "replicas": max((len(each.replicas) for each in partitions), default=0),
        "behind": sum(_is_behind(each) for each in partitions),
        "leaderless": sum(each.leader < 0 for each in partitions),
    }  # fmt: skip


def _is_behind(partition: Partition) -> bool:
    return len(partition.in_sync) < len(partition.replicas)


def numbers(cluster: Cluster, given: Given) -> dict[str, Any]:
    """Of each topic: records, where its partitions end (all of them added), and bytes; of what
    nobody told, null. Rates are the difference of two of these."""
    found = survey(cluster, with_groups=False, with_settings=False, with_sizes=True)
    sizes: dict[str, int] = {}
    for (_, name, _), size in found.log_bytes.items():
        sizes[name] = sizes.get(name, 0) + size
    told = {}
    for topic in found.topics.values():
        ends = _sum([each.ends for each in topic.partitions.values()])
        begins = _sum([each.begins for each in topic.partitions.values()])
        known = ends is not None and begins is not None
        records = (ends or 0) - (begins or 0) if known else None
        told[topic.name] = [records, ends, sizes.get(topic.name)]
    return {"at_ms": found.at_ms, "topics": told, "missing": found.missing}


def _sum(values: list[int | None]) -> int | None:
    known = [each for each in values if each is not None]
    return sum(known) if len(known) == len(values) else None


def one(cluster: Cluster, given: Given) -> dict[str, Any]:
    name = given.name("name")
    found = survey(cluster, [name], with_groups=False, with_settings=False, with_sizes=True)
    topic = _there(found, name)
    leaders = {(name, index): each.leader for index, each in topic.partitions.items()}
    sizes = {
        index: size for (node_id, _, index), size in found.log_bytes.items()
        if leaders.get((name, index)) == node_id
    }  # fmt: skip
    rows = [
        [index, each.leader, each.replicas, each.in_sync, each.begins, each.ends, sizes.get(index)]
        for index, each in topic.partitions.items()
    ]
    return {**_row(topic), "at_ms": found.at_ms, "rows": rows, "missing": found.missing}


def groups(cluster: Cluster, given: Given) -> dict[str, Any]:
    """Who has committed offsets of a topic, or reads it now."""
    name = given.name("name")
    found = survey(cluster, [name], with_settings=False)
    _there(found, name)
    rows = []
    for group in found.groups.values():
        places = [each for each in reached(found, group) if each.topic == name]
        if places:
            lag = _sum([each.lag for each in places])
            rows.append({
                "name": group.group_id, "state": group.state, "kind": group.kind,
                "members": len(group.members), "partitions": len(places), "lag": lag,
            })  # fmt: skip
    return {"groups": rows, "missing": found.missing}


def _there(found: Survey, name: str) -> Topic:
    topic = found.topics.get(name)
    if topic is None:
        code = Error.UNKNOWN_TOPIC_OR_PARTITION
        raise ClientFailed(f"there is no topic {name}, or it may not be seen", code)
    return topic
