"""Members of a group, by the classic and by the consumer protocol, side by side in the same group.

Each believes what it is told, as real ones do, and reconciles at once. A member of the one kind may
be followed by one of the other under the same instance id, so the group is carried from protocol to
protocol and back. What they own and what they commit goes into a `Membership`, for the judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.groups.consumer_protocol import (
    read_assignment,
    subscription_topics,
    write_assignment,
)
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kafkalite.sim.client import Ask, Script
from kafkalite.sim.history import Partition
from kafkalite.sim.member import FORGOTTEN, OUTDATED, REBALANCE_MS, SESSION_MS, Member
from kafkalite.sim.producers import PASSING

GROUP = "readers"
PROTOCOL = "range"
LEAVES, LEAVES_FOR_A_WHILE = -1, -2


@dataclass(slots=True)
class Membership:
    """What all members of the group own and have committed."""

    topic: str
    topic_id: bytes
    partition_count: int
    # By partition: what the group may have, the last acknowledged commit and what came behind it.
    commits: dict[Partition, list[int]] = field(default_factory=dict)
    committed: int = 0
    group_id: str = GROUP
    is_peaceful: bool = False
    is_over: bool = False

    def ask(self, where: Partition) -> int:
        self.committed += 1
        self.commits.setdefault(where, [0]).append(self.committed)
        return self.committed

    def acknowledge(self, where: Partition, offset: int) -> None:
        known = self.commits[where]
        if offset in known:
            del known[: known.index(offset)]

    def refuse(self, where: Partition, offset: int) -> None:
        if offset in self.commits[where]:
            self.commits[where].remove(offset)


@dataclass(slots=True)
class Reader(Member):
    """One incarnation of a member that reads."""

    membership: Membership
    instance_id: str | None
    subscribed: bool
    owned: set[int] = field(default_factory=set)

    def has_left(self) -> None:
        Member.has_left(self)
        self.owned = set()

    @property
    def topics(self) -> list[str]:
        return [self.membership.topic] if self.subscribed else []

    def commit(self) -> Script:
        """Only what it owns, as it believes."""
        membership = self.membership
        index = self.random.choice(sorted(self.owned))
        where = membership.topic, index
        offset = membership.ask(where)
        wanted = OffsetCommitRequest.Partition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP, generation_id_or_member_epoch=self.epoch, member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=[OffsetCommitRequest.Topic(name=membership.topic, partitions=[wanted])],
        )
        [answer] = yield Ask([(request, 9)])
        if answer is None:
            return  # it may have come
        code = Error(answer.topics[0].partitions[0].error_code)
        if code is Error.NONE:
            membership.acknowledge(where, offset)
            self.history.count("group commits")
        elif code in FORGOTTEN or code in OUTDATED:
            membership.refuse(where, offset)
        elif code not in PASSING:
            self.history.complain(f"{self.name}: OffsetCommit got {code.name}")


class ClassicMember(Reader):
    """Joins, syncs, and beats until a rebalance."""

    __slots__ = ("_has_joined",)

    def forget(self) -> None:
        Reader.forget(self)
        self.member_id, self.epoch, self._has_joined = "", -1, False

    def live(self) -> Script:
        if not self._has_joined:
            yield from self._join()
            return
        yield self.beat()
        if self.owned and self.random.random() < 0.3:
            yield from self.commit()
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.epoch, member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        [answer] = yield Ask([(request, 4)])
        if answer is not None:
            self._told(Error(answer.error_code), "Heartbeat")

    def _told(self, code: Error, what: str) -> None:
        if code is Error.NONE:
            return
        self.told(code, what)
        if code in OUTDATED:
            self._has_joined = False

    def _join(self) -> Script:
        self.owned = set()  # as eager members do
        request = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id, group_instance_id=self.instance_id, protocol_type="consumer",
            protocols=[
                JoinGroupRequest.Protocol(name=PROTOCOL, metadata=_subscription(self.topics))
            ],
        )
        [answer] = yield Ask([(request, 9)])
        code = None if answer is None else Error(answer.error_code)
        if code is Error.NONE or code is Error.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        if code is Error.NONE:
            self.epoch = answer.generation_id
            yield from self._sync(answer)
        elif code is not Error.MEMBER_ID_REQUIRED:
            if code is not None:
                self._told(code, "JoinGroup")
            yield self.beat()

    def _sync(self, joined: Any) -> Script:
        shares = self._shares(joined.members) if joined.leader == self.member_id else {}
        if joined.skip_assignment:
            shares = {}
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.epoch, member_id=self.member_id,
            group_instance_id=self.instance_id, protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.Assignment(
                    member_id=member_id,
                    assignment=write_assignment({self.membership.topic: share}, 1),
                )
                for member_id, share in shares.items()
            ],
        )
        [answer] = yield Ask([(request, 5)])
        code = None if answer is None else Error(answer.error_code)
        if code is Error.NONE:
            read = read_assignment(bytes(answer.assignment))
            found = [] if read is None else read.assigned_partitions
            self.owned = {index for each in found for index in each.partitions}
            self._has_joined = self.is_steady = True
        elif code is not None:
            self._told(code, "SyncGroup")

    def _shares(self, members: Iterable[Any]) -> dict[str, list[int]]:
        shares: dict[str, list[int]] = {
            each.member_id: [] for each in members if subscription_topics(bytes(each.metadata))
        }
        takers = sorted(shares)
        for index in range(self.membership.partition_count if takers else 0):
            shares[takers[index % len(takers)]].append(index)
        return shares

    def leave(self) -> Script:
        leaving = LeaveGroupRequest.Member(
            member_id=self.member_id, group_instance_id=self.instance_id
        )
        yield Ask([(LeaveGroupRequest(group_id=GROUP, members=[leaving]), 5)])


class ConsumerMember(Reader):
    """Beats, and takes what each answer says."""

    # An assignment is told once: as Apache Kafka's consumer, whoever has missed an answer tells
    # everything with the next heartbeat, and is told everything.
    __slots__ = ("_has_missed", "_life")

    def forget(self) -> None:
        Reader.forget(self)
        self._has_missed = False
        self._life = getattr(self, "_life", 0) + 1
        self.member_id, self.epoch = f"{self.name}-{self._life}", 0

    def live(self) -> Script:
        request = self._request(self.epoch)
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.membership.topic_id, partitions=sorted(self.owned)
            )
        ] if self.owned else []
        [answer] = yield Ask([(request, 1)])
        self._has_missed = answer is None or Error(answer.error_code) is not Error.NONE
        if answer is not None:
            self._take(answer)
        yield self.beat()
        if self.owned and self.epoch > 0 and self.random.random() < 0.3:
            yield from self.commit()

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, member_epoch=epoch,
            instance_id=self.instance_id,
        )
        if epoch == 0 or (epoch > 0 and self._has_missed):
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = self.topics
        return request

    def _take(self, answer: Any) -> None:
        code = Error(answer.error_code)
        if code is Error.UNRELEASED_INSTANCE_ID:
            self.is_steady = False  # until its forerunner's session is over
        elif code is not Error.NONE:
            self.told(code, "ConsumerGroupHeartbeat")
        else:
            self.epoch = answer.member_epoch
            self.is_steady = True
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                self.owned = {index for each in found for index in each.partitions}

    def leave(self) -> Script:
        is_short = self.instance_id is not None and self.random.random() < 0.5
        yield Ask([(self._request(LEAVES_FOR_A_WHILE if is_short else LEAVES), 1)])


def _subscription(topics: list[str]) -> bytes:
    version = 1
    message = ConsumerProtocolSubscription(topics=topics, owned_partitions=[])
    return version.to_bytes(2, "big") + codec.encode(message, version)
