"""The state machine of the cluster's metadata: who decides on which event, and the fold.

Owns the table from events to deciding functions, and records held back between the bounds of a
transaction in the log. Deterministic: chance comes from the random source it was given, and no
clock is read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import (
    acls,
    brokers,
    configs,
    events,
    features,
    lifecycle,
    quotas,
    reassignments,
    scram,
    tokens,
    voters,
)
from kafkalite.coordinators.cluster.alter_partition import AlterPartition, alter_partition
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.create_partitions import create_partitions
from kafkalite.coordinators.cluster.create_topics import create_topics
from kafkalite.coordinators.cluster.delete_topics import delete_topics
from kafkalite.coordinators.cluster.describing_quorum import DescribeQuorum, describe_quorum
from kafkalite.coordinators.cluster.elect_leaders import elect_leaders
from kafkalite.coordinators.cluster.folding import AT_ONCE, Folded, folded, put_in_place
from kafkalite.coordinators.cluster.image import Image, ImageConflict
from kafkalite.coordinators.cluster.leader_balance import (
    BalanceLeaders,
    ElectLeaderless,
    balance_leaders,
    elect_leaderless,
)
from kafkalite.coordinators.cluster.leading_anew import LeadAnew, lead_anew
from kafkalite.coordinators.cluster.listing_reassignments import list_partition_reassignments
from kafkalite.coordinators.cluster.moving_leader import MoveLeader, move_leader
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.registering_controller import (
    RegisterController,
    register_controller,
)
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects, Record
from kafkalite.coordinators.events import Event
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

if TYPE_CHECKING:
    from random import Random

# In steps where one event may concern thousands.
Decision = Callable[[View, Any], Effects | Steps[Effects]]
DECISIONS: dict[type[Event[object]], Decision] = {
    events.CreateTopics: create_topics,
    events.DeleteTopics: delete_topics,
    events.CreatePartitions: create_partitions,
    configs.AlterConfigs: configs.alter_configs,
    events.AlterClientQuotas: quotas.alter_client_quotas,
    events.AlterUserScramCredentials: scram.alter_user_scram_credentials,
    events.CreateAcls: acls.create_acls,
    events.DeleteAcls: acls.delete_acls,
    tokens.CreateToken: tokens.create_token,
    tokens.RenewToken: tokens.renew_token,
    tokens.ExpireToken: tokens.expire_token,
    tokens.RemoveExpired: tokens.remove_expired,
    events.UpdateFeatures: features.update_features,
    events.AddRaftVoter: voters.add_voter,
    events.RemoveRaftVoter: voters.remove_voter,
    events.ElectLeaders: elect_leaders,
    events.AlterPartitionReassignments: reassignments.alter_partition_reassignments,
    events.ListPartitionReassignments: list_partition_reassignments,
    DescribeQuorum: describe_quorum,
    BalanceLeaders: balance_leaders,
    ElectLeaderless: elect_leaderless,
    LeadAnew: lead_anew,
    MoveLeader: move_leader,
    AlterPartition: alter_partition,
    brokers.RegisterBroker: brokers.register_broker,
    lifecycle.BrokerRegistration: lifecycle.register,
    lifecycle.BrokerHeartbeat: lifecycle.heartbeat,
    RegisterController: register_controller,
    brokers.FenceBroker: brokers.fence_broker,
    brokers.UnregisterBroker: brokers.unregister_broker,
    brokers.AssignDirectories: brokers.assign_directories,
    brokers.DirectoriesOffline: brokers.directories_offline,
    brokers.AllocateProducerIds: brokers.allocate_producer_ids,
}


_BOUNDS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class ClusterShard:
    """Decides and folds; the log and those who ask are `LocalController`'s."""

    __slots__ = ("_held_back", "changes", "config", "image", "view")

    def __init__(self, image: Image, config: BrokerConfig, chance: Random) -> None:
        self.image = image
        self.config = config
        self.changes = Changes()
        self.view = View(self.image, config, chance)
        # Records since a BeginTransactionRecord: they count when the transaction ends.
        self._held_back: list[object] | None = None

    def decide(self, event: Event[object]) -> Steps[Effects]:
        """What shall be written and answered; raises KafkaError for a refusal as a whole."""
        asked = event.request if isinstance(event, events.Requested) else event
        effects = DECISIONS[type(event)](self.view, asked)
        return (yield from effects) if isinstance(effects, Generator) else effects

    def prepare(self, records: list[Record]) -> Steps[list[object] | Folded]:
        """What `take` is to be given for these records; nothing else is folded in before that."""
        messages: list[object] = []
        for number, record in enumerate(records):
            assert record.value is not None, "a metadata record without a value"
            decoded = record.decoded
            messages.append(decode_record(record.value) if decoded is None else decoded)
            if (number + 1) % AT_ONCE == 0:
                yield
        if len(messages) <= AT_ONCE or _BOUNDS.intersection(map(type, messages)):
            return messages
        assert not self.is_in_transaction, "a decision belongs to a transaction that was left open"
        return (yield from folded(self.image, messages))

    def take(self, prepared: list[object] | Folded) -> Changes:
        """Changes the image; says what that changed."""
        if isinstance(prepared, Folded):
            put_in_place(self.image, prepared)
            return prepared.changes
        for message in prepared:
            self.fold(message)
        return self.take_changes()

    def fold(self, message: object) -> None:
        """Folds one message in, or holds it back until its transaction ends."""
        kind = type(message).__name__
        if kind == "BeginTransactionRecord":
            if self._held_back is not None:
                raise ImageConflict("a metadata transaction begins within another")
            self._held_back = []
        elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
            self._end_transaction(is_aborted=kind == "AbortTransactionRecord")
        elif self._held_back is not None:
            self._held_back.append(message)
        else:
            self.image.apply(message, self.changes)

    def _end_transaction(self, *, is_aborted: bool) -> None:
        if self._held_back is None:
            raise ImageConflict("a metadata transaction ends that has not begun")
        held_back, self._held_back = self._held_back, None
        for message in () if is_aborted else held_back:
            self.image.apply(message, self.changes)

    @property
    def is_in_transaction(self) -> bool:
        """Whether records are held back: whatever is written next belongs to their transaction."""
        return self._held_back is not None

    def hold_back_as(self, other: ClusterShard) -> None:
        """What is held back is what another one, which has read the log, holds back."""
        self._held_back = other._held_back

    def take_changes(self) -> Changes:
        """What was changed since this was last asked."""
        changes, self.changes = self.changes, Changes()
        return changes
