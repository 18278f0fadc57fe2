"""A group coordinator on a stage: people join, leave and crash, and everything said is written.

Plays scenario texts. A line at the margin is what somebody does; the indented lines below it are
what happened: records that reached the log, and answers, in the order they came.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.effects import Producer, Record
from kafkalite.coordinators.groups import consumer_protocol, events, records
from kafkalite.coordinators.groups.gathering import LookUps
from kafkalite.coordinators.groups.settings import GroupSettings
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.coordinators.runtime import Runtime
from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from tests.unit.coordinators.fakes import FakePartition

GROUP = "readers"


@dataclass(slots=True)
class Person:
    """A client: what it remembers of its membership."""

    name: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    protocols: list[str] = field(default_factory=lambda: ["range"])
    topics: list[str] = field(default_factory=lambda: ["orders"])
    owned: dict[str, list[int]] | None = None
    version: int = 9
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000


@dataclass(slots=True)
class StageTopics:
    """The topics of the world, by name."""

    views: dict[str, TopicView] = field(default_factory=dict)

    def remove(self, name: str) -> None:
        del self.views[name]

    def add(self, name: str, partition_count: int, racks: tuple[tuple[str, ...], ...] = ()) -> None:
        topic_id = name.encode().ljust(16, b"\1")[:16]
        self.views[name] = TopicView(name, topic_id, partition_count, racks)

    def by_name(self, name: str) -> TopicView | None:
        return self.views.get(name)

    def by_id(self, topic_id: bytes) -> TopicView | None:
        found = [view for view in self.views.values() if view.topic_id == topic_id]
        return found[0] if found else None

    def names(self) -> list[str]:
        return list(self.views)

    def id_of(self, name: str) -> bytes | None:
        view = self.views.get(name)
        return None if view is None else view.topic_id

    def is_known(self, topic_id: bytes) -> bool:
        return self.by_id(topic_id) is not None


def subscription(topics: list[str], owned: dict[str, list[int]] | None = None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.OwnedPartition(topic=topic, partitions=indexes)
            for topic, indexes in (owned or {}).items()
        ],
    )
    version = 0 if owned is None else 1
    return version.to_bytes(2, "big") + codec.encode(message, version)


def milliseconds(text: str) -> int:
    amount, unit = re.fullmatch(r"(\d+) ?(ms|s|min|h|d)", text).groups()  # type: ignore[union-attr]
    return int(amount) * {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]


class Stage:
    """One shard on a partition in memory, and the people who talk to it."""

    def __init__(self, seed: int = 0) -> None:
        self.env: Env = manual_env(seed)
        assert isinstance(self.env.clock, ManualClock)
        self.clock = self.env.clock
        self.settings = GroupSettings()
        self.topics = StageTopics()
        self.topics.add("orders", 4)
        self.partition = FakePartition()
        self.look_ups = LookUps()
        self.people: dict[str, Person] = {}
        self.consumers: dict[str, Any] = {}
        self.incarnations: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.lines: list[str] = []
        self.logged = 0
        self.runtime = self._start()

    def _start(self) -> Runtime:
        runtime = Runtime(
            self.env,
            self.partition,
            self._make_shard,
        )
        runtime.load()
        return runtime

    def _make_shard(self) -> GroupShard:
        state = GroupsState(self.settings, self.topics, self.env.random, look_ups=self.look_ups)
        return GroupShard(state)

    @property
    def state(self) -> GroupsState:
        shard = self.runtime.shard
        assert isinstance(shard, GroupShard)
        return shard.state

    def restart(self) -> None:
        """The coordinator dies and another one reads its log."""
        self.runtime.unload()
        self.runtime = self._start()

    def person(self, name: str) -> Person:
        return self.people.setdefault(name, Person(name))

    # -- saying ----------------------------------------------------------------------------

    def say(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def named(self, member_id: str | None) -> str:
        """A member's person, so that no random id is in a text."""
        if not member_id:
            return "nobody"
        if member_id in self.names:
            return self.names[member_id]
        # Ids begin with the client's or the static member's name.
        prefix = member_id.split("-")[0]
        for who in reversed(self.people.values()):
            if prefix in (who.name, who.instance_id):
                return who.name
        return "somebody"

    def submit(self, event: Any, tell: Callable[[Any], None]) -> Later[Any]:
        later = self.runtime.submit(event)
        self.tell_log()

        def answered(answer: Any) -> None:
            self.tell_log()
            tell(answer)

        later.then(answered)
        return later

    def tell_log(self) -> None:
        """Says what the log got since last time."""
        written = self.partition.log.records()
        for record in written[self.logged :]:
            found = records.read(Record(record.key, record.value))
            assert found is not None
            self.say(f"log: {self.describe(*found)}")
        self.logged = len(written)

    def describe(self, key: Any, value: Any) -> str:
        kind = type(key).__name__.removesuffix("Key")
        if value is None:
            what = "gone"
            if kind == "OffsetCommit":
                what = f"{key.topic}-{key.partition} gone"
            elif hasattr(key, "member_id"):
                what = f"of {self.named(key.member_id)} gone"
            elif hasattr(key, "regular_expression"):
                what = f"{key.regular_expression} gone"
            return f"{kind.removeprefix('ConsumerGroup')} {what}"
        if kind == "OffsetCommit":
            return f"OffsetCommit {key.topic}-{key.partition} at {value.offset}"
        if kind == "GroupMetadata":
            members = " ".join(
                f"{self.named(one.member_id)}={self.readable(bytes(one.assignment))}"
                for one in value.members
            )
            return f"GroupMetadata generation {value.generation}: {members or 'no members'}"
        return self.describe_consumer(kind, key, value)

    def readable(self, assignment: bytes) -> str:
        """An assignment in a scene is text, or what a classic consumer understands."""
        if assignment[:1] != b"\0":
            return assignment.decode() or "-"
        read = consumer_protocol.read_assignment(assignment)
        assert read is not None
        parts = [
            f"{one.topic}:{','.join(str(index) for index in one.partitions)}"
            for one in read.assigned_partitions
        ]
        return ";".join(parts) or "-"

    def describe_consumer(self, kind: str, key: Any, value: Any) -> str:
        from tests.unit.coordinators.consumers import describe

        return describe(self, kind.removeprefix("ConsumerGroup"), key, value)

    def tell_code(self, who: str, what: str, code: int) -> None:
        self.say(f"{who}: {what} {Error(code).name}")

    # -- acts of classic members -----------------------------------------------------------

    def joins(self, who: Person) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=who.session_timeout_ms,
            rebalance_timeout_ms=who.rebalance_timeout_ms,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.Protocol(name=name, metadata=subscription(who.topics, who.owned))
                for name in who.protocols
            ],
        )
        event = events.Join(request, who.version, who.name, "/127.0.0.1")
        self.submit(event, lambda answer: self.tell_join(who, answer))

    def tell_join(self, who: Person, answer: JoinGroupResponse | KafkaError) -> None:
        if isinstance(answer, KafkaError):
            self.tell_code(who.name, "join", answer.code)
            return
        if answer.member_id:
            who.member_id = answer.member_id
            self.names[answer.member_id] = who.name
        if answer.error_code != Error.NONE:
            self.tell_code(who.name, "join", answer.error_code)
            return
        who.generation = answer.generation_id
        told = f"{who.name}: joined generation {answer.generation_id} by {answer.protocol_name}"
        if answer.members:
            told += f", leads {' '.join(self.named(one.member_id) for one in answer.members)}"
        if answer.skip_assignment:
            told += ", is not to assign"
        self.say(told)

    def syncs(self, who: Person, assignments: dict[str, bytes]) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            assignments=[
                SyncGroupRequest.Assignment(
                    member_id=self.person(name).member_id, assignment=assignment
                )
                for name, assignment in assignments.items()
            ],
        )
        self.submit(events.Sync(request), lambda answer: self.tell_sync(who, answer))

    def tell_sync(self, who: Person, answer: Any) -> None:
        code = answer.code if isinstance(answer, KafkaError) else answer.error_code
        if code != Error.NONE:
            self.tell_code(who.name, "sync", code)
            return
        self.say(f"{who.name}: assigned {self.readable(bytes(answer.assignment))}")

    def heartbeats(self, who: Person) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
        )
        self.submit(
            events.Heartbeat(request),
            lambda answer: self.tell_code(who.name, "heartbeat", _code(answer)),
        )

    def leaves(self, who: Person, *, by_instance: bool = False) -> None:
        member = LeaveGroupRequest.Member(
            member_id="" if by_instance else who.member_id, group_instance_id=who.instance_id
        )
        request = LeaveGroupRequest(group_id=GROUP, members=[member])

        def tell(answer: Any) -> None:
            code = _code(answer)
            if code == Error.NONE:
                code = answer.members[0].error_code
            self.tell_code(who.name, "leave", code)

        self.submit(events.Leave(request), tell)

    # -- offsets ---------------------------------------------------------------------------

    def commits(self, who: Person | None, place: str, offset: int, metadata: str = "") -> None:
        topic, index = place.rsplit("-", 1)
        view = self.topics.by_name(topic)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=-1 if who is None else who.generation,
            member_id="" if who is None else who.member_id,
            group_instance_id=None if who is None else who.instance_id,
            topics=[
                OffsetCommitRequest.Topic(
                    name=topic,
                    topic_id=bytes(16) if view is None else view.topic_id,
                    partitions=[
                        OffsetCommitRequest.Partition(
                            partition_index=int(index),
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        name = "outsider" if who is None else who.name

        def tell(answer: Any) -> None:
            code = _code(answer)
            if code == Error.NONE:
                code = answer.topics[0].partitions[0].error_code
            self.tell_code(name, f"commit of {place}", code)

        self.submit(events.CommitOffsets(request, 9), tell)

    def commits_in_transaction(self, producer: Producer, place: str, offset: int) -> None:
        topic, index = place.rsplit("-", 1)
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[
                TxnOffsetCommitRequest.Topic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequest.Partition(
                            partition_index=int(index), committed_offset=offset
                        )
                    ],
                )
            ],
        )
        self.submit(
            events.CommitTransactionalOffsets(request, 3),
            lambda answer: self.tell_code(
                f"producer {producer.producer_id}", f"commit of {place}", _code(answer)
            ),
        )

    def ends_transaction(self, producer: Producer, *, committed: bool) -> None:
        later = self.runtime.end_transaction(producer, 0, committed)
        word = "commit" if committed else "abort"
        later.then(
            lambda answer: self.tell_code(f"producer {producer.producer_id}", word, _code(answer))
        )

    def reads(self, place: str, *, stable: bool = False) -> None:
        topic, index = place.rsplit("-", 1)
        request = OffsetFetchRequest.Group(
            group_id=GROUP,
            topics=[OffsetFetchRequest.GroupTopic(name=topic, partition_indexes=[int(index)])],
        )

        def tell(answer: Any) -> None:
            if isinstance(answer, KafkaError):
                self.tell_code("reader", f"read of {place}", answer.code)
                return
            found = answer.topics[0].partitions[0]
            if found.error_code != Error.NONE:
                self.tell_code("reader", f"read of {place}", found.error_code)
            else:
                note = f" ({found.metadata})" if found.metadata else ""
                self.say(f"reader: {place} at {found.committed_offset}{note}")

        self.submit(events.FetchOffsets(request, stable), tell)

    def deletes_offset(self, place: str) -> None:
        topic, index = place.rsplit("-", 1)
        request = OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                OffsetDeleteRequest.Topic(
                    name=topic,
                    partitions=[OffsetDeleteRequest.Partition(partition_index=int(index))],
                )
            ],
        )

        def tell(answer: Any) -> None:
            code = _code(answer)
            if code == Error.NONE:
                code = answer.topics[0].partitions[0].error_code
            self.tell_code("admin", f"delete of {place}", code)

        self.submit(events.DeleteOffsets(request), tell)

    def deletes_group(self) -> None:
        self.submit(
            events.DeleteGroups([GROUP]),
            lambda answer: self.tell_code("admin", "delete", answer[0].error_code),
        )

    def looks(self) -> None:
        """What ListGroups and DescribeGroups say."""

        def tell(answer: Any) -> None:
            described = answer[0]
            members = " ".join(self.named(one.member_id) for one in described.members)
            self.say(f"group: {described.group_state}, {members or 'no members'}")

        self.submit(events.DescribeGroups([GROUP], 5), tell)


def _code(answer: Any) -> int:
    if isinstance(answer, KafkaError):
        return answer.code
    return getattr(answer, "error_code", Error.NONE)
