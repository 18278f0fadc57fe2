"""A consumer group (KIP-848) and its members: the data, and what can be told from it.

Owns epochs, subscriptions, the target assignment and who holds which partition. All of it is
durable and is changed by `replay` alone; decisions look and write records. Invariant: `owners`
names, for each partition that some member has or has yet to give back, that member.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from kafkalite.coordinators.groups.classic_group import Protocols
from kafkalite.protocol.errors import Error, KafkaError

# A group that nobody has joined yet; its first member makes it the next one.
FIRST_EPOCH = 1

# Epochs that mean something else than a number.
JOINING_EPOCH = 0
LEFT_EPOCH = -1
AWAY_EPOCH = -2  # a static member that will be back

# Since this version OffsetCommit knows member epochs.
MEMBER_EPOCH_SINCE = 9
NO_MEMBER_EPOCH = -1

# Partitions of topics by id, each with the epoch it was assigned in.
Assigned = dict[bytes, dict[int, int]]
Target = dict[bytes, tuple[int, ...]]


class MemberState(IntEnum):
    """Where a member is on the way to its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has yet to give partitions back
    UNRELEASED_PARTITIONS = 2  # others have yet to give back what it is to get
    UNKNOWN = 127


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True, frozen=True)
class ClassicSide:
    """What a member has besides when it speaks the classic protocol."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    """One member; never changed, only replaced."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: tuple[str, ...] = ()
    subscribed_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    pending_revocation: Assigned = field(default_factory=dict)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def holds(self) -> Iterable[tuple[bytes, int]]:
        """What the member has, and what it has yet to give back."""
        for partitions in (self.assigned, self.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    yield topic_id, partition

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def stale(self) -> KafkaError:
        """The refusal of a wrong epoch, in the words of the member's protocol."""
        is_classic = self.classic is not None
        return KafkaError(Error.ILLEGAL_GENERATION if is_classic else Error.STALE_MEMBER_EPOCH)


@dataclass(slots=True, frozen=True)
class ResolvedRegex:
    """The topics that a regular expression matched, when it was last looked at."""

    topics: tuple[str, ...]
    timestamp_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    owners: dict[tuple[bytes, int], str] = field(default_factory=dict)
    # Apache Kafka before 4.1 kept topic metadata in a record, which is to be deleted.
    has_topic_metadata_record: bool = False
    # Volatile: topics have changed since the metadata hash was computed.
    must_refresh: bool = True
    # Volatile: there may be topics that no pattern was held against.
    must_match: bool = True
    # Volatile: when it was last looked what all patterns match.
    matched_ms: int = 0

    @property
    def type_name(self) -> str:
        return "consumer"

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                Error.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """Names the member subscribes to, also those its regular expression matched."""
        resolved = self.regexes.get(member.subscribed_regex)
        if resolved is None:
            return member.subscribed_topics
        return tuple(dict.fromkeys((*member.subscribed_topics, *resolved.topics)))

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    # -- what classic members and commits may do -------------------------------------------

    @property
    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        version: int,
        *,
        is_transactional: bool,
    ) -> ConsumerMember | None:
        """The member whose partitions must be checked one by one; None: all may be committed."""
        if epoch < 0 and not self.members:
            return None
        is_anonymous = epoch == NO_MEMBER_EPOCH and not member_id and instance_id is None
        if is_transactional and is_anonymous:
            return None
        member = self.member(member_id)
        if not is_transactional and member.classic is None and version < MEMBER_EPOCH_SINCE:
            raise KafkaError(
                Error.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_EPOCH_SINCE} or above must be used by members"
                " using the consumer group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise member.stale()
        return member

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch != member.member_epoch:
            raise member.stale()

    def check_offset_delete(self) -> None:
        """Topics that nobody subscribes to may go at any time."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(Error.NON_EMPTY_GROUP)

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # -- replay ----------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        held = dict.fromkeys(member.holds(), member.member_id)
        if old is not None:
            self._release(old, held)
            if old.instance_id is not None and old.instance_id != member.instance_id:
                self._drop_instance(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.owners.update(held)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            self._drop_instance(member)

    def _release(
        self, member: ConsumerMember, kept: Container[tuple[bytes, int]] = frozenset()
    ) -> None:
        for held in member.holds():
            if held not in kept and self.owners.get(held) == member.member_id:
                del self.owners[held]

    def _drop_instance(self, member: ConsumerMember) -> None:
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]


def check_owned(member: ConsumerMember, epoch: int, topic_id: bytes, partition: int) -> None:
    """Refuses a commit of an older epoch for what the member got since, or does not have."""
    assigned_in = member.assignment_epoch(topic_id, partition)
    if assigned_in is None or epoch < assigned_in:
        raise member.stale()
