"""How groups do, in Burrow's words: its JSON by path, and its series."""

from __future__ import annotations

from typing import Any

from kafkalite.client.survey import Survey
from kafkalite.metrics.families import Families
from kafkalite.metrics.windows import Commit, PartitionStatus, Status, Windows, of_group

Json = dict[str, Any]


def answer(
    path: tuple[str, ...], cluster: str, found: Survey, windows: Windows, now_ms: int
) -> tuple[int, Json]:
    """The answer to what is behind `/v3/kafka`, and its status code."""
    if not path:
        return _said("cluster list returned", clusters=[cluster])
    if path[0] != cluster:
        return _refused("cluster not found")
    groups = _Groups(found, windows, now_ms)
    match path[1:]:
        case ():
            servers = [f"{each.host}:{each.port}" for each in found.brokers]
            module = {"class-name": "kafka", "servers": servers}
            return _said("cluster module detail returned", module=module)
        case ("topic",):
            return _said("topic list returned", topics=sorted(found.topics))
        case ("topic", name) if name in found.topics:
            partitions = found.topics[name].partitions.values()
            offsets = [-1 if each.ends is None else each.ends for each in partitions]
            return _said("topic offsets returned", offsets=offsets)
        case ("topic", name, "consumers") if name in found.topics:
            return _said("topic consumers returned", consumers=groups.of_topic(name))
        case ("topic", *_):
            return _refused("cluster or topic not found")
        case ("consumer",):
            return _said("consumer list returned", consumers=sorted(windows.groups))
        case ("consumer", name) if name in windows.groups:
            return _said("consumer detail returned", topics=groups.detail(name))
        case ("consumer", name, "status" | "lag" as which):
            status = groups.status(cluster, name, shows_all=which == "lag")
            code = 200 if name in windows.groups else 404
            return code, {"error": False, "message": "consumer status returned", "status": status}
        case ("consumer", *_):
            return _refused("cluster or consumer not found")
    return _refused("not found")


def burrow_families(cluster: str, found: Survey, windows: Windows, now_ms: int) -> Families:
    families = Families()
    of_group_labels = ("cluster", "consumer_group")
    of_place = (*of_group_labels, "topic", "partition")
    begin = families.begin
    begin("burrow_kafka_consumer_lag_total", "Lag of a group.", *of_group_labels)
    begin("burrow_kafka_consumer_status", "1 is OK, 2 WARN, 3 ERR.", *of_group_labels)
    begin("burrow_kafka_consumer_partition_lag", "Lag at a partition.", *of_place)
    begin("burrow_kafka_consumer_current_offset", "The last commit at a partition.", *of_place)
    begin("burrow_kafka_topic_partition_status", "1 is OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND.",
          *of_place)  # fmt: skip
    begin("burrow_kafka_topic_partition_offset", "Where a partition ends.",
          "cluster", "topic", "partition")  # fmt: skip
    ends = _ends(found)
    for place, end in ends.items():
        families.add("burrow_kafka_topic_partition_offset", end, cluster, *place)
    for group in sorted(windows.groups):
        partitions = windows.look(group, ends, now_ms)
        lag = sum(each.lag for each in partitions)
        families.add("burrow_kafka_consumer_lag_total", lag, cluster, group)
        families.add("burrow_kafka_consumer_status", of_group(partitions), cluster, group)
        for each in partitions:
            labels = (cluster, group, *each.place)
            families.add("burrow_kafka_consumer_partition_lag", each.lag, *labels)
            families.add("burrow_kafka_consumer_current_offset", each.last.offset, *labels)
            families.add("burrow_kafka_topic_partition_status", each.status, *labels)
    return families


class _Groups:
    def __init__(self, found: Survey, windows: Windows, now_ms: int) -> None:
        self._windows, self._now_ms = windows, now_ms
        self._ends = _ends(found)
        self._found = found

    def of_topic(self, name: str) -> list[str]:
        groups = self._windows.groups.items()
        return sorted(group for group, of in groups if any(topic == name for topic, _ in of))

    def detail(self, group: str) -> Json:
        topics: dict[str, list[Json]] = {}
        for place, window in sorted(self._windows.groups[group].items()):
            topic, _ = place
            last = window[-1]
            topics.setdefault(topic, []).append({
                "offsets": [_commit(each) for each in window],
                "owner": self._owner(group, place), "client_id": self._client(group, place),
                "current-lag": max(self._ends.get(place, last.offset) - last.offset, 0),
            })  # fmt: skip
        return topics

    def status(self, cluster: str, group: str, *, shows_all: bool) -> Json:
        partitions = self._windows.look(group, self._ends, self._now_ms)
        worst = max(partitions, key=lambda each: each.lag, default=None)
        shown = [each for each in partitions if shows_all or each.status > Status.OK]
        whole = sum(each.complete >= 1 for each in partitions)
        return {
            "cluster": cluster, "group": group, "status": of_group(partitions).name,
            "complete": whole / len(partitions) if partitions else 0,
            "partitions": [self._partition(group, each) for each in shown],
            "partition_count": len(partitions),
            "maxlag": None if worst is None else self._partition(group, worst),
            "totallag": sum(each.lag for each in partitions),
        }  # fmt: skip

    def _partition(self, group: str, each: PartitionStatus) -> Json:
        topic, index = each.place
        return {
            "topic": topic, "partition": index, "owner": self._owner(group, each.place),
            "client_id": self._client(group, each.place), "status": each.status.name,
            "start": _commit(each.first), "end": _commit(each.last), "current_lag": each.lag,
            "complete": each.complete,
        }  # fmt: skip

    def _owner(self, group: str, place: tuple[str, int]) -> str:
        return self._member(group, place)[0]

    def _client(self, group: str, place: tuple[str, int]) -> str:
        return self._member(group, place)[1]

    def _member(self, group: str, place: tuple[str, int]) -> tuple[str, str]:
        topic, index = place
        known = self._found.groups.get(group)
        for member in [] if known is None else known.members:
            if index in member.assigned.get(topic, ()):
                return member.host, member.client_id
        return "", ""


def _ends(found: Survey) -> dict[tuple[str, int], int]:
    return {
        (topic.name, index): partition.ends
        for topic in found.topics.values()
        for index, partition in topic.partitions.items()
        if partition.ends is not None
    }


def _commit(commit: Commit) -> Json:
    return {"offset": commit.offset, "timestamp": commit.at_ms, "lag": commit.lag}


def _said(message: str, **more: Any) -> tuple[int, Json]:
    return 200, {"error": False, "message": message, **more}


def _refused(message: str) -> tuple[int, Json]:
    return 404, {"error": True, "message": message}
