"""One member of a classic group: joins, is assigned partitions, beats, commits and leaves.

Owns the member's id and generation, and the way to the coordinator, which may move. As the leader
it assigns ranges of each topic, which every consumer knows. Never reads a record.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, TryAgain
from kafkalite.coordinators.groups.consumer_protocol import (
    read_assignment,
    subscription_topics,
    write_assignment,
)
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

BEAT_S = 3.0
SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 30_000  # below the time for which an answer is waited for
PROTOCOL, ASSIGNOR = "consumer", "range"
_VERSION = 1  # of what members tell the leader
_MOVED = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)
_FORGOTTEN = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)
_JOINS_AGAIN = (*_FORGOTTEN, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED)

Place = tuple[str, int]
Assignment = dict[str, list[int]]


class JoinAgain(Exception):
    """The group is being divided anew."""


class GroupMember:
    def __init__(self, cluster: Cluster, group_id: str, timeout_s: float) -> None:
        self._cluster, self._group_id = cluster, group_id
        self._patience = Patience(timeout_s)
        self._member_id, self._generation = "", -1
        self._coordinator: int | None = None
        self._next_beat = 0.0

    def join(
        self, topics: Sequence[str], sizes: Callable[[Iterable[str]], Mapping[str, int]]
    ) -> Assignment:
        """Waits for its part of the topics; `sizes` tells how many partitions topics have."""
        while True:
            try:
                assignment = self._join(topics, sizes)
            except JoinAgain:
                continue
            self._next_beat = time.monotonic() + BEAT_S
            return assignment

    def beat(self) -> None:
        """Says that it lives, when it is time to. Raises JoinAgain."""
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + BEAT_S
        self._ask(HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        ))  # fmt: skip

    def committed(self, assignment: Assignment) -> dict[Place, int]:
        """How far the group has read; without those of which nothing is known."""
        topics = [
            OffsetFetchRequest.Topic(name=name, partition_indexes=indexes)
            for name, indexes in assignment.items()
        ]
        request = OffsetFetchRequest(group_id=self._group_id, topics=topics, require_stable=True)
        answer = self._ask(request)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    def commit(self, offsets: Mapping[Place, int]) -> None:
        topics: dict[str, list[Any]] = defaultdict(list)
        for (topic, index), offset in offsets.items():
            topics[topic].append(
                OffsetCommitRequest.Partition(
                    partition_index=index, committed_offset=offset, committed_metadata=""
                )
            )
        if topics:
            self._ask(OffsetCommitRequest(
                group_id=self._group_id, generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=[
                    OffsetCommitRequest.Topic(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            ))  # fmt: skip

    def leave(self) -> None:
        if self._member_id:
            member = LeaveGroupRequest.Member(member_id=self._member_id)
            self._ask(LeaveGroupRequest(group_id=self._group_id, members=[member]))
            self._forget()

    # --- joining --------------------------------------------------------------------------------

    def _join(
        self, topics: Sequence[str], sizes: Callable[[Iterable[str]], Mapping[str, int]]
    ) -> Assignment:
        told = codec.encode(ConsumerProtocolSubscription(topics=sorted(topics)), _VERSION)
        metadata = _VERSION.to_bytes(2, "big") + bytes(told)
        joined = self._ask(JoinGroupRequest(
            group_id=self._group_id, session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, member_id=self._member_id,
            protocol_type=PROTOCOL,
            protocols=[JoinGroupRequest.Protocol(name=ASSIGNOR, metadata=metadata)],
        ))  # fmt: skip
        self._member_id, self._generation = joined.member_id, joined.generation_id
        parts: dict[str, Assignment] = {}
        if joined.leader == joined.member_id:
            wishes = {each.member_id: subscription_topics(each.metadata) or []
                      for each in joined.members}  # fmt: skip
            wanted = {name for each in wishes.values() for name in each}
            parts = assigned_ranges(wishes, sizes(wanted))
        synced = self._ask(SyncGroupRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id,
            protocol_type=PROTOCOL, protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.Assignment(
                    member_id=name, assignment=write_assignment(part, _VERSION)
                )
                for name, part in parts.items()
            ],
        ))  # fmt: skip
        found = read_assignment(synced.assignment) if synced.assignment else None
        return {} if found is None else {
            each.topic: list(each.partitions) for each in found.assigned_partitions
        }  # fmt: skip

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, request: Any) -> Any:
        """The answer of the coordinator, wherever it is now. Raises JoinAgain."""
        while True:
            try:
                answer = self._cluster.ask(self._found_coordinator(), request)
                self._check(answer)
            except TryAgain as failure:
                self._coordinator = None
                self._patience.wait_after(failure)
            else:
                self._patience.renew()
                return answer

    def _found_coordinator(self) -> int:
        if self._coordinator is None:
            found = self._cluster.ask_any(FindCoordinatorRequest(key=self._group_id, key_type=0))
            self._raise_for(Error(found.error_code))
            self._cluster.learn(found.node_id, (found.host, found.port))
            self._coordinator = int(found.node_id)
        return self._coordinator

    def _check(self, answer: Any) -> None:
        code = Error(_code_of(answer))
        if code is Error.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        elif code in _FORGOTTEN:
            self._forget()
        if code in _JOINS_AGAIN:
            raise JoinAgain
        self._raise_for(code)

    def _raise_for(self, code: Error) -> None:
        if code is not Error.NONE:
            kind = TryAgain if code in _MOVED or code.is_retriable else ClientFailed
            raise kind(f"group {self._group_id}: {code.name}: {code.message}", code)

    def _forget(self) -> None:
        self._member_id, self._generation = "", -1


def _code_of(answer: Any) -> int:
    """The first that is not 0, of the whole answer or of one of its partitions."""
    codes = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "topics", ()):
        codes += [each.error_code for each in topic.partitions]
    return next((code for code in codes if code), 0)


def assigned_ranges(
    wishes: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> dict[str, Assignment]:
    """Of each topic, to each member that wants it, partitions that follow each other; the first
    members have one more where it does not come out even."""
    found: dict[str, Assignment] = {member: {} for member in wishes}
    for topic in sorted(sizes):
        members = sorted(member for member, topics in wishes.items() if topic in topics)
        first = 0
        for number, member in enumerate(members):
            each, more = divmod(sizes[topic], len(members))
            count = each + (number < more)
            if count:
                found[member][topic] = list(range(first, first + count))
            first += count
    return found
