"""A classic group and its members: the data, and the rules that keep it consistent.

Owns membership, the vote for a protocol and the states with their table. It never writes a
record, answers or arms a timer: `classic_join`, `classic_sync` and `classic_leave` decide that.
Invariant: `awaiting_join_count` is the number of members with an open JoinGroup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kafkalite.coordinators.groups.consumer_protocol import subscription_topics
from kafkalite.protocol.errors import Error, KafkaError

CONSUMER_PROTOCOL_TYPE = "consumer"
# What a protocol list is here: names in order of preference, each with its opaque metadata.
Protocols = list[tuple[str, bytes]]


class ClassicState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Step(Enum):
    """What moves a group from one state to another."""

    PREPARE = "a rebalance begins"
    COMPLETE = "everyone who will join has joined"
    EMPTY_OUT = "nobody joined"
    ASSIGN = "the leader's assignment is stored"


# An absent row is a bug of ours. Dead groups are not kept: their removal is their death.
TRANSITIONS = {
    (ClassicState.EMPTY, Step.PREPARE): ClassicState.PREPARING_REBALANCE,
    (ClassicState.STABLE, Step.PREPARE): ClassicState.PREPARING_REBALANCE,
    (ClassicState.COMPLETING_REBALANCE, Step.PREPARE): ClassicState.PREPARING_REBALANCE,
    (ClassicState.PREPARING_REBALANCE, Step.COMPLETE): ClassicState.COMPLETING_REBALANCE,
    (ClassicState.PREPARING_REBALANCE, Step.EMPTY_OUT): ClassicState.EMPTY,
    (ClassicState.COMPLETING_REBALANCE, Step.ASSIGN): ClassicState.STABLE,
}


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    # Open requests, by ticket; both volatile, as is being new.
    join_ticket: int | None = None
    sync_ticket: int | None = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_ticket is not None

    def metadata(self, protocol_name: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol_name}")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def has_satisfied_heartbeat(self) -> bool:
        """Waiting in a rebalance is a sign of life, but not for a member nobody has seen yet."""
        if self.is_new:
            return False
        return self.is_awaiting_join or self.sync_ticket is not None


@dataclass(slots=True)
class ClassicGroup:
    group_id: str
    state: ClassicState = ClassicState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    previous_state: ClassicState = ClassicState.EMPTY
    new_member_added: bool = False
    # Until when a new group waits at most for those who start in the same moment.
    gathers_until_ms: int = -1
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    # Members that were given an id and have not used it yet; members that owe a SyncGroup.
    pending_join: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    supporters: dict[str, int] = field(default_factory=dict)
    awaiting_join_count: int = 0
    subscribed_topics: frozenset[str] | None = None
    # Goes up with everything that a decision changes here.
    changes: int = 0
    # Whether the log knows of this group; set by replay.
    is_stored: bool = False

    # -- questions -------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def type_name(self) -> str:
        return "classic"

    @property
    def is_simple(self) -> bool:
        """Offsets without members: made by a commit, never joined."""
        return self.protocol_type is None and self.is_empty and not self.pending_join

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def is_in_first_rebalance(self) -> bool:
        """Whether the join phase still has its initial delay to wait out."""
        was_empty = self.previous_state is ClassicState.EMPTY
        return was_empty and self.state is ClassicState.PREPARING_REBALANCE

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Unknown subscriptions of a consumer group count as all topics."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        everyone = len(self.members)
        return any(self.supporters.get(name, 0) == everyone for name, _ in protocols)

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                raise KafkaError(Error.UNKNOWN_MEMBER_ID)
            if holder != member_id:
                raise KafkaError(Error.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(Error.UNKNOWN_MEMBER_ID)
        return member

    def accepts_joining(self, member_id: str, max_size: int) -> bool:
        """Whether the group has room for this member, old or new (`group.max.size`)."""
        if self.is_empty:
            return True
        if self.state is ClassicState.PREPARING_REBALANCE:
            # Counting who waits, not who is a member, lets a group shrink after max_size did.
            member = self.members.get(member_id)
            is_waiting = member is not None and member.is_awaiting_join
            return is_waiting or self.awaiting_join_count < max_size
        return member_id in self.members or len(self.members) < max_size

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool
    ) -> None:
        """Refuses a commit from outside while there are members, and from an old generation."""
        if generation < 0 and self.is_empty:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(Error.ILLEGAL_GENERATION)
        elif not is_transactional and not self.is_empty:
            raise KafkaError(Error.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            # The member is right and early: it has joined and not yet synced.
            raise KafkaError(Error.REBALANCE_IN_PROGRESS)

    def check_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise KafkaError(Error.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(Error.NON_EMPTY_GROUP)

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """The moment from which an offset's retention counts; None: it does not expire now."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_timestamp_ms < 0 else self.state_timestamp_ms
        is_known = self.uses_consumer_protocol and self.subscribed_topics is not None
        return commit_timestamp_ms if is_known and self.state is ClassicState.STABLE else None

    # -- changes ---------------------------------------------------------------------------

    def touch(self) -> None:
        """Whoever changes something here or of a member says so, before it does."""
        self.changes += 1

    def move(self, step: Step, now_ms: int) -> None:
        self.touch()
        after = TRANSITIONS[self.state, step]
        self.previous_state, self.state = self.state, after
        self.state_timestamp_ms = now_ms

    def can_prepare(self) -> bool:
        return (self.state, Step.PREPARE) in TRANSITIONS

    def add(self, member: ClassicMember) -> None:
        self.touch()
        instance_id = member.group_instance_id
        if instance_id is not None:
            assert instance_id not in self.static_members, "two members with one instance id"
            self.static_members[instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type, "two protocol types in one group"
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.awaiting_join_count += member.is_awaiting_join
        self.pending_join.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        self.touch()
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self.awaiting_join_count -= member.is_awaiting_join
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int,
               session_timeout_ms: int) -> None:  # fmt: skip
        self.touch()
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """The same member under a new id; the old one must have no request open any more."""
        self.touch()
        member = self.members.pop(old_id)
        assert not member.is_awaiting_join
        assert member.sync_ticket is None
        member.member_id = new_id
        member.is_new = False
        self.members[new_id] = member
        self.static_members[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def await_join(self, member: ClassicMember, ticket: int | None) -> None:
        self.touch()
        self.awaiting_join_count += (ticket is not None) - member.is_awaiting_join
        member.join_ticket = ticket

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it has joined, else takes the first who has; false: nobody has."""
        self.touch()
        if self.leader is None:
            return False
        if self.members[self.leader].is_awaiting_join:
            return True
        for member in self.members.values():
            if member.is_awaiting_join:
                self.leader = member.member_id
                return True
        return False

    def start_generation(self, now_ms: int) -> None:
        self.touch()
        self.generation += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.refresh_subscribed_topics()
            self.move(Step.COMPLETE, now_ms)
        else:
            self.protocol_name = None
            self.refresh_subscribed_topics()
            self.move(Step.EMPTY_OUT, now_ms)
        self.pending_sync.clear()

    def select_protocol(self) -> str:
        """The protocol with the most votes among those everyone supports; first seen wins a tie."""
        everyone = len(self.members)
        candidates = {name for name, count in self.supporters.items() if count == everyone}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def refresh_subscribed_topics(self) -> None:
        self.subscribed_topics = self._compute_subscribed_topics()

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscription_topics(member.metadata(self.protocol_name))
            if subscribed is None:
                return None
            topics.update(subscribed)
        return frozenset(topics)

    def _count_protocols(self, member: ClassicMember, difference: int) -> None:
        # A member that names a protocol twice is still one supporter, as everyone is counted once.
        for name in dict(member.protocols):
            count = self.supporters.get(name, 0) + difference
            if count:
                self.supporters[name] = count
            else:
                self.supporters.pop(name, None)
