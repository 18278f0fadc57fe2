"""One group and whoever has to do with it, asked step by step; what comes of it, in words.

A step is a line like `ana joins`: who, what, and with what. Classic members are ana, bob, cat (sam
and rex are static), consumers are eve, fay (gus and jon are static); con speaks of connectors. The
words of an answer name members by these names and count partitions, so two brokers can share them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.compat.group_peer import assignment, subscription

# Sixty go evenly to any number of members up to six.
PARTITIONS = 60
SESSION_MS, REBALANCE_MS = 45_000, 60_000
SETTLING_ROUNDS = 30
CONSUMER, CONNECT = "consumer", "connect"
JOIN, SYNC = "join", "sync"
VERSIONS = {JOIN: 9, SYNC: 5}
ODD_METADATA = b"odd"
STATIC = {"sam": "one", "rex": "one", "gus": "one", "jon": "one", "kim": "nine", "lou": "nine"}
CONSUMERS = ("eve", "fay", "gus", "ivy", "jon", "lou", "max")


class Line(Protocol):
    """A connection to a broker."""

    def send(self, request: Any, version: int) -> None: ...
    def answer(self, *, must_come: bool) -> Any:
        """To what was sent first; None when it does not come."""

    def arrive(self) -> None:
        """Until what was sent has been taken in."""


@dataclass(slots=True)
class Actor:
    name: str
    line: Line
    type: str = CONSUMER
    protocols: dict[str, bytes] = field(default_factory=dict)
    instance_id: str | None = None
    member_id: str = ""
    epoch: int = -1  # or generation
    owned: dict[bytes, list[int]] = field(default_factory=dict)
    parked: deque[str] = field(default_factory=deque)
    leads: list[str] = field(default_factory=list)

    @property
    def is_consumer(self) -> bool:
        return self.name in CONSUMERS

    @property
    def has_been_in(self) -> bool:
        return self.epoch > 0


def name_of(code: int) -> str:
    return Error(code).name


class Scene:
    """`topic` is one of sixty partitions that the coordinator knows."""

    def __init__(
        self, open_line: Callable[[], Line], group_id: str, topic: str, topic_id: bytes
    ) -> None:
        self._open, self._main = open_line, open_line()
        self.group_id, self.topic, self.topic_id = group_id, topic, topic_id
        self.actors: dict[str, Actor] = {}
        self._names: dict[str, str] = {}

    def perform(self, step: str) -> str:
        """What was answered."""
        who, verb, *rest = step.split()
        does: Callable[..., str] = getattr(self, f"_{verb}")
        return does(self.actor(who), *rest)

    def actor(self, name: str) -> Actor:
        if name not in self.actors:
            actor = Actor(name, self._open(), instance_id=STATIC.get(name))
            actor.protocols = {"range": subscription([self.topic])}
            if name == "con":
                actor.type, actor.protocols = CONNECT, {"range": ODD_METADATA}
            if actor.is_consumer:
                actor.member_id, actor.epoch = f"{name}-{self.group_id}", 0
                self._names[actor.member_id] = name
            self.actors[name] = actor
        return self.actors[name]

    def _ask(self, request: Any, version: int) -> Any:
        self._main.send(request, version)
        return self._main.answer(must_come=True)

    def _words(self, text: str | None) -> str:
        """A message with the names of this scene."""
        text = text or ""
        for member_id, name in self._names.items():
            text = text.replace(member_id, name)
        return text.replace(self.group_id, "GROUP").replace(self.topic, "TOPIC")

    def _called(self, member_id: str) -> str:
        return self._names.get(member_id, "somebody")

    # --- classic members --------------------------------------------------------------------------

    def _send_join(self, actor: Actor, version: int = 9) -> None:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=actor.member_id,
            group_instance_id=actor.instance_id,
            protocol_type=actor.type,
            protocols=[
                JoinGroupRequest.Protocol(name=name, metadata=metadata)
                for name, metadata in actor.protocols.items()
            ],
        )
        actor.line.send(request, version)
        actor.parked.append(JOIN)

    def _asks(self, actor: Actor) -> str:
        """Joins without an id, and is given one."""
        self._send_join(actor)
        return self.heard(actor, must_come=True)

    def _joins(self, actor: Actor) -> str:
        return self._join(actor, must_come=True)

    def _comes(self, actor: Actor) -> str:
        """Joins, and may have to wait."""
        return self._join(actor, must_come=False)

    def _join(self, actor: Actor, *, must_come: bool) -> str:
        if actor.instance_id is None and not actor.member_id:
            self._asks(actor)
        self._send_join(actor)
        return self.heard(actor, must_come=must_come)

    def _parks(self, actor: Actor) -> str:
        """Joins where that has to wait."""
        if actor.instance_id is None and not actor.member_id:
            self._asks(actor)
        self._send_join(actor)
        actor.line.arrive()
        return ""

    def _switches(self, actor: Actor, protocol: str) -> str:
        """From now on it supports this protocol and no other."""
        actor.protocols = {protocol: next(iter(actor.protocols.values()))}
        return ""

    def _garbles(self, actor: Actor) -> str:
        """Its subscription is none that a coordinator can read."""
        actor.protocols = dict.fromkeys(actor.protocols, ODD_METADATA)
        return ""

    def _hears(self, actor: Actor) -> str:
        """What it waits for."""
        return self.heard(actor, must_come=True)

    def heard(self, actor: Actor, *, must_come: bool = False) -> str:
        """The answer to what is parked, or that there is none so far."""
        if not actor.parked:
            return ""
        answer = actor.line.answer(must_come=must_come)
        if answer is None:
            return f"{actor.name} waits to {actor.parked[0]}"
        return self._joined(actor, answer) if actor.parked.popleft() == JOIN else _synced(answer)

    def _joined(self, actor: Actor, answer: Any) -> str:
        code = Error(answer.error_code)
        if answer.member_id and code in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            actor.member_id = answer.member_id
            self._names[answer.member_id] = actor.name
        if code != Error.NONE:
            return f"{actor.name} join {code.name}"
        actor.epoch, actor.leads = answer.generation_id, [one.member_id for one in answer.members]
        return f"{actor.name} join NONE {actor.epoch} {answer.protocol_type} {answer.protocol_name}"

    def _syncs(self, actor: Actor, change: str = "0") -> str:
        """Whoever leads hands out the partitions evenly."""
        count = len(actor.leads) or 1
        shares = {
            member_id: assignment({self.topic: list(range(number, PARTITIONS, count))})
            for number, member_id in enumerate(actor.leads)
        }
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=actor.epoch + int(change),
            member_id=actor.member_id,
            group_instance_id=actor.instance_id,
            protocol_type=actor.type,
            protocol_name=next(iter(actor.protocols), None),
            assignments=[
                SyncGroupRequest.Assignment(member_id=member_id, assignment=share)
                for member_id, share in shares.items()
            ],
        )
        actor.line.send(request, VERSIONS[SYNC])
        actor.parked.append(SYNC)
        return self.heard(actor)

    def _leads(self, actor: Actor, *others: str) -> str:
        """All join, this one first, and sync: a stable group."""
        said = [self._joins(actor), self._syncs(actor)]
        for number, name in enumerate(others):
            known = [actor, *(self.actor(other) for other in others[:number])]
            said.append(self._parks(self.actor(name)))
            said.extend(self._parks(one) for one in known)
            everyone = [*known, self.actor(name)]
            said.extend(self._hears(one) for one in everyone)
            said.extend(self._syncs(one) for one in sorted(everyone, key=lambda one: not one.leads))
        return _refusals(said)

    def _beats(self, actor: Actor, change: str = "0") -> str:
        if actor.is_consumer:
            return self._beat(actor, max(actor.epoch, 0) + int(change))
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=actor.epoch + int(change),
            member_id=actor.member_id,
            group_instance_id=actor.instance_id,
        )
        return f"{actor.name} beat {name_of(self._ask(request, 4).error_code)}"

    def _leaves(self, actor: Actor, how: str = "-1") -> str:
        if actor.is_consumer:
            return self._beat(actor, int(how))
        leaver = LeaveGroupRequest.Member(
            member_id="" if how == "instance" else actor.member_id,
            group_instance_id=actor.instance_id,
        )
        answer = self._ask(LeaveGroupRequest(group_id=self.group_id, members=[leaver]), 5)
        codes = [answer.error_code, *(one.error_code for one in answer.members)]
        return f"{actor.name} leave {' '.join(map(name_of, codes))}"

    # --- consumers --------------------------------------------------------------------------------

    def _beat(self, actor: Actor, epoch: int) -> str:
        """It owns from then on what it is told to; what it owned before it has told."""
        is_full = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=actor.member_id,
            member_epoch=epoch,
            instance_id=actor.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if is_full else -1,
            subscribed_topic_names=[self.topic] if is_full else None,
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=some)
                for topic_id, some in ({} if is_full else actor.owned).items()
            ],
        )
        answer = self._ask(request, 1)
        if answer.error_code:
            what = self._words(answer.error_message)
            return f"{actor.name} beat {name_of(answer.error_code)}: {what}"
        actor.epoch = answer.member_epoch
        if answer.assignment is None:
            return f"{actor.name} beat NONE {actor.epoch}"
        told = answer.assignment.topic_partitions
        actor.owned = {one.topic_id: list(one.partitions) for one in told}
        # How many of those that it had it keeps is chance: Apache Kafka goes by hashes.
        what = "some" if _count(actor.owned) else "nothing"
        return f"{actor.name} beat NONE {actor.epoch} owns {what}"

    def _enters(self, actor: Actor) -> str:
        return self._beat(actor, 0)

    def _settles(self, actor: Actor, *others: str) -> str:
        """All beat, and classic ones join again when they are told to, until nothing moves."""
        everyone = [actor, *map(self.actor, others)]
        quiet = 0
        for _ in range(SETTLING_ROUNDS):
            before = [(one.epoch, _count(one.owned)) for one in everyone]
            said = [self._moves(one) for one in everyone]
            moved = before != [(one.epoch, _count(one.owned)) for one in everyone]
            quiet = 0 if moved or "REBALANCE_IN_PROGRESS" in str(said) else quiet + 1
            if quiet == 3:
                break
        return _refusals(said)

    def _moves(self, actor: Actor) -> str:
        said = self._beats(actor)
        if not actor.is_consumer and "REBALANCE_IN_PROGRESS" in said:
            return f"{self._joins(actor)}; {self._syncs(actor)}; REBALANCE_IN_PROGRESS"
        return said

    def _takes(self, actor: Actor, other: str) -> str:
        """It speaks its own protocol under the other's id and epoch."""
        taken = self.actor(other)
        actor.member_id, actor.epoch, actor.owned = taken.member_id, taken.epoch, {}
        return ""

    # --- whoever ----------------------------------------------------------------------------------

    def _commits(self, actor: Actor, change: str = "0") -> str:
        """An admin commits without a member."""
        is_admin = actor.name == "admin"
        partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=-1 if is_admin else actor.epoch + int(change),
            member_id=actor.member_id,
            group_instance_id=actor.instance_id,
            topics=[OffsetCommitRequest.Topic(name=self.topic, partitions=[partition])],
        )
        answer = self._ask(request, 9)
        return f"{actor.name} commit {name_of(answer.topics[0].partitions[0].error_code)}"

    def _fetches(self, actor: Actor, change: str = "0") -> str:
        """An admin fetches without a member."""
        is_admin = actor.name == "admin"
        topic = OffsetFetchRequest.GroupTopic(name=self.topic, partition_indexes=[0])
        group = OffsetFetchRequest.Group(
            group_id=self.group_id,
            member_id=None if is_admin else actor.member_id,
            member_epoch=-1 if is_admin else actor.epoch + int(change),
            topics=[topic],
        )
        found = self._ask(OffsetFetchRequest(groups=[group]), 9).groups[0]
        offsets = [one.committed_offset for each in found.topics for one in each.partitions]
        return f"{actor.name} fetch {name_of(found.error_code)} {offsets}"

    def _deletes(self, actor: Actor, what: str) -> str:
        if what == "group":
            answer = self._ask(DeleteGroupsRequest(groups_names=[self.group_id]), 2)
            return f"delete {name_of(answer.results[0].error_code)}"
        partition = OffsetDeleteRequest.Partition(partition_index=0)
        topic = OffsetDeleteRequest.Topic(name=self.topic, partitions=[partition])
        answer = self._ask(OffsetDeleteRequest(group_id=self.group_id, topics=[topic]), 0)
        codes = [answer.error_code]
        codes += [each.error_code for one in answer.topics for each in one.partitions]
        return f"delete offsets {' '.join(map(name_of, codes))}"

    # --- how it stands ----------------------------------------------------------------------------

    def aftermath(self) -> list[str]:
        """What befalls those who wait, how the group is described, and what members are told."""
        waiting = [self.heard(one) for one in self.actors.values() if one.parked]
        described = [self._listed(), self._described(), self._described_as_consumers()]
        beats = [
            self._beats(one)
            for one in self.actors.values()
            if one.has_been_in and not one.parked and one.name not in ("con", "admin")
        ]
        waiting_still = [self.heard(one) for one in self.actors.values() if one.parked]
        return [*waiting, *described, *beats, *waiting_still]

    def _listed(self) -> str:
        for group in self._ask(ListGroupsRequest(), 5).groups:
            if group.group_id == self.group_id:
                return f"listed {group.group_state} {group.group_type} {group.protocol_type!r}"
        return "not listed"

    def _described(self) -> str:
        group = self._ask(DescribeGroupsRequest(groups=[self.group_id]), 6).groups[0]
        head = f"classic {name_of(group.error_code)} {group.group_state}"
        members = sorted(
            f"{self._called(one.member_id)} {'assigned' if one.member_assignment else '-'}"
            for one in group.members
        )
        return f"{head} {group.protocol_type!r} {group.protocol_data!r} {members}"

    def _described_as_consumers(self) -> str:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group_id])
        group = self._ask(request, 1).groups[0]
        if group.error_code:
            return f"consumer {name_of(group.error_code)}: {self._words(group.error_message)}"
        members = sorted(
            f"{self._called(one.member_id)} {one.member_epoch} type {one.member_type}"
            f" has {_shares(one.assignment)} of {_shares(one.target_assignment)}"
            for one in group.members
        )
        epochs = f"{group.group_epoch}/{group.assignment_epoch}"
        return f"consumer NONE {group.group_state} {epochs} {members}"


def _synced(answer: Any) -> str:
    return f"sync {name_of(answer.error_code)} {'assigned' if answer.assignment else '-'}"


def _count(owned: Mapping[bytes, list[int]]) -> int:
    return sum(map(len, owned.values()))


def _shares(described: Any) -> int:
    return sum(len(one.partitions) for one in described.topic_partitions)


def _refusals(said: Iterable[str]) -> str:
    """Of a state that is made step by step only what went wrong is told."""
    return "; ".join(each for each in said if each and "NONE" not in each)
