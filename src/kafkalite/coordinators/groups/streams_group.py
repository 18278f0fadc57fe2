"""A streams group (KIP-1071) and its members: the data, and what can be told from it.

Owns epochs, the topology, the target assignment and which process has which task. All of it is
durable and is changed by `replay` alone, but for what is marked volatile. A task is a subtopology
and a partition. Invariant: `active`, `standby` and `warmup` name, for each task that some member
has or has yet to give back, the processes that do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from kafkalite.coordinators.groups.consumer_group import (
    FIRST_EPOCH,
    JOINING_EPOCH,
    MEMBER_EPOCH_SINCE,
    NO_MEMBER_EPOCH,
)
from kafkalite.coordinators.groups.streams_topology import Configured, Topology
from kafkalite.protocol.errors import Error, KafkaError

NO_TOPOLOGY_EPOCH = -1

# Partitions by subtopology; each of what a member has with the epoch that it was assigned in, which
# only active tasks keep.
Places = dict[str, tuple[int, ...]]
Held = dict[str, dict[int, int]]
NOT_KEPT = -1


class Tasks(NamedTuple):
    """What a member is to have."""

    active: Places
    standby: Places
    warmup: Places


class HeldTasks(NamedTuple):
    """What a member has."""

    active: Held
    standby: Held
    warmup: Held


NO_TASKS = Tasks({}, {}, {})
NOTHING_HELD = HeldTasks({}, {}, {})


class StreamsMemberState(IntEnum):
    """Where a member is on the way to its target."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # it has yet to give tasks back
    UNRELEASED_TASKS = 3  # others have yet to give back what it is to get
    UNKNOWN = 127


class StreamsState(Enum):
    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True, frozen=True)
class StreamsMember:
    """One member; never changed, only replaced."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    client_tags: dict[str, str] = field(default_factory=dict)
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = JOINING_EPOCH
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: HeldTasks = NOTHING_HELD
    pending_revocation: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        is_stable = self.state is StreamsMemberState.STABLE
        return is_stable and self.member_epoch == assignment_epoch

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """Of an active task that it has, or has yet to give back."""
        for tasks in (self.assigned, self.pending_revocation):
            epoch = tasks.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(slots=True)
class StreamsGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology_epoch: int = 0
    assignment_configs: dict[str, str] = field(default_factory=dict)
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    topology: Topology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, Tasks] = field(default_factory=dict)
    # By task: the process that has it, or those that do.
    active: dict[tuple[str, int], str] = field(default_factory=dict)
    standby: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    warmup: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    # Volatile: what the topology comes to, and whether topics have changed since.
    configured: Configured | None = None
    must_refresh: bool = True
    # Volatile: the member that wants all of the application to end.
    shutdown_by: str | None = None
    # Volatile: rises with each assignment of a member that has an endpoint.
    endpoint_epoch: int = 0

    @property
    def type_name(self) -> str:
        return "streams"

    @property
    def protocol_type(self) -> str:
        return "streams"

    @property
    def state(self) -> StreamsState:
        if not self.members:
            return StreamsState.EMPTY
        topology = self.topology
        if topology is None or topology.epoch != self.validated_topology_epoch:
            return StreamsState.NOT_READY
        epoch = self.assignment_epoch
        if self.epoch > epoch:
            return StreamsState.ASSIGNING
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return StreamsState.STABLE
        return StreamsState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> StreamsMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                Error.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether its members read it."""
        has_source = self.topology is not None and topic in self.topology.sources
        return has_source and bool(self.members)

    def needs_any(self, names: Iterable[str]) -> bool:
        """Whether one of them is read or written by its topology."""
        topology = self.topology
        return topology is not None and not topology.required.isdisjoint(names)

    # -- what others may do ------------------------------------------------------------------------

    def refusal(self) -> KafkaError:
        """For a request of another kind of group."""
        message = f"Group {self.group_id} is not a consumer group."
        return KafkaError(Error.GROUP_ID_NOT_FOUND, message)

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        version: int,
        *,
        is_transactional: bool,
    ) -> StreamsMember | None:
        """The member whose tasks must be checked one by one; None: all may be committed."""
        if epoch < 0 and not self.members:
            return None
        is_anonymous = epoch == NO_MEMBER_EPOCH and not member_id and instance_id is None
        if is_transactional and is_anonymous:
            return None
        member = self.member(member_id)
        if not is_transactional and version < MEMBER_EPOCH_SINCE:
            raise KafkaError(
                Error.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_EPOCH_SINCE} or above must be used by members"
                " using the streams group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise KafkaError(Error.STALE_MEMBER_EPOCH)
        return member

    def check_owned(self, member: StreamsMember, epoch: int, topic: str, partition: int) -> None:
        """Refuses a commit of an older epoch for what the member got since, or does not have."""
        subtopology_id = None if self.topology is None else self.topology.sources.get(topic)
        if subtopology_id is None:
            raise KafkaError(Error.STALE_MEMBER_EPOCH)
        assigned_in = member.assignment_epoch(subtopology_id, partition)
        if assigned_in is None or epoch < assigned_in:
            raise KafkaError(Error.STALE_MEMBER_EPOCH)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        if epoch != self.member(member_id or "").member_epoch:
            raise KafkaError(Error.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        """Topics that nobody reads may go at any time."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(Error.NON_EMPTY_GROUP)

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # -- replay ------------------------------------------------------------------------------------

    def put_member(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        for tasks in (member.assigned, member.pending_revocation):
            self.active.update(dict.fromkeys(_each(tasks.active), member.process_id))
            for held, owners in ((tasks.standby, self.standby), (tasks.warmup, self.warmup)):
                for task in _each(held):
                    owners[task] = owners.get(task, frozenset()) | {member.process_id}

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
        if not self.members:
            self.shutdown_by = None

    def _release(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.pending_revocation):
            for task in _each(tasks.active):
                if self.active.get(task) == member.process_id:
                    del self.active[task]
            for held, owners in ((tasks.standby, self.standby), (tasks.warmup, self.warmup)):
                for task in _each(held):
                    left = owners.pop(task, frozenset()) - {member.process_id}
                    if left:
                        owners[task] = left


def _each(tasks: Held) -> Iterable[tuple[str, int]]:
    return ((each, partition) for each, partitions in tasks.items() for partition in partitions)
