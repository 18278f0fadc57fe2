"""How a partition changes: who leads it next, who stays in sync, who is eligible, what moves.

Owns Kafka's rules of election (preferred, in sync, eligible by KIP-966, last known leader,
unclean) and of a move's end. Decides about one partition and returns one record, or None when
nothing changes.
"""

from __future__ import annotations

from enum import Enum

from kafkalite.config import topic_value
from kafkalite.coordinators.cluster.assignments import default_directory
from kafkalite.coordinators.cluster.directories import directory_of, is_online
from kafkalite.coordinators.cluster.image import NO_LEADER_CHANGE
from kafkalite.coordinators.cluster.states import NO_LEADER, TOPIC, PartitionState
from kafkalite.coordinators.cluster.view import View
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.protocol.messages import PartitionChangeRecord

RECOVERED, RECOVERING = 0, 1
# The metadata.version up to which brokers need a new leader epoch when a replica falls behind.
EPOCHS_OUTLIVE_SHRINKS = 12


class Election(Enum):
    """What an election is held for."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(slots=True)
class Target:
    """What a partition shall become; begins as what it is."""

    isr: list[int]
    replicas: list[int]
    removing: list[int]
    adding: list[int]
    elr: list[int]
    # Brokers to be thought of as down, whatever the image says of them.
    leaving: set[int] = field(default_factory=set)
    # Where replicas lie that were opened elsewhere than the metadata says.
    directories: dict[int, bytes] = field(default_factory=dict)
    # The other way round: those that are coming up.
    joining: set[int] = field(default_factory=set)
    # Brokers whose logs may have lost what they had.
    unclean: set[int] = field(default_factory=set)
    election: Election = Election.ONLINE
    # Whether its leader was elected uncleanly and has not said since that it goes on.
    recovery: int = RECOVERED

    @classmethod
    def of(cls, state: PartitionState) -> Target:
        """The partition as it is."""
        return cls(
            isr=list(state.isr),
            replicas=list(state.replicas),
            removing=list(state.removing_replicas),
            adding=list(state.adding_replicas),
            elr=list(state.elr),
            recovery=state.leader_recovery_state,
        )


def change_partition(
    view: View, state: PartitionState, target: Target
) -> PartitionChangeRecord | None:
    """The record that brings a partition to its target, with the leader it then has."""
    record = PartitionChangeRecord(partition_id=state.index, topic_id=state.topic_id)
    has_elr = view.image.has_elr
    if target.recovery != state.leader_recovery_state:
        record.leader_recovery_state = target.recovery
    _complete_reassignment(target)
    _find_eligible(view, state, target, has_elr=has_elr)
    _elect(view, state, target, record, has_elr=has_elr)
    lost_replica = not set(state.replicas) <= set(target.replicas)
    if record.leader == NO_LEADER_CHANGE and lost_replica:
        # Said again, a leader begins a new epoch: the replica that left must notice.
        record.leader = state.leader
    _describe_isr(state, target, record, has_elr=has_elr)
    if view.image.metadata_version < EPOCHS_OUTLIVE_SHRINKS and _shrinks(state, record):
        record.leader = state.leader
    _describe_assignment(view, state, target, record)
    return None if _changes_nothing(record) else record


def _shrinks(state: PartitionState, record: PartitionChangeRecord) -> bool:
    """Whether a replica leaves the in-sync ones while the leader stays."""
    if record.leader != NO_LEADER_CHANGE or record.isr is None:
        return False
    return not set(state.isr) <= set(record.isr)


def may_lead(view: View, state: PartitionState, broker_id: int, target: Target) -> bool:
    """Whether a replica's broker is up, and its directory there."""
    broker = view.image.brokers.get(broker_id)
    is_joining = broker_id in target.joining
    if broker is None:
        return is_joining
    directory = target.directories.get(broker_id, directory_of(state, broker_id))
    is_there = is_joining or (broker.is_active and is_online(directory, broker.log_dirs))
    return is_there and broker_id not in target.leaving


def min_isr(view: View, state: PartitionState) -> int:
    """In-sync replicas a partition needs, as far as it has as many."""
    value = _setting(view, state, "min.insync.replicas")
    assert isinstance(value, int)
    return min(value, len(state.replicas))


def online_election(view: View, state: PartitionState) -> Election:
    """What is held when brokers come and go: may a replica out of sync lead, if it must?"""
    is_unclean = _setting(view, state, "unclean.leader.election.enable")
    return Election.UNCLEAN if is_unclean else Election.ONLINE


def _setting(view: View, state: PartitionState, name: str) -> object:
    topic = view.image.topic_name(state.topic_id) or ""
    return topic_value(view.config, view.image.config(TOPIC, topic), name)


def _complete_reassignment(target: Target) -> None:
    """Ends a move once every newcomer is in sync and somebody who stays is."""
    if not target.removing and not target.adding:
        return
    isr = [replica for replica in target.isr if replica not in target.removing]
    replicas = [replica for replica in target.replicas if replica not in target.removing]
    if not isr or not replicas or not set(target.adding) <= set(isr):
        return
    shrinks = len(target.adding) < len(target.removing)
    if shrinks and not set(replicas) <= set(isr):
        return
    target.isr, target.replicas, target.removing, target.adding = isr, replicas, [], []


def _find_eligible(view: View, state: PartitionState, target: Target, *, has_elr: bool) -> None:
    if not has_elr or len(target.isr) >= min_isr(view, state):
        target.elr = []
        return
    candidates = set(target.elr) | set(state.isr)
    target.elr = sorted(candidates - set(target.isr) - target.unclean)


def _elect(
    view: View,
    state: PartitionState,
    target: Target,
    record: PartitionChangeRecord,
    *,
    has_elr: bool,
) -> None:
    leader, is_unclean = _leader(view, state, target, has_elr=has_elr)
    if leader == state.leader:
        return
    record.leader = leader
    if is_unclean:
        record.isr = target.isr = [leader]
        target.elr = []
        if state.leader_recovery_state != RECOVERING:
            record.leader_recovery_state = RECOVERING
    elif leader in target.elr:
        target.isr = [leader]
        target.elr.remove(leader)


def _leader(
    view: View, state: PartitionState, target: Target, *, has_elr: bool
) -> tuple[int, bool]:
    """Who leads next, and whether records may be lost by it."""
    in_line = [state.leader, *target.replicas]
    if target.election is Election.PREFERRED:
        in_line.insert(0, target.replicas[0])
    pool = target.isr or target.elr
    for broker_id in in_line:
        if broker_id in pool and may_lead(view, state, broker_id, target):
            return broker_id, False
    for broker_id in state.last_known_elr:
        is_only = len(state.last_known_elr) == 1
        if has_elr and not pool and is_only and may_lead(view, state, broker_id, target):
            return broker_id, True
    if target.election is Election.UNCLEAN:
        for broker_id in target.replicas:
            if may_lead(view, state, broker_id, target):
                return broker_id, True
    return NO_LEADER, False


def _describe_isr(
    state: PartitionState, target: Target, record: PartitionChangeRecord, *, has_elr: bool
) -> None:
    if tuple(target.elr) != state.elr:
        record.eligible_leader_replicas = target.elr
    may_be_empty = has_elr or bool(target.isr)
    if record.isr is None and may_be_empty and tuple(target.isr) != state.isr:
        record.isr = target.isr
    if not has_elr:
        return
    if record.leader == NO_LEADER and not state.last_known_elr:
        record.last_known_elr = [state.leader]
    elif record.leader >= 0 and state.last_known_elr:
        record.last_known_elr = []


def _describe_assignment(
    view: View, state: PartitionState, target: Target, record: PartitionChangeRecord
) -> None:
    known = dict(zip(state.replicas, state.directories, strict=False)) | target.directories
    if tuple(target.replicas) != state.replicas:
        record.replicas = target.replicas
    if tuple(target.replicas) != state.replicas or target.directories:
        record.directories = [
            known[each] if each in known else default_directory(view, each)
            for each in target.replicas
        ]
    if tuple(target.removing) != state.removing_replicas:
        record.removing_replicas = target.removing
    if tuple(target.adding) != state.adding_replicas:
        record.adding_replicas = target.adding


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    empty = PartitionChangeRecord(partition_id=record.partition_id, topic_id=record.topic_id)
    return record == empty
