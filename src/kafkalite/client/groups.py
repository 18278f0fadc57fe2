"""Groups of consumers as their coordinators tell of them: state, members, offsets, lag.

Owns the way to a group's coordinator, which may move. Knows classic groups and those of the
consumer protocol. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, TryAgain
from kafkalite.client.consuming import Reader, Start
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    OffsetFetchRequest,
)

NO_GROUP = "Dead"
_GROUP_KEY = 0
_ABSENT = (Error.GROUP_ID_NOT_FOUND, Error.NONE)


@dataclass(slots=True)
class Member:
    """Who is in a group, from where."""

    member_id: str
    client_id: str
    host: str


@dataclass(slots=True)
class Group:
    """A group at one moment; one that is not there is Dead, as Apache Kafka says it."""

    group_id: str
    state: str = NO_GROUP
    members: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class Lag:
    """How far a group is behind the end of one partition: what there is to read for it, which
    begins where the partition does when nothing is committed, or when that has gone."""

    topic: str
    partition: int
    committed: int | None
    end: int
    beginning: int = 0

    @property
    def records(self) -> int:
        return max(0, self.end - max(self.committed or 0, self.beginning))


class Groups:
    """The groups of a cluster."""

    def __init__(self, cluster: Cluster, timeout_s: float) -> None:
        self._cluster = cluster
        self._patience = Patience(timeout_s)
        self._timeout_s = timeout_s

    def describe(self, group_id: str) -> Group:
        answer = self._ask(group_id, DescribeGroupsRequest(groups=[group_id])).groups[0]
        if answer.group_state != NO_GROUP:
            return _group(answer)
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        answer = self._ask(group_id, request).groups[0]
        return Group(group_id) if answer.error_code in _ABSENT[:1] else _group(answer)

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed, by topic and partition."""
        answer = self._ask(group_id, OffsetFetchRequest(group_id=group_id, topics=None))
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    def lag(self, group_id: str, topics: list[str] | None = None) -> list[Lag]:
        """Of all partitions of some topics; of those that the group has committed to otherwise."""
        committed = self.committed(group_id)
        names = sorted({topic for topic, _ in committed}) if topics is None else topics
        return [
            Lag(name, index, committed.get((name, index)), end, first)
            for name in names
            for index, first, end in self._reach(name)
            if topics is not None or (name, index) in committed
        ]

    def _reach(self, topic: str) -> list[tuple[int, int, int]]:
        """Each partition, where it begins and where it ends."""
        reader = Reader(
            self._cluster, topic, partitions=(), start=Start(), follows=False,
            is_committed=True, timeout_s=self._timeout_s, tell=lambda _: None,
        )  # fmt: skip
        ends = reader.ends
        return [(index, first, ends[index]) for index, first in sorted(reader.beginnings.items())]

    def _ask(self, group_id: str, request: Any) -> Any:
        """The answer of a group's coordinator, wherever it is now."""
        while True:
            try:
                answer = self._cluster.ask(self._coordinator(group_id), request)
                _check(group_id, _code_of(answer))
                return answer
            except TryAgain as failure:
                self._patience.wait_after(failure)

    def _coordinator(self, group_id: str) -> int:
        request = FindCoordinatorRequest(key=group_id, key_type=_GROUP_KEY)
        answer = self._cluster.ask_any(request)
        _check(group_id, Error(answer.error_code))
        self._cluster.learn(answer.node_id, (answer.host, answer.port))
        return int(answer.node_id)


def _code_of(answer: Any) -> Error:
    """An OffsetFetch has one for the group, the others have one for each of those asked for."""
    whole = getattr(answer, "error_code", None)
    return Error(answer.groups[0].error_code if whole is None else whole)


def _check(group_id: str, code: Error) -> None:
    if code not in _ABSENT:
        kind = TryAgain if code.is_retriable else ClientFailed
        raise kind(f"group {group_id}: {code.name}: {code.message}")


def _group(answer: Any) -> Group:
    members = [Member(each.member_id, each.client_id, each.client_host) for each in answer.members]
    return Group(answer.group_id, answer.group_state, members)
