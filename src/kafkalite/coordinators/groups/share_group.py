"""A share group (KIP-932) and its members: the data, and what can be told from it.

Owns epochs, subscriptions, the target assignment, and which partitions are shared: being
initialized, initialized, or being deleted. All of it is durable and is changed by `replay` alone. A
partition may be assigned to several members, and what they acquire of it is no matter of the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kafkalite.coordinators.groups.consumer_group import FIRST_EPOCH, JOINING_EPOCH, Target
from kafkalite.protocol.errors import Error, KafkaError

NO_EPOCH = -1
STABLE = 0  # the one state that members have


class ShareState(Enum):
    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(slots=True, frozen=True)
class ShareMember:
    """One member; never changed, only replaced."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: tuple[str, ...] = ()
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = NO_EPOCH
    assigned: Target = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class SharedTopic:
    """Partitions of a topic, whose state is kept or about to be."""

    name: str
    partitions: frozenset[int]


SharedTopics = dict[bytes, SharedTopic]


@dataclass(slots=True, frozen=True)
class Shared:
    """Which partitions are shared, by topic id, and topics whose state is being deleted."""

    initializing: SharedTopics = field(default_factory=dict)
    initialized: SharedTopics = field(default_factory=dict)
    deleting: dict[bytes, str] = field(default_factory=dict)


@dataclass(slots=True)
class ShareGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    shared: Shared | None = None
    # Volatile: topics have changed since the metadata hash was computed.
    must_refresh: bool = True

    @property
    def type_name(self) -> str:
        return "share"

    @property
    def protocol_type(self) -> str:
        return "share"

    @property
    def state(self) -> ShareState:
        return ShareState.STABLE if self.members else ShareState.EMPTY

    @property
    def is_empty(self) -> bool:
        """Never a thing to clear away: the state of its partitions stays until somebody asks."""
        return False

    @property
    def is_newer(self) -> bool:
        return False

    def member(self, member_id: str) -> ShareMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                Error.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def subscribed_topics(self) -> set[str]:
        return {name for member in self.members.values() for name in member.subscribed_topics}

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topics for member in self.members.values())

    # -- what others may not do ----------------------------------------------------------------

    def refusal(self) -> KafkaError:
        """For a request of another kind of group."""
        message = f"Group {self.group_id} is not a consumer group."
        return KafkaError(Error.GROUP_ID_NOT_FOUND, message)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transactional: bool
    ) -> None:
        raise self.refusal()

    def check_offset_delete(self) -> None:
        raise self.refusal()

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(Error.NON_EMPTY_GROUP, Error.NON_EMPTY_GROUP.message)

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """It has no offsets of its own; what is left of another group's is not expired."""
        return None
